//! One namespace of one API server: a scenario changes nothing else. The steps of a scenario are
//! the methods here and those for pods in [`crate::pods`].
//!
//! # Panics
//!
//! A step that the server rejects ends the scenario with a panic.

use std::fmt;
use std::thread;
use std::time::{Duration, Instant};

use endpointd_control_plane::{Api, ApiError};
use serde_json::{Value, json};

use crate::canonical::form;
use crate::convergence::{Expected, TIMEOUT, converge, converge_within};

const GONE_MAX: Duration = Duration::from_secs(90);
/// A sync that a change causes is over within this time, even on a busy machine.
const SYNC_MAX: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(200);

/// A namespace, its API server, and the checkpoints recorded so far.
pub struct TestNamespace<'a> {
    pub(crate) api: &'a Api,
    pub(crate) namespace: String,
    pub(crate) checkpoints: Vec<Checkpoint>,
}

/// The converged state of a namespace after some steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    pub name: String,
    pub form: String,
}

/// The kinds of objects that scenarios use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Namespace,
    Node,
    Service,
    Pod,
    Endpoints,
    Slice,
    Quota,
}

impl<'a> TestNamespace<'a> {
    /// Creates the namespace. Its name is the same on every server, so the canonical form keeps it.
    pub fn new(api: &'a Api, namespace: &str) -> Self {
        let ns = Self { api, namespace: namespace.to_owned(), checkpoints: Vec::new() };
        ns.create(Kind::Namespace, &json!({"metadata": {"name": namespace}}));
        ns
    }

    pub fn api(&self) -> &Api {
        self.api
    }

    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    pub fn into_checkpoints(self) -> Vec<Checkpoint> {
        self.checkpoints
    }

    /// Waits until the namespace matches `expected` and nothing is written any more, and records a
    /// checkpoint.
    pub fn converge(&mut self, name: &str, expected: &[Expected]) {
        let state = converge(self.api, &self.namespace, expected);
        let state = state.unwrap_or_else(|error| panic!("{self}, {name}: {error}"));
        let state = state.with_pods(self.api, &self.namespace);
        let state = state.unwrap_or_else(|error| panic!("{self}, {name}: {error}"));
        self.checkpoints.push(Checkpoint { name: name.to_owned(), form: form(&state) });
    }

    /// Waits until the namespace matches `expected`, without a checkpoint.
    pub fn wait_for(&self, expected: &[Expected]) {
        let converged = converge(self.api, &self.namespace, expected);
        converged.unwrap_or_else(|error| panic!("{self}: {error}"));
    }

    /// As [`Self::converge`], for a change that upstream applies only at the next sync. A scenario
    /// cannot observe whether a controller has received the change, so `cause_sync` is repeated
    /// until the namespace matches.
    pub fn converge_after_sync(
        &mut self,
        name: &str,
        expected: &[Expected],
        cause_sync: impl Fn(&Self),
    ) {
        let started = Instant::now();
        loop {
            cause_sync(self);
            let converged = converge_within(SYNC_MAX, self.api, &self.namespace, expected);
            if converged.is_ok() || started.elapsed() > TIMEOUT {
                return self.converge(name, expected);
            }
        }
    }

    /// Gives controllers time for a write that they should not make, or to receive an event.
    pub fn pause(&self, time: Duration) {
        thread::sleep(time);
    }

    pub fn create(&self, kind: Kind, object: &Value) -> Value {
        let created = self.api.create(&self.list(kind), object);
        created.unwrap_or_else(|error| panic!("{self}: cannot create {object}: {error}"))
    }

    pub fn service(&self, name: &str, spec: &Value) {
        self.create(Kind::Service, &json!({"metadata": {"name": name}, "spec": spec}));
    }

    pub fn get(&self, kind: Kind, name: &str) -> Result<Value, ApiError> {
        self.api.get(&self.path(kind, name))
    }

    pub fn merge(&self, kind: Kind, name: &str, patch: &Value) {
        let merged = self.api.merge(&self.path(kind, name), patch);
        merged.unwrap_or_else(|error| panic!("{self}: cannot merge {patch} into {name}: {error}"));
    }

    pub fn merge_status(&self, kind: Kind, name: &str, status: &Value) {
        let path = format!("{}/status", self.path(kind, name));
        let merged = self.api.merge(&path, &json!({"status": status}));
        merged.unwrap_or_else(|error| panic!("{self}: cannot set status of {name}: {error}"));
    }

    /// Read, change, replace; repeated after a conflict.
    pub fn edit(&self, kind: Kind, name: &str, change: impl Fn(&mut Value)) {
        loop {
            let mut object = self.get(kind, name).unwrap_or_else(|e| panic!("{self}: {name}: {e}"));
            change(&mut object);
            match self.api.replace(&self.path(kind, name), &object) {
                Ok(_) => return,
                Err(ApiError::Refused { status: 409, message: _ }) => {}
                Err(error) => panic!("{self}: cannot replace {name}: {error}"),
            }
        }
    }

    pub fn delete(&self, kind: Kind, name: &str) {
        let deleted = self.api.delete(&self.path(kind, name));
        deleted.unwrap_or_else(|error| panic!("{self}: cannot delete {name}: {error}"));
    }

    pub fn wait_until_gone(&self, kind: Kind, name: &str) {
        let started = Instant::now();
        while !matches!(self.get(kind, name), Err(ApiError::Refused { status: 404, message: _ })) {
            assert!(started.elapsed() < GONE_MAX, "{self}: {name} is still there");
            thread::sleep(POLL);
        }
    }

    /// Nodes are cluster-wide, so their names start with the name of the scenario.
    pub fn node_name(&self, name: &str) -> String {
        format!("{}-{name}", self.namespace)
    }

    /// A node without a Ready condition: pods can be on it and topology does not count it, so it
    /// does not affect the scenario about topology.
    pub fn node(&self, name: &str, labels: &Value) {
        let metadata = json!({"name": self.node_name(name), "labels": labels});
        self.create(Kind::Node, &json!({ "metadata": metadata }));
    }

    pub fn node_in(&self, name: &str, zone: &str) {
        self.node(name, &json!({"topology.kubernetes.io/zone": zone}));
    }

    /// Names of the slices of a Service.
    pub fn slice_names(&self, service: &str) -> Vec<String> {
        let path = format!(
            "{}?labelSelector=kubernetes.io/service-name={service}",
            self.list(Kind::Slice)
        );
        let list = self.api.get(&path).unwrap_or_else(|error| panic!("{self}: {path}: {error}"));
        let items = list["items"].as_array().into_iter().flatten();
        let names = items.filter_map(|slice| slice["metadata"]["name"].as_str());
        names.map(str::to_owned).collect()
    }

    /// The only slice of a Service.
    pub fn slice_name(&self, service: &str) -> String {
        let names = self.slice_names(service);
        let [name] = names.as_slice() else { panic!("{self}: {service} has slices {names:?}") };
        name.clone()
    }

    pub fn path(&self, kind: Kind, name: &str) -> String {
        format!("{}/{name}", self.list(kind))
    }

    fn list(&self, kind: Kind) -> String {
        let namespace = &self.namespace;
        match kind {
            Kind::Namespace => "/api/v1/namespaces".to_owned(),
            Kind::Node => "/api/v1/nodes".to_owned(),
            Kind::Service => format!("/api/v1/namespaces/{namespace}/services"),
            Kind::Pod => format!("/api/v1/namespaces/{namespace}/pods"),
            Kind::Endpoints => format!("/api/v1/namespaces/{namespace}/endpoints"),
            Kind::Slice => {
                format!("/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices")
            }
            Kind::Quota => format!("/api/v1/namespaces/{namespace}/resourcequotas"),
        }
    }
}

impl fmt::Display for TestNamespace<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "scenario `{}`", self.namespace)
    }
}
