//! EndpointSlices with all fields, because endpointd writes them.

use std::fmt;

use crate::{EndpointPort, Family, Labels, Meta, ObjectRef, SharedStr};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndpointSlice {
    pub meta: Meta,
    pub address_type: AddressType,
    pub endpoints: Vec<Endpoint>,
    pub ports: Vec<EndpointPort>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AddressType {
    #[default]
    IPv4,
    IPv6,
    Fqdn,
    /// A type that this version does not know.
    Other(SharedStr),
}

impl AddressType {
    pub fn as_str(&self) -> &str {
        match self {
            Self::IPv4 => "IPv4",
            Self::IPv6 => "IPv6",
            Self::Fqdn => "FQDN",
            Self::Other(text) => text,
        }
    }
}

impl From<&str> for AddressType {
    fn from(text: &str) -> Self {
        match text {
            "IPv4" => Self::IPv4,
            "IPv6" => Self::IPv6,
            "FQDN" => Self::Fqdn,
            other => Self::Other(other.into()),
        }
    }
}

impl From<Family> for AddressType {
    fn from(family: Family) -> Self {
        match family {
            Family::V4 => Self::IPv4,
            Family::V6 => Self::IPv6,
        }
    }
}

impl fmt::Display for AddressType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Endpoint {
    pub addresses: Vec<SharedStr>,
    pub conditions: Conditions,
    pub hostname: Option<SharedStr>,
    pub node_name: Option<SharedStr>,
    pub target_ref: Option<ObjectRef>,
    pub zone: Option<SharedStr>,
    pub hints: Option<Hints>,
    /// Only present on slices from before v1; kept, never set.
    pub deprecated_topology: Labels,
}

impl Endpoint {
    pub fn is_ready(&self) -> bool {
        self.conditions.ready == Some(true)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    pub ready: Option<bool>,
    pub serving: Option<bool>,
    pub terminating: Option<bool>,
}

/// Empty and absent hints differ: upstream removes empty hints.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    pub for_zones: Vec<SharedStr>,
    pub for_nodes: Vec<SharedStr>,
}
