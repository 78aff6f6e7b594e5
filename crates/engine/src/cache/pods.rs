//! Pods in as few bytes as they can be planned from.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use endpointd_model::{
    Labels, NamedPort, Phase, Pod, PodIp, PodIps, Readiness, Text, Uid, Version,
};

use super::matching::Seat;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PodId(pub u32);

/// What is kept of a pod. Its labels are those of its label set, its node is known by number.
#[derive(Debug)]
pub struct PodRecord {
    pub namespace: u32,
    pub name: Text,
    pub uid: Uid,
    pub version: Version,
    pub seat: Seat,
    pub node: Option<NodeSeat>,
    pub picture: u8,
    ips: Ips,
    phase: Phase,
    is_terminating: bool,
    readiness: Option<Readiness>,
    named_ports: Arc<[NamedPort]>,
    /// Few pods have either.
    host: Option<Box<Host>>,
}

/// A pod's place in the list of its node.
#[derive(Clone, Copy, Debug)]
pub struct NodeSeat {
    pub node: u32,
    pub position: u32,
}

#[derive(Debug)]
struct Host {
    hostname: Option<Text>,
    subdomain: Option<Text>,
}

/// Nearly all pods have one address, or one of each family.
#[derive(Debug)]
enum Ips {
    None,
    One(IpAddr),
    Both(Ipv4Addr, Ipv6Addr),
    Other(Box<PodIps>),
}

/// What the cache adds to a pod.
pub struct Surroundings {
    pub namespace: u32,
    pub name: Text,
    pub version: Version,
    pub seat: Seat,
    pub node: Option<NodeSeat>,
    pub picture: u8,
}

impl PodRecord {
    pub fn new(pod: Pod, around: Surroundings) -> Self {
        let Surroundings { namespace, name, version, seat, node, picture } = around;
        let has_host = pod.hostname.is_some() || pod.subdomain.is_some();
        let host = Host { hostname: pod.hostname, subdomain: pod.subdomain };
        Self {
            namespace,
            name,
            uid: pod.uid,
            version,
            seat,
            node,
            picture,
            ips: Ips::pack(pod.ips),
            phase: pod.phase,
            is_terminating: pod.is_terminating,
            readiness: pod.readiness,
            named_ports: pod.named_ports,
            host: has_host.then(|| Box::new(host)),
        }
    }

    /// The pod as plans want it. Its resourceVersion is left out: nothing is decided by it.
    pub fn unpack(&self, namespace: &Text, labels: &Labels, node_name: Option<&Text>) -> Pod {
        let host = self.host.as_deref();
        Pod {
            namespace: namespace.clone(),
            name: self.name.clone(),
            uid: self.uid.clone(),
            resource_version: Text::default(),
            labels: labels.clone(),
            node_name: node_name.cloned(),
            hostname: host.and_then(|host| host.hostname.clone()),
            subdomain: host.and_then(|host| host.subdomain.clone()),
            ips: self.ips.unpack(),
            phase: self.phase,
            readiness: self.readiness.clone(),
            is_terminating: self.is_terminating,
            named_ports: self.named_ports.clone(),
        }
    }
}

impl Ips {
    fn pack(ips: PodIps) -> Self {
        match (&ips.primary, ips.all.as_ref()) {
            (None, []) => Self::None,
            (Some(PodIp::Ip(primary)), [PodIp::Ip(only)]) if primary == only => Self::One(*only),
            (
                Some(PodIp::Ip(IpAddr::V4(primary))),
                [PodIp::Ip(IpAddr::V4(v4)), PodIp::Ip(IpAddr::V6(v6))],
            ) if primary == v4 => Self::Both(*v4, *v6),
            (Some(_) | None, _) => Self::Other(Box::new(ips)),
        }
    }

    fn unpack(&self) -> PodIps {
        match self {
            Self::None => PodIps::default(),
            Self::One(ip) => {
                PodIps { primary: Some(PodIp::Ip(*ip)), all: Arc::new([PodIp::Ip(*ip)]) }
            }
            Self::Both(v4, v6) => PodIps {
                primary: Some(PodIp::Ip((*v4).into())),
                all: Arc::new([PodIp::Ip((*v4).into()), PodIp::Ip((*v6).into())]),
            },
            Self::Other(ips) => ips.as_ref().clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_come_back_as_they_went_in() {
        let ip = |text: &str| PodIp::parse(text);
        for (primary, all) in [
            (None, vec![]),
            (Some("10.0.0.1"), vec!["10.0.0.1"]),
            (Some("10.0.0.1"), vec!["10.0.0.1", "fd00::1"]),
            (Some("fd00::1"), vec!["fd00::1", "10.0.0.1"]),
            (Some("10.0.0.1"), vec![]),
            (None, vec!["10.0.0.1"]),
            (Some("10.0.0.2"), vec!["10.0.0.1"]),
            (Some("nonsense"), vec!["nonsense"]),
        ] {
            let ips = PodIps { primary: primary.map(ip), all: all.into_iter().map(ip).collect() };
            assert_eq!(Ips::pack(ips.clone()).unpack(), ips);
        }
    }

    #[test]
    fn a_record_is_small() {
        assert!(size_of::<PodRecord>() <= 176, "{} bytes", size_of::<PodRecord>());
    }
}
