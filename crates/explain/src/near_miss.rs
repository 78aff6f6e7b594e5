//! Labels that nearly match a selector. A suggestion never names a label that the pod has.

use endpointd_model::{Labels, SharedStr};
use strsim::{damerau_levenshtein, normalized_damerau_levenshtein};

/// Edits between two words that count as a typo.
const EDITS_MAX: usize = 2;
/// Below this similarity two short words are different words.
const SIMILARITY_MIN: f64 = 0.6;
/// Values that many labels have say nothing about what was meant.
const COMMON_VALUES: &[&str] = &["true", "false", "yes", "no", "enabled", "disabled"];
/// Labels that controllers set.
const GENERATED_KEYS: &[&str] =
    &["pod-template-hash", "controller-revision-hash", "pod-template-generation"];

/// The one label by which a pod does not match.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NearMiss {
    /// The value has a typo.
    Typo { key: SharedStr, wanted: SharedStr, found: SharedStr },
    /// The value differs only in case, separators, or spaces.
    Spelling { key: SharedStr, wanted: SharedStr, found: SharedStr },
    /// All other labels match.
    Missing { key: SharedStr, wanted: SharedStr, n_matched: usize },
    /// Another key has the value.
    OtherKey { key: SharedStr, wanted: SharedStr, found_key: SharedStr },
}

impl NearMiss {
    /// Key and value that the pod would need.
    pub fn suggestion(&self) -> (&SharedStr, &SharedStr) {
        match self {
            Self::Typo { key, wanted, .. }
            | Self::Spelling { key, wanted, .. }
            | Self::Missing { key, wanted, .. }
            | Self::OtherKey { key, wanted, .. } => (key, wanted),
        }
    }
}

/// How close the labels come to a selector that does not match them. `None`: not close.
pub fn compare(selector: &Labels, labels: &Labels) -> Option<NearMiss> {
    let mut unmatched = selector.iter().filter(|(key, value)| !labels.has(key, value));
    let (key, wanted) = unmatched.next()?;
    if unmatched.next().is_some() {
        return None;
    }
    let (key, wanted) = (key.clone(), wanted.clone());
    if let Some(found) = labels.get(&key).cloned() {
        return if plain(&found) == plain(&wanted) {
            Some(NearMiss::Spelling { key, wanted, found })
        } else {
            is_typo(&found, &wanted).then_some(NearMiss::Typo { key, wanted, found })
        };
    }
    let is_telling = wanted.len() > 1 && !COMMON_VALUES.contains(&wanted.as_ref());
    let other_key = labels.iter().find(|(other, value)| {
        is_telling
            && **value == wanted
            && !selector.contains_key(other)
            && !GENERATED_KEYS.contains(&other.as_ref())
    });
    if let Some((found_key, _)) = other_key {
        return Some(NearMiss::OtherKey { key, wanted, found_key: found_key.clone() });
    }
    let n_matched = selector.len() - 1;
    (n_matched > 0).then_some(NearMiss::Missing { key, wanted, n_matched })
}

/// Without case, separators, and spaces.
fn plain(text: &str) -> String {
    let kept = text.chars().filter(|c| !c.is_whitespace() && !['-', '_', '.'].contains(c));
    kept.flat_map(char::to_lowercase).collect()
}

/// Whether one word was probably meant to be the other. Words that differ only in their numbers,
/// such as `web-1` and `web-2`, are names of two things.
pub fn is_typo(one: &str, other: &str) -> bool {
    let without_digits = |text: &str| text.replace(|c: char| c.is_ascii_digit(), "");
    one != other
        && without_digits(one) != without_digits(other)
        && damerau_levenshtein(one, other) <= EDITS_MAX
        && normalized_damerau_levenshtein(one, other) >= SIMILARITY_MIN
}

/// The name that is nearest to a wanted one, if it is near; the first by name among equals.
pub fn nearest<'n>(wanted: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let near = names.filter(|name| is_typo(name, wanted) || plain(name) == plain(wanted));
    near.filter(|name| *name != wanted)
        .min_by_key(|name| (damerau_levenshtein(name, wanted), *name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(text: &str) -> Labels {
        let pairs = text.split_whitespace().filter_map(|pair| pair.split_once('='));
        pairs.map(|(key, value)| (SharedStr::from(key), SharedStr::from(value))).collect()
    }

    #[test]
    fn the_kind_of_a_near_miss_depends_on_the_labels() {
        let compare = |selector, found| compare(&labels(selector), &labels(found));
        let is = |miss: Option<NearMiss>| match miss {
            None => "none",
            Some(NearMiss::Typo { .. }) => "typo",
            Some(NearMiss::Spelling { .. }) => "spelling",
            Some(NearMiss::Missing { .. }) => "missing",
            Some(NearMiss::OtherKey { .. }) => "other key",
        };
        for (selector, found, want) in [
            ("app=web", "app=web", "none"),
            ("app=web", "app=webb", "typo"),
            ("app=web", "app=Web", "spelling"),
            ("app=my-web", "app=my_web", "spelling"),
            ("app=web", "app=database", "none"),
            ("app=web-1", "app=web-2", "none"),
            ("app=web", "name=web", "other key"),
            ("app=true", "name=true", "none"),
            ("app=web", "tier=front", "none"),
            ("app=web tier=front", "app=web", "missing"),
            ("app=web tier=front", "app=web tier=frnt", "typo"),
            ("app=web tier=front", "name=web", "none"),
        ] {
            assert_eq!(is(compare(selector, found)), want, "{selector} and {found}");
        }
    }

    #[test]
    fn the_nearest_name_is_near() {
        let names = ["web", "webs", "api"];
        assert_eq!(nearest("wbe", names.into_iter()), Some("web"));
        assert_eq!(nearest("database", names.into_iter()), None);
        assert_eq!(nearest("web", names.into_iter()), Some("webs"));
    }
}
