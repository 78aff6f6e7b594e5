//! Loads the objects of all files into a cluster state.

use std::collections::{BTreeMap, BTreeSet};

use endpointd_model::{
    EndpointSlice, Endpoints, Key, Node, Pod, ReferenceGrant, Service, SharedStr, names,
};
use endpointd_plan::ClusterState;
use endpointd_wire::{AnyObject, Decoded, Identity, Malformed};

use super::DEFAULT_NAMESPACE;
use crate::cli_error::CliError;
use crate::input::{DecodedObject, Source, read_objects};

/// The objects of all files.
#[derive(Default)]
pub struct LoadedObjects {
    pub cluster: ClusterState,
    /// Keys whose Service or Endpoints is malformed. They are not planned: without the object, the
    /// plan would delete what is published.
    pub malformed: BTreeSet<Key>,
    /// Number of objects of other kinds.
    pub n_ignored_by_kind: BTreeMap<String, usize>,
    /// In the order of the input.
    pub warnings: Vec<String>,
}

pub fn load_objects(sources: &[Source]) -> Result<LoadedObjects, CliError> {
    let mut loaded = LoadedObjects::default();
    read_objects(sources)?.into_iter().for_each(|read| loaded.add(read));
    Ok(loaded)
}

impl LoadedObjects {
    /// A key without any object is planned as deleted, but is more likely misspelt.
    pub fn unknown_key_hint(&self, key: &Key) -> Option<String> {
        let cluster = &self.cluster;
        let mut slices = cluster.slices.values().map(|slice| &slice.meta);
        let has_slice = slices.any(|meta| {
            meta.namespace == key.namespace && meta.labels.has(names::SERVICE_NAME, &key.name)
        });
        if cluster.services.contains_key(key) || cluster.endpoints.contains_key(key) || has_slice {
            return None;
        }
        let mut elsewhere = cluster.services.keys().chain(cluster.endpoints.keys());
        Some(match elsewhere.find(|one| one.name == key.name) {
            Some(other) => format!("did you mean `{other}`?"),
            None => "check the name, and whether the input has its namespace".to_owned(),
        })
    }

    pub fn add(&mut self, decoded: DecodedObject) {
        match decoded {
            DecodedObject::Known(object) => self.insert(*object),
            DecodedObject::Ignored(kind) => *self.n_ignored_by_kind.entry(kind).or_default() += 1,
            DecodedObject::Malformed(malformed) => self.skip_malformed(&malformed),
        }
    }

    fn insert(&mut self, mut object: AnyObject) {
        let Parts { kind, namespace, name } = parts(&mut object);
        if name.is_empty() {
            return self.skip_malformed(&without_name(kind, namespace));
        }
        let identity = match namespace {
            Some(namespace) => {
                if namespace.is_empty() {
                    *namespace = DEFAULT_NAMESPACE.into();
                }
                format!("{kind} `{namespace}/{name}`")
            }
            None => format!("{kind} `{name}`"),
        };
        if self.put(object) == Previous::Different {
            self.warnings
                .push(format!("two different objects of one name, the last counts: {identity}"));
        }
    }

    fn put(&mut self, object: AnyObject) -> Previous {
        let ClusterState { services, pods, nodes, endpoints, slices, grants, .. } =
            &mut self.cluster;
        match object {
            AnyObject::Service(one) => put(services, one.key(), one),
            AnyObject::Pod(one) => {
                let key = Key { namespace: one.namespace.clone(), name: one.name.clone() };
                put(pods, key, one)
            }
            AnyObject::Node(one) => put(nodes, one.name.clone(), one),
            AnyObject::Endpoints(one) => put(endpoints, one.meta.key(), one),
            AnyObject::EndpointSlice(one) => put(slices, one.meta.key(), one),
            AnyObject::ReferenceGrant(one) => put(grants, one.key(), one),
        }
    }

    fn skip_malformed(&mut self, malformed: &Malformed) {
        let Identity { kind, namespace, name, .. } = &*malformed.identity;
        let is_planned = [Service::KIND, Endpoints::KIND].contains(&kind.as_str());
        if is_planned && !name.is_empty() {
            let namespace = if namespace.is_empty() { DEFAULT_NAMESPACE } else { namespace };
            self.malformed.insert(Key::new(namespace, name.as_str()));
            self.warnings.push(format!("excluded and not planned: {malformed}"));
        } else {
            self.warnings.push(format!("excluded: {malformed}"));
        }
    }
}

/// Whether there was an object with the same key.
#[derive(PartialEq, Eq)]
enum Previous {
    Nothing,
    Same,
    Different,
}

fn put<K: Ord, V: PartialEq>(objects: &mut BTreeMap<K, V>, key: K, object: V) -> Previous {
    let before = match objects.get(&key) {
        None => Previous::Nothing,
        Some(before) if *before == object => Previous::Same,
        Some(_) => Previous::Different,
    };
    objects.insert(key, object);
    before
}

/// The identity of an object; a node has no namespace.
struct Parts<'a> {
    kind: &'static str,
    namespace: Option<&'a mut SharedStr>,
    name: &'a SharedStr,
}

fn parts(object: &mut AnyObject) -> Parts<'_> {
    let (kind, namespace, name) = match object {
        AnyObject::Service(one) => (Service::KIND, Some(&mut one.namespace), &one.name),
        AnyObject::Pod(one) => (Pod::KIND, Some(&mut one.namespace), &one.name),
        AnyObject::Node(one) => (Node::KIND, None, &one.name),
        AnyObject::Endpoints(Endpoints { meta, .. }) => {
            (Endpoints::KIND, Some(&mut meta.namespace), &meta.name)
        }
        AnyObject::EndpointSlice(EndpointSlice { meta, .. }) => {
            (EndpointSlice::KIND, Some(&mut meta.namespace), &meta.name)
        }
        AnyObject::ReferenceGrant(one) => {
            (ReferenceGrant::KIND, Some(&mut one.namespace), &one.name)
        }
    };
    Parts { kind, namespace, name }
}

fn without_name(kind: &str, namespace: Option<&mut SharedStr>) -> Malformed {
    let namespace = namespace.map_or_else(String::new, |namespace| namespace.to_string());
    let identity = Identity { kind: kind.to_owned(), namespace, ..Identity::default() };
    Malformed {
        identity: identity.into(),
        path: "metadata.name".to_owned(),
        reason: "missing".to_owned(),
    }
}
