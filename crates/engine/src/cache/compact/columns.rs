//! What writer and reader agree on.

use std::sync::LazyLock;

use endpointd_model::{SharedStr, names};

/// Texts of one column resemble each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// Of labels and annotations.
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
    /// Many other objects have the same texts, so that a pooled one is likely there.
    pub fn is_shared(self) -> bool {
        matches!(self, Self::Key | Self::Value | Self::Namespace | Self::Node | Self::Zone)
    }
}

/// How a text begins: one of these, or the number of bytes it shares and this many more.
pub const ABSENT: u64 = 0;
pub const SAME: u64 = 1;
pub const KNOWN: u64 = 2;
pub const SHARED: u64 = 3;

/// Texts that nearly every object has, by number.
const KNOWN_TEXTS: [&str; 14] = [
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

pub fn known_number(text: &str) -> Option<u8> {
    KNOWN_TEXTS.iter().position(|known| *known == text).map(|at| at as u8)
}

pub fn known_text(number: u8) -> SharedStr {
    static TEXTS: LazyLock<[SharedStr; KNOWN_TEXTS.len()]> =
        LazyLock::new(|| KNOWN_TEXTS.map(SharedStr::from));
    TEXTS[usize::from(number)].clone()
}

/// The form of an address.
pub const TEXT: u8 = 0;
pub const V4: u8 = 1;
pub const V6: u8 = 2;

/// Bits of the byte that begins a row.
pub mod row {
    /// One address, which is a canonical IPv4 address.
    pub const ONE_V4: u8 = 1;
    pub const HAS_TARGET: u8 = 2;
    /// All of the target but name and uid is as in the target before.
    pub const SAME_FRAME: u8 = 4;
    pub const HAS_UUID: u8 = 8;
    /// The conditions are those of the row before.
    pub const SAME_CONDITIONS: u8 = 16;
    /// There is more than most rows have.
    pub const HAS_EXTRAS: u8 = 32;
}
