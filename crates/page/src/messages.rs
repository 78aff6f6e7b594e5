//! The messages of the stream, for all readers together. A reader has a position; the oldest
//! messages are dropped when there are too many, whether or not everybody has read them.

use std::collections::VecDeque;
use std::fmt;

use bytes::Bytes;

/// Messages kept for slow readers and for readers that return.
const MESSAGES_MAX: usize = 512;
const BYTES_MAX: usize = 4 << 20;

/// Where a reader is: the run of the collector, and the number of the next message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    pub run: u64,
    pub next: u64,
}

/// What a reader gets next.
#[derive(Debug, PartialEq, Eq)]
pub enum Read {
    /// Messages in the format of server-sent events, in order.
    Messages(Vec<Bytes>),
    /// So many messages were dropped before the reader came to them.
    Lost(u64),
    /// The position is of an earlier run: nothing that the reader has is current.
    OtherRun,
    Nothing,
}

#[derive(Debug, Default)]
pub struct Messages {
    run: u64,
    /// The number of the first message that is kept.
    first: u64,
    kept: VecDeque<Bytes>,
    n_bytes: usize,
}

impl Messages {
    /// Forgets everything; positions of before are of another run.
    pub fn start_run(&mut self, run: u64) {
        *self = Self { run, ..Self::default() };
    }

    pub fn push(&mut self, event: &str, data: &str) {
        let id = Position { run: self.run, next: self.end() + 1 };
        let text = Bytes::from(format!("event: {event}\nid: {id}\ndata: {data}\n\n"));
        self.n_bytes += text.len();
        self.kept.push_back(text);
        while self.kept.len() > MESSAGES_MAX || (self.n_bytes > BYTES_MAX && self.kept.len() > 1) {
            let dropped = self.kept.pop_front().map_or(0, |one| one.len());
            self.n_bytes -= dropped;
            self.first += 1;
        }
    }

    /// The position after the last message.
    pub fn position(&self) -> Position {
        Position { run: self.run, next: self.end() }
    }

    /// At most `max` messages from a position, which moves past what is returned.
    pub fn read(&self, position: &mut Position, max: usize) -> Read {
        if position.run != self.run || position.next > self.end() {
            *position = self.position();
            return Read::OtherRun;
        }
        if position.next < self.first {
            let n_lost = self.first - position.next;
            position.next = self.first;
            return Read::Lost(n_lost);
        }
        let skip = usize::try_from(position.next - self.first).unwrap_or(usize::MAX);
        let messages: Vec<Bytes> = self.kept.iter().skip(skip).take(max).cloned().collect();
        position.next += messages.len() as u64;
        match messages.is_empty() {
            true => Read::Nothing,
            false => Read::Messages(messages),
        }
    }

    fn end(&self) -> u64 {
        self.first + self.kept.len() as u64
    }
}

impl Position {
    /// An id that [`Messages::push`] wrote.
    pub fn parse(text: &str) -> Option<Self> {
        let (run, next) = text.split_once('-')?;
        Some(Self { run: run.parse().ok()?, next: next.parse().ok()? })
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.run, self.next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_run(run: u64, n_messages: usize) -> Messages {
        let mut messages = Messages::default();
        messages.start_run(run);
        (0..n_messages).for_each(|n| messages.push("update", &n.to_string()));
        messages
    }

    #[test]
    fn a_reader_continues_after_the_last_id_it_has_seen() {
        let messages = of_run(7, 3);
        let mut position = Position { run: 7, next: 0 };
        let Read::Messages(first) = messages.read(&mut position, 2) else { panic!("two") };
        let text = String::from_utf8(first[1].to_vec()).unwrap();
        assert_eq!(text, "event: update\nid: 7-2\ndata: 1\n\n");
        let mut resumed = Position::parse("7-2").unwrap();
        assert_eq!(resumed, position);
        let Read::Messages(rest) = messages.read(&mut resumed, 16) else { panic!("one") };
        assert_eq!(rest.len(), 1);
        assert_eq!(messages.read(&mut resumed, 16), Read::Nothing);
    }

    #[test]
    fn a_slow_reader_loses_messages_and_receives_their_number() {
        let messages = of_run(7, MESSAGES_MAX + 5);
        let mut position = Position { run: 7, next: 2 };
        assert_eq!(messages.read(&mut position, 1), Read::Lost(3));
        assert!(matches!(messages.read(&mut position, 1), Read::Messages(_)));
    }

    #[test]
    fn large_messages_are_bounded_in_bytes() {
        let mut messages = of_run(1, 0);
        let large = "x".repeat(BYTES_MAX / 4);
        (0..10).for_each(|_| messages.push("update", &large));
        assert!(messages.kept.len() < 5 && messages.n_bytes <= BYTES_MAX);
        messages.push("update", &"y".repeat(BYTES_MAX + 1));
        assert_eq!(messages.kept.len(), 1, "the last one stays, whatever its size");
    }

    #[test]
    fn a_position_of_another_run_or_of_the_future_is_void() {
        let messages = of_run(7, 3);
        for text in ["6-1", "7-9"] {
            let mut position = Position::parse(text).unwrap();
            assert_eq!(messages.read(&mut position, 1), Read::OtherRun, "{text}");
            assert_eq!(position, messages.position());
        }
        for text in ["", "7", "-", "a-1", "7-x", "7-1-2"] {
            assert_eq!(Position::parse(text), None, "{text}");
        }
    }
}
