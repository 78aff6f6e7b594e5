//! The server without HTTP: a store, the verbs on it (in `verbs`), and what is there at the start.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{Ipv4Addr, Ipv6Addr};

use serde_json::{Value, json};

use crate::defaults::allocation::Allocations;
use crate::kinds::{self, Kind};
use crate::schema::read::seconds;
use crate::stamps::Stamps;
use crate::store::{Limits, Place, Store};
use crate::verbs::{Target, WriteOptions};

/// How a server differs from the usual one.
#[derive(Clone, Debug)]
pub struct Settings {
    pub limits: Limits,
    pub sweeping: Sweeping,
    /// Networks of Services; the first address is that of `kubernetes`.
    pub service_network_v4: Ipv4Addr,
    pub service_network_v6: Ipv6Addr,
    /// What the Service `kubernetes` leads to.
    pub advertised: Option<(Ipv4Addr, u16)>,
    pub max_body_bytes: usize,
}

/// Who removes what lost its owner or its namespace. In a cluster that is kube-controller-manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sweeping {
    /// The server itself, as part of the write that makes it necessary.
    AtOnce,
    /// Nobody, until [`Server::sweep`] is called.
    OnDemand,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            sweeping: Sweeping::AtOnce,
            service_network_v4: Ipv4Addr::new(10, 96, 0, 0),
            service_network_v6: Ipv6Addr::new(0xfd00, 0x10, 0x96, 0, 0, 0, 0, 0),
            advertised: Some((Ipv4Addr::new(192, 0, 2, 1), 6443)),
            max_body_bytes: 3 << 20,
        }
    }
}

/// A Kubernetes API server in one value. Every call is one request.
pub struct Server {
    pub(crate) store: Store,
    pub(crate) stamps: Box<dyn Stamps>,
    pub(crate) allocations: Allocations,
    pub(crate) settings: Settings,
    /// What [`Server::sweep`] has still to look at.
    pub(crate) to_sweep: VecDeque<Sweep>,
    pub(crate) terminating: BTreeSet<String>,
    /// Owners that wait for their dependents, by uid.
    pub(crate) foreground: BTreeMap<String, Place>,
}

/// One reason to sweep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sweep {
    /// The owner with this uid is gone, or is waiting for its dependents.
    Dependents {
        uid: String,
    },
    /// This object names owners: are they there?
    Owners(Place),
    /// This object is being deleted and waits for the collector.
    Owner(Place),
    Namespace(String),
}

impl Server {
    /// With the namespaces and the Service that every cluster has.
    pub fn new(stamps: Box<dyn Stamps>, settings: Settings) -> Self {
        let mut server = Self {
            store: Store::new(settings.limits),
            stamps,
            allocations: Allocations::new(settings.service_network_v4, settings.service_network_v6),
            settings,
            to_sweep: VecDeque::new(),
            terminating: BTreeSet::new(),
            foreground: BTreeMap::new(),
        };
        server.create_what_every_cluster_has();
        server
    }

    pub fn store(&self) -> &Store {
        &self.store
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Forgets history: see [`Store::compact`].
    pub fn compact(&mut self, revision: u64) {
        self.store.compact(revision);
    }

    pub(crate) fn now(&mut self) -> String {
        seconds(self.stamps.now())
    }

    fn create_what_every_cluster_has(&mut self) {
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

    /// Upstream: `reconcilers` in pkg/controlplane, which publish where the API server is.
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
