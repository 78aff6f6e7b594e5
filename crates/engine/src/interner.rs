//! Interning: values that many objects share are stored once, and freed when no object uses them.

use std::hash::Hash;
use std::sync::Arc;

use endpointd_model::{Labels, NamedPort, SharedStr};
use hashbrown::{Equivalent, HashSet};

/// A value behind a shared pointer that knows whether there is another pointer to it.
pub trait Internable: Clone + Eq + Hash {
    fn is_unshared(&self) -> bool;
}

impl Internable for SharedStr {
    fn is_unshared(&self) -> bool {
        Arc::strong_count(self) == 1
    }
}

impl Internable for Arc<Arc<[NamedPort]>> {
    fn is_unshared(&self) -> bool {
        Arc::strong_count(self) == 1
    }
}

impl Internable for Labels {
    fn is_unshared(&self) -> bool {
        Labels::is_unshared(self)
    }
}

/// Pod template hashes come and go as long as the process runs, so unused values are dropped each
/// time the number of values has doubled.
#[derive(Debug)]
pub struct Interner<T> {
    values: HashSet<T>,
    sweep_at: usize,
}

const SWEEP_MIN: usize = 1024;

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Self { values: HashSet::new(), sweep_at: SWEEP_MIN }
    }
}

impl<T: Internable> Interner<T> {
    /// The interned value that equals `value`.
    pub fn intern(&mut self, value: &T) -> T {
        if let Some(found) = self.values.get(value) {
            return found.clone();
        }
        if self.values.len() >= self.sweep_at {
            self.values.retain(|value| !value.is_unshared());
            self.sweep_at = (self.values.len() * 2).max(SWEEP_MIN);
            self.values.shrink_to(self.sweep_at);
        }
        self.values.insert(value.clone());
        value.clone()
    }

    /// The interned value that equals `value`, if there is one.
    pub fn find<Q: Hash + Equivalent<T> + ?Sized>(&self, value: &Q) -> Option<&T> {
        self.values.get(value)
    }

    pub fn len(&self) -> usize {
        self.values.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_interned_once() {
        let mut interner = Interner::default();
        let first = interner.intern(&SharedStr::from("a"));
        let second = interner.intern(&SharedStr::from("a"));
        assert!(Arc::ptr_eq(&first, &second));
    }

    #[test]
    fn unused_values_are_freed() {
        let mut interner = Interner::default();
        let kept = interner.intern(&SharedStr::from("kept"));
        for n in 0..100_000 {
            interner.intern(&SharedStr::from(format!("hash-{n}")));
        }
        assert!(interner.len() <= SWEEP_MIN + 1, "{}", interner.len());
        assert!(Arc::ptr_eq(&kept, &interner.intern(&SharedStr::from("kept"))));
    }
}
