//! The fields of a pod that decide whether and how it is published.

use std::net::IpAddr;
use std::sync::Arc;

use crate::{Family, Key, Labels, Protocol, ResourceVersion, SharedStr, Timestamp, Uid, parse_ip};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pod {
    pub namespace: SharedStr,
    pub name: SharedStr,
    pub uid: Uid,
    pub resource_version: ResourceVersion,
    pub labels: Labels,
    pub node_name: Option<SharedStr>,
    pub hostname: Option<SharedStr>,
    pub subdomain: Option<SharedStr>,
    pub ips: PodIps,
    pub phase: Phase,
    pub readiness: Option<Readiness>,
    pub is_terminating: bool,
    /// Ports of containers, then of sidecars, in order: the first of a name and protocol wins.
    pub named_ports: Arc<[NamedPort]>,
}

impl Pod {
    pub fn key(&self) -> Key {
        Key { namespace: self.namespace.clone(), name: self.name.clone() }
    }

    /// A pod without a `Ready` condition is not ready.
    pub fn is_ready(&self) -> bool {
        self.readiness.as_ref().is_some_and(|readiness| readiness.is_ready)
    }
}

/// The phase, as far as it is final.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    #[default]
    Active,
    Failed,
    Succeeded,
}

/// The `Ready` condition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Readiness {
    pub is_ready: bool,
    pub since: Option<Timestamp>,
}

/// `status.podIP` and `status.podIPs`. Either makes a pod eligible; only the list is published.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodIps {
    pub primary: Option<PodIp>,
    pub all: Arc<[PodIp]>,
}

impl PodIps {
    pub fn is_empty(&self) -> bool {
        self.primary.is_none() && self.all.is_empty()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PodIp {
    Ip(IpAddr),
    /// The text is not an IP address; it is kept for messages.
    Invalid(SharedStr),
}

impl PodIp {
    pub fn parse(text: &str) -> Self {
        parse_ip(text).map_or_else(|| Self::Invalid(text.into()), Self::Ip)
    }

    /// An invalid address counts as IPv4, as in upstream's `IsIPv6`.
    pub fn family(&self) -> Family {
        match self {
            Self::Ip(ip) => Family::of(*ip),
            Self::Invalid(_) => Family::V4,
        }
    }
}

/// A named container port, which a targetPort can refer to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NamedPort {
    pub name: SharedStr,
    pub protocol: Protocol,
    pub number: i32,
}
