//! Which Service a write is for, and what the engine had observed when it planned the write.

use endpointd_model::{
    Controller, DeleteTarget, EndpointSlice, Key, Object, PublishedResource, Write, names,
};

use super::Simulation;
use crate::process::ObservedRevisions;

impl Simulation {
    pub(super) fn record_observed(
        &mut self,
        process: usize,
        controller: Controller,
        write: &Write,
    ) -> ObservedRevisions {
        if controller == Controller::Import {
            let keys = self.consumers_of(write);
            let observed = self.observed_for_consumers(process, &keys);
            let observed = observed.unwrap_or_else(|| self.processes[process].observed());
            let planned = &mut self.processes[process].observed_at_plan;
            for key in keys {
                planned.entry((controller, key)).or_insert(observed);
            }
            return observed;
        }
        let Some(key) = self.service_of(write) else { return self.processes[process].observed() };
        let observed = self.observed_when_planned(process, controller, &key);
        self.processes[process].observed_at_plan.insert((controller, key), observed);
        observed
    }

    /// What the engine had observed when it planned the sync that is in flight for a key.
    pub(crate) fn observed_when_planned(
        &self,
        process: usize,
        controller: Controller,
        key: &Key,
    ) -> ObservedRevisions {
        let process = &self.processes[process];
        let planned = process.observed_at_plan.get(&(controller, key.clone()));
        planned.copied().unwrap_or_else(|| process.observed())
    }

    /// The Service a write is for.
    pub(crate) fn service_of(&self, write: &Write) -> Option<Key> {
        let key = write.key();
        let named = |object: &Object| match object {
            Object::Slice(slice) => {
                let name = slice.meta.labels.get(names::SERVICE_NAME)?;
                Some(Key::new(slice.meta.namespace.clone(), name.clone()))
            }
            Object::Endpoints(_) | Object::ServiceStatus(_) | Object::MultiCluster(_) => {
                Some(object.meta().key())
            }
        };
        match write {
            Write::Create(object) | Write::Update(object) => named(object),
            Write::Delete(target) => {
                // Another client may have changed its labels since.
                let seen = self.deleted_version(target).cloned().map(Object::Slice);
                named(&seen.or_else(|| self.api.object(write.resource(), &key))?)
            }
        }
    }

    /// The version of a slice that a delete names.
    pub(crate) fn deleted_version(&self, target: &DeleteTarget) -> Option<&EndpointSlice> {
        let is_meant = |slice: &&EndpointSlice| {
            slice.meta.uid == target.uid && slice.meta.resource_version == target.resource_version
        };
        let versions = match target.resource {
            PublishedResource::Slices => self.api.slices.window(&target.key, 0),
            PublishedResource::Endpoints
            | PublishedResource::ServiceStatus
            | PublishedResource::MultiCluster(_) => Vec::new(),
        };
        versions.into_iter().flatten().find(is_meant)
    }

    /// The key whose sync the write belongs to, if that is certain.
    pub(super) fn owner_of(
        &self,
        controller: Controller,
        write: &Write,
    ) -> Option<(Controller, Key)> {
        let keys = match controller {
            Controller::Import => self.consumers_of(write),
            Controller::Slices
            | Controller::Endpoints
            | Controller::Mirror
            | Controller::MultiCluster => self.service_of(write).into_iter().collect(),
        };
        match keys.as_slice() {
            [key] => Some((controller, key.clone())),
            [] | [_, ..] => None,
        }
    }
}
