//! The generator of one case, with the choices that generated objects need.

use endpointd_rng::SplitMix64;

#[derive(Clone, Debug)]
pub struct Rng(SplitMix64);

impl Rng {
    /// Any case of a run can be generated without those before it.
    pub fn new(seed: u64, index: u64) -> Self {
        Self(SplitMix64::of_case(seed, index))
    }

    /// From zero to `n - 1`; `n` must not be zero.
    pub fn below(&mut self, n: usize) -> usize {
        self.0.index(n)
    }

    pub fn between(&mut self, least: usize, most: usize) -> usize {
        least + self.below(most - least + 1)
    }

    pub fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// One of the values, each as likely as its weight says.
    pub fn weighted<T: Copy>(&mut self, from: &[(usize, T)]) -> T {
        let total = from.iter().map(|(weight, _)| weight).sum();
        let mut at = self.below(total);
        for (weight, value) in from {
            if at < *weight {
                return *value;
            }
            at -= weight;
        }
        from[0].1
    }

    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for at in (1..list.len()).rev() {
            list.swap(at, self.below(at + 1));
        }
    }

    /// An element to change, if there is one.
    pub fn one_of<'a, T>(&mut self, list: &'a mut [T]) -> Option<&'a mut T> {
        if list.is_empty() {
            return None;
        }
        let at = self.below(list.len());
        list.get_mut(at)
    }

    /// A time on the first of January 2026.
    pub fn time(&mut self) -> String {
        let (hour, minute, second) = (self.between(8, 20), self.below(60), self.below(60));
        format!("2026-01-01T{hour:02}:{minute:02}:{second:02}Z")
    }
}
