//! SplitMix64, the one pseudo-random generator of the workspace: jitter in the engine, histories
//! in the simulator, generated cases in parity and in tests.
//!
//! It is our own code because a seed in a bug report must replay the same history after every
//! dependency update. It is not for cryptography.

use std::time::Duration;

const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

#[derive(Clone, Debug)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The generator of case `index` of a run: any case replays without those before it.
    pub fn of_case(seed: u64, index: u64) -> Self {
        let mut rng = Self(seed ^ index.wrapping_mul(GAMMA).rotate_left(17));
        rng.next_u64();
        rng
    }

    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GAMMA);
        mix(self.0)
    }

    /// From 0 to `limit - 1`; `limit` must not be zero.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.next_u64() % limit
    }

    /// An index into a list of `len` elements; `len` must not be zero.
    pub fn index(&mut self, len: usize) -> usize {
        (self.next_u64() % len as u64) as usize
    }

    /// From `min` to `max`, both included.
    pub fn between(&mut self, min: u64, max: u64) -> u64 {
        min + self.below(max - min + 1)
    }

    /// True with a probability of `chance` percent.
    pub fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    /// One element; `from` must not be empty.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.index(from.len())]
    }

    /// A duration from zero to `max`, in steps of a thousandth of `max`.
    pub fn up_to(&mut self, max: Duration) -> Duration {
        let thousandths = (self.next_u64() % 1001) as u32;
        max * thousandths / 1000
    }
}

/// The output function: spreads the bits of a counter or of a hash.
pub fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_equals_the_published_reference_for_seed_1234567() {
        let mut rng = SplitMix64::new(1_234_567);
        let first: Vec<u64> = (0..3).map(|_| rng.next_u64()).collect();
        assert_eq!(
            first,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn cases_of_one_seed_differ_and_replay() {
        let numbers = |seed, index| -> Vec<usize> {
            let mut rng = SplitMix64::of_case(seed, index);
            (0..32).map(|_| rng.index(1000)).collect()
        };
        assert_eq!(numbers(7, 3), numbers(7, 3));
        assert_ne!(numbers(7, 3), numbers(7, 4));
        assert_eq!(numbers(1, 1)[..4], [850, 675, 210, 368], "seeds in old reports stay valid");
    }

    #[test]
    fn durations_stay_within_their_maximum() {
        let (mut rng, max) = (SplitMix64::new(7), Duration::from_millis(200));
        assert!((0..1000).all(|_| rng.up_to(max) <= max));
    }
}

/// Compiles and runs the example in the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
