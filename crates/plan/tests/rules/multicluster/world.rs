//! Several clusters in the fixture language: one line of text per object, the cluster first.
//!
//! ```text
//! eu1 export 20                              seconds of its creation, then label.KEY=V, anno.KEY=V
//! eu1 service port=http:80 headless          of the name shop/web
//! eu1 slice web-1 port=http:8080 10.1.0.1    IP:ZONE@NODE; `!` at the end: not ready
//! eu1 is lost@100                            its state
//! eu1 gone export                            or service, or slice NAME
//! ```

use std::time::Duration;

use endpointd_model::{
    ClusterId, ClusterIp, DerivedService, Endpoint, EndpointPort, EndpointSlice, Family, Hints,
    InternalTrafficPolicy, Key, Labels, Meta, MultiClusterObject, Object, ObjectRef, Service,
    ServiceExport, ServiceImport, ServiceTraffic, SessionAffinity, Timestamp, TrafficDistribution,
    Uid, Write, derived_name, names,
};
use endpointd_plan::{ClusterObjects, ClusterSetState, MultiClusterPlan, SourceState, Zones};
use expect_test::Expect;

use crate::fixture::{endpoint_port, service_port};

#[derive(Clone)]
pub struct World {
    pub state: ClusterSetState,
    n_addresses: usize,
}

/// Two clusters that export the same; the export of `eu1` is older.
pub const TWO: &str = "
    home export 20
    home service port=http:80
    home slice web-a port=http:8080 10.0.0.1:za@n1
    eu1 export 10
    eu1 service port=http:80
    eu1 slice web-b port=http:8080 10.1.0.1:zb@n1";

pub fn key() -> Key {
    Key::new("shop", "web")
}

pub fn two() -> World {
    world(TWO)
}

pub fn world(text: &str) -> World {
    let id = ClusterId::parse("home").expect("a label");
    let state = ClusterSetState::new(id, at(1_000));
    World { state, n_addresses: 0 }.then(text)
}

pub fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("a small number")
}

impl World {
    pub fn then(mut self, text: &str) -> Self {
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let words: Vec<&str> = line.split_whitespace().collect();
            self.add(&words);
        }
        self
    }

    fn add(&mut self, words: &[&str]) {
        let cluster = self.cluster(words[0]);
        match &words[1..] {
            ["export", second, words @ ..] => {
                cluster.exports.insert(key(), export(second, words));
            }
            ["service", words @ ..] => drop(cluster.services.insert(key(), service(words))),
            ["slice", name, words @ ..] => {
                let slice = slice(name, words);
                cluster.slices.insert(slice.meta.key(), slice);
            }
            ["zones", "drop"] => cluster.zones = Zones::Drop,
            ["zones", "prefix"] => cluster.zones = Zones::Prefix,
            ["is", state] => cluster.state = source_state(state),
            ["gone", "export"] => drop(cluster.exports.remove(&key())),
            ["gone", "service"] => drop(cluster.services.remove(&key())),
            ["gone", "slice", name] => drop(cluster.slices.remove(&Key::new("shop", *name))),
            ["unconfigured"] => self.state.remotes.retain(|one| one.id.as_str() != words[0]),
            other => panic!("unknown statement: {other:?}"),
        }
    }

    fn cluster(&mut self, id: &str) -> &mut ClusterObjects {
        if id == "home" {
            return &mut self.state.home;
        }
        let at = self.state.remotes.iter().position(|one| one.id.as_str() == id);
        let at = at.unwrap_or_else(|| {
            let id = ClusterId::parse(id).expect("a label");
            self.state.remotes.push(ClusterObjects::new(id));
            self.state.remotes.len() - 1
        });
        &mut self.state.remotes[at]
    }

    pub fn edit(mut self, edit: impl FnOnce(&mut ClusterSetState)) -> Self {
        edit(&mut self.state);
        self
    }

    pub fn plan(&self) -> MultiClusterPlan {
        self.state.plan(&key())
    }

    /// As an API server: the derived Service gets an address of each family.
    pub fn apply(&mut self, write: &Write) {
        self.state.apply(write);
        if let Write::Create(Object::MultiCluster(MultiClusterObject::Derived(service)))
        | Write::Update(Object::MultiCluster(MultiClusterObject::Derived(service))) = write
        {
            let stored = self.state.derived.get_mut(&service.meta.key()).expect("just stored");
            for family in stored.families.iter().skip(stored.cluster_ips.len()) {
                self.n_addresses += 1;
                stored.cluster_ips.push(match family {
                    Family::V4 => format!("10.96.0.{}", self.n_addresses).into(),
                    Family::V6 => format!("fd00:96::{}", self.n_addresses).into(),
                });
            }
        }
    }

    /// Carries out plan after plan until nothing is left to write, and returns all writes as text.
    pub fn settle(&mut self) -> String {
        let mut lines = Vec::new();
        for _ in 0..10 {
            let plan = self.plan();
            if plan.writes.is_empty() {
                return lines.join("\n");
            }
            lines.push(plan.to_string());
            plan.writes.iter().for_each(|write| self.apply(write));
        }
        panic!("it never ends:\n{}", lines.join("\n"));
    }

    pub fn settled(mut self) -> Self {
        self.settle();
        self
    }

    pub fn check(mut self, expected: Expect) -> Self {
        expected.assert_eq(&self.settle());
        self
    }

    pub fn import(&self) -> &ServiceImport {
        self.state.imports.get(&key()).expect("there is an import")
    }

    pub fn derived(&self) -> Option<&DerivedService> {
        self.state.derived.get(&Key { namespace: "shop".into(), name: derived_name(&key()) })
    }

    /// The imported slices of one cluster, sorted by the name of their source.
    pub fn copies(&self, cluster: &str) -> Vec<&EndpointSlice> {
        let is_copy = |slice: &&EndpointSlice| {
            slice.meta.labels.has(names::MANAGED_BY, names::MANAGED_BY_CLUSTER_IMPORT)
                && slice.meta.labels.has(names::SOURCE_CLUSTER, cluster)
        };
        let mut copies: Vec<_> = self.state.home.slices.values().filter(is_copy).collect();
        copies.sort_by_key(|slice| slice.meta.annotations.get(names::SOURCE_SLICE));
        copies
    }

    /// `ADDRESS ready`, `ADDRESS not-ready`: what is published of one cluster.
    pub fn published(&self, cluster: &str) -> String {
        let endpoints = self.copies(cluster).into_iter().flat_map(|slice| &slice.endpoints);
        let texts = endpoints.map(|one| {
            let state = if one.is_ready() { "ready" } else { "not-ready" };
            format!("{} {state}", one.addresses.join(","))
        });
        texts.collect::<Vec<_>>().join(", ")
    }

    /// The ports of the imported slices of one cluster, such as `http:8080`.
    pub fn ports(&self, cluster: &str) -> String {
        let ports = self.copies(cluster).into_iter().flat_map(|slice| &slice.ports);
        let text = |port: &EndpointPort| {
            let name = port.name.as_deref().unwrap_or_default();
            format!("{name}:{}", port.port.unwrap_or_default())
        };
        ports.map(text).collect::<Vec<_>>().join(" ")
    }

    /// `STATUS/REASON: MESSAGE` of a condition of this cluster's export.
    pub fn export_says(&self, about: &str) -> String {
        says(&self.state.home.exports[&key()].conditions, about)
    }

    /// Likewise of the import.
    pub fn import_says(&self, about: &str) -> String {
        says(&self.import().status.conditions, about)
    }

    pub fn clusters(&self) -> String {
        self.import().status.clusters.join(" ")
    }
}

fn says(conditions: &[endpointd_model::Condition], about: &str) -> String {
    let found = conditions.iter().find(|one| *one.condition_type == *about);
    found.map_or_else(String::new, |one| {
        format!("{}/{}: {}", one.status.as_str(), one.reason, one.message)
    })
}

fn source_state(text: &str) -> SourceState {
    let (state, second) = text.split_once('@').unwrap_or((text, ""));
    // A clock has more digits than people read.
    let last_contact =
        second.parse().ok().map(|second| at(second) + Duration::from_nanos(571_657_029));
    match state {
        "unknown" => SourceState::Unknown,
        "insync" => SourceState::InSync,
        "lost" => SourceState::Lost { last_contact },
        "demoted" => SourceState::Demoted { last_contact },
        "expired" => SourceState::Expired,
        "removed" => SourceState::Removed,
        other => panic!("unknown state: {other}"),
    }
}

fn export(second: &str, words: &[&str]) -> ServiceExport {
    let mut export = ServiceExport {
        meta: Meta {
            namespace: "shop".into(),
            name: "web".into(),
            uid: Uid::from("uid-of-export"),
            created: Some(at(second.parse().expect("seconds"))),
            resource_version: 1.into(),
            ..Meta::default()
        },
        ..ServiceExport::default()
    };
    for word in words {
        let (place, value) = word.split_once('=').expect("KEY=VALUE");
        let (kind, name) = place.split_once('.').expect("label.KEY or anno.KEY");
        let pairs = if kind == "label" { &mut export.labels } else { &mut export.annotations };
        *pairs = pairs.with(name, Some(value));
    }
    export
}

fn service(words: &[&str]) -> Service {
    let mut service = Service {
        namespace: "shop".into(),
        name: "web".into(),
        uid: Uid::from("uid-of-service"),
        cluster_ip: ClusterIp::Ip(Family::V4),
        families: vec![Family::V4],
        ..Service::default()
    };
    let mut traffic = ServiceTraffic::default();
    for word in words {
        match word.split_once('=') {
            None if *word == "headless" => service.cluster_ip = ClusterIp::Headless,
            None if *word == "external" => service.is_external_name = true,
            None if *word == "local" => traffic.internal_policy = InternalTrafficPolicy::Local,
            Some(("families", list)) => service.families = families(list),
            Some(("affinity", secs)) => {
                let timeout_secs = secs.parse().ok();
                traffic.session_affinity = SessionAffinity::ClientIp { timeout_secs };
            }
            Some(("prefer", what)) => {
                service.traffic_distribution = TrafficDistribution::parse(what);
            }
            Some(("port", port)) => service.ports.push(service_port(port)),
            _ => panic!("unknown word for a Service: {word}"),
        }
    }
    service.traffic = (traffic != ServiceTraffic::default()).then(|| Box::new(traffic));
    service
}

fn families(list: &str) -> Vec<Family> {
    list.split(',').map(|one| if one == "6" { Family::V6 } else { Family::V4 }).collect()
}

fn slice(name: &str, words: &[&str]) -> EndpointSlice {
    let labels: Labels =
        [(names::SERVICE_NAME, "web"), (names::MANAGED_BY, names::MANAGED_BY_SLICES)]
            .into_iter()
            .collect();
    let meta = Meta {
        namespace: "shop".into(),
        name: name.into(),
        uid: Uid::from(format!("uid-{name}").as_str()),
        labels,
        resource_version: 1.into(),
        ..Meta::default()
    };
    let mut slice = EndpointSlice { meta, ..EndpointSlice::default() };
    for word in words {
        match word.split_once('=') {
            None if ["IPv6", "FQDN"].contains(word) => slice.address_type = (*word).into(),
            None => slice.endpoints.push(endpoint(word)),
            Some(("since", time)) => {
                slice.meta.annotations =
                    slice.meta.annotations.with(names::TRIGGER_TIME, Some(time));
            }
            Some(("port", port)) => slice.ports.push(endpoint_port(port)),
            Some((other, _)) => panic!("unknown word for a slice: {other}"),
        }
    }
    slice
}

fn endpoint(word: &str) -> Endpoint {
    let is_ready = !word.ends_with('!');
    let word = word.trim_end_matches('!');
    let (word, node) = word.split_once('@').map_or((word, None), |(word, node)| (word, Some(node)));
    let (ip, zone) = match word.split_once(':') {
        Some((ip, zone)) if !zone.contains(':') => (ip, Some(zone.into())),
        Some(_) | None => (word, None),
    };
    let mut endpoint = Endpoint {
        addresses: vec![ip.into()],
        hostname: Some("pod".into()),
        node_name: node.map(Into::into),
        target_ref: Some(ObjectRef { kind: "Pod".into(), ..ObjectRef::default() }),
        zone,
        // Whatever the source has: hints are decided again.
        hints: Some(Hints { for_zones: vec!["elsewhere".into()], for_nodes: Vec::new() }),
        ..Endpoint::default()
    };
    endpoint.conditions.ready = Some(is_ready);
    endpoint.conditions.serving = Some(is_ready);
    endpoint.conditions.terminating = Some(false);
    endpoint
}
