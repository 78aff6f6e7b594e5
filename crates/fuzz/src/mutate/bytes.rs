//! Mutations of bytes, whatever they mean.

use endpointd_rng::SplitMix64;

const BYTES: [u8; 12] = [0, 1, 0x7f, 0x80, 0xff, b'"', b'\\', b'{', b'[', b'\n', b'-', b':'];
const INSERTED_MAX: usize = 16;

pub fn mutate(input: &[u8], other: &[u8], rng: &mut SplitMix64) -> Vec<u8> {
    let mut bytes = input.to_vec();
    if bytes.is_empty() {
        return other.to_vec();
    }
    let at = rng.index(bytes.len());
    let end = (at + 1 + rng.index(INSERTED_MAX)).min(bytes.len());
    match rng.below(9) {
        0 => bytes[at] ^= 1 << rng.below(8),
        1 => bytes[at] = rng.pick(&BYTES),
        2 => bytes[at] = rng.next_u64() as u8,
        3 => drop(bytes.drain(at..end)),
        4 => {
            let again = bytes[at..end].to_vec();
            bytes.splice(at..at, again);
        }
        5 => {
            let byte = rng.pick(&BYTES);
            bytes.splice(at..at, std::iter::repeat_n(byte, end - at));
        }
        6 => bytes.truncate(at),
        7 => {
            let from = range_of(other, rng);
            bytes.splice(at..end, from);
        }
        _ => {
            let with = rng.index(bytes.len());
            bytes.swap(at, with);
        }
    }
    bytes
}

fn range_of(other: &[u8], rng: &mut SplitMix64) -> Vec<u8> {
    if other.is_empty() {
        return Vec::new();
    }
    let at = rng.index(other.len());
    other[at..(at + 1 + rng.index(64)).min(other.len())].to_vec()
}
