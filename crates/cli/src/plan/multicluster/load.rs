//! The objects of one cluster from its files.

use std::collections::BTreeSet;

use endpointd_model::{
    ClusterId, DerivedService, EndpointSlice, Key, Service, ServiceExport, ServiceImport,
    SharedStr, derived_name,
};
use endpointd_plan::{ClusterObjects, ClusterSetState};
use endpointd_wire::{AnyObject, Decoded, Identity, Malformed, decode_value};
use serde_json::Value;

use super::super::DEFAULT_NAMESPACE;
use crate::cli_error::CliError;
use crate::input::{FromObject, Source, read_objects};

pub struct Loaded {
    pub state: ClusterSetState,
    /// Keys with an object that is malformed in some cluster: their plan would be another one.
    pub malformed: BTreeSet<Key>,
    pub warnings: Vec<String>,
}

/// What a plan for several clusters reads of one.
enum ClusterObject {
    Export(ServiceExport),
    Import(ServiceImport),
    /// As a Service that is exported, and as one that is derived from an import.
    Service(Box<(Service, DerivedService)>),
    Slice(EndpointSlice),
    Ignored,
    Malformed(Malformed),
}

impl FromObject for ClusterObject {
    fn from_object(value: Value) -> Self {
        Self::read(&value).unwrap_or_else(Self::Malformed)
    }
}

impl ClusterObject {
    fn read(value: &Value) -> Result<Self, Malformed> {
        let Identity { api_version, kind, .. } = Identity::of(value);
        let is =
            |known: &str, has_version: fn(&str) -> bool| kind == known && has_version(&api_version);
        if is(ServiceExport::KIND, ServiceExport::has_api_version) {
            return decode_value(value).map(Self::Export);
        }
        if is(ServiceImport::KIND, ServiceImport::has_api_version) {
            return decode_value(value).map(Self::Import);
        }
        Ok(match AnyObject::from_value(value)? {
            Some(AnyObject::Service(service)) => {
                Self::Service(Box::new((service, decode_value(value)?)))
            }
            Some(AnyObject::EndpointSlice(slice)) => Self::Slice(slice),
            Some(
                AnyObject::Pod(_)
                | AnyObject::Node(_)
                | AnyObject::Endpoints(_)
                | AnyObject::ReferenceGrant(_),
            )
            | None => Self::Ignored,
        })
    }
}

impl Loaded {
    pub fn read_home(&mut self, sources: &[Source]) -> Result<(), CliError> {
        for object in read_objects(sources)? {
            match object {
                ClusterObject::Import(mut import) => {
                    in_a_namespace(&mut import.meta.namespace);
                    self.state.imports.insert(import.meta.key(), import);
                }
                ClusterObject::Service(both) => {
                    let (mut service, mut derived) = *both;
                    in_a_namespace(&mut service.namespace);
                    in_a_namespace(&mut derived.meta.namespace);
                    self.state.derived.insert(service.key(), derived);
                    self.state.home.services.insert(service.key(), service);
                }
                ClusterObject::Export(_)
                | ClusterObject::Slice(_)
                | ClusterObject::Ignored
                | ClusterObject::Malformed(_) => {
                    let warnings = add(&mut self.state.home, object, &mut self.malformed);
                    self.warnings.extend(warnings);
                }
            }
        }
        let keys = self.state.keys().into_iter();
        let derived: BTreeSet<Key> =
            keys.map(|key| Key { name: derived_name(&key), namespace: key.namespace }).collect();
        self.state.derived.retain(|key, _| derived.contains(key));
        Ok(())
    }

    pub fn read_remote(&mut self, id: ClusterId, sources: &[Source]) -> Result<(), CliError> {
        let mut objects = ClusterObjects::new(id);
        for object in read_objects(sources)? {
            self.warnings.extend(add(&mut objects, object, &mut self.malformed));
        }
        self.state.remotes.push(objects);
        Ok(())
    }
}

/// The warning about a malformed object.
fn add(
    cluster: &mut ClusterObjects,
    object: ClusterObject,
    malformed_keys: &mut BTreeSet<Key>,
) -> Option<String> {
    match object {
        ClusterObject::Export(mut export) => {
            in_a_namespace(&mut export.meta.namespace);
            cluster.exports.insert(export.meta.key(), export);
        }
        ClusterObject::Service(both) => {
            let (mut service, _) = *both;
            in_a_namespace(&mut service.namespace);
            cluster.services.insert(service.key(), service);
        }
        ClusterObject::Slice(mut slice) => {
            in_a_namespace(&mut slice.meta.namespace);
            cluster.slices.insert(slice.meta.key(), slice);
        }
        // Imports of other clusters are not read: every cluster decides for itself.
        ClusterObject::Import(_) | ClusterObject::Ignored => {}
        ClusterObject::Malformed(malformed) => {
            let Identity { kind, namespace, name, .. } = &*malformed.identity;
            let decides = [Service::KIND, ServiceExport::KIND, ServiceImport::KIND];
            if decides.contains(&kind.as_str()) {
                let mut namespace: SharedStr = namespace.as_str().into();
                in_a_namespace(&mut namespace);
                malformed_keys.insert(Key { namespace, name: name.as_str().into() });
            }
            return Some(format!("excluded, in cluster {}: {malformed}", cluster.id));
        }
    }
    None
}

fn in_a_namespace(namespace: &mut SharedStr) {
    if namespace.is_empty() {
        *namespace = DEFAULT_NAMESPACE.into();
    }
}
