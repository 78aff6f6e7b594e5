//! Chance as an argument: the same seed and index throw the same dice, for ever and everywhere.

/// SplitMix64. Our own ten lines, because a seed in a bug report must outlive every dependency.
#[derive(Clone, Debug)]
pub struct Dice(u64);

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl Dice {
    /// The dice of one world: any world of a run can be thrown again without those before it.
    pub fn new(seed: u64, index: u64) -> Self {
        let mut dice = Self(seed ^ index.wrapping_mul(STEP).rotate_left(17));
        dice.next();
        dice
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From zero to `n - 1`; `n` must not be zero.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
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

    /// A moment of the first of January 2026.
    pub fn time(&mut self) -> String {
        let (hour, minute, second) = (self.between(8, 20), self.below(60), self.below(60));
        format!("2026-01-01T{hour:02}:{minute:02}:{second:02}Z")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_throws_the_same_dice() {
        let throws = |seed, index| -> Vec<usize> {
            let mut dice = Dice::new(seed, index);
            (0..32).map(|_| dice.below(1000)).collect()
        };
        assert_eq!(throws(7, 3), throws(7, 3));
        assert_ne!(throws(7, 3), throws(7, 4));
        assert_ne!(throws(7, 3), throws(8, 3));
        assert_eq!(throws(1, 1)[..4], [850, 675, 210, 368], "seeds in old reports must stay valid");
    }
}
