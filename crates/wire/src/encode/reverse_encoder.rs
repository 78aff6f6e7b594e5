//! Encodes protobuf from the last byte to the first. The length of a message is known once its
//! fields are written; encoding from front to back would have to compute every length in advance,
//! once per nesting level.

pub(super) struct ReverseEncoder {
    /// The first `n_free` bytes are free, the others are written.
    bytes: Vec<u8>,
    n_free: usize,
}

const VARINT: u32 = 0;
const LENGTH_DELIMITED: u32 = 2;

impl ReverseEncoder {
    pub(super) fn with_capacity(n_bytes: usize) -> Self {
        Self { bytes: vec![0; n_bytes], n_free: n_bytes }
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        self.bytes.drain(..self.n_free);
        self.bytes
    }

    #[inline]
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        if self.n_free < bytes.len() {
            self.grow(bytes.len());
        }
        let start = self.n_free - bytes.len();
        self.bytes[start..self.n_free].copy_from_slice(bytes);
        self.n_free = start;
    }

    #[cold]
    fn grow(&mut self, n_bytes: usize) {
        let n_more = self.bytes.len().max(n_bytes);
        let mut larger = vec![0; n_more];
        larger.append(&mut self.bytes);
        self.bytes = larger;
        self.n_free += n_more;
    }

    /// Seven bits per byte, lowest first; all but the last byte have the high bit set.
    #[inline]
    fn varint(&mut self, number: u64) {
        // Nearly all keys and most lengths fit into one byte.
        if number < 0x80 {
            self.bytes(&[number as u8]);
        } else {
            self.long_varint(number);
        }
    }

    fn long_varint(&mut self, mut number: u64) {
        let mut varint = [0; 10];
        let mut length = 0;
        loop {
            let rest = number >> 7;
            varint[length] = (number & 0x7f) as u8 | if rest > 0 { 0x80 } else { 0 };
            length += 1;
            number = rest;
            if number == 0 {
                break;
            }
        }
        self.bytes(&varint[..length]);
    }

    fn key(&mut self, tag: u32, wire_type: u32) {
        self.varint(u64::from(tag << 3 | wire_type));
    }

    /// An integer of any width; protobuf sign-extends it to 64 bits.
    pub(super) fn int(&mut self, tag: u32, number: impl Into<i64>) {
        self.varint(number.into() as u64);
        self.key(tag, VARINT);
    }

    pub(super) fn opt_int(&mut self, tag: u32, number: Option<impl Into<i64>>) {
        if let Some(number) = number {
            self.int(tag, number);
        }
    }

    /// Written even if it is empty, as upstream writes strings that are not behind a pointer.
    pub(super) fn string(&mut self, tag: u32, text: &str) {
        self.bytes(text.as_bytes());
        self.varint(text.len() as u64);
        self.key(tag, LENGTH_DELIMITED);
    }

    pub(super) fn opt_string(&mut self, tag: u32, text: Option<impl AsRef<str>>) {
        if let Some(text) = text {
            self.string(tag, text.as_ref());
        }
    }

    pub(super) fn string_if_nonempty(&mut self, tag: u32, text: &str) {
        self.opt_string(tag, Some(text).filter(|text| !text.is_empty()));
    }

    /// `write` writes the fields of the message, last field first.
    pub(super) fn message(&mut self, tag: u32, write: impl FnOnce(&mut Self)) {
        let n_after = self.n_written();
        write(self);
        self.varint((self.n_written() - n_after) as u64);
        self.key(tag, LENGTH_DELIMITED);
    }

    pub(super) fn messages<T>(&mut self, tag: u32, items: &[T], write: impl Fn(&mut Self, &T)) {
        for item in items.iter().rev() {
            self.message(tag, |to| write(to, item));
        }
    }

    fn n_written(&self) -> usize {
        self.bytes.len() - self.n_free
    }
}

#[cfg(test)]
mod tests {
    use prost::encoding::encode_varint;

    use super::*;

    #[test]
    fn varints_are_encoded_like_prost() {
        for number in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX] {
            let mut expected = Vec::new();
            encode_varint(number, &mut expected);
            let mut encoder = ReverseEncoder::with_capacity(0);
            encoder.varint(number);
            assert_eq!(encoder.finish(), expected, "{number}");
        }
    }

    #[test]
    fn bytes_are_in_reverse_order_of_writing_when_the_buffer_grows() {
        let mut encoder = ReverseEncoder::with_capacity(3);
        for number in (0..100u8).rev() {
            encoder.bytes(&[number]);
        }
        assert_eq!(encoder.finish(), (0..100).collect::<Vec<u8>>());
    }
}
