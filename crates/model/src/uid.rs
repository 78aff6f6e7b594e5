//! Object uids, in sixteen bytes if they are UUIDs.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use crate::SharedStr;

/// The uid of an object. Nearly all uids are UUIDs and stored as bytes; any other text is stored as
/// it is, so that a uid is always written exactly as it was read.
#[derive(Clone)]
pub struct Uid(Repr);

#[derive(Clone)]
enum Repr {
    Uuid([u8; 16]),
    Other(SharedStr),
}

/// The representation of a uid, for compact encoders.
#[derive(Clone, Copy, Debug)]
pub enum UidRepr<'a> {
    Uuid(&'a [u8; 16]),
    Other(&'a SharedStr),
}

const DASHES: [usize; 4] = [8, 13, 18, 23];
/// The position of the two digits of each byte.
const DIGITS_AT: [usize; 16] = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];

impl Uid {
    pub fn is_empty(&self) -> bool {
        matches!(&self.0, Repr::Other(text) if text.is_empty())
    }

    pub fn form(&self) -> UidRepr<'_> {
        match &self.0 {
            Repr::Uuid(bytes) => UidRepr::Uuid(bytes),
            Repr::Other(text) => UidRepr::Other(text),
        }
    }

    /// Calls `with` with the text, without an allocation.
    pub fn with_text<R>(&self, with: impl FnOnce(&str) -> R) -> R {
        match &self.0 {
            Repr::Other(text) => with(text),
            Repr::Uuid(bytes) => {
                let text = uuid_text(bytes);
                with(std::str::from_utf8(&text).expect("hex digits and dashes are UTF-8"))
            }
        }
    }
}

impl From<&str> for Uid {
    fn from(text: &str) -> Self {
        Self(parse_uuid(text).map_or_else(|| Repr::Other(text.into()), Repr::Uuid))
    }
}

impl From<[u8; 16]> for Uid {
    fn from(uuid: [u8; 16]) -> Self {
        Self(Repr::Uuid(uuid))
    }
}

impl Default for Uid {
    fn default() -> Self {
        Self(Repr::Other(SharedStr::default()))
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.with_text(|text| f.write_str(text))
    }
}

impl fmt::Debug for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.with_text(|text| fmt::Debug::fmt(text, f))
    }
}

/// Ordered like the text; for two UUIDs that is the order of their bytes.
impl Ord for Uid {
    fn cmp(&self, other: &Self) -> Ordering {
        match (&self.0, &other.0) {
            (Repr::Uuid(a), Repr::Uuid(b)) => a.cmp(b),
            _ => self.with_text(|a| other.with_text(|b| a.cmp(b))),
        }
    }
}

impl PartialOrd for Uid {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Uid {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Uid {}

impl Hash for Uid {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match &self.0 {
            Repr::Uuid(bytes) => bytes.hash(state),
            Repr::Other(text) => text.hash(state),
        }
    }
}

/// Only the canonical lower-case form counts as a UUID; any other form must keep its text.
fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    let text = text.as_bytes();
    if text.len() != 36 || DASHES.iter().any(|&at| text[at] != b'-') {
        return None;
    }
    let mut bytes = [0; 16];
    for (byte, at) in bytes.iter_mut().zip(DIGITS_AT) {
        *byte = hex_value(text[at])? << 4 | hex_value(text[at + 1])?;
    }
    Some(bytes)
}

fn hex_value(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

fn uuid_text(bytes: &[u8; 16]) -> [u8; 36] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = [b'-'; 36];
    for (byte, at) in bytes.iter().zip(DIGITS_AT) {
        text[at] = DIGITS[usize::from(byte >> 4)];
        text[at + 1] = DIGITS[usize::from(byte & 15)];
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uid_reads_back_as_it_was_written() {
        for text in [
            "",
            "svc-uid-1",
            "5e2cb0a7-91d0-4a5b-8f1e-0123456789ab",
            "5E2CB0A7-91D0-4A5B-8F1E-0123456789AB",
            "5e2cb0a7-91d0-4a5b-8f1e-0123456789aé",
        ] {
            assert_eq!(Uid::from(text).to_string(), text);
        }
    }

    #[test]
    fn uids_sort_like_their_text() {
        let texts = ["5e2cb0a7-91d0-4a5b-8f1e-0123456789ab", "5e2", "zz", "00000000-0000", ""];
        let mut uids: Vec<Uid> = texts.iter().map(|&text| Uid::from(text)).collect();
        let mut sorted = texts;
        uids.sort();
        sorted.sort_unstable();
        assert_eq!(uids.iter().map(Uid::to_string).collect::<Vec<_>>(), sorted);
    }

    #[test]
    fn a_uuid_takes_no_heap() {
        assert!(matches!(Uid::from("5e2cb0a7-91d0-4a5b-8f1e-0123456789ab").0, Repr::Uuid(_)));
        assert!(size_of::<Uid>() <= 24);
    }
}
