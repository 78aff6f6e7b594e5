//! Endpoints, complete.

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
    /// As written: two spellings of one address are two addresses until they are mirrored.
    pub ip: SharedStr,
    pub hostname: Option<SharedStr>,
    /// Absent differs from empty; upstream writes an empty one for an unscheduled pod.
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
