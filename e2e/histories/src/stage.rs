//! One namespace of one API server: all that a history may touch. Its steps are the verbs here and
//! the lives of pods in [`crate::pods`].
//!
//! # Panics
//!
//! A step that the server refuses ends the history with a panic that says why: nothing after it
//! would mean anything.

use std::fmt;
use std::thread;
use std::time::{Duration, Instant};

use endpointd_control_plane::{Api, ApiError};
use serde_json::{Value, json};

use crate::canonical::form;
use crate::settle::{Wanted, settle};

const GONE_MAX: Duration = Duration::from_secs(90);
const POLL: Duration = Duration::from_millis(200);

/// A namespace, the server it is on, and what was seen at rest so far.
pub struct Stage<'a> {
    pub(crate) api: &'a Api,
    pub(crate) namespace: String,
    pub(crate) settled: Vec<Settled>,
}

/// What a namespace looked like at one moment of rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    pub moment: String,
    pub form: String,
}

/// The kinds histories touch.
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

impl<'a> Stage<'a> {
    /// Creates the namespace. Its name is the same on every server, so that nothing has to be
    /// masked.
    pub fn enter(api: &'a Api, namespace: &str) -> Self {
        let stage = Self { api, namespace: namespace.to_owned(), settled: Vec::new() };
        stage.create(Kind::Namespace, &json!({"metadata": {"name": namespace}}));
        stage
    }

    pub fn api(&self) -> &Api {
        self.api
    }

    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// What was seen at rest.
    pub fn leave(self) -> Vec<Settled> {
        self.settled
    }

    /// Waits until all of `wanted` is so and nothing is written any more, and remembers it.
    pub fn settle(&mut self, moment: &str, wanted: &[Wanted]) {
        let view = settle(self.api, &self.namespace, wanted);
        let view = view.unwrap_or_else(|error| panic!("{self}, {moment}: {error}"));
        let view = view.with_pods(self.api, &self.namespace);
        let view = view.unwrap_or_else(|error| panic!("{self}, {moment}: {error}"));
        self.settled.push(Settled { moment: moment.to_owned(), form: form(&view) });
    }

    /// Gives controllers the time to do what they should not do.
    pub fn pause(&self, time: Duration) {
        thread::sleep(time);
    }

    pub fn create(&self, kind: Kind, object: &Value) -> Value {
        let created = self.api.create(&self.list(kind), object);
        created.unwrap_or_else(|error| panic!("{self}: cannot create {object}: {error}"))
    }

    /// With `kubernetes.io/…` defaults left to the server.
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

    /// As somebody does who has read the object before; read again when somebody was faster.
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

    /// Nodes belong to the whole cluster: those of a history carry its name.
    pub fn node_name(&self, name: &str) -> String {
        format!("{}-{name}", self.namespace)
    }

    /// A node that never says it is ready: pods may be on it, and topology does not count it, so
    /// that histories with nodes do not disturb the one about topology.
    pub fn node(&self, name: &str, labels: &Value) {
        let metadata = json!({"name": self.node_name(name), "labels": labels});
        self.create(Kind::Node, &json!({ "metadata": metadata }));
    }

    pub fn node_in(&self, name: &str, zone: &str) {
        self.node(name, &json!({"topology.kubernetes.io/zone": zone}));
    }

    /// Names of the slices of a Service, as somebody finds them who wants to touch them.
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

    /// The one slice of a Service that has one.
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

impl fmt::Display for Stage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "history `{}`", self.namespace)
    }
}
