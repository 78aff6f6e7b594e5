//! A map that keeps only what was used most recently.

use std::collections::BTreeMap;

#[derive(Clone, Debug)]
pub(super) struct LruMap<K, V> {
    n_max: usize,
    n_uses: u64,
    entries: BTreeMap<K, (u64, V)>,
    keys_by_use: BTreeMap<u64, K>,
}

impl<K: Ord + Clone, V> LruMap<K, V> {
    pub(super) fn new(n_max: usize) -> Self {
        Self { n_max, n_uses: 0, entries: BTreeMap::new(), keys_by_use: BTreeMap::new() }
    }

    /// The entry, made if it is not there; using it keeps it.
    pub(super) fn entry(&mut self, key: K, make: impl FnOnce() -> V) -> &mut V {
        self.n_uses += 1;
        if let Some((last_use, _)) = self.entries.get(&key) {
            self.keys_by_use.remove(last_use);
        } else if self.entries.len() >= self.n_max
            && let Some((_, oldest)) = self.keys_by_use.pop_first()
        {
            self.entries.remove(&oldest);
        }
        self.keys_by_use.insert(self.n_uses, key.clone());
        let (last_use, value) = self.entries.entry(key).or_insert_with(|| (0, make()));
        *last_use = self.n_uses;
        value
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        assert_eq!(self.entries.len(), self.keys_by_use.len());
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_used_for_longest_goes_first() {
        let mut recent = LruMap::new(2);
        *recent.entry("a", || 0) += 1;
        *recent.entry("b", || 0) += 1;
        *recent.entry("a", || 0) += 1;
        *recent.entry("c", || 0) += 1;
        assert_eq!(recent.len(), 2);
        assert_eq!(*recent.entry("a", || 0), 2);
        assert_eq!(*recent.entry("b", || 0), 0);
    }

    #[test]
    fn it_never_grows_beyond_its_limit() {
        let mut recent = LruMap::new(8);
        for n in 0..1000 {
            recent.entry(n % 100, || ());
        }
        assert_eq!(recent.len(), 8);
    }
}
