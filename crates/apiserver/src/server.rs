//! The server without HTTP: the store, the verbs on it (in `verbs`), and the initial objects.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{Ipv4Addr, Ipv6Addr};

use serde_json::{Value, json};

use crate::clock_and_ids::ClockAndIds;
use crate::defaults::allocation::Allocations;
use crate::kinds::{self, Kind};
use crate::schema::read::seconds;
use crate::store::{Limits, ObjectRef, Store};
use crate::verbs::{Target, WriteOptions};

#[derive(Clone, Debug)]
pub struct Settings {
    pub limits: Limits,
    pub gc_mode: GcMode,
    /// Cluster IP ranges; the first address belongs to the Service `kubernetes`.
    pub service_network_v4: Ipv4Addr,
    pub service_network_v6: Ipv6Addr,
    /// The endpoint of the Service `kubernetes`.
    pub advertised: Option<(Ipv4Addr, u16)>,
    pub max_body_bytes: usize,
}

/// When objects without an owner or a namespace are deleted. In a real cluster,
/// kube-controller-manager does this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GcMode {
    /// As part of the write that makes it necessary.
    Immediate,
    /// Only when [`Server::collect_garbage`] is called.
    OnDemand,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            gc_mode: GcMode::Immediate,
            service_network_v4: Ipv4Addr::new(10, 96, 0, 0),
            service_network_v6: Ipv6Addr::new(0xfd00, 0x10, 0x96, 0, 0, 0, 0, 0),
            advertised: Some((Ipv4Addr::new(192, 0, 2, 1), 6443)),
            max_body_bytes: 3 << 20,
        }
    }
}

/// A Kubernetes API server. Every method call is one request.
pub struct Server {
    pub(crate) store: Store,
    pub(crate) clock_and_ids: Box<dyn ClockAndIds>,
    pub(crate) allocations: Allocations,
    pub(crate) settings: Settings,
    /// Tasks for [`Server::collect_garbage`].
    pub(crate) gc_queue: VecDeque<GcTask>,
    pub(crate) terminating: BTreeSet<String>,
    /// Owners in foreground deletion, by uid.
    pub(crate) foreground: BTreeMap<String, ObjectRef>,
}

/// One task of the garbage collector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum GcTask {
    /// The owner with this uid was deleted, or a dependent of it was.
    Dependents {
        uid: String,
    },
    /// This object has owner references that must be checked.
    Owners(ObjectRef),
    /// This object is being deleted and may have finalizers of the garbage collector.
    Owner(ObjectRef),
    Namespace(String),
}

impl Server {
    /// Starts with the namespaces and the Service that every cluster has.
    pub fn new(clock_and_ids: Box<dyn ClockAndIds>, settings: Settings) -> Self {
        let mut server = Self {
            store: Store::new(settings.limits),
            clock_and_ids,
            allocations: Allocations::new(settings.service_network_v4, settings.service_network_v6),
            settings,
            gc_queue: VecDeque::new(),
            terminating: BTreeSet::new(),
            foreground: BTreeMap::new(),
        };
        server.bootstrap_cluster();
        server
    }

    pub fn store(&self) -> &Store {
        &self.store
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// See [`Store::compact`].
    pub fn compact(&mut self, revision: u64) {
        self.store.compact(revision);
    }

    pub(crate) fn now(&mut self) -> String {
        seconds(self.clock_and_ids.now())
    }

    fn bootstrap_cluster(&mut self) {
        for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
            self.bootstrap("", "namespaces", "", json!({"metadata": {"name": name}}));
        }
        let first = u32::from(self.settings.service_network_v4) + 1;
        let ip = Ipv4Addr::from(first).to_string();
        let labels = json!({"component": "apiserver", "provider": "kubernetes"});
        let port = self.settings.advertised.map_or(6443, |(_, port)| port);
        let ports = json!([{"name": "https", "port": 443, "targetPort": port}]);
        let spec = json!({"clusterIP": ip, "ports": ports});
        let meta = json!({"name": "kubernetes", "labels": labels});
        self.bootstrap("", "services", "default", json!({"metadata": meta, "spec": spec}));
        if let Some((address, port)) = self.settings.advertised {
            self.advertise(&address.to_string(), port);
        }
    }

    /// Publishes the endpoint of the API server. Upstream: `reconcilers` in pkg/controlplane.
    fn advertise(&mut self, address: &str, port: u16) {
        let ports = json!([{"name": "https", "port": port, "protocol": "TCP"}]);
        let labels = json!({"endpointslice.kubernetes.io/skip-mirror": "true"});
        let endpoints = json!({
            "metadata": {"name": "kubernetes", "labels": labels},
            "subsets": [{"addresses": [{"ip": address}], "ports": ports}],
        });
        self.bootstrap("", "endpoints", "default", endpoints);
        let labels = json!({"kubernetes.io/service-name": "kubernetes"});
        let slice = json!({
            "metadata": {"name": "kubernetes", "labels": labels},
            "addressType": "IPv4",
            "endpoints": [{"addresses": [address], "conditions": {"ready": true}}],
            "ports": ports,
        });
        self.bootstrap("discovery.k8s.io", "endpointslices", "default", slice);
    }

    fn bootstrap(&mut self, group: &str, resource: &str, namespace: &str, object: Value) {
        let kind: &'static Kind = kinds::find(group, resource).expect("a kind of the table");
        let target = Target::collection(kind, namespace);
        let created = self.create(&target, object, &WriteOptions::default());
        created.expect("what every cluster has is valid");
    }
}
