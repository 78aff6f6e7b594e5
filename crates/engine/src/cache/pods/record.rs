//! A cached pod: only the fields that plans use, in at most 104 bytes with version and list epoch.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::num::NonZeroU32;
use std::sync::Arc;

use endpointd_model::{
    Labels, NamedPort, Phase, Pod, PodIp, PodIps, Readiness, ResourceVersion, SharedStr, Timestamp,
    Uid, UidRepr,
};

use super::super::selector_index::IndexSlot;

/// Index of a pod in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodId(pub u32);

/// A pod without its labels, which its label set holds, and without its node's name.
#[derive(Debug)]
pub struct PodRecord {
    pub name: SharedStr,
    pub slot: IndexSlot,
    pub node: Option<NodeSlot>,
    pub namespace: u32,
    /// Last transition of the Ready condition in Unix seconds; see [`flag::HAS_SINCE`].
    since: u32,
    uuid: [u8; 16],
    /// The only address of the pod, unless `ips` is set.
    ip: Ipv4Addr,
    ips: Option<Box<Ips>>,
    named_ports: PortList,
    uncommon: Option<Box<UncommonFields>>,
    flags: u8,
}

/// Shared by pods of one template. The outer Arc makes the pointer thin: 8 bytes less per pod.
pub type PortList = Arc<Arc<[NamedPort]>>;

/// Bits of [`PodRecord::flags`].
mod flag {
    pub const FAILED: u8 = 1;
    pub const SUCCEEDED: u8 = 2;
    pub const IS_TERMINATING: u8 = 4;
    pub const HAS_READINESS: u8 = 8;
    pub const IS_READY: u8 = 16;
    pub const HAS_SINCE: u8 = 32;
}

/// A pod's position in the list of its node.
#[derive(Clone, Copy, Debug)]
pub struct NodeSlot {
    /// Stored +1, so that `Option<NodeSlot>` uses the niche of zero.
    node_plus_one: NonZeroU32,
    pub position: u32,
}

impl NodeSlot {
    pub fn new(node: u32, position: u32) -> Self {
        Self { node_plus_one: NonZeroU32::MIN.saturating_add(node), position }
    }

    pub fn node(self) -> u32 {
        self.node_plus_one.get() - 1
    }
}

/// Fields that few pods have.
#[derive(Debug, Default)]
struct UncommonFields {
    hostname: Option<SharedStr>,
    subdomain: Option<SharedStr>,
    /// Set if the uid is not a UUID.
    uid: Option<Uid>,
    /// Set if the time has no `u32` of whole seconds.
    since: Option<Timestamp>,
}

/// Anything but exactly one IPv4 address.
#[derive(Debug, PartialEq)]
enum Ips {
    None,
    V6(Ipv6Addr),
    Both(Ipv4Addr, Ipv6Addr),
    Other(PodIps),
}

/// The position of a pod in the indexes, and its interned values.
pub struct PodIndexing {
    pub namespace: u32,
    pub name: SharedStr,
    pub slot: IndexSlot,
    pub node: Option<NodeSlot>,
    pub named_ports: PortList,
}

impl PodId {
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl PodRecord {
    pub fn new(pod: Pod, indexing: PodIndexing) -> Self {
        let PodIndexing { namespace, name, slot, node, named_ports } = indexing;
        let mut uncommon = UncommonFields {
            hostname: pod.hostname,
            subdomain: pod.subdomain,
            ..UncommonFields::default()
        };
        let uuid = match pod.uid.form() {
            UidRepr::Uuid(uuid) => *uuid,
            UidRepr::Other(_) => {
                uncommon.uid = Some(pod.uid);
                [0; 16]
            }
        };
        let since = pod.readiness.as_ref().and_then(|readiness| readiness.since);
        let seconds = since.and_then(whole_seconds);
        uncommon.since = since.filter(|_| seconds.is_none());
        let (ip, ips) = encode_ips(pod.ips);
        let bit = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
        let flags = bit(pod.phase == Phase::Failed, flag::FAILED)
            | bit(pod.phase == Phase::Succeeded, flag::SUCCEEDED)
            | bit(pod.is_terminating, flag::IS_TERMINATING)
            | bit(pod.readiness.is_some(), flag::HAS_READINESS)
            | bit(pod.readiness.is_some_and(|one| one.is_ready), flag::IS_READY)
            | bit(seconds.is_some(), flag::HAS_SINCE);
        let has_uncommon = uncommon.hostname.is_some()
            || uncommon.subdomain.is_some()
            || uncommon.uid.is_some()
            || uncommon.since.is_some();
        Self {
            name,
            slot,
            node,
            namespace,
            since: seconds.unwrap_or_default(),
            uuid,
            ip,
            ips: ips.map(Box::new),
            named_ports,
            uncommon: has_uncommon.then(|| Box::new(uncommon)),
            flags,
        }
    }

    /// The pod for one plan. Its resourceVersion is left out, because no plan uses it.
    pub fn decode(
        &self,
        namespace: &SharedStr,
        labels: &Labels,
        node_name: Option<&SharedStr>,
    ) -> Pod {
        let uncommon = self.uncommon.as_deref();
        Pod {
            namespace: namespace.clone(),
            name: self.name.clone(),
            uid: uncommon
                .and_then(|uncommon| uncommon.uid.clone())
                .unwrap_or_else(|| self.uuid.into()),
            resource_version: ResourceVersion::NONE,
            labels: labels.clone(),
            node_name: node_name.cloned(),
            hostname: uncommon.and_then(|uncommon| uncommon.hostname.clone()),
            subdomain: uncommon.and_then(|uncommon| uncommon.subdomain.clone()),
            ips: decode_ips(self.ip, self.ips.as_deref()),
            phase: self.phase(),
            readiness: self.readiness(),
            is_terminating: self.has(flag::IS_TERMINATING),
            named_ports: (*self.named_ports).clone(),
        }
    }

    fn phase(&self) -> Phase {
        if self.has(flag::FAILED) {
            Phase::Failed
        } else if self.has(flag::SUCCEEDED) {
            Phase::Succeeded
        } else {
            Phase::Active
        }
    }

    fn readiness(&self) -> Option<Readiness> {
        let seconds = self.has(flag::HAS_SINCE).then_some(self.since);
        let whole = seconds.and_then(|seconds| Timestamp::from_second(seconds.into()).ok());
        let since = whole.or_else(|| self.uncommon.as_deref()?.since);
        let is_ready = self.has(flag::IS_READY);
        self.has(flag::HAS_READINESS).then_some(Readiness { is_ready, since })
    }

    fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// None if the time has fractions of a second or does not fit.
fn whole_seconds(time: Timestamp) -> Option<u32> {
    if time.subsec_nanosecond() != 0 {
        return None;
    }
    time.as_second().try_into().ok()
}

fn encode_ips(ips: PodIps) -> (Ipv4Addr, Option<Ips>) {
    let other = match (&ips.primary, ips.all.as_ref()) {
        (Some(PodIp::Ip(IpAddr::V4(primary))), [PodIp::Ip(IpAddr::V4(only))])
            if primary == only =>
        {
            return (*only, None);
        }
        (None, []) => Ips::None,
        (Some(PodIp::Ip(IpAddr::V6(primary))), [PodIp::Ip(IpAddr::V6(only))])
            if primary == only =>
        {
            Ips::V6(*only)
        }
        (
            Some(PodIp::Ip(IpAddr::V4(primary))),
            [PodIp::Ip(IpAddr::V4(v4)), PodIp::Ip(IpAddr::V6(v6))],
        ) if primary == v4 => Ips::Both(*v4, *v6),
        (Some(_) | None, _) => Ips::Other(ips),
    };
    (Ipv4Addr::UNSPECIFIED, Some(other))
}

fn decode_ips(ip: Ipv4Addr, ips: Option<&Ips>) -> PodIps {
    let one = |ip: IpAddr| PodIps { primary: Some(PodIp::Ip(ip)), all: Arc::new([PodIp::Ip(ip)]) };
    match ips {
        None => one(ip.into()),
        Some(Ips::None) => PodIps::default(),
        Some(Ips::V6(ip)) => one((*ip).into()),
        Some(Ips::Both(v4, v6)) => PodIps {
            primary: Some(PodIp::Ip((*v4).into())),
            all: Arc::new([PodIp::Ip((*v4).into()), PodIp::Ip((*v6).into())]),
        },
        Some(Ips::Other(ips)) => ips.clone(),
    }
}

#[cfg(test)]
mod tests {
    use endpointd_model::Key;

    use super::super::super::cached::Cached;
    use super::super::super::selector_index::SelectorIndex;
    use super::*;

    fn round_trip(pod: &Pod) -> Pod {
        let slot = SelectorIndex::default().insert(&pod.labels, PodId(0));
        let indexing = PodIndexing {
            namespace: 0,
            name: pod.name.clone(),
            slot,
            node: None,
            named_ports: Arc::new(pod.named_ports.clone()),
        };
        let record = PodRecord::new(pod.clone(), indexing);
        record.decode(&pod.namespace, &pod.labels, pod.node_name.as_ref())
    }

    #[test]
    fn addresses_survive_a_round_trip() {
        let ip = |text: &str| PodIp::parse(text);
        for (primary, all) in [
            (None, vec![]),
            (Some("10.0.0.1"), vec!["10.0.0.1"]),
            (Some("0.0.0.0"), vec!["0.0.0.0"]),
            (Some("fd00::1"), vec!["fd00::1"]),
            (Some("10.0.0.1"), vec!["10.0.0.1", "fd00::1"]),
            (Some("fd00::1"), vec!["fd00::1", "10.0.0.1"]),
            (Some("10.0.0.1"), vec![]),
            (None, vec!["10.0.0.1"]),
            (Some("10.0.0.2"), vec!["10.0.0.1"]),
            (Some("nonsense"), vec!["nonsense"]),
        ] {
            let ips = PodIps { primary: primary.map(ip), all: all.into_iter().map(ip).collect() };
            let pod = Pod { ips, ..Pod::default() };
            assert_eq!(round_trip(&pod), pod);
        }
    }

    #[test]
    fn readiness_survives_a_round_trip() {
        let times = ["2026-01-02T03:04:05Z", "2026-01-02T03:04:05.5Z", "1969-12-31T23:59:59Z"];
        let times = times.map(|time| time.parse().ok());
        for since in times.into_iter().chain([None, Some(Timestamp::MAX)]) {
            for is_ready in [true, false] {
                let readiness = Some(Readiness { is_ready, since });
                let pod = Pod { readiness, ..Pod::default() };
                assert_eq!(round_trip(&pod), pod);
            }
        }
        let pod = Pod { readiness: None, ..Pod::default() };
        assert_eq!(round_trip(&pod), pod);
    }

    #[test]
    fn uncommon_fields_survive_a_round_trip() {
        let key = Key::new("shop", "web-1");
        for uid in ["5e2cb0a7-91d0-4a5b-8f1e-0123456789ab", "not-a-uuid", ""] {
            for phase in [Phase::Active, Phase::Failed, Phase::Succeeded] {
                let pod = Pod {
                    namespace: key.namespace.clone(),
                    name: key.name.clone(),
                    uid: uid.into(),
                    phase,
                    hostname: Some("web-1".into()),
                    subdomain: Some("web".into()),
                    node_name: Some("node-1".into()),
                    is_terminating: phase == Phase::Failed,
                    ..Pod::default()
                };
                assert_eq!(round_trip(&pod), pod);
            }
        }
    }

    #[test]
    fn cached_pod_has_at_most_104_bytes() {
        assert!(size_of::<Cached<PodRecord>>() <= 104, "{} bytes", size_of::<Cached<PodRecord>>());
        assert!(size_of::<Option<NodeSlot>>() == 8);
    }
}
