//! The name of the Service that is derived from a ServiceImport.

use sha2::{Digest, Sha256};

use crate::{Key, SharedStr};

/// The name that the reference implementation and Cilium give, so that tools know it, and so that a
/// takeover keeps the addresses: `derived-` and ten characters of a hash of the import's key.
pub fn derived_name(key: &Key) -> SharedStr {
    const ALPHABET: &[u8; 32] = b"0123456789abcdefghijklmnopqrstuv";
    const N_CHARACTERS: usize = 10;
    let hash = Sha256::digest(key.to_string().as_bytes());
    let bit = |at: usize| hash[at / 8] >> (7 - at % 8) & 1;
    let character = |at: usize| {
        let five = (at * 5..at * 5 + 5).fold(0, |number, at| number << 1 | bit(at));
        char::from(ALPHABET[usize::from(five)])
    };
    let suffix: String = (0..N_CHARACTERS).map(character).collect();
    format!("derived-{suffix}").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_that_of_the_reference_implementation() {
        assert_eq!(&*derived_name(&Key::new("my-ns", "my-svc")), "derived-a2v4k9sqn6");
    }
}
