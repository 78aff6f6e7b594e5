//! Label selectors: requirements of equality and existence, separated by commas, as kubectl's `-l`.

use std::fmt;

/// All requirements must be met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelSelector(Vec<Requirement>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Requirement {
    Equal(String, String),
    NotEqual(String, String),
    Exists(String),
    DoesNotExist(String),
}

/// The part that is not a requirement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidSelector(pub String);

impl LabelSelector {
    pub fn parse(text: &str) -> Result<Self, InvalidSelector> {
        let parts = text.split(',').map(str::trim);
        parts.map(requirement).collect::<Result<_, _>>().map(Self)
    }

    /// `label` returns the value of a label.
    pub fn matches<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.0.iter().all(|requirement| match requirement {
            Requirement::Equal(key, value) => label(key) == Some(value),
            Requirement::NotEqual(key, value) => label(key) != Some(value),
            Requirement::Exists(key) => label(key).is_some(),
            Requirement::DoesNotExist(key) => label(key).is_none(),
        })
    }

    /// No object matches both. False does not mean that there is one.
    pub fn excludes(&self, other: &Self) -> bool {
        let contradicts = |one: &Requirement, other: &Requirement| match (one, other) {
            (Requirement::Equal(a, x), Requirement::Equal(b, y)) => a == b && x != y,
            (Requirement::Equal(a, x), Requirement::NotEqual(b, y)) => a == b && x == y,
            (Requirement::Equal(a, _), Requirement::DoesNotExist(b))
            | (Requirement::Exists(a), Requirement::DoesNotExist(b)) => a == b,
            (
                Requirement::Equal(..)
                | Requirement::NotEqual(..)
                | Requirement::Exists(_)
                | Requirement::DoesNotExist(_),
                _,
            ) => false,
        };
        self.0
            .iter()
            .any(|one| other.0.iter().any(|two| contradicts(one, two) || contradicts(two, one)))
    }
}

/// As the API server reads it.
impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let requirement = |one: &Requirement| match one {
            Requirement::Equal(key, value) => format!("{key}={value}"),
            Requirement::NotEqual(key, value) => format!("{key}!={value}"),
            Requirement::Exists(key) => key.clone(),
            Requirement::DoesNotExist(key) => format!("!{key}"),
        };
        f.write_str(&self.0.iter().map(requirement).collect::<Vec<_>>().join(","))
    }
}

fn requirement(text: &str) -> Result<Requirement, InvalidSelector> {
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
        return Err(InvalidSelector(text.to_owned()));
    }
    Ok(requirement)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements_are_those_of_kubectl() {
        let label = |key: &str| match key {
            "app" => Some("web"),
            "tier" => Some("front"),
            _ => None,
        };
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
            let selector = LabelSelector::parse(text);
            assert_eq!(selector.map(|selector| selector.matches(label)), Ok(want), "{text}");
        }
        for text in ["", "app in (a)", "=web", "a,,b", "!"] {
            assert!(LabelSelector::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn contradictions_exclude_each_other() {
        let parse = |text| LabelSelector::parse(text).expect("a selector");
        for (one, other, want) in [
            ("team=a", "team=b", true),
            ("team=a", "team!=a", true),
            ("team", "!team", true),
            ("x=1,team=a", "!team", true),
            ("team=a", "team=a", false),
            ("team=a", "tier=b", false),
            ("team!=a", "team!=b", false),
        ] {
            assert_eq!(parse(one).excludes(&parse(other)), want, "{one} {other}");
            assert_eq!(parse(other).excludes(&parse(one)), want, "{other} {one}");
        }
    }

    #[test]
    fn a_selector_is_printed_as_it_is_read() {
        let text = "app=web,tier!=back,canary,!old";
        assert_eq!(LabelSelector::parse(text).expect("a selector").to_string(), text);
    }
}
