//! Pseudo-random values as a hash of a seed and words: independent of the order in which they are
//! requested.

use std::time::Duration;

use endpointd_rng::mix;

/// The alphabet of generated names in Kubernetes.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
const SUFFIX_LENGTH: usize = 5;

/// A pseudo-random number: FNV-1a over the words, then the output function of SplitMix64.
pub fn hash_rand(seed: u64, words: &[&str], n: u64) -> u64 {
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let mut hash = 0xcbf2_9ce4_8422_2325 ^ seed;
    let mut take = |byte: u8| hash = (hash ^ u64::from(byte)).wrapping_mul(PRIME);
    for word in words {
        word.bytes().for_each(&mut take);
        take(0xff);
    }
    n.to_le_bytes().into_iter().for_each(&mut take);
    mix(hash)
}

/// One of `n_choices`, which must not be zero.
pub fn pick(seed: u64, words: &[&str], n: u64, n_choices: usize) -> usize {
    let n_choices = u64::try_from(n_choices).expect("a count fits");
    usize::try_from(hash_rand(seed, words, n) % n_choices).expect("smaller than a count")
}

/// A duration from `least` to `most`.
pub fn duration_between(seed: u64, words: &[&str], least: Duration, most: Duration) -> Duration {
    let span = u64::try_from((most - least).as_millis()).expect("short times");
    least + Duration::from_millis(hash_rand(seed, words, 0) % (span + 1))
}

/// A suffix of five characters for a name.
pub fn suffix(seed: u64, words: &[&str], n: u64) -> String {
    let mut rest = hash_rand(seed, words, n);
    let mut next = || {
        let index = usize::try_from(rest % 27).expect("smaller than the alphabet");
        rest /= 27;
        char::from(ALPHABET[index])
    };
    (0..SUFFIX_LENGTH).map(|_| next()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_words_give_equal_values() {
        assert_eq!(suffix(7, &["web"], 3), suffix(7, &["web"], 3));
        assert_ne!(suffix(7, &["web"], 3), suffix(8, &["web"], 3));
        assert_ne!(hash_rand(7, &["we", "b"], 3), hash_rand(7, &["w", "eb"], 3));
    }

    #[test]
    fn durations_stay_within_their_bounds() {
        let (least, most) = (Duration::from_millis(200), Duration::from_millis(210));
        for word in ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"] {
            let time = duration_between(1, &[word], least, most);
            assert!(least <= time && time <= most, "{time:?}");
        }
    }

    #[test]
    fn choices_are_distributed() {
        let mut seen = [0; 3];
        (0..300).for_each(|n| seen[pick(1, &["x"], n, 3)] += 1);
        assert!(seen.iter().all(|n| *n > 60), "{seen:?}");
    }
}
