//! The workload: performs actions of a script on the objects of the cluster. An action without a
//! target does nothing.

mod endpoints;
mod imports;
mod nodes;
mod pods;
mod services;
pub mod slices;

use endpointd_model::{Key, Labels, PublishedResource, SharedStr, WatchedResource};

use crate::script::{Action, NamespaceAction, Place};
use endpointd_memory_api::{MemoryApi, NamespaceState};

pub const NAMESPACES: [&str; 2] = ["east", "west"];
pub const SERVICES: [&str; 4] = ["web", "api", "db", "old"];
/// Services without selector that may ask for the endpoints of others.
pub const CONSUMERS: [&str; 2] = ["consumer-a", "consumer-b"];

/// Performs an action on objects; returns whether it changed any.
pub fn apply(api: &mut MemoryApi, action: &Action) -> bool {
    let before = api.revision();
    match action {
        Action::Pod(place, what) => pods::apply(api, *place, *what),
        Action::Service(place, what) => services::apply(api, &service_key(*place), *what),
        Action::Node(number, what) => nodes::apply(api, *number, *what),
        Action::Endpoints(place, what) => endpoints::apply(api, *place, *what),
        Action::Namespace(number, NamespaceAction::End) => end_namespace(api, *number),
        Action::Namespace(number, NamespaceAction::Begin) => return begin_namespace(api, *number),
        Action::Slice(index, what) => slices::apply(api, *index, *what),
        Action::Import(what) => imports::apply(api, *what),
        Action::Corrupt(resource, index) => corrupt(api, *resource, *index),
        Action::Watch(..)
        | Action::Request(_)
        | Action::Fault(_)
        | Action::Process(..)
        | Action::Instance(..)
        | Action::Cluster(..)
        | Action::Check(_)
        | Action::Quiesce => {}
    }
    api.revision() > before
}

pub fn namespace(number: u8) -> SharedStr {
    NAMESPACES[usize::from(number) % NAMESPACES.len()].into()
}

/// Numbers beyond the fixed names give numbered names.
pub fn service_key(place: Place) -> Key {
    let number = usize::from(place.number);
    let name = SERVICES.get(number).map_or_else(|| format!("svc-{number}"), |&name| name.into());
    Key::new(namespace(place.namespace), name)
}

pub fn consumer_key(place: Place) -> Key {
    let name = CONSUMERS[usize::from(place.number) % CONSUMERS.len()];
    Key::new(namespace(place.namespace), name)
}

pub fn pod_key(place: Place) -> Key {
    Key::new(namespace(place.namespace), format!("pod-{}", place.number))
}

fn labels<const N: usize>(pairs: [(&str, &str); N]) -> Labels {
    pairs.into_iter().collect()
}

fn end_namespace(api: &mut MemoryApi, number: u8) {
    if let Some(state) = api.namespaces.get_mut(&namespace(number)) {
        *state = NamespaceState::Terminating;
    }
}

fn begin_namespace(api: &mut MemoryApi, number: u8) -> bool {
    let name = namespace(number);
    let is_new = !api.namespaces.contains_key(&name);
    if is_new {
        api.namespaces.insert(name, NamespaceState::Active);
    }
    is_new
}

fn corrupt(api: &mut MemoryApi, resource: WatchedResource, index: u32) {
    let keys = api.keys(resource);
    if let Some(key) = pick(&keys, index) {
        api.corrupt(resource, &key.clone());
    }
}

fn pick<T>(from: &[T], index: u32) -> Option<&T> {
    (!from.is_empty()).then(|| &from[index as usize % from.len()])
}

/// A number from which an object takes its choices, one digit after the other.
struct ShapeSeed(u32);

impl ShapeSeed {
    fn pick(&mut self, n: u32) -> u32 {
        let choice = self.0 % n;
        self.0 /= n;
        choice
    }

    fn one_of<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.pick(from.len() as u32) as usize]
    }
}

fn remove_endpoints(api: &mut MemoryApi, key: &Key) {
    if api.endpoints.contains(key) {
        api.remove(PublishedResource::Endpoints, key);
    }
}
