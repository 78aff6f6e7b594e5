//! Decoding. It reads only what `writer` wrote, so malformed bytes are a bug.

use std::net::{Ipv4Addr, Ipv6Addr};

use endpointd_model::{IpStr, Labels, ObjectRef, Protocol, SharedStr, Timestamp, Uid};

use super::Identity;
use super::columns::{ABSENT, COMMON, Column, N_COLUMNS, SAME, SHARED, V4, V6, common_string, row};
use crate::interner::Interner;

/// Initial capacity of the string buffer: nearly all names fit.
const BUFFER_BYTES: usize = 128;

pub struct Reader<'a> {
    bytes: &'a [u8],
    strings: &'a Interner<SharedStr>,
    previous: [SharedStr; N_COLUMNS],
    previous_target: ObjectRef,
    buffer: String,
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8], identity: &Identity<'_>, strings: &'a Interner<SharedStr>) -> Self {
        let mut previous: [SharedStr; N_COLUMNS] = Default::default();
        previous[Column::Namespace as usize] = identity.namespace.clone();
        previous[Column::Name as usize] = identity.name.clone();
        previous[Column::Value as usize] = identity.name.clone();
        let buffer = String::with_capacity(BUFFER_BYTES);
        Self { bytes, strings, previous, previous_target: ObjectRef::default(), buffer }
    }

    fn take(&mut self, n_bytes: usize) -> &'a [u8] {
        let (taken, rest) = self.bytes.split_at(n_bytes);
        self.bytes = rest;
        taken
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        let (array, rest) =
            self.bytes.split_first_chunk().expect("reader and writer agree on lengths");
        self.bytes = rest;
        *array
    }

    pub fn byte(&mut self) -> u8 {
        let [byte] = self.array();
        byte
    }

    pub fn number(&mut self) -> u64 {
        let mut number = 0;
        for shift in (0..).step_by(7) {
            let byte = self.byte();
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        number
    }

    pub fn count(&mut self) -> usize {
        self.number() as usize
    }

    pub fn signed(&mut self) -> i64 {
        let number = self.number();
        (number >> 1) as i64 ^ -((number & 1) as i64)
    }

    pub fn flag(&mut self) -> bool {
        self.byte() != 0
    }

    pub fn optional<T>(&mut self, read: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.flag().then(|| read(self))
    }

    pub fn list<T>(&mut self, read: impl Fn(&mut Self) -> T) -> Vec<T> {
        let count = self.count();
        (0..count).map(|_| read(self)).collect()
    }

    pub fn string(&mut self, column: Column) -> SharedStr {
        self.optional_string(column).unwrap_or_default()
    }

    pub fn optional_string(&mut self, column: Column) -> Option<SharedStr> {
        let string = match self.number() {
            ABSENT => return None,
            SAME => return Some(self.previous[column as usize].clone()),
            COMMON => common_string(self.byte()),
            start => self.decode_string(column, (start - SHARED) as usize),
        };
        self.previous[column as usize] = string.clone();
        Some(string)
    }

    fn decode_string(&mut self, column: Column, n_shared: usize) -> SharedStr {
        let n_rest = self.count();
        let rest = std::str::from_utf8(self.take(n_rest)).expect("the writer wrote a string");
        self.buffer.clear();
        self.buffer.push_str(&self.previous[column as usize][..n_shared]);
        self.buffer.push_str(rest);
        let string = &*self.buffer;
        let interned = if column.is_shared() { self.strings.find(string) } else { None };
        interned.cloned().unwrap_or_else(|| string.into())
    }

    pub fn labels(&mut self) -> Labels {
        let count = self.count();
        (0..count).map(|_| (self.string(Column::Key), self.string(Column::Value))).collect()
    }

    pub fn timestamp(&mut self) -> Timestamp {
        let (seconds, nanoseconds) = (self.signed(), self.signed());
        Timestamp::new(seconds, nanoseconds as i32).expect("the writer wrote a timestamp")
    }

    pub fn uid(&mut self, bits: u8) -> Uid {
        if bits & row::HAS_UUID == 0 {
            Uid::from(&*self.string(Column::Uid))
        } else {
            Uid::from(self.array::<16>())
        }
    }

    pub fn protocol(&mut self) -> Protocol {
        match self.byte() {
            0 => Protocol::Tcp,
            1 => Protocol::Udp,
            2 => Protocol::Sctp,
            _ => Protocol::Other(self.string(Column::Port)),
        }
    }

    pub fn address(&mut self) -> SharedStr {
        match self.byte() {
            V4 => self.v4(),
            V6 => IpStr::new(Ipv6Addr::from(self.array::<16>()).into()).into(),
            _ => self.string(Column::Address),
        }
    }

    pub fn v4(&mut self) -> SharedStr {
        IpStr::new(Ipv4Addr::from(self.array::<4>()).into()).into()
    }

    pub fn target(&mut self, bits: u8) -> Option<ObjectRef> {
        if bits & row::HAS_TARGET == 0 {
            return None;
        }
        if bits & row::SAME_TARGET_FIELDS == 0 {
            self.previous_target = ObjectRef {
                kind: self.string(Column::Kind),
                namespace: self.string(Column::Namespace),
                api_version: self.string(Column::ApiVersion),
                resource_version: self.string(Column::ResourceVersion),
                field_path: self.string(Column::FieldPath),
                ..ObjectRef::default()
            };
        }
        let name = self.string(Column::Name);
        let uid = self.uid(bits);
        Some(ObjectRef { name, uid, ..self.previous_target.clone() })
    }
}
