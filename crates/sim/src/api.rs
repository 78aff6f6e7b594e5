//! An API server in one value: objects, one revision for all of them, every version they had, and
//! the rules of writing. It holds `model` objects, so that a step costs microseconds; a test holds
//! its answers to those of `endpointd-apiserver`.

mod collector;
mod shelf;
mod validation;
mod verbs;

use std::collections::BTreeMap;

use endpointd_model::{
    EndpointSlice, Endpoints, Key, LiveRead, LiveReadResult, Node, Object, Pod, PublishedResource,
    Service, SharedStr, Uid, WatchSignal, WatchedResource,
};

use crate::clock::Time;

pub use shelf::{Entry, Shelf, Thing};
pub use verbs::Answer;

#[derive(Debug, Default)]
pub struct Api {
    revision: u64,
    n_uids: u64,
    /// When the next write happens.
    pub now: Time,
    /// How far the wall clock is off.
    pub skew_secs: i64,
    pub services: Shelf<Service>,
    pub pods: Shelf<Pod>,
    pub nodes: Shelf<Node>,
    pub endpoints: Shelf<Endpoints>,
    pub slices: Shelf<EndpointSlice>,
    pub namespaces: BTreeMap<SharedStr, NamespaceState>,
    /// Mutating admission: every slice stored is given this annotation.
    pub webhook: bool,
    /// When someone else last edited an object of ours without asking.
    meddled: BTreeMap<(PublishedResource, Key), u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamespaceState {
    Active,
    Terminating,
}

impl Api {
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

    /// Written by someone else, without asking: creates or replaces. The uid stays or is given.
    pub fn force(&mut self, object: Object) {
        let known = self.object(object.resource(), &object.meta().key());
        let uid = known.map(|known| known.meta().uid.clone());
        let uid = uid.unwrap_or_else(|| self.new_uid());
        let object = self.store(with_uid(object, uid));
        self.meddled.insert((object.resource(), object.meta().key()), self.revision);
    }

    /// Whether someone else edited the object after a revision.
    pub fn is_meddled_with(&self, resource: PublishedResource, key: &Key, since: u64) -> bool {
        let edited = self.meddled.get(&(resource, key.clone()));
        edited.is_some_and(|revision| *revision > since)
    }

    pub fn garble(&mut self, kind: WatchedResource, key: &Key) {
        let revision = self.bump();
        match kind {
            WatchedResource::Services => self.services.garble(key, revision, self.now),
            WatchedResource::Pods => self.pods.garble(key, revision, self.now),
            WatchedResource::Nodes => self.nodes.garble(key, revision, self.now),
            WatchedResource::Endpoints => self.endpoints.garble(key, revision, self.now),
            WatchedResource::Slices => self.slices.garble(key, revision, self.now),
        }
    }

    /// Everything can be read again.
    pub fn mend(&mut self) {
        let garbled = |keys: Vec<Key>, is_garbled: &dyn Fn(&Key) -> bool| {
            keys.into_iter().filter(|key| is_garbled(key)).collect::<Vec<_>>()
        };
        for key in garbled(self.services.keys(), &|key| self.services.is_garbled(key)) {
            let service = self.services.get(&key).map(|one| Service::clone(one));
            service.into_iter().for_each(|service| self.put_service(service));
        }
        for key in garbled(self.pods.keys(), &|key| self.pods.is_garbled(key)) {
            let pod = self.pods.get(&key).map(|one| Pod::clone(one));
            pod.into_iter().for_each(|pod| self.put_pod(pod));
        }
        for key in garbled(self.nodes.keys(), &|key| self.nodes.is_garbled(key)) {
            let node = self.nodes.get(&key).map(|one| Node::clone(one));
            node.into_iter().for_each(|node| self.put_node(node));
        }
        for resource in [PublishedResource::Endpoints, PublishedResource::Slices] {
            let keys = match resource {
                PublishedResource::Endpoints => {
                    garbled(self.endpoints.keys(), &|key| self.endpoints.is_garbled(key))
                }
                PublishedResource::Slices => {
                    garbled(self.slices.keys(), &|key| self.slices.is_garbled(key))
                }
            };
            for key in keys {
                let object = self.object(resource, &key);
                object.into_iter().for_each(|object| drop(self.store(object)));
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
        }
    }

    /// A consistent read. What cannot be read is `None`.
    pub fn look(&self, read: &LiveRead) -> Option<LiveReadResult> {
        let found = match read {
            LiveRead::Service(key) if self.services.is_garbled(key) => return None,
            LiveRead::Service(key) => self
                .services
                .get(key)
                .map(|one| LiveReadResult::Service(Box::new(Service::clone(one)))),
            LiveRead::Node(name) => {
                let key = Key::new("", name.clone());
                if self.nodes.is_garbled(&key) {
                    return None;
                }
                self.nodes.get(&key).map(|one| LiveReadResult::Node(Box::new(Node::clone(one))))
            }
            LiveRead::Object(PublishedResource::Slices, key) if self.slices.is_garbled(key) => {
                return None;
            }
            LiveRead::Object(PublishedResource::Endpoints, key)
                if self.endpoints.is_garbled(key) =>
            {
                return None;
            }
            LiveRead::Object(resource, key) => {
                self.object(*resource, key).map(|one| LiveReadResult::Object(Box::new(one)))
            }
        };
        Some(found.unwrap_or(LiveReadResult::Absent))
    }

    /// The next change of a kind after a revision: its revision, when it happened, and how it is
    /// told.
    pub fn next_news(&self, kind: WatchedResource, seen: u64) -> Option<(u64, Time, WatchSignal)> {
        fn next<T: Thing>(shelf: &Shelf<T>, seen: u64) -> Option<(u64, Time, WatchSignal)> {
            let entry = shelf.entry(shelf.after(seen))?;
            Some((entry.revision, entry.at, entry.news()))
        }
        match kind {
            WatchedResource::Services => next(&self.services, seen),
            WatchedResource::Pods => next(&self.pods, seen),
            WatchedResource::Nodes => next(&self.nodes, seen),
            WatchedResource::Endpoints => next(&self.endpoints, seen),
            WatchedResource::Slices => next(&self.slices, seen),
        }
    }

    /// When the next change of a kind after a revision happened.
    pub fn next_change(&self, kind: WatchedResource, seen: u64) -> Option<Time> {
        fn next<T: Thing>(shelf: &Shelf<T>, seen: u64) -> Option<Time> {
            shelf.entry(shelf.after(seen)).map(|entry| entry.at)
        }
        match kind {
            WatchedResource::Services => next(&self.services, seen),
            WatchedResource::Pods => next(&self.pods, seen),
            WatchedResource::Nodes => next(&self.nodes, seen),
            WatchedResource::Endpoints => next(&self.endpoints, seen),
            WatchedResource::Slices => next(&self.slices, seen),
        }
    }

    /// A picture of a kind as of a revision.
    pub fn list_at(&self, kind: WatchedResource, revision: u64) -> Vec<WatchSignal> {
        fn list<T: Thing>(shelf: &Shelf<T>, revision: u64) -> Vec<WatchSignal> {
            shelf.list_at(revision).into_iter().map(Entry::news).collect()
        }
        match kind {
            WatchedResource::Services => list(&self.services, revision),
            WatchedResource::Pods => list(&self.pods, revision),
            WatchedResource::Nodes => list(&self.nodes, revision),
            WatchedResource::Endpoints => list(&self.endpoints, revision),
            WatchedResource::Slices => list(&self.slices, revision),
        }
    }

    pub fn floor(&self, kind: WatchedResource) -> u64 {
        match kind {
            WatchedResource::Services => self.services.floor,
            WatchedResource::Pods => self.pods.floor,
            WatchedResource::Nodes => self.nodes.floor,
            WatchedResource::Endpoints => self.endpoints.floor,
            WatchedResource::Slices => self.slices.floor,
        }
    }

    /// Forgets the history of a kind: watches that are behind are told 410.
    pub fn compact(&mut self, kind: WatchedResource) {
        let floor = self.revision;
        match kind {
            WatchedResource::Services => self.services.floor = floor,
            WatchedResource::Pods => self.pods.floor = floor,
            WatchedResource::Nodes => self.nodes.floor = floor,
            WatchedResource::Endpoints => self.endpoints.floor = floor,
            WatchedResource::Slices => self.slices.floor = floor,
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
        }
    }

    fn drop_object(&mut self, resource: PublishedResource, key: &Key) {
        let revision = self.bump();
        match resource {
            PublishedResource::Slices => self.slices.remove(key, revision, self.now),
            PublishedResource::Endpoints => self.endpoints.remove(key, revision, self.now),
        };
    }
}

fn with_uid(mut object: Object, uid: Uid) -> Object {
    verbs::meta_mut(&mut object).uid = uid;
    object
}
