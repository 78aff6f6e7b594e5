//! Services, slices, grants, and `zones` with equal shares as text.

use std::collections::BTreeMap;

use endpointd_model::{
    ClusterIp, CrossNamespace, Endpoint, EndpointSlice, Family, GrantedFrom, GrantedTo, Hints, Key,
    Labels, Object, ObjectRef, ReferenceGrant, Service, SharedStr, SourceReason, TopologyMode,
    TrafficDistribution, Uid, Write, names,
};
use endpointd_plan::{CarriedState, ImportPlan, ImportSnapshot, Settings, Topology, import};
use expect_test::Expect;

use crate::fixture::{endpoint_port, service_port};

/// Services, slices, and grants of all namespaces.
#[derive(Clone, Default)]
pub struct World {
    pub services: BTreeMap<Key, Service>,
    pub slices: BTreeMap<Key, EndpointSlice>,
    pub grants: Vec<ReferenceGrant>,
    pub topology: Topology,
    pub carried: CarriedState,
    pub settings: Settings,
    pub n_writes: u64,
}

/// A consumer that asks, a source that agrees, and a slice with two endpoints.
pub fn pair() -> World {
    world(
        "service shop/db from=data/postgres port=pg:5432
         service data/postgres to=shop port=pg:5432
         slice data/postgres-1 of=postgres port=pg:5432 10.0.0.1:za 10.0.0.2:zb",
    )
}

pub fn world(text: &str) -> World {
    World::default().then(text)
}

impl World {
    pub fn then(mut self, text: &str) -> Self {
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let words: Vec<&str> = line.split_whitespace().collect();
            if let ["zones", zones @ ..] = words.as_slice() {
                let share = 1.0 / zones.len() as f64;
                let zones = zones.iter().map(|zone| (SharedStr::from(*zone), share));
                self.topology = Topology::Zones(zones.collect());
                continue;
            }
            let key = key(words[1]);
            match words[0] {
                "service" => drop(self.services.insert(key.clone(), service(&key, &words[2..]))),
                "slice" => drop(self.slices.insert(key.clone(), slice(&key, &words[2..]))),
                "grant" => self.grants.push(grant(&key, &words[2..])),
                "gone" => {
                    self.services.remove(&key);
                    self.slices.remove(&key);
                    self.grants.retain(|grant| grant.name != key.name);
                }
                other => panic!("unknown statement: {other}"),
            }
        }
        self
    }

    pub fn plan(&self) -> ImportPlan {
        let service = self.services.get(&Key::new("shop", "db"));
        let wish = service.and_then(|service| service.cross_namespace.as_ref()?.source()?.ok());
        let source = wish.unwrap_or_else(|| Key::new("", ""));
        let of_source = |slice: &&EndpointSlice| slice.meta.namespace == source.namespace;
        let snapshot = ImportSnapshot {
            service,
            source: self.services.get(&source),
            source_slices: self.slices.values().filter(of_source).collect(),
            grants: self.grants.iter().collect(),
            slices: self.slices.values().collect(),
            topology: &self.topology,
            carried: &self.carried,
        };
        import(&snapshot, &self.settings)
    }

    /// Carries the plan out; the next one must be empty.
    pub fn applied(mut self) -> Self {
        let plan = self.plan();
        plan.plan.writes.iter().for_each(|write| self.apply(write));
        self.carried = plan.plan.carried;
        let again = self.plan();
        assert!(again.plan.writes.is_empty(), "the second plan writes:\n{}", again.plan);
        self
    }

    pub fn apply(&mut self, write: &Write) {
        self.n_writes += 1;
        match write {
            Write::Create(Object::Slice(slice)) | Write::Update(Object::Slice(slice)) => {
                let mut slice = slice.clone();
                slice.meta.resource_version = self.n_writes.into();
                self.slices.insert(slice.meta.key(), slice);
            }
            Write::Delete(target) => drop(self.slices.remove(&target.key)),
            Write::Update(Object::ServiceStatus(status)) => {
                let service = self.services.get_mut(&status.meta.key()).expect("it exists");
                service.set_condition(status.condition.clone());
            }
            Write::Create(
                Object::Endpoints(_) | Object::ServiceStatus(_) | Object::MultiCluster(_),
            )
            | Write::Update(Object::Endpoints(_) | Object::MultiCluster(_)) => {
                panic!("the import controller writes slices and conditions only")
            }
        }
    }

    pub fn check(self, expected: Expect) -> Self {
        let ImportPlan { plan, state } = self.plan();
        let text = format!("{}: {state}\n{plan}", self.reason());
        expected.assert_eq(text.trim_end());
        self.applied()
    }

    pub fn reason(&self) -> &'static str {
        self.plan().state.reason().map_or("NotRequested", SourceReason::as_str)
    }

    /// The only slice of the consumer.
    pub fn copy(&self) -> &EndpointSlice {
        let copies: Vec<_> =
            self.slices.values().filter(|slice| &*slice.meta.namespace == "shop").collect();
        assert_eq!(copies.len(), 1, "{copies:#?}");
        copies[0]
    }
}

pub fn key(text: &str) -> Key {
    let (namespace, name) = text.split_once('/').expect("NAMESPACE/NAME");
    Key::new(namespace, name)
}

pub fn service(key: &Key, words: &[&str]) -> Service {
    let mut service = Service {
        namespace: key.namespace.clone(),
        name: key.name.clone(),
        uid: Uid::from(format!("uid-of-{key}").as_str()),
        cluster_ip: ClusterIp::Ip(Family::V4),
        families: vec![Family::V4],
        ..Service::default()
    };
    let mut cross = CrossNamespace::default();
    for word in words {
        match word.split_once('=') {
            None if *word == "headless" => service.cluster_ip = ClusterIp::Headless,
            None if *word == "external" => service.is_external_name = true,
            None if *word == "deleting" => service.is_deleting = true,
            None if *word == "auto" => service.topology = TopologyMode::Auto,
            None if *word == "dual" => service.families = vec![Family::V4, Family::V6],
            Some(("selector", app)) => service.selector = [("app", app)].into_iter().collect(),
            Some(("from", from)) => cross.from = Some(from.into()),
            Some(("to", to)) => cross.to = Some(to.into()),
            Some(("uid", uid)) => service.uid = Uid::from(uid),
            Some(("prefer", what)) => {
                service.traffic_distribution = TrafficDistribution::parse(what);
            }
            Some(("port", port)) => service.ports.push(service_port(port)),
            _ => panic!("unknown word for a Service: {word}"),
        }
    }
    service.cross_namespace = (cross != CrossNamespace::default()).then(|| Box::new(cross));
    service
}

/// Endpoints are `IP:ZONE`; they are ready unless the word ends with `!`.
pub fn slice(key: &Key, words: &[&str]) -> EndpointSlice {
    let mut slice = EndpointSlice::default();
    slice.meta.namespace = key.namespace.clone();
    slice.meta.name = key.name.clone();
    slice.meta.resource_version = 1.into();
    for word in words {
        match word.split_once('=') {
            None if *word == "IPv6" => slice.address_type = (*word).into(),
            None if *word == "FQDN" => slice.address_type = (*word).into(),
            None => slice.endpoints.push(endpoint(&key.namespace, word)),
            Some(("of", service)) => set(&mut slice.meta.labels, names::SERVICE_NAME, service),
            Some(("by", manager)) => set(&mut slice.meta.labels, names::MANAGED_BY, manager),
            Some(("since", time)) => set(&mut slice.meta.annotations, names::TRIGGER_TIME, time),
            Some(("port", port)) => slice.ports.push(endpoint_port(port)),
            Some((other, _)) => panic!("unknown word for a slice: {other}"),
        }
    }
    slice
}

pub fn set(labels: &mut Labels, name: &str, value: &str) {
    *labels = labels.with(name, Some(value));
}

pub fn endpoint(namespace: &str, word: &str) -> Endpoint {
    let is_ready = !word.ends_with('!');
    let word = word.trim_end_matches('!');
    let (ip, zone) = match word.split_once(':') {
        Some((ip, zone)) if !zone.contains(':') => (ip, Some(zone.into())),
        Some(_) | None => (word, None),
    };
    let target = ObjectRef {
        kind: "Pod".into(),
        namespace: namespace.into(),
        name: format!("pod-{ip}").as_str().into(),
        ..ObjectRef::default()
    };
    let mut endpoint = Endpoint {
        addresses: vec![ip.into()],
        node_name: Some("n1".into()),
        target_ref: Some(target),
        zone,
        // Whatever the source has: hints are decided again.
        hints: Some(Hints { for_zones: vec!["elsewhere".into()], for_nodes: Vec::new() }),
        ..Endpoint::default()
    };
    endpoint.conditions.ready = Some(is_ready);
    endpoint
}

/// `grant NAMESPACE/NAME GROUP/KIND/NAMESPACE GROUP/KIND[/NAME]`, with `core` for the empty group.
pub fn grant(key: &Key, words: &[&str]) -> ReferenceGrant {
    let parts = |word: &str| -> Vec<SharedStr> {
        word.split('/').map(|part| if part == "core" { "" } else { part }.into()).collect()
    };
    let (from, to) = (parts(words[0]), parts(words[1]));
    let from =
        GrantedFrom { group: from[0].clone(), kind: from[1].clone(), namespace: from[2].clone() };
    let to = GrantedTo { group: to[0].clone(), kind: to[1].clone(), name: to.get(2).cloned() };
    ReferenceGrant {
        namespace: key.namespace.clone(),
        name: key.name.clone(),
        from: vec![from],
        to: vec![to],
        ..ReferenceGrant::default()
    }
}
