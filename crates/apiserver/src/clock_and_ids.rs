//! The source of time, uids, and name suffixes, chosen by the owner of the server.

use std::time::SystemTime;

use jiff::Timestamp;

/// Values that must differ between runs, or must not in a test.
pub trait ClockAndIds: Send {
    fn now(&mut self) -> Timestamp;
    /// A uid that was never returned before.
    fn uid(&mut self) -> String;
    /// The suffix for a `generateName`: five characters of upstream's alphabet.
    fn suffix(&mut self) -> String;
}

/// Upstream's alphabet of generated names: no vowels, so no words.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
const SUFFIX_LENGTH: usize = 5;

fn suffix_of(mut number: u64) -> String {
    let base = ALPHABET.len() as u64;
    let mut suffix = String::new();
    for _ in 0..SUFFIX_LENGTH {
        let index = usize::try_from(number % base).expect("smaller than the alphabet");
        suffix.push(char::from(ALPHABET[index]));
        number /= base;
    }
    suffix
}

/// Deterministic: ids from a counter, and a time that changes only when it is set.
#[derive(Clone, Debug)]
pub struct CountedClockAndIds {
    pub now: Timestamp,
    n_given: u64,
}

impl CountedClockAndIds {
    pub fn starting_at(now: Timestamp) -> Self {
        Self { now, n_given: 0 }
    }

    fn next(&mut self) -> u64 {
        self.n_given += 1;
        self.n_given
    }
}

impl ClockAndIds for CountedClockAndIds {
    fn now(&mut self) -> Timestamp {
        self.now
    }

    fn uid(&mut self) -> String {
        format!("00000000-0000-4000-8000-{:012x}", self.next())
    }

    fn suffix(&mut self) -> String {
        suffix_of(self.next())
    }
}

/// The system clock and the random numbers of the kernel.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClockAndIds;

impl SystemClockAndIds {
    fn random() -> [u8; 16] {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).expect("the kernel gives random bytes");
        bytes
    }
}

impl ClockAndIds for SystemClockAndIds {
    fn now(&mut self) -> Timestamp {
        SystemTime::now().try_into().expect("the clock of the machine is in this epoch")
    }

    fn uid(&mut self) -> String {
        let mut bytes = Self::random();
        bytes[6] = (bytes[6] & 0x0f) | 0x40;
        bytes[8] = (bytes[8] & 0x3f) | 0x80;
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
    }

    fn suffix(&mut self) -> String {
        let bytes = Self::random();
        suffix_of(u64::from_le_bytes(bytes[..8].try_into().expect("eight of sixteen bytes")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uids_look_like_uids() {
        let uid = SystemClockAndIds.uid();
        assert_eq!(uid.len(), 36);
        assert_eq!(uid.as_bytes()[14], b'4');
        assert_ne!(uid, SystemClockAndIds.uid());
    }

    #[test]
    fn counted_ids_never_repeat() {
        let mut clock_and_ids = CountedClockAndIds::starting_at(Timestamp::UNIX_EPOCH);
        assert_ne!(clock_and_ids.uid(), clock_and_ids.uid());
        assert_ne!(clock_and_ids.suffix(), clock_and_ids.suffix());
        assert_eq!(clock_and_ids.suffix().len(), SUFFIX_LENGTH);
    }
}
