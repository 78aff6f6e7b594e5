//! Protobuf written from its end to its beginning. A message comes after its own length, which is
//! known by then; from front to back every length would have to be counted first, at each level
//! again.

pub(super) struct Backwards {
    /// The last bytes are written, the first are room.
    bytes: Vec<u8>,
    n_room: usize,
}

const VARINT: u32 = 0;
const LENGTH_DELIMITED: u32 = 2;

impl Backwards {
    /// Grows when it must.
    pub(super) fn with_room(n_bytes: usize) -> Self {
        Self { bytes: vec![0; n_bytes], n_room: n_bytes }
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        self.bytes.drain(..self.n_room);
        self.bytes
    }

    #[inline]
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        if self.n_room < bytes.len() {
            self.grow(bytes.len());
        }
        let start = self.n_room - bytes.len();
        self.bytes[start..self.n_room].copy_from_slice(bytes);
        self.n_room = start;
    }

    #[cold]
    fn grow(&mut self, n_bytes: usize) {
        let n_more = self.bytes.len().max(n_bytes);
        let mut larger = vec![0; n_more];
        larger.append(&mut self.bytes);
        self.bytes = larger;
        self.n_room += n_more;
    }

    /// Seven bits a byte, the lowest first; the last has no mark.
    #[inline]
    fn varint(&mut self, number: u64) {
        // Nearly all keys and most lengths.
        if number < 0x80 {
            self.bytes(&[number as u8]);
        } else {
            self.long_varint(number);
        }
    }

    fn long_varint(&mut self, mut number: u64) {
        let mut spelled = [0; 10];
        let mut length = 0;
        loop {
            let rest = number >> 7;
            spelled[length] = (number & 0x7f) as u8 | if rest > 0 { 0x80 } else { 0 };
            length += 1;
            number = rest;
            if number == 0 {
                break;
            }
        }
        self.bytes(&spelled[..length]);
    }

    fn key(&mut self, tag: u32, wire_type: u32) {
        self.varint(u64::from(tag << 3 | wire_type));
    }

    /// Of any width and sign: protobuf extends the sign to 64 bits.
    pub(super) fn number(&mut self, tag: u32, number: impl Into<i64>) {
        self.varint(number.into() as u64);
        self.key(tag, VARINT);
    }

    pub(super) fn optional_number(&mut self, tag: u32, number: Option<impl Into<i64>>) {
        if let Some(number) = number {
            self.number(tag, number);
        }
    }

    /// Written even if it is empty, as upstream does where absence cannot be told from it.
    pub(super) fn text(&mut self, tag: u32, text: &str) {
        self.bytes(text.as_bytes());
        self.varint(text.len() as u64);
        self.key(tag, LENGTH_DELIMITED);
    }

    pub(super) fn optional_text(&mut self, tag: u32, text: Option<impl AsRef<str>>) {
        if let Some(text) = text {
            self.text(tag, text.as_ref());
        }
    }

    pub(super) fn some_text(&mut self, tag: u32, text: &str) {
        self.optional_text(tag, Some(text).filter(|text| !text.is_empty()));
    }

    /// `write` writes the fields of the message, the last one first.
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
        self.bytes.len() - self.n_room
    }
}

#[cfg(test)]
mod tests {
    use prost::encoding::encode_varint;

    use super::*;

    #[test]
    fn numbers_are_spelled_as_others_spell_them() {
        for number in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX] {
            let mut expected = Vec::new();
            encode_varint(number, &mut expected);
            let mut backwards = Backwards::with_room(0);
            backwards.varint(number);
            assert_eq!(backwards.finish(), expected, "{number}");
        }
    }

    #[test]
    fn what_was_written_first_comes_last_however_often_it_grows() {
        let mut backwards = Backwards::with_room(3);
        for number in (0..100u8).rev() {
            backwards.bytes(&[number]);
        }
        assert_eq!(backwards.finish(), (0..100).collect::<Vec<u8>>());
    }
}
