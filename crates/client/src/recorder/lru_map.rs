//! A bounded map that evicts the least recently used entry.

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

    /// The entry of a key, inserted if it is missing.
    pub(super) fn get_or_insert_with(&mut self, key: K, make: impl FnOnce() -> V) -> &mut V {
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
    fn least_recently_used_entry_is_evicted() {
        let mut map = LruMap::new(2);
        *map.get_or_insert_with("a", || 0) += 1;
        *map.get_or_insert_with("b", || 0) += 1;
        *map.get_or_insert_with("a", || 0) += 1;
        *map.get_or_insert_with("c", || 0) += 1;
        assert_eq!(map.len(), 2);
        assert_eq!(*map.get_or_insert_with("a", || 0), 2);
        assert_eq!(*map.get_or_insert_with("b", || 0), 0);
    }

    #[test]
    fn size_never_exceeds_the_maximum() {
        let mut map = LruMap::new(8);
        for n in 0..1000 {
            map.get_or_insert_with(n % 100, || ());
        }
        assert_eq!(map.len(), 8);
    }
}
