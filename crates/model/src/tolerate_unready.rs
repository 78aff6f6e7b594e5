//! The annotation that older releases had instead of `publishNotReadyAddresses`.

use crate::{Labels, SharedStr, names};

/// What a Service says in [`names::TOLERATE_UNREADY`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TolerateUnready {
    #[default]
    Unset,
    Known(bool),
    /// A value that is not a boolean.
    Invalid(SharedStr),
}

impl TolerateUnready {
    pub fn of(annotations: &Labels) -> Self {
        let Some(text) = annotations.get(names::TOLERATE_UNREADY) else { return Self::Unset };
        parse_bool(text).map_or_else(|| Self::Invalid(text.clone()), Self::Known)
    }
}

/// Go's `strconv.ParseBool`.
fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> TolerateUnready {
        TolerateUnready::of(&[(names::TOLERATE_UNREADY, text)].into_iter().collect())
    }

    #[test]
    fn values_are_those_of_go() {
        for text in ["1", "t", "T", "TRUE", "true", "True"] {
            assert_eq!(read(text), TolerateUnready::Known(true), "{text}");
        }
        for text in ["0", "f", "F", "FALSE", "false", "False"] {
            assert_eq!(read(text), TolerateUnready::Known(false), "{text}");
        }
        for text in ["", " true", "tRUE", "yes", "2", "truе"] {
            assert_eq!(read(text), TolerateUnready::Invalid(text.into()), "{text}");
        }
        assert_eq!(TolerateUnready::of(&Labels::default()), TolerateUnready::Unset);
    }
}
