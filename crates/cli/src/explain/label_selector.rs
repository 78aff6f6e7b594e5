//! The label selector of `-l`: requirements of equality and existence, separated by commas.

use serde_json::Value;

use crate::cli_error::CliError;

#[derive(Debug, PartialEq, Eq)]
pub struct LabelSelector(Vec<Requirement>);

#[derive(Debug, PartialEq, Eq)]
enum Requirement {
    Equal(String, String),
    NotEqual(String, String),
    Exists(String),
    DoesNotExist(String),
}

impl LabelSelector {
    pub fn parse(text: &str) -> Result<Self, CliError> {
        let parts = text.split(',').map(str::trim);
        parts.map(requirement).collect::<Result<_, _>>().map(Self)
    }

    pub fn matches(&self, object: &Value) -> bool {
        let label = |key: &str| object.pointer("/metadata/labels")?.get(key)?.as_str();
        self.0.iter().all(|requirement| match requirement {
            Requirement::Equal(key, value) => label(key) == Some(value),
            Requirement::NotEqual(key, value) => label(key) != Some(value),
            Requirement::Exists(key) => label(key).is_some(),
            Requirement::DoesNotExist(key) => label(key).is_none(),
        })
    }
}

fn requirement(text: &str) -> Result<Requirement, CliError> {
    let pair = |separator| {
        let (key, value): (&str, &str) = text.split_once(separator)?;
        Some((key.trim().to_owned(), value.trim().to_owned()))
    };
    let (requirement, key) = if let Some((key, value)) = pair("!=") {
        (Requirement::NotEqual(key.clone(), value), key)
    } else if let Some((key, value)) = pair("==").or_else(|| pair("=")) {
        (Requirement::Equal(key.clone(), value), key)
    } else if let Some(key) = text.strip_prefix('!') {
        (Requirement::DoesNotExist(key.to_owned()), key.to_owned())
    } else {
        (Requirement::Exists(text.to_owned()), text.to_owned())
    };
    if key.is_empty() || key.contains(|c: char| c.is_whitespace() || "()=!".contains(c)) {
        return Err(CliError::new(
            format!("not a label selector: `{text}`"),
            "known are `key=value`, `key!=value`, `key`, and `!key`, separated by commas",
        ));
    }
    Ok(requirement)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn requirements_are_those_of_kubectl() {
        let object = json!({"metadata": {"labels": {"app": "web", "tier": "front"}}});
        for (text, want) in [
            ("app=web", true),
            ("app==web,tier=front", true),
            ("app=web,tier=back", false),
            ("app!=web", false),
            ("zone!=a", true),
            ("app", true),
            ("!app", false),
            ("!zone, app = web", true),
        ] {
            let selector = LabelSelector::parse(text).map_err(|error| error.message);
            assert_eq!(selector.map(|selector| selector.matches(&object)), Ok(want), "{text}");
        }
        for text in ["", "app in (a)", "=web", "a,,b", "!"] {
            assert!(LabelSelector::parse(text).is_err(), "{text}");
        }
    }
}
