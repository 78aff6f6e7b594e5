//! An in-memory API server for model objects: current objects, one revision for all of them, every
//! earlier version, and the write rules of kube-apiserver. A test compares its responses with those
//! of `endpointd-apiserver`.

mod collector;
mod history;
mod multicluster;
mod time;
mod validation;
mod verbs;

use std::collections::BTreeMap;

use endpointd_model::{
    DerivedService, EndpointSlice, Endpoints, Key, LiveRead, LiveReadResult, Namespace, Node,
    Object, Pod, PublishedResource, ReferenceGrant, Service, ServiceExport, ServiceImport,
    SharedStr, Uid, WatchSignal, WatchedResource,
};

use history::WatchLog;
pub use history::{Entry, History, StoredObject};
pub use time::Time;
pub use verbs::{Response, meta_mut, write_result};

#[derive(Clone, Debug, Default)]
pub struct MemoryApi {
    revision: u64,
    n_uids: u64,
    /// The time of the next write.
    pub now: Time,
    /// Offset of the wall clock.
    pub skew_secs: i64,
    pub services: History<Service>,
    pub pods: History<Pod>,
    pub nodes: History<Node>,
    pub endpoints: History<Endpoints>,
    pub slices: History<EndpointSlice>,
    pub grants: History<ReferenceGrant>,
    pub exports: History<ServiceExport>,
    pub imports: History<ServiceImport>,
    /// Their names are not among those of `services`.
    pub derived: History<DerivedService>,
    /// What a watch of namespaces delivers; [`Self::put_namespace`] keeps it in step.
    pub watched_namespaces: History<Namespace>,
    pub namespaces: BTreeMap<SharedStr, NamespaceState>,
    /// A mutating webhook for slices.
    pub webhook: Option<Webhook>,
    /// The revision at which another client last edited an object.
    externally_modified: BTreeMap<(PublishedResource, Key), u64>,
    /// Writes and deletes of published objects by other clients.
    pub n_external_writes: u64,
}

/// What a mutating webhook does to every slice that is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Webhook {
    /// Adds an annotation, which nobody compares.
    Annotates,
    /// Adds a label.
    Relabels,
    /// Gives all endpoints the same zone.
    Rezones,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamespaceState {
    Active,
    Terminating,
}

/// Of every other client.
const FIELD_MANAGER: &str = "other-client";

impl MemoryApi {
    pub fn revision(&self) -> u64 {
        self.revision
    }

    pub fn new_uid(&mut self) -> Uid {
        self.n_uids += 1;
        Uid::from(format!("00000000-0000-4000-8000-{:012x}", self.n_uids).as_str())
    }

    pub fn is_active(&self, namespace: &str) -> bool {
        self.namespaces.get(namespace) == Some(&NamespaceState::Active)
    }

    pub fn put_service(&mut self, service: Service) {
        let revision = self.bump();
        self.services.put(service, revision, self.now);
    }

    pub fn remove_service(&mut self, key: &Key) {
        let revision = self.bump();
        self.services.remove(key, revision, self.now);
    }

    pub fn put_pod(&mut self, pod: Pod) {
        let revision = self.bump();
        self.pods.put(pod, revision, self.now);
    }

    pub fn remove_pod(&mut self, key: &Key) {
        let revision = self.bump();
        self.pods.remove(key, revision, self.now);
    }

    pub fn put_node(&mut self, node: Node) {
        let revision = self.bump();
        self.nodes.put(node, revision, self.now);
    }

    pub fn remove_node(&mut self, name: &str) {
        let revision = self.bump();
        self.nodes.remove(&Key::new("", name), revision, self.now);
    }

    pub fn put_grant(&mut self, grant: ReferenceGrant) {
        let revision = self.bump();
        self.grants.put(grant, revision, self.now);
    }

    pub fn remove_grant(&mut self, key: &Key) {
        let revision = self.bump();
        self.grants.remove(key, revision, self.now);
    }

    /// A write by another client without preconditions: creates or replaces; keeps the uid.
    pub fn force(&mut self, object: Object) {
        let known = self.object(object.resource(), &object.meta().key());
        let uid = known.map(|known| known.meta().uid.clone());
        let uid = uid.unwrap_or_else(|| self.new_uid());
        self.n_external_writes += 1;
        let object = self.store(with_uid(object, uid));
        self.externally_modified.insert((object.resource(), object.meta().key()), self.revision);
    }

    /// Whether another client edited the object after a revision.
    pub fn is_externally_modified(
        &self,
        resource: PublishedResource,
        key: &Key,
        since: u64,
    ) -> bool {
        let edited = self.externally_modified.get(&(resource, key.clone()));
        edited.is_some_and(|revision| *revision > since)
    }

    /// The current version of the object becomes undecodable.
    pub fn corrupt(&mut self, resource: WatchedResource, key: &Key) {
        let (revision, now) = (self.bump(), self.now);
        self.history_mut(resource).corrupt(key, revision, now);
    }

    /// Makes all objects decodable again.
    pub fn repair(&mut self) {
        for resource in WatchedResource::ALL {
            for key in self.history(resource).corrupt_keys() {
                let (revision, now) = (self.bump(), self.now);
                self.history_mut(resource).repair(&key, revision, now);
            }
        }
    }

    pub fn object(&self, resource: PublishedResource, key: &Key) -> Option<Object> {
        match resource {
            PublishedResource::Slices => {
                self.slices.get(key).map(|one| Object::Slice(EndpointSlice::clone(one)))
            }
            PublishedResource::Endpoints => {
                self.endpoints.get(key).map(|one| Object::Endpoints(Endpoints::clone(one)))
            }
            PublishedResource::ServiceStatus => {
                self.services.get(key).map(|one| Object::ServiceStatus(Service::clone(one).into()))
            }
            PublishedResource::MultiCluster(resource) => {
                self.multicluster_object(resource, key).map(Object::MultiCluster)
            }
        }
    }

    /// A consistent read; `None` if the object cannot be decoded.
    pub fn read(&self, read: &LiveRead) -> Option<LiveReadResult> {
        let found = match read {
            LiveRead::Service(key) if self.services.is_corrupt(key) => return None,
            LiveRead::Service(key) => self
                .services
                .get(key)
                .map(|one| LiveReadResult::Service(Box::new(Service::clone(one)))),
            LiveRead::Node(name) => {
                let key = Key::new("", name.clone());
                if self.nodes.is_corrupt(&key) {
                    return None;
                }
                self.nodes.get(&key).map(|one| LiveReadResult::Node(Box::new(Node::clone(one))))
            }
            LiveRead::Object(resource, key) if self.is_corrupt(*resource, key) => return None,
            LiveRead::Object(resource, key) => {
                self.object(*resource, key).map(|one| LiveReadResult::Object(Box::new(one)))
            }
            LiveRead::FieldManager(resource, key) => {
                let id = (*resource, key.clone());
                let is_forced = self.externally_modified.contains_key(&id);
                let manager = is_forced.then(|| FIELD_MANAGER.into());
                self.object(*resource, key).map(|_| LiveReadResult::FieldManager(manager))
            }
            LiveRead::Pods(namespace) => {
                let pods = self.pods.values().filter(|pod| pod.namespace == *namespace);
                let pods = pods.map(|pod| (pod.name.clone(), pod.uid.clone()));
                Some(LiveReadResult::Pods(pods.collect()))
            }
            // It is the API server of that cluster.
            LiveRead::Source(_, read) => return self.read(read),
        };
        Some(found.unwrap_or(LiveReadResult::Absent))
    }

    fn is_corrupt(&self, resource: PublishedResource, key: &Key) -> bool {
        match resource {
            PublishedResource::Slices => self.slices.is_corrupt(key),
            PublishedResource::Endpoints => self.endpoints.is_corrupt(key),
            PublishedResource::ServiceStatus => self.services.is_corrupt(key),
            PublishedResource::MultiCluster(resource) => {
                self.is_corrupt_multicluster(resource, key)
            }
        }
    }

    /// The next change of a resource after a revision: its revision, its time, and its watch
    /// signal.
    pub fn next_signal(
        &self,
        resource: WatchedResource,
        after: u64,
    ) -> Option<(u64, Time, WatchSignal)> {
        self.history(resource).next_signal(after)
    }

    /// The time of the next change of a resource after a revision.
    pub fn next_change(&self, resource: WatchedResource, after: u64) -> Option<Time> {
        self.history(resource).next_change(after)
    }

    /// The objects of a resource as of a revision.
    pub fn list_at(&self, resource: WatchedResource, revision: u64) -> Vec<WatchSignal> {
        self.history(resource).signals_at(revision)
    }

    /// Keys of the current objects of a resource; nodes have an empty namespace.
    pub fn keys(&self, resource: WatchedResource) -> Vec<Key> {
        self.history(resource).keys()
    }

    /// Watches from earlier revisions get a 410.
    pub fn floor(&self, resource: WatchedResource) -> u64 {
        self.history(resource).floor()
    }

    /// Compacts the history of a resource: watches that are behind get a 410.
    pub fn compact(&mut self, resource: WatchedResource) {
        let floor = self.revision;
        self.history_mut(resource).compact(floor);
    }

    fn history(&self, resource: WatchedResource) -> &dyn WatchLog {
        match resource {
            WatchedResource::Services => &self.services,
            WatchedResource::Pods => &self.pods,
            WatchedResource::Nodes => &self.nodes,
            WatchedResource::Endpoints => &self.endpoints,
            WatchedResource::Slices => &self.slices,
            WatchedResource::ReferenceGrants => &self.grants,
            WatchedResource::Namespaces => &self.watched_namespaces,
            WatchedResource::ServiceExports => &self.exports,
            WatchedResource::ServiceImports => &self.imports,
            WatchedResource::DerivedServices => &self.derived,
        }
    }

    fn history_mut(&mut self, resource: WatchedResource) -> &mut dyn WatchLog {
        match resource {
            WatchedResource::Services => &mut self.services,
            WatchedResource::Pods => &mut self.pods,
            WatchedResource::Nodes => &mut self.nodes,
            WatchedResource::Endpoints => &mut self.endpoints,
            WatchedResource::Slices => &mut self.slices,
            WatchedResource::ReferenceGrants => &mut self.grants,
            WatchedResource::Namespaces => &mut self.watched_namespaces,
            WatchedResource::ServiceExports => &mut self.exports,
            WatchedResource::ServiceImports => &mut self.imports,
            WatchedResource::DerivedServices => &mut self.derived,
        }
    }

    fn bump(&mut self) -> u64 {
        self.revision += 1;
        self.revision
    }

    fn store(&mut self, object: Object) -> Object {
        let revision = self.bump();
        match object {
            Object::Slice(slice) => {
                Object::Slice(EndpointSlice::clone(&self.slices.put(slice, revision, self.now)))
            }
            Object::Endpoints(endpoints) => Object::Endpoints(Endpoints::clone(
                &self.endpoints.put(endpoints, revision, self.now),
            )),
            Object::ServiceStatus(status) => {
                let known = self.services.get(&status.meta.key()).map(|one| Service::clone(one));
                let mut service = known.unwrap_or_default();
                service.set_condition(status.condition);
                let stored = self.services.put(service, revision, self.now);
                Object::ServiceStatus(Service::clone(&stored).into())
            }
            Object::MultiCluster(object) => {
                Object::MultiCluster(self.store_multicluster(object, revision))
            }
        }
    }

    fn drop_object(&mut self, resource: PublishedResource, key: &Key) {
        let revision = self.bump();
        match resource {
            PublishedResource::Slices => self.slices.remove(key, revision, self.now),
            PublishedResource::Endpoints => self.endpoints.remove(key, revision, self.now),
            PublishedResource::ServiceStatus => self.services.remove(key, revision, self.now),
            PublishedResource::MultiCluster(resource) => {
                self.drop_multicluster(resource, key, revision)
            }
        };
    }
}

fn with_uid(mut object: Object, uid: Uid) -> Object {
    verbs::meta_mut(&mut object).uid = uid;
    object
}
