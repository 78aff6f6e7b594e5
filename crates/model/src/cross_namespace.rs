//! The annotations by which Services share endpoints between namespaces, and the condition that says
//! what came of it.

use std::fmt;

use crate::{Annotations, Condition, Key, SharedStr, derived_name, names};

/// What a Service says about endpoints of other namespaces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CrossNamespace {
    /// Whose endpoints this Service publishes.
    pub from: Option<SharedStr>,
    /// The namespaces that may publish the endpoints of this Service.
    pub to: Option<SharedStr>,
    /// What its status says about `from`: [`names::SOURCE_CONDITION`], as it was observed.
    pub condition: Option<Condition>,
}

/// Why a Service has the endpoints of its source, or has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SourceReason {
    Mirrored,
    InvalidReference,
    HasSelector,
    ExternalName,
    RefNotPermitted,
    SourceNotFound,
    ChainNotAllowed,
    PortNotFound,
}

impl SourceReason {
    pub const ALL: [Self; 8] = [
        Self::Mirrored,
        Self::InvalidReference,
        Self::HasSelector,
        Self::ExternalName,
        Self::RefNotPermitted,
        Self::SourceNotFound,
        Self::ChainNotAllowed,
        Self::PortNotFound,
    ];

    /// The reason of the condition and of the Event, and the label in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Mirrored => "Mirrored",
            Self::InvalidReference => "InvalidReference",
            Self::HasSelector => "HasSelector",
            Self::ExternalName => "ExternalName",
            Self::RefNotPermitted => "RefNotPermitted",
            Self::SourceNotFound => "SourceNotFound",
            Self::ChainNotAllowed => "ChainNotAllowed",
            Self::PortNotFound => "PortNotFound",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == text)
    }
}

/// The text is neither `NAMESPACE/NAME` nor `serviceimports/NAMESPACE/NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidReference(pub SharedStr);

impl CrossNamespace {
    /// None if neither annotation nor the condition is set.
    pub fn of(annotations: &Annotations, condition: Option<Condition>) -> Option<Self> {
        let get = |name| annotations.get(name).cloned();
        let (from, to) = (get(names::ENDPOINTS_FROM), get(names::ENDPOINTS_TO));
        let is_set = from.is_some() || to.is_some() || condition.is_some();
        is_set.then_some(Self { from, to, condition })
    }

    pub fn condition(&self) -> Option<&Condition> {
        self.condition.as_ref()
    }

    /// The Service whose endpoints this one publishes; for a ServiceImport, the Service that is
    /// derived from it.
    pub fn source(&self) -> Option<Result<Key, InvalidReference>> {
        let text = self.from.as_ref()?;
        let parts: Vec<&str> = text.trim().split('/').collect();
        Some(match parts[..] {
            [namespace, name] if is_dns_label(namespace) && is_dns_label(name) => {
                Ok(Key::new(namespace, name))
            }
            ["serviceimports", namespace, name]
                if is_dns_label(namespace) && is_dns_label(name) =>
            {
                let derived = derived_name(&Key::new(namespace, name));
                Ok(Key::new(namespace, derived))
            }
            _ => Err(InvalidReference(text.clone())),
        })
    }

    /// Whether the owner lets this namespace publish the endpoints of the Service.
    pub fn permits(&self, namespace: &str) -> bool {
        let mut listed = self.to.iter().flat_map(|list| list.split(',').map(str::trim));
        listed.any(|one| one == "*" || one == namespace)
    }
}

/// A DNS label (RFC 1123), as names of namespaces and Services are.
pub(crate) fn is_dns_label(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=63).contains(&text.len())
        && text.bytes().all(is_inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

impl fmt::Display for InvalidReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let form = "NAMESPACE/NAME or serviceimports/NAMESPACE/NAME";
        write!(f, "`{}` is not of the form {form}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(text: &str) -> Option<Key> {
        let cross = CrossNamespace { from: Some(text.into()), ..CrossNamespace::default() };
        cross.source().and_then(Result::ok)
    }

    #[test]
    fn a_source_is_a_namespace_and_a_name() {
        assert_eq!(from("data/postgres"), Some(Key::new("data", "postgres")));
        assert_eq!(from(" data/postgres "), Some(Key::new("data", "postgres")));
        for text in ["", "postgres", "data/", "/postgres", "a/b/c", "Data/x", "a/-x", "a/../b"] {
            assert_eq!(from(text), None, "{text}");
        }
        assert_eq!(from(&format!("data/{}", "a".repeat(64))), None);
    }

    #[test]
    fn an_import_stands_for_its_derived_service() {
        let derived = Some(Key::new("my-ns", "derived-a2v4k9sqn6"));
        assert_eq!(from("serviceimports/my-ns/my-svc"), derived);
        assert_eq!(from(" serviceimports/my-ns/my-svc "), derived);
        for text in ["serviceimports/a/", "serviceimports/a/b/c", "serviceimport/a/b"] {
            assert_eq!(from(text), None, "{text}");
        }
        // A namespace can have this name.
        let service = Some(Key::new("serviceimports", "web"));
        assert_eq!(from("serviceimports/web"), service);
    }

    #[test]
    fn consent_names_namespaces_or_all() {
        let to = |text: &str| CrossNamespace { to: Some(text.into()), ..CrossNamespace::default() };
        assert!(to("shop, web").permits("web") && to("shop,web").permits("shop"));
        assert!(to("*").permits("any") && to("shop, *").permits("any"));
        assert!(!to("shop").permits("sho") && !to("").permits("shop") && !to(",").permits("x"));
        assert!(!CrossNamespace::default().permits("shop"));
    }

    #[test]
    fn services_without_the_annotations_have_none() {
        let annotations = |name: &str| [(name, "x")].into_iter().collect();
        let of = |name| CrossNamespace::of(&annotations(name), None);
        assert_eq!(of("other"), None);
        assert!(of(names::ENDPOINTS_TO).is_some());
        assert!(of(names::ENDPOINTS_FROM).is_some());
        let condition = Some(Condition::default());
        assert!(CrossNamespace::of(&annotations("other"), condition).is_some());
    }
}
