//! Properties of every plan of the import controller, on random small worlds.

use std::collections::BTreeMap;

use endpointd_model::{
    AddressType, ClusterIp, CrossNamespace, Endpoint, EndpointPort, EndpointSlice, Family, Key,
    Labels, Object, OwnerRef, Protocol, ReferenceGrant, Service, ServicePort, TargetPort,
    TrafficDistribution, Uid, Write, names,
};
use endpointd_plan::{
    CarriedState, ImportPlan, ImportSnapshot, ImportState, Settings, Topology, import,
};
use proptest::prelude::*;

use crate::generators::ByteSource;

#[derive(Clone, Debug)]
struct World {
    service: Option<Service>,
    source: Option<Service>,
    /// Of both namespaces.
    slices: BTreeMap<Key, EndpointSlice>,
    carried: CarriedState,
}

impl World {
    fn plan(&self) -> ImportPlan {
        self.plan_in_order(|_| {})
    }

    fn plan_in_order(&self, order: impl FnOnce(&mut Vec<&EndpointSlice>)) -> ImportPlan {
        let mut slices: Vec<&EndpointSlice> = self.slices.values().collect();
        order(&mut slices);
        let of_source = |slice: &&&EndpointSlice| &*slice.meta.namespace == "data";
        let grant = ReferenceGrant::default();
        let snapshot = ImportSnapshot {
            service: self.service.as_ref(),
            source: self.source.as_ref(),
            source_slices: slices.iter().filter(of_source).copied().collect(),
            grants: vec![&grant],
            slices: slices.clone(),
            topology: &Topology::default(),
            carried: &self.carried,
        };
        import(&snapshot, &Settings::default())
    }

    fn apply(&mut self, write: &Write) {
        match write {
            Write::Create(Object::Slice(slice)) => {
                let old = self.slices.insert(slice.meta.key(), slice.clone());
                assert!(old.is_none(), "the name is taken: {}", slice.meta.name);
            }
            Write::Update(Object::Slice(slice)) => {
                let old = self.slices.insert(slice.meta.key(), slice.clone());
                let same_type = old.is_some_and(|old| old.address_type == slice.address_type);
                assert!(same_type, "no update changes the addressType");
            }
            Write::Delete(target) => {
                assert!(self.slices.remove(&target.key).is_some(), "it exists");
            }
            Write::Create(
                Object::Endpoints(_) | Object::ServiceStatus(_) | Object::MultiCluster(_),
            )
            | Write::Update(
                Object::Endpoints(_) | Object::ServiceStatus(_) | Object::MultiCluster(_),
            ) => {
                panic!("these plans are about slices")
            }
        }
    }

    /// After all writes of the plan.
    fn settled(mut self) -> Self {
        let plan = self.plan().plan;
        plan.writes.iter().for_each(|write| self.apply(write));
        self.carried = plan.carried;
        self
    }
}

fn decode(bytes: &[u8]) -> World {
    let mut source = ByteSource { bytes: bytes.iter() };
    let mut world = World {
        service: None,
        source: None,
        slices: BTreeMap::new(),
        carried: CarriedState::default(),
    };
    source.populate_pair(&mut world);
    // What is published belongs to an earlier state, and somebody has edited it.
    if source.pick(4) > 0 {
        world = world.settled();
        world.slices.retain(|key, _| &*key.namespace == "shop");
        source.populate_pair(&mut world);
        for slice in world.slices.values_mut().filter(|slice| &*slice.meta.namespace == "shop") {
            source.edit(slice);
        }
    }
    world
}

impl ByteSource<'_> {
    fn populate_pair(&mut self, world: &mut World) {
        world.service = (!self.once_in(12)).then(|| self.consumer());
        world.source = (!self.once_in(8)).then(|| self.source_service());
        for n in 0..self.pick(4) {
            let slice = self.slice("data", &format!("pg-{n}"), "pg");
            world.slices.insert(slice.meta.key(), slice);
        }
        if self.once_in(3) {
            let slice = self.slice("shop", "db-foreign", "db");
            world.slices.insert(slice.meta.key(), slice);
        }
    }

    fn consumer(&mut self) -> Service {
        let mut service = Service {
            uid: Uid::from(self.one_of(&["u1", "u1", "u2"])),
            is_deleting: self.once_in(12),
            families: self.one_of(&[
                vec![Family::V4],
                vec![Family::V6],
                vec![Family::V4, Family::V6],
                Vec::new(),
            ]),
            cluster_ip: self.one_of(&[ClusterIp::Ip(Family::V4), ClusterIp::Headless]),
            traffic_distribution: self.one_of(&[
                None,
                Some(TrafficDistribution::PreferSameZone),
                Some(TrafficDistribution::PreferSameNode),
            ]),
            ..self.service_of("shop", "db")
        };
        if self.once_in(8) {
            service.selector = [("app", "db")].into_iter().collect();
        }
        let from = self.one_of(&[Some("data/pg"), Some("data/pg"), Some("nonsense"), None]);
        let cross = CrossNamespace { from: from.map(Into::into), ..CrossNamespace::default() };
        service.cross_namespace = Some(Box::new(cross));
        service
    }

    fn source_service(&mut self) -> Service {
        let to = self.one_of(&[Some("shop"), Some("*"), Some("other"), None]);
        let from = self.once_in(10).then(|| "a/b".into());
        let cross = CrossNamespace { from, to: to.map(Into::into), condition: None };
        Service { cross_namespace: Some(Box::new(cross)), ..self.service_of("data", "pg") }
    }

    fn service_of(&mut self, namespace: &str, name: &str) -> Service {
        let n_ports = self.pick(3);
        let ports = (0..n_ports).map(|n| ServicePort {
            name: ["pg", "web", "dns"][n].into(),
            protocol: self.one_of(&[Protocol::Tcp, Protocol::Udp]),
            number: self.one_of(&[80, 443]),
            app_protocol: None,
            target: TargetPort::Number(80),
        });
        Service {
            namespace: namespace.into(),
            name: name.into(),
            ports: ports.collect(),
            ..Service::default()
        }
    }

    fn slice(&mut self, namespace: &str, name: &str, service: &str) -> EndpointSlice {
        let mut slice = EndpointSlice::default();
        slice.meta.namespace = namespace.into();
        slice.meta.name = name.into();
        let manager = self.one_of(&["upstream", names::MANAGED_BY_IMPORT]);
        let manager = if namespace == "shop" { "upstream" } else { manager };
        slice.meta.labels =
            [(names::SERVICE_NAME, service), (names::MANAGED_BY, manager)].into_iter().collect();
        slice.address_type = self.one_of(&[AddressType::IPv4, AddressType::IPv6]);
        slice.ports = (0..self.pick(3))
            .map(|n| EndpointPort {
                name: Some(["pg", "web"][n].into()),
                port: Some(self.one_of(&[8080, 9090])),
                protocol: self.one_of(&[Some(Protocol::Tcp), Some(Protocol::Udp), None]),
                app_protocol: None,
            })
            .collect();
        slice.endpoints =
            (0..self.pick(4)).map(|n| self.endpoint(&slice.address_type, n)).collect();
        slice
    }

    fn endpoint(&mut self, address_type: &AddressType, n: usize) -> Endpoint {
        let address = match address_type {
            AddressType::IPv6 => format!("fd00::{n}"),
            _ if self.once_in(8) => "127.0.0.1".to_owned(),
            _ => format!("10.0.0.{n}"),
        };
        let mut endpoint = Endpoint {
            addresses: vec![address.as_str().into()],
            zone: self.one_of(&[None, Some("za".into()), Some("zb".into())]),
            node_name: self.one_of(&[None, Some("n1".into())]),
            ..Endpoint::default()
        };
        endpoint.conditions.ready = self.one_of(&[Some(true), Some(false), None]);
        endpoint
    }

    /// What a tenant can do to a copy.
    fn edit(&mut self, slice: &mut EndpointSlice) {
        match self.pick(10) {
            1 => slice.meta.labels = Labels::default(),
            2 => slice.meta.labels = slice.meta.labels.with(names::MANAGED_BY, Some("me")),
            3 => slice.meta.owners = vec![OwnerRef::default()],
            4 => slice.endpoints.clear(),
            5 => slice.ports.clear(),
            6 => slice.endpoints.reverse(),
            _ => {}
        }
    }
}

fn is_ours(slice: &EndpointSlice) -> bool {
    &*slice.meta.namespace == "shop"
        && slice.meta.labels.has(names::SERVICE_NAME, "db")
        && slice.meta.labels.has(names::MANAGED_BY, names::MANAGED_BY_IMPORT)
}

/// Addresses that the consumer publishes, with the port that leads to each.
fn published(world: &World) -> Vec<(String, Option<i32>)> {
    let ours = world.slices.values().filter(|slice| is_ours(slice));
    let addresses = ours.flat_map(|slice| {
        let port = slice.ports.first().and_then(|port| port.port);
        slice.endpoints.iter().map(move |endpoint| (endpoint.addresses[0].to_string(), port))
    });
    addresses.collect()
}

fn check(world: &World) {
    let ImportPlan { plan, state } = world.plan();
    assert_eq!(world.plan_in_order(|slices| slices.reverse()), world.plan(), "order shows");
    for write in &plan.writes {
        assert_eq!(write.key().namespace.as_ref(), "shop", "it writes at home only");
        assert_ne!(write.key().name.as_ref(), "db-foreign", "it is another's");
    }
    let settled = world.clone().settled();
    assert_eq!(settled.plan().plan.writes, [], "the second plan writes");
    let is_settled = world.service.as_ref().is_some_and(|service| !service.is_deleting);
    if is_settled
        && !matches!(state, ImportState::Mirrored { .. } | ImportState::PortNotFound { .. })
    {
        assert_eq!(published(&settled), [], "{state}");
    }
    let of_source: Vec<&str> = world
        .slices
        .values()
        .filter(|slice| &*slice.meta.namespace == "data")
        .flat_map(|slice| slice.endpoints.iter().map(|endpoint| &*endpoint.addresses[0]))
        .collect();
    if world.service.is_some() {
        for (address, _) in published(&settled) {
            assert!(of_source.contains(&&*address), "{address} is not the source's");
        }
    }
    // Whatever part of the plan gets through, the next plan leads to the same end.
    for write in &plan.writes {
        let mut partly = world.clone();
        partly.apply(write);
        let end = partly.settled();
        assert_eq!(end.plan().plan.writes, [], "after {write:?}");
        assert_eq!(contents(&end), contents(&settled), "after {write:?}");
    }
}

/// Without annotations: a trigger time that was not copied yet causes no write.
fn contents(world: &World) -> Vec<(Key, Vec<Endpoint>, Vec<EndpointPort>)> {
    let slices = world.slices.values().filter(|slice| is_ours(slice));
    slices.map(|one| (one.meta.key(), one.endpoints.clone(), one.ports.clone())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8_000, ..ProptestConfig::default() })]

    #[test]
    fn properties_hold_for_imports(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        check(&decode(&bytes));
    }
}
