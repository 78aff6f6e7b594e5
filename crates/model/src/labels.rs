//! Sorted, shared key-value sets: labels, annotations, selectors.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use crate::SharedStr;

/// A set of labels, sorted by key, cheap to clone. Also serves as a selector.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Labels(Arc<[(SharedStr, SharedStr)]>);

/// Annotations have the same shape.
pub type Annotations = Labels;

impl Labels {
    pub fn get(&self, key: &str) -> Option<&SharedStr> {
        let at = self.0.binary_search_by(|(candidate, _)| candidate.as_ref().cmp(key)).ok()?;
        Some(&self.0[at].1)
    }

    /// Whether `key` has exactly this value.
    pub fn has(&self, key: &str, value: &str) -> bool {
        self.get(key).is_some_and(|found| found.as_ref() == value)
    }

    pub fn contains_key(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&SharedStr, &SharedStr)> {
        self.0.iter().map(|(key, value)| (key, value))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether no other owner shares this set.
    pub fn is_unshared(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    /// As a selector: whether `labels` contain every pair.
    pub fn selects(&self, labels: &Labels) -> bool {
        self.iter().all(|(key, value)| labels.has(key, value))
    }

    /// A copy to change; collect it into `Labels` again.
    pub fn to_map(&self) -> BTreeMap<SharedStr, SharedStr> {
        self.iter().map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    /// The same set with `key` set to `value`, or without it.
    #[must_use]
    pub fn with(&self, key: &str, value: Option<&str>) -> Self {
        if self.get(key).map(AsRef::as_ref) == value {
            return self.clone();
        }
        let mut map = self.to_map();
        match value {
            Some(value) => map.insert(key.into(), value.into()),
            None => map.remove(key),
        };
        map.into_iter().collect()
    }
}

impl Default for Labels {
    /// Nearly every object has an empty set; all of them share one allocation.
    fn default() -> Self {
        static EMPTY: LazyLock<Labels> = LazyLock::new(|| Labels(Arc::from([])));
        EMPTY.clone()
    }
}

/// A key given twice keeps its last value, as in a JSON object.
impl FromIterator<(SharedStr, SharedStr)> for Labels {
    fn from_iter<I: IntoIterator<Item = (SharedStr, SharedStr)>>(pairs: I) -> Self {
        let mut pairs: Vec<(SharedStr, SharedStr)> = pairs.into_iter().collect();
        if pairs.is_empty() {
            return Self::default();
        }
        // Most callers pass the pairs of a set, which are sorted.
        if !pairs.is_sorted_by(|(before, _), (key, _)| before < key) {
            let map: BTreeMap<SharedStr, SharedStr> = pairs.into_iter().collect();
            pairs = map.into_iter().collect();
        }
        Self(pairs.into())
    }
}

impl<'a> FromIterator<(&'a str, &'a str)> for Labels {
    fn from_iter<I: IntoIterator<Item = (&'a str, &'a str)>>(pairs: I) -> Self {
        pairs
            .into_iter()
            .map(|(key, value)| (SharedStr::from(key), SharedStr::from(value)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selector_needs_every_pair() {
        let selector: Labels = [("app", "web"), ("tier", "front")].into_iter().collect();
        let pod: Labels = [("tier", "front"), ("app", "web"), ("x", "y")].into_iter().collect();
        assert!(selector.selects(&pod));
        assert!(!pod.selects(&selector));
    }

    #[test]
    fn with_sets_and_removes() {
        let labels: Labels = [("a", "1")].into_iter().collect();
        assert!(labels.with("b", Some("2")).has("b", "2"));
        assert!(labels.with("a", None).is_empty());
        assert_eq!(labels.with("a", Some("1")), labels);
        assert_eq!(labels.with("b", None), labels);
    }

    #[test]
    fn a_set_has_one_order_and_the_last_value_of_every_key() {
        let sorted: Labels = [("a", "2"), ("b", "3")].into_iter().collect();
        for pairs in [[("b", "3"), ("a", "1"), ("a", "2")], [("a", "1"), ("a", "2"), ("b", "3")]] {
            assert_eq!(pairs.into_iter().collect::<Labels>(), sorted);
        }
    }
}
