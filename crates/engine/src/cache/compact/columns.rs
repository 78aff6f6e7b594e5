//! The format that writer and reader share.

use std::sync::LazyLock;

use endpointd_model::{SharedStr, names};

/// Strings of one column resemble each other, so each is written relative to the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// Keys of labels and annotations.
    Key,
    Value,
    Name,
    Namespace,
    Kind,
    ApiVersion,
    ResourceVersion,
    FieldPath,
    Uid,
    Host,
    Node,
    Zone,
    Address,
    /// Names of ports and of protocols.
    Port,
    Other,
}

pub const N_COLUMNS: usize = Column::Other as usize + 1;

impl Column {
    /// Whether other objects are likely to have the same strings, so that they are interned.
    pub fn is_shared(self) -> bool {
        matches!(self, Self::Key | Self::Value | Self::Namespace | Self::Node | Self::Zone)
    }
}

/// The first number of a string: one of these, or `SHARED` plus the number of shared bytes.
pub const ABSENT: u64 = 0;
pub const SAME: u64 = 1;
pub const COMMON: u64 = 2;
pub const SHARED: u64 = 3;

/// Strings that nearly every object contains, written by number.
const COMMON_STRINGS: [&str; 14] = [
    "",
    "Pod",
    "Service",
    "v1",
    "discovery.k8s.io/v1",
    names::MANAGED_BY_SLICES,
    names::MANAGED_BY_MIRROR,
    names::MANAGED_BY,
    names::SERVICE_NAME,
    names::HEADLESS,
    names::ENDPOINTS_MANAGED_BY,
    names::MANAGED_BY_ENDPOINTS,
    names::TRIGGER_TIME,
    names::OVER_CAPACITY,
];

pub fn common_number(string: &str) -> Option<u8> {
    COMMON_STRINGS.iter().position(|common| *common == string).map(|at| at as u8)
}

pub fn common_string(number: u8) -> SharedStr {
    static STRINGS: LazyLock<[SharedStr; COMMON_STRINGS.len()]> =
        LazyLock::new(|| COMMON_STRINGS.map(SharedStr::from));
    STRINGS[usize::from(number)].clone()
}

/// How an address is written.
pub const STRING: u8 = 0;
pub const V4: u8 = 1;
pub const V6: u8 = 2;

/// Bits of the first byte of a row.
pub mod row {
    /// One address, which is a canonical IPv4 address.
    pub const ONE_V4: u8 = 1;
    pub const HAS_TARGET: u8 = 2;
    /// The target equals the one before, except for name and uid.
    pub const SAME_TARGET_FIELDS: u8 = 4;
    pub const HAS_UUID: u8 = 8;
    /// The conditions equal those of the row before.
    pub const SAME_CONDITIONS: u8 = 16;
    /// Fields follow that most rows do not have.
    pub const HAS_EXTRAS: u8 = 32;
}
