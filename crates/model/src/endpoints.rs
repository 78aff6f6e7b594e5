//! Endpoints with all fields, because endpointd writes them.

use crate::{Meta, ObjectRef, Protocol, SharedStr};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Endpoints {
    pub meta: Meta,
    pub subsets: Vec<Subset>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subset {
    pub addresses: Vec<EndpointAddress>,
    pub not_ready_addresses: Vec<EndpointAddress>,
    pub ports: Vec<SubsetPort>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndpointAddress {
    /// Not canonical: two spellings of one address are two addresses until they are mirrored.
    pub ip: SharedStr,
    pub hostname: Option<SharedStr>,
    /// Absent and empty differ: upstream writes an empty name for an unscheduled pod.
    pub node_name: Option<SharedStr>,
    pub target_ref: Option<ObjectRef>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SubsetPort {
    pub name: SharedStr,
    pub port: i32,
    pub protocol: Protocol,
    pub app_protocol: Option<SharedStr>,
}
