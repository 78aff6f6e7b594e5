//! Which object to explain: `svc/web`, `pod web-1`, `web`.

use crate::cli_error::CliError;

/// Kinds and their names in kubectl.
const KINDS: [(Kind, &[&str]); 4] = [
    (Kind::Service, &["service", "services", "svc"]),
    (Kind::Pod, &["pod", "pods", "po"]),
    (Kind::Endpoints, &["endpoints", "ep"]),
    (Kind::EndpointSlice, &["endpointslice", "endpointslices"]),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Service,
    Pod,
    Endpoints,
    EndpointSlice,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub kind: Kind,
    pub name: String,
}

impl Kind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Service => "Service",
            Self::Pod => "Pod",
            Self::Endpoints => "Endpoints",
            Self::EndpointSlice => "EndpointSlice",
        }
    }
}

impl Target {
    /// `None`: all Services.
    pub fn parse(words: &[String]) -> Result<Option<Self>, CliError> {
        let (kind, name) = match words {
            [] => return Ok(None),
            [kind, name] if !kind.contains('/') && !name.contains('/') => (kind.as_str(), name),
            [word] => match word.split_once('/') {
                Some((kind, name)) => return Self::named(kind, name, word).map(Some),
                None => ("service", word),
            },
            _ => return Err(not_an_object(&words.join(" "))),
        };
        Self::named(kind, name, name).map(Some)
    }

    fn named(kind: &str, name: &str, word: &str) -> Result<Self, CliError> {
        let bare = kind.split('.').next().unwrap_or(kind).to_ascii_lowercase();
        let known = KINDS.iter().find(|(_, names)| names.contains(&bare.as_str()));
        let Some((kind, _)) = known else {
            return Err(CliError::new(
                format!("cannot explain objects of this kind: `{kind}`"),
                "kinds are `svc`, `pod`, `endpoints`, and `endpointslice`; a namespace is given \
                 with `-n`",
            ));
        };
        if name.is_empty() || name.contains('/') {
            return Err(not_an_object(word));
        }
        Ok(Self { kind: *kind, name: name.to_owned() })
    }
}

fn not_an_object(text: &str) -> CliError {
    CliError::new(
        format!("not the name of an object: `{text}`"),
        "as in `svc/web`, `pod/web-1`, or `web` for a Service",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Option<Target>, String> {
        let words: Vec<String> = words.iter().map(ToString::to_string).collect();
        Target::parse(&words).map_err(|error| error.message)
    }

    #[test]
    fn objects_are_named_as_in_kubectl() {
        let is = |kind, name: &str| Ok(Some(Target { kind, name: name.to_owned() }));
        assert_eq!(parse(&[]), Ok(None));
        assert_eq!(parse(&["web"]), is(Kind::Service, "web"));
        assert_eq!(parse(&["svc/web"]), is(Kind::Service, "web"));
        assert_eq!(parse(&["Service/web"]), is(Kind::Service, "web"));
        assert_eq!(parse(&["po", "web-1"]), is(Kind::Pod, "web-1"));
        assert_eq!(parse(&["ep/db"]), is(Kind::Endpoints, "db"));
        let slice = "endpointslices.discovery.k8s.io/web-x";
        assert_eq!(parse(&[slice]), is(Kind::EndpointSlice, "web-x"));
    }

    #[test]
    fn other_names_are_errors() {
        for words in [&["shop/web"][..], &["svc/"], &["svc/a/b"], &["svc/a", "b"], &["deploy", "a"]]
        {
            assert!(parse(words).is_err(), "{words:?}");
        }
    }
}
