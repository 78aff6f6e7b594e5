//! What the acts of a script do to the objects of the cluster. An act that finds nothing to act upon
//! does nothing.

mod endpoints;
mod nodes;
mod pods;
mod services;
mod slices;

use endpointd_model::{Key, Labels, PublishedResource, SharedStr, WatchedResource};

use crate::api::{Api, NamespaceState};
use crate::script::{Act, NamespaceAct, Place};

pub const NAMESPACES: [&str; 2] = ["east", "west"];
pub const SERVICES: [&str; 4] = ["web", "api", "db", "old"];

/// Performs an act that is about objects; says whether it did anything.
pub fn perform(api: &mut Api, act: &Act) -> bool {
    let before = api.revision();
    match act {
        Act::Pod(place, what) => pods::perform(api, *place, *what),
        Act::Service(place, what) => services::perform(api, *place, *what),
        Act::Node(number, what) => nodes::perform(api, *number, *what),
        Act::Endpoints(place, what) => endpoints::perform(api, *place, *what),
        Act::Namespace(number, NamespaceAct::End) => end_namespace(api, *number),
        Act::Namespace(number, NamespaceAct::Begin) => return begin_namespace(api, *number),
        Act::Slice(index, what) => slices::perform(api, *index, *what),
        Act::Garble(kind, index) => garble(api, *kind, *index),
        Act::Watch(..)
        | Act::Mishap(_)
        | Act::Fault(_)
        | Act::Process(..)
        | Act::Check(_)
        | Act::Calm => {}
    }
    api.revision() > before
}

pub fn namespace(number: u8) -> SharedStr {
    NAMESPACES[usize::from(number) % NAMESPACES.len()].into()
}

/// Numbers beyond the usual names are numbers, for crowds.
pub fn service_key(place: Place) -> Key {
    let number = usize::from(place.number);
    let name = SERVICES.get(number).map_or_else(|| format!("svc-{number}"), |&name| name.into());
    Key::new(namespace(place.namespace), name)
}

pub fn pod_key(place: Place) -> Key {
    Key::new(namespace(place.namespace), format!("pod-{}", place.number))
}

fn labels<const N: usize>(pairs: [(&str, &str); N]) -> Labels {
    pairs.into_iter().collect()
}

fn end_namespace(api: &mut Api, number: u8) {
    if let Some(state) = api.namespaces.get_mut(&namespace(number)) {
        *state = NamespaceState::Terminating;
    }
}

fn begin_namespace(api: &mut Api, number: u8) -> bool {
    let name = namespace(number);
    let is_new = !api.namespaces.contains_key(&name);
    if is_new {
        api.namespaces.insert(name, NamespaceState::Active);
    }
    is_new
}

fn garble(api: &mut Api, kind: WatchedResource, index: u32) {
    let keys = match kind {
        WatchedResource::Services => api.services.keys(),
        WatchedResource::Pods => api.pods.keys(),
        WatchedResource::Nodes => api.nodes.keys(),
        WatchedResource::Endpoints => api.endpoints.keys(),
        WatchedResource::Slices => api.slices.keys(),
    };
    if let Some(key) = pick(&keys, index) {
        api.garble(kind, &key.clone());
    }
}

fn pick<T>(from: &[T], index: u32) -> Option<&T> {
    (!from.is_empty()).then(|| &from[index as usize % from.len()])
}

/// One choice out of several, taken from a variety; the rest is left for the next choice.
struct Variety(u32);

impl Variety {
    fn pick(&mut self, n: u32) -> u32 {
        let choice = self.0 % n;
        self.0 /= n;
        choice
    }

    fn one_of<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.pick(from.len() as u32) as usize]
    }
}

fn remove_endpoints(api: &mut Api, key: &Key) {
    if api.endpoints.contains(key) {
        api.remove(PublishedResource::Endpoints, key);
    }
}
