//! How recent each cached object is: the one rule by which all resources accept updates.

use std::collections::BTreeMap;

use endpointd_model::ResourceVersion;

/// Counts the lists of one resource. An object whose epoch is older than the last complete list
/// was not in that list, so it has been deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListEpoch(u64);

/// A cached object with its resourceVersion and the list it was last seen in.
#[derive(Debug)]
pub struct Cached<T> {
    pub object: T,
    freshness: Freshness,
}

#[derive(Clone, Copy, Debug)]
pub struct Freshness {
    version: ResourceVersion,
    epoch: ListEpoch,
}

/// What a copy of an object is, compared with the cached one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accept {
    /// Older than the cached object.
    Stale,
    /// The version that is cached.
    Same,
    /// Newer, or of unknown version.
    New,
}

impl ListEpoch {
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// The list before this one.
    pub fn previous(self) -> Self {
        Self(self.0.saturating_sub(1))
    }
}

impl<T> Cached<T> {
    pub fn new(object: T, freshness: Freshness) -> Self {
        Self { object, freshness }
    }

    pub fn freshness(&self) -> &Freshness {
        &self.freshness
    }

    pub fn freshness_mut(&mut self) -> &mut Freshness {
        &mut self.freshness
    }

    pub fn version(&self) -> ResourceVersion {
        self.freshness.version
    }
}

impl Freshness {
    pub fn new(version: ResourceVersion, epoch: ListEpoch) -> Self {
        Self { version, epoch }
    }

    pub fn version(&self) -> ResourceVersion {
        self.version
    }

    /// Takes a copy with this version, seen in this list, into account. Even a stale copy shows
    /// that the object is in the list.
    pub fn accept(&mut self, new: Self) -> Accept {
        self.retain(new.epoch);
        let is_comparable =
            self.version != ResourceVersion::NONE && new.version != ResourceVersion::NONE;
        if !is_comparable || new.version > self.version {
            // The object may have been seen in a later list than the one this copy counts for.
            self.version = new.version;
            return Accept::New;
        }
        if new.version == self.version { Accept::Same } else { Accept::Stale }
    }

    /// The object is in this list, whatever it looks like there.
    pub fn retain(&mut self, epoch: ListEpoch) {
        self.epoch = self.epoch.max(epoch);
    }

    /// Whether a complete list with this epoch and version shows that the object is gone. An
    /// object newer than the list was created after it. A list of a resource that is not served any
    /// more has no version.
    pub fn is_missing_from(&self, epoch: ListEpoch, listed: ResourceVersion) -> bool {
        self.epoch < epoch && (listed == ResourceVersion::NONE || self.version <= listed)
    }
}

/// Stores a copy if it is newer than the cached object, which it returns then.
pub fn put_newer<K: Ord, T>(
    cached: &mut BTreeMap<K, Cached<T>>,
    key: K,
    object: T,
    mut freshness: Freshness,
) -> Option<Option<T>> {
    if let Some(cached) = cached.get_mut(&key) {
        if cached.freshness_mut().accept(freshness) != Accept::New {
            return None;
        }
        freshness = *cached.freshness();
    }
    Some(cached.insert(key, Cached::new(object, freshness)).map(|cached| cached.object))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn freshness(version: u64, epoch: u64) -> Freshness {
        Freshness::new(version.into(), ListEpoch(epoch))
    }

    #[test]
    fn copies_are_stale_same_or_new_by_version() {
        for (version, want) in [(4, Accept::Stale), (5, Accept::Same), (6, Accept::New)] {
            assert_eq!(freshness(5, 0).accept(freshness(version, 0)), want);
        }
        let unknown = ResourceVersion::NONE.number();
        assert_eq!(freshness(5, 0).accept(freshness(unknown, 0)), Accept::New);
        assert_eq!(freshness(unknown, 0).accept(freshness(5, 0)), Accept::New);
    }

    #[test]
    fn stale_copy_in_a_list_keeps_the_object() {
        let mut cached = freshness(5, 1);
        assert!(cached.is_missing_from(ListEpoch(2), 9.into()));
        assert_eq!(cached.accept(freshness(4, 2)), Accept::Stale);
        assert!(!cached.is_missing_from(ListEpoch(2), 9.into()));
    }

    #[test]
    fn copy_of_an_earlier_list_does_not_lower_the_epoch() {
        let mut cached = freshness(5, 2);
        assert_eq!(cached.accept(freshness(6, 1)), Accept::New);
        assert!(!cached.is_missing_from(ListEpoch(2), 9.into()));
    }

    #[test]
    fn object_newer_than_the_list_is_not_missing() {
        assert!(!freshness(10, 1).is_missing_from(ListEpoch(2), 9.into()));
    }
}
