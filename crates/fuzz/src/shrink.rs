//! Shortens an input that fails.

/// Attempts in all: a check that takes long must not shrink for minutes.
const ATTEMPTS_MAX: usize = 2000;

/// Removes ranges of bytes, half of the input first, single bytes last.
pub fn shrink(input: &[u8], fails: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let mut short = input.to_vec();
    let mut n_attempts = 0;
    let mut size = short.len().div_ceil(2);
    while size > 0 && n_attempts < ATTEMPTS_MAX {
        let mut at = 0;
        let mut is_shorter = false;
        while at < short.len() && n_attempts < ATTEMPTS_MAX {
            n_attempts += 1;
            let mut without = short.clone();
            without.drain(at..(at + size).min(short.len()));
            if fails(&without) {
                short = without;
                is_shorter = true;
            } else {
                at += size;
            }
        }
        if !is_shorter || size > 1 {
            size /= 2;
        }
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_failure_needs_is_left() {
        let fails = |input: &[u8]| input.contains(&b'x') && input.contains(&b'y');
        assert_eq!(shrink(b"some x and some y, and more", fails), b"xy");
    }
}
