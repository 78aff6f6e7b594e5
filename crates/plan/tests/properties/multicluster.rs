//! Properties of every multi-cluster plan, on random worlds of one to three clusters.

use std::collections::BTreeSet;

use endpointd_model::{
    AddressType, ClusterId, ClusterIp, Endpoint, EndpointPort, EndpointSlice, Family, Key, Labels,
    Meta, MultiClusterObject, Object, OwnerRef, Protocol, Service, ServiceExport, ServicePort,
    TargetPort, Timestamp, TrafficDistribution, Uid, Write, names,
};
use endpointd_plan::{ClusterObjects, ClusterSetState, SourceState, Zones, multicluster};
use proptest::prelude::*;

use crate::generators::ByteSource;

fn key() -> Key {
    Key::new("shop", "web")
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("a small number")
}

fn decode(bytes: &[u8]) -> ClusterSetState {
    let mut source = ByteSource { bytes: bytes.iter() };
    let id = |text: &str| ClusterId::parse(text).expect("a label");
    let mut world = ClusterSetState::new(id("home"), at(1_000));
    for name in ["eu1", "us1"].into_iter().take(source.pick(3)) {
        world.remotes.push(ClusterObjects::new(id(name)));
    }
    source.populate_all(&mut world);
    // What is published belongs to an earlier state, and somebody has edited it.
    if source.pick(4) > 0 {
        settle(&mut world);
        source.populate_all(&mut world);
        source.edit_all(&mut world);
    }
    for remote in &mut world.remotes {
        remote.state = source.state();
    }
    world
}

impl ByteSource<'_> {
    fn populate_all(&mut self, world: &mut ClusterSetState) {
        self.populate_cluster(&mut world.home, 0);
        for (n, remote) in (1..).zip(&mut world.remotes) {
            self.populate_cluster(remote, n);
        }
        world.refused_families = self
            .one_of(&[vec![], vec![], vec![Family::V6], vec![Family::V4, Family::V6]])
            .into_iter()
            .collect();
    }

    fn populate_cluster(&mut self, cluster: &mut ClusterObjects, n: usize) {
        cluster.exports.clear();
        cluster.services.clear();
        cluster.slices.retain(|_, slice| is_ours(slice));
        cluster.zones = self.one_of(&[Zones::Keep, Zones::Keep, Zones::Drop, Zones::Prefix]);
        if !self.once_in(4) {
            cluster.exports.insert(key(), self.export());
        }
        if !self.once_in(6) {
            cluster.services.insert(key(), self.exported_service());
        }
        for at in 0..self.pick(4) {
            let slice = self.source_slice(&format!("web-{at}"), n);
            cluster.slices.insert(slice.meta.key(), slice);
        }
    }

    fn export(&mut self) -> ServiceExport {
        let mut export = ServiceExport::default();
        export.meta.namespace = "shop".into();
        export.meta.name = "web".into();
        export.meta.created = self.one_of(&[None, Some(at(10)), Some(at(20))]);
        export.labels = self.one_of(&[Labels::default(), [("team", "a")].into_iter().collect()]);
        export.annotations = self.one_of(&[Labels::default(), [("x", "1")].into_iter().collect()]);
        export
    }

    fn exported_service(&mut self) -> Service {
        let names = ["", "http", "web"];
        let ports = (0..1 + self.pick(2)).map(|n| ServicePort {
            name: self.one_of(&names[n..=n + 1]).into(),
            protocol: self.one_of(&[Protocol::Tcp, Protocol::Tcp, Protocol::Udp]),
            number: self.one_of(&[80, 81, 443]) + i32::try_from(n).unwrap_or_default() * 10,
            app_protocol: None,
            target: TargetPort::Number(8080),
        });
        Service {
            namespace: "shop".into(),
            name: "web".into(),
            is_external_name: false,
            ports: ports.collect(),
            cluster_ip: self.one_of(&[
                ClusterIp::Ip(Family::V4),
                ClusterIp::Ip(Family::V4),
                ClusterIp::Headless,
            ]),
            families: self.one_of(&[
                vec![Family::V4],
                vec![Family::V4],
                vec![Family::V6],
                vec![Family::V4, Family::V6],
                vec![Family::V6, Family::V4],
                Vec::new(),
            ]),
            traffic_distribution: self.one_of(&[
                None,
                Some(TrafficDistribution::PreferSameZone),
                Some(TrafficDistribution::PreferSameNode),
            ]),
            ..Service::default()
        }
    }

    fn source_slice(&mut self, name: &str, n: usize) -> EndpointSlice {
        let address_type = self.one_of(&[AddressType::IPv4, AddressType::IPv4, AddressType::IPv6]);
        let endpoints = (0..self.pick(3)).map(|at| self.source_endpoint(&address_type, n, at));
        let endpoints: Vec<Endpoint> = endpoints.collect();
        let ports = (0..self.pick(3)).map(|_| EndpointPort {
            name: Some(self.one_of(&["", "http", "web"]).into()),
            port: self.one_of(&[Some(8080), Some(9090), None]),
            protocol: self.one_of(&[Some(Protocol::Tcp), None]),
            app_protocol: None,
        });
        let ports: Vec<EndpointPort> = ports.collect();
        let mut slice =
            EndpointSlice { address_type, endpoints, ports, ..EndpointSlice::default() };
        slice.meta = Meta {
            namespace: "shop".into(),
            name: name.into(),
            uid: Uid::from(name),
            labels: [(names::SERVICE_NAME, "web")].into_iter().collect(),
            ..Meta::default()
        };
        slice
    }

    /// The second part of an address is the number of its cluster.
    fn source_endpoint(&mut self, address_type: &AddressType, n: usize, at: usize) -> Endpoint {
        let address = match address_type {
            AddressType::IPv6 => format!("fd00:{n}::{at}"),
            _ if self.once_in(9) => "127.0.0.1".to_owned(),
            _ => format!("10.{n}.0.{at}"),
        };
        let mut endpoint = Endpoint {
            addresses: vec![address.as_str().into()],
            zone: self.one_of(&[None, Some("za".into())]),
            node_name: self.one_of(&[None, Some("n1".into())]),
            ..Endpoint::default()
        };
        endpoint.conditions.ready = self.one_of(&[Some(true), Some(true), Some(false), None]);
        endpoint
    }

    fn state(&mut self) -> SourceState {
        let last_contact = Some(at(900));
        self.one_of(&[
            SourceState::InSync,
            SourceState::InSync,
            SourceState::Unknown,
            SourceState::Lost { last_contact },
            SourceState::Demoted { last_contact },
            SourceState::Expired,
            SourceState::Removed,
        ])
    }

    /// What a tenant can do to the objects that are written here.
    fn edit_all(&mut self, world: &mut ClusterSetState) {
        for slice in world.home.slices.values_mut().filter(|slice| is_ours(slice)) {
            match self.pick(9) {
                1 => slice.meta.labels = slice.meta.labels.with(names::IMPORT_NAME, None),
                2 => slice.meta.owners = vec![OwnerRef::default()],
                3 => slice.endpoints.clear(),
                4 => slice.ports.clear(),
                _ => {}
            }
        }
        for import in world.imports.values_mut() {
            match self.pick(8) {
                1 => import.spec.ports.clear(),
                2 => import.meta.annotations = Labels::default(),
                3 => import.status = Default::default(),
                _ => {}
            }
        }
        for service in world.derived.values_mut() {
            match self.pick(6) {
                1 => service.ports.clear(),
                2 => service.meta.owners.clear(),
                _ => {}
            }
        }
        if self.once_in(6) {
            world.imports.clear();
        }
    }
}

fn is_ours(slice: &EndpointSlice) -> bool {
    slice.meta.labels.has(names::MANAGED_BY, names::MANAGED_BY_CLUSTER_IMPORT)
}

/// As an API server that accepts every valid write.
fn apply(world: &mut ClusterSetState, write: &Write) {
    match write {
        Write::Update(Object::Slice(slice)) => {
            let old = &world.home.slices[&slice.meta.key()];
            assert_eq!(old.address_type, slice.address_type, "no update changes the addressType");
        }
        Write::Create(Object::Slice(slice)) => {
            assert!(!world.home.slices.contains_key(&slice.meta.key()), "the name is taken");
        }
        Write::Create(Object::MultiCluster(MultiClusterObject::Derived(service)))
        | Write::Update(Object::MultiCluster(MultiClusterObject::Derived(service))) => {
            let old = world.derived.get(&service.meta.key());
            let first = old.and_then(|old| old.families.first());
            assert!(first.is_none_or(|first| service.families.first() == Some(first)));
            let port_names: BTreeSet<_> = service.ports.iter().map(|port| &port.name).collect();
            assert_eq!(port_names.len(), service.ports.len(), "names differ");
            let is_named = service.ports.iter().all(|port| !port.name.is_empty());
            assert!(is_named || service.ports.len() == 1, "the API server wants names");
        }
        Write::Create(_) | Write::Update(_) | Write::Delete(_) => {}
    }
    world.apply(write);
    for service in world.derived.values_mut() {
        let missing = service.families.iter().skip(service.cluster_ips.len());
        let addresses = missing.map(|family| match family {
            Family::V4 => "10.96.0.1".into(),
            Family::V6 => "fd00:96::1".into(),
        });
        let addresses: Vec<_> = addresses.collect();
        service.cluster_ips.extend(addresses);
    }
}

fn settle(world: &mut ClusterSetState) {
    for _ in 0..12 {
        let plan = world.plan(&key());
        if plan.writes.is_empty() {
            return;
        }
        plan.writes.iter().for_each(|write| apply(world, write));
    }
    panic!("it never ends: {}", world.plan(&key()));
}

/// What clients see: without resourceVersions, times, and annotations.
fn contents(world: &ClusterSetState) -> String {
    let slices = world.home.slices.values().filter(|slice| is_ours(slice)).map(|slice| {
        let EndpointSlice { meta, address_type, endpoints, ports } = slice;
        format!("{} {:?} {address_type} {endpoints:?} {ports:?}", meta.name, meta.labels)
    });
    let imports =
        world.imports.values().map(|one| format!("{:?} {:?}", one.spec, one.status.clusters));
    let derived = world.derived.values().map(|one| format!("{:?} {:?}", one.ports, one.families));
    slices.chain(imports).chain(derived).collect::<Vec<_>>().join("\n")
}

fn check(world: &ClusterSetState) {
    let plan = world.plan(&key());
    let mut backwards = world.snapshot(&key());
    backwards.slices.reverse();
    backwards.remotes.reverse();
    for cluster in &mut backwards.remotes {
        cluster.slices.reverse();
    }
    assert_eq!(multicluster(&backwards), plan, "order shows");
    check_writes(world, &plan.writes);
    let mut settled = world.clone();
    settle(&mut settled);
    check_published(world, &settled);
    // A restart while other clusters do not answer: nothing is written, whatever they were before.
    let mut unknown = settled.clone();
    unknown.remotes.iter_mut().for_each(|remote| remote.state = SourceState::Unknown);
    assert_eq!(unknown.plan(&key()).writes, [], "for an unknown cluster");
    // Whatever part of the plan gets through, the next plans lead to the same end.
    for write in &plan.writes {
        let mut partly = world.clone();
        apply(&mut partly, write);
        settle(&mut partly);
        assert_eq!(contents(&partly), contents(&settled), "after {write:?}");
    }
}

fn check_writes(world: &ClusterSetState, writes: &[Write]) {
    for write in writes {
        assert_eq!(write.key().namespace.as_ref(), "shop");
        let Write::Delete(target) = write else { continue };
        let Some(slice) = world.home.slices.get(&target.key) else { continue };
        assert!(is_ours(slice), "{} is another's", slice.meta.name);
        let cluster = slice.meta.labels.get(names::SOURCE_CLUSTER);
        let is_unknown = |one: &&ClusterObjects| {
            one.state == SourceState::Unknown && cluster.is_some_and(|id| **id == *one.id.as_str())
        };
        let unknown = world.remotes.iter().find(is_unknown);
        assert!(unknown.is_none(), "{} was deleted for an unknown cluster", slice.meta.name);
    }
}

fn check_published(before: &ClusterSetState, settled: &ClusterSetState) {
    let foreign = |world: &ClusterSetState| {
        let slices = world
            .home
            .slices
            .values()
            .filter(|slice| !is_ours(slice) && !slice.meta.name.starts_with("derived-"));
        slices.cloned().collect::<Vec<_>>()
    };
    assert_eq!(foreign(before), foreign(settled), "slices of others are untouched");
    for slice in settled.home.slices.values().filter(|slice| is_ours(slice)) {
        let id = slice.meta.labels.get(names::SOURCE_CLUSTER).expect("every slice has its cluster");
        let clusters = std::iter::once(&settled.home).chain(&settled.remotes);
        let Some(cluster) = clusters.clone().find(|one| *one.id.as_str() == **id) else {
            panic!("{id} is no cluster");
        };
        if cluster.state == SourceState::Unknown {
            continue;
        }
        let sources = cluster.slices.values().filter(|slice| !is_ours(slice));
        let addresses: BTreeSet<_> =
            sources.flat_map(|slice| &slice.endpoints).flat_map(|one| &one.addresses).collect();
        for endpoint in &slice.endpoints {
            assert!(endpoint.addresses.iter().all(|one| addresses.contains(one)), "{id}");
        }
        // Nobody has fewer endpoints because another cluster is lost.
        assert!(!matches!(cluster.state, SourceState::Expired | SourceState::Removed), "{id}");
    }
    for import in settled.imports.values() {
        let spec = &import.spec;
        let is_headless = spec.import_type == endpointd_model::ImportType::Headless;
        assert!(is_headless || spec.ips.len() == spec.families.len(), "{spec:?}");
        assert!(!is_headless || spec.ips.is_empty(), "{spec:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, ..ProptestConfig::default() })]

    #[test]
    fn properties_hold_for_clustersets(bytes in proptest::collection::vec(any::<u8>(), 0..260)) {
        check(&decode(&bytes));
    }
}
