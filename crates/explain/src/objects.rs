//! The raw objects that an explanation looks at, and the same objects decoded for the plans.

use std::collections::{BTreeMap, BTreeSet};

use endpointd_model::{Key, Node, Pod};
use endpointd_plan::ClusterState;
use endpointd_wire::{AnyObject, Malformed};
use serde_json::Value;

use crate::fields;
use crate::finding::ObjectName;

/// Kinds without a namespace among those that are read.
const CLUSTER_SCOPED: &[&str] = &["Namespace", "Node"];
/// Kinds that are read once for all namespaces.
const KEPT_KINDS: &[&str] = &["Lease", "Node"];
const DEFAULT_NAMESPACE: &str = "default";

/// Complete objects of any kind. What the plans do not need, such as container states, owners, and
/// Events, is read from here.
#[derive(Default)]
pub struct Objects {
    raw: BTreeMap<ObjectName, Value>,
    pub(crate) cluster: ClusterState,
    pub(crate) malformed: Vec<Malformed>,
    not_read: BTreeSet<String>,
    /// Kinds of which nothing could be read.
    unreadable: BTreeSet<String>,
    /// Kinds that were read completely, although there may be none of them.
    complete: BTreeSet<String>,
    /// Kinds of which other namespaces have more objects than were read.
    has_more: BTreeSet<String>,
}

impl Objects {
    /// Adds or replaces an object.
    pub fn add(&mut self, mut object: Value) {
        let kind = fields::kind(&object).to_owned();
        let is_cluster_scoped = CLUSTER_SCOPED.contains(&kind.as_str());
        if !is_cluster_scoped && fields::text(&object, "/metadata/namespace").is_empty() {
            let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
            if let Some(metadata) = metadata {
                metadata.insert("namespace".to_owned(), DEFAULT_NAMESPACE.into());
            }
        }
        match AnyObject::from_value(&object) {
            Ok(Some(decoded)) => self.decoded(decoded),
            Ok(None) => {}
            Err(malformed) => self.malformed.push(malformed),
        }
        let namespace = fields::text(&object, "/metadata/namespace");
        let name = ObjectName::new(&kind, namespace, fields::name(&object));
        self.raw.insert(name, object);
    }

    fn decoded(&mut self, object: AnyObject) {
        let cluster = &mut self.cluster;
        match object {
            AnyObject::Service(one) => drop(cluster.services.insert(one.key(), one)),
            AnyObject::Pod(one) => drop(cluster.pods.insert(one.key(), one)),
            AnyObject::Node(one) => drop(cluster.nodes.insert(one.name.clone(), one)),
            AnyObject::Endpoints(one) => drop(cluster.endpoints.insert(one.meta.key(), one)),
            AnyObject::EndpointSlice(one) => drop(cluster.slices.insert(one.meta.key(), one)),
            AnyObject::ReferenceGrant(one) => drop(cluster.grants.insert(one.key(), one)),
        }
    }

    /// Says that objects could not be read, and why: `nodes: forbidden`.
    pub fn not_read(&mut self, what: impl Into<String>) {
        self.not_read.insert(what.into());
    }

    /// Says that no object of a kind could be read, and why. Without pods, for example, nothing is
    /// said about which of them a Service chooses.
    pub fn unreadable(&mut self, kind: &str, why: impl Into<String>) {
        self.unreadable.insert(kind.to_owned());
        self.not_read(why);
    }

    pub fn is_unreadable(&self, kind: &str) -> bool {
        self.unreadable.contains(kind)
    }

    /// `forbidden` after `unreadable(…, "services: forbidden")`.
    pub fn why_unreadable(&self, what: &str) -> Option<&str> {
        self.not_read.iter().find_map(|one| one.strip_prefix(what)?.strip_prefix(": "))
    }

    pub(crate) fn all_not_read(&self) -> Vec<String> {
        self.not_read.iter().cloned().collect()
    }

    /// Says that all objects of a kind were read, so that a missing one does not exist.
    pub fn complete(&mut self, kind: &str) {
        self.complete.insert(kind.to_owned());
    }

    pub fn is_complete(&self, kind: &str) -> bool {
        self.complete.contains(kind)
    }

    /// Says that other namespaces have more objects of a kind than were read.
    pub fn more_elsewhere(&mut self, kind: &str) {
        self.has_more.insert(kind.to_owned());
    }

    pub(crate) fn has_more(&self, kind: &str) -> bool {
        self.has_more.contains(kind)
    }

    /// Removes what belongs to a namespace, so that the next one can be read. Nodes and Leases stay if
    /// all of them were read.
    pub fn forget_namespaced(&mut self) {
        let kept: Vec<String> = KEPT_KINDS
            .iter()
            .filter(|kind| self.is_complete(kind))
            .map(ToString::to_string)
            .collect();
        self.raw.retain(|name, _| kept.contains(&name.kind));
        let nodes = std::mem::take(&mut self.cluster.nodes);
        self.cluster = ClusterState::default();
        if kept.iter().any(|kind| kind == "Node") {
            self.cluster.nodes = nodes;
        }
        self.malformed.retain(|one| kept.contains(&one.identity.kind));
        self.complete.retain(|kind| kept.contains(kind));
        self.has_more.clear();
        self.unreadable.clear();
        self.not_read.clear();
    }

    /// Call it after the last object was added. Without any node, the nodes of the pods are assumed
    /// to exist and to have no zone: a dump without nodes says nothing about them.
    pub fn assume_nodes(&mut self) {
        if !self.cluster.nodes.is_empty() || self.is_complete("Node") {
            return;
        }
        let names: BTreeSet<_> =
            self.cluster.pods.values().filter_map(|pod| pod.node_name.clone()).collect();
        if names.is_empty() {
            return;
        }
        self.not_read("nodes: none were read, so the nodes of the pods are assumed to exist");
        for name in names {
            let node = Node { name: name.clone(), is_ready: true, ..Node::default() };
            self.cluster.nodes.insert(name, node);
        }
    }

    pub fn cluster(&self) -> &ClusterState {
        &self.cluster
    }

    pub fn get(&self, kind: &str, namespace: &str, name: &str) -> Option<&Value> {
        self.raw.get(&ObjectName::new(kind, namespace, name))
    }

    /// The objects of a kind in a namespace, by name.
    pub fn of_kind(&self, kind: &str, namespace: &str) -> impl Iterator<Item = &Value> {
        let first = ObjectName::new(kind, namespace, "");
        let (kind, namespace) = (kind.to_owned(), namespace.to_owned());
        let from_first = self.raw.range(first..);
        from_first.take_while(move |(name, _)| name.is(&kind, &namespace)).map(|(_, one)| one)
    }

    /// The objects of a kind in all namespaces.
    pub fn of_kind_anywhere(&self, kind: &str) -> impl Iterator<Item = (&ObjectName, &Value)> {
        let first = ObjectName::new(kind, "", "");
        let kind = kind.to_owned();
        self.raw.range(first..).take_while(move |(name, _)| name.kind == kind)
    }

    pub(crate) fn pods_in(&self, namespace: &str) -> impl Iterator<Item = &Pod> {
        let first = Key::new(namespace, "");
        let namespace = first.namespace.clone();
        let from_first = self.cluster.pods.range(first..);
        from_first.take_while(move |(key, _)| key.namespace == namespace).map(|(_, pod)| pod)
    }

    /// The Services, in all namespaces.
    pub fn services(&self) -> impl Iterator<Item = Key> {
        self.cluster.services.keys().cloned()
    }

    /// The newest Event about an object with one of these reasons; any reason if there are none.
    pub(crate) fn event(&self, about: &ObjectName, reasons: &[&str]) -> Option<&Value> {
        let is_about = |event: &&Value| {
            let involved = &event["involvedObject"];
            fields::text(involved, "/kind") == about.kind
                && fields::text(involved, "/name") == about.name
                && (reasons.is_empty() || reasons.contains(&fields::text(event, "/reason")))
        };
        let events = self.of_kind("Event", &about.namespace).filter(is_about);
        events.max_by_key(|event| event_time(event))
    }
}

/// When an Event was last seen.
pub fn event_time(event: &Value) -> Option<endpointd_model::Timestamp> {
    ["/series/lastObservedTime", "/lastTimestamp", "/eventTime", "/metadata/creationTimestamp"]
        .iter()
        .find_map(|pointer| fields::time(event, pointer))
}
