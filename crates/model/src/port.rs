//! Published ports.

use std::fmt;

use crate::SharedStr;

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    #[default]
    Tcp,
    Udp,
    Sctp,
    /// Any other text; compared and written unchanged.
    Other(SharedStr),
}

impl Protocol {
    pub fn as_str(&self) -> &str {
        match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
            Self::Sctp => "SCTP",
            Self::Other(text) => text,
        }
    }
}

impl From<&str> for Protocol {
    fn from(text: &str) -> Self {
        match text {
            "TCP" => Self::Tcp,
            "UDP" => Self::Udp,
            "SCTP" => Self::Sctp,
            other => Self::Other(other.into()),
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A port of a slice. Absent and empty fields differ, because upstream groups by the exact value.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EndpointPort {
    pub name: Option<SharedStr>,
    pub port: Option<i32>,
    pub protocol: Option<Protocol>,
    pub app_protocol: Option<SharedStr>,
}
