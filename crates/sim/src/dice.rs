//! Chance that repeats: the same seed, the same history.

/// SplitMix64.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        let mut dice = Self(seed ^ 0x5eed_5eed_5eed_5eed);
        dice.number();
        dice
    }

    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Less than `sides`, which is not zero.
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.number() % sides
    }

    pub fn index(&mut self, len: usize) -> usize {
        (self.number() % len as u64) as usize
    }

    pub fn percent(&mut self, chance: u64) -> bool {
        self.roll(100) < chance
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.index(from.len())]
    }

    /// From `least` to `most`, both included.
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.roll(most - least + 1)
    }
}
