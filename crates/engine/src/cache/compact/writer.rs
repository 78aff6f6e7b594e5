//! Encoding: numbers, strings, and what slices and Endpoints have in common.

use std::net::{Ipv4Addr, Ipv6Addr};

use endpointd_model::{Labels, ObjectRef, Protocol, SharedStr, Timestamp, Uid, UidRepr};

use super::columns::{
    ABSENT, COMMON, Column, N_COLUMNS, SAME, SHARED, STRING, V4, V6, common_number, row,
};

/// Initial capacity: the typical size of an object without rows, and of one row.
const OBJECT_BYTES: usize = 256;
const ROW_BYTES: usize = 36;

pub struct Writer<'a> {
    bytes: Vec<u8>,
    previous: [&'a str; N_COLUMNS],
    previous_target: Option<[&'a str; 5]>,
}

impl<'a> Writer<'a> {
    /// Starts the columns with the name of the object: names of related objects often begin with it.
    pub fn new(namespace: &'a str, name: &'a str, n_rows: usize) -> Self {
        let mut previous = [""; N_COLUMNS];
        previous[Column::Namespace as usize] = namespace;
        previous[Column::Name as usize] = name;
        previous[Column::Value as usize] = name;
        let bytes = Vec::with_capacity(OBJECT_BYTES + ROW_BYTES * n_rows);
        Self { bytes, previous, previous_target: None }
    }

    pub fn finish(self) -> Box<[u8]> {
        self.bytes.into()
    }

    pub fn n_bytes(&self) -> usize {
        self.bytes.len()
    }

    pub fn byte(&mut self, byte: u8) {
        self.bytes.push(byte);
    }

    /// LEB128: seven bits per byte, the lowest first.
    pub fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.byte(number as u8 | 0x80);
            number >>= 7;
        }
        self.byte(number as u8);
    }

    pub fn count(&mut self, count: usize) {
        self.number(count as u64);
    }

    /// Zigzag encoding: small numbers of either sign are short.
    pub fn signed(&mut self, number: i64) {
        self.number((number << 1 ^ number >> 63) as u64);
    }

    pub fn optional<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Self, T)) {
        self.byte(value.is_some().into());
        if let Some(value) = value {
            write(self, value);
        }
    }

    pub fn flag(&mut self, flag: bool) {
        self.byte(flag.into());
    }

    pub fn string(&mut self, column: Column, string: &'a str) {
        let before = std::mem::replace(&mut self.previous[column as usize], string);
        if string == before {
            self.number(SAME);
        } else if let Some(number) = common_number(string) {
            self.number(COMMON);
            self.byte(number);
        } else {
            let n_shared = n_bytes_shared(before, string);
            let rest = &string.as_bytes()[n_shared..];
            self.number(SHARED + n_shared as u64);
            self.count(rest.len());
            self.bytes.extend_from_slice(rest);
        }
    }

    pub fn optional_string(&mut self, column: Column, string: Option<&'a SharedStr>) {
        match string {
            Some(string) => self.string(column, string),
            None => self.number(ABSENT),
        }
    }

    pub fn strings(&mut self, column: Column, strings: &'a [SharedStr]) {
        self.count(strings.len());
        strings.iter().for_each(|string| self.string(column, string));
    }

    pub fn labels(&mut self, labels: &'a Labels) {
        self.count(labels.len());
        for (key, value) in labels.iter() {
            self.string(Column::Key, key);
            self.string(Column::Value, value);
        }
    }

    pub fn timestamp(&mut self, time: Timestamp) {
        self.signed(time.as_second());
        self.signed(time.subsec_nanosecond().into());
    }

    pub fn uid(&mut self, uid: &'a Uid) {
        match uid.form() {
            UidRepr::Uuid(uuid) => self.bytes.extend_from_slice(uuid),
            UidRepr::Other(string) => self.string(Column::Uid, string),
        }
    }

    pub fn protocol(&mut self, protocol: &'a Protocol) {
        match protocol {
            Protocol::Tcp => self.byte(0),
            Protocol::Udp => self.byte(1),
            Protocol::Sctp => self.byte(2),
            Protocol::Other(string) => {
                self.byte(3);
                self.string(Column::Port, string);
            }
        }
    }

    pub fn address(&mut self, address: &'a str) {
        if let Some(ip) = canonical_v4(address) {
            self.byte(V4);
            self.v4(ip);
        } else if let Some(ip) = canonical_v6(address) {
            self.byte(V6);
            self.bytes.extend_from_slice(&ip.octets());
        } else {
            self.byte(STRING);
            self.string(Column::Address, address);
        }
    }

    pub fn v4(&mut self, ip: Ipv4Addr) {
        self.bytes.extend_from_slice(&ip.octets());
    }

    /// The bits of a row that are about its target.
    pub fn target_bits(&self, target: Option<&'a ObjectRef>) -> u8 {
        let Some(target) = target else { return 0 };
        let same_fields = if self.previous_target == Some(target_fields(target)) {
            row::SAME_TARGET_FIELDS
        } else {
            0
        };
        row::HAS_TARGET | same_fields | uuid_bit(&target.uid)
    }

    pub fn target(&mut self, target: &'a ObjectRef) {
        let fields = target_fields(target);
        if self.previous_target.replace(fields) != Some(fields) {
            let ObjectRef { kind, namespace, api_version, resource_version, field_path, .. } =
                target;
            self.string(Column::Kind, kind);
            self.string(Column::Namespace, namespace);
            self.string(Column::ApiVersion, api_version);
            self.string(Column::ResourceVersion, resource_version);
            self.string(Column::FieldPath, field_path);
        }
        self.string(Column::Name, &target.name);
        self.uid(&target.uid);
    }
}

/// The fields that the targets of one object usually have in common.
fn target_fields(target: &ObjectRef) -> [&str; 5] {
    let ObjectRef { kind, namespace, name: _, uid: _, api_version, resource_version, field_path } =
        target;
    [kind, namespace, api_version, resource_version, field_path]
}

pub fn uuid_bit(uid: &Uid) -> u8 {
    match uid.form() {
        UidRepr::Uuid(_) => row::HAS_UUID,
        UidRepr::Other(_) => 0,
    }
}

/// An address is written as a number only if it is printed the same again. Rust parses only one
/// spelling of an IPv4 address.
pub fn canonical_v4(string: &str) -> Option<Ipv4Addr> {
    string.parse().ok()
}

fn canonical_v6(string: &str) -> Option<Ipv6Addr> {
    string.parse().ok().filter(|ip: &Ipv6Addr| ip.to_string() == string)
}

/// Whole characters only, so that the shared bytes are valid UTF-8.
fn n_bytes_shared(before: &str, now: &str) -> usize {
    let pairs = before.bytes().zip(now.bytes());
    let n_equal = pairs.take_while(|(before, now)| before == now).count();
    now.floor_char_boundary(n_equal)
}
