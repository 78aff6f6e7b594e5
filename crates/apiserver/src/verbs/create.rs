//! Create. Upstream: `Store.Create` and `rest.BeforeCreate`.

use serde_json::{Value, json};

use super::read::{body, check_namespace, normal};
use super::{ResponseObject, Target, WriteOptions, WriteOutcome};
use crate::defaults::allocation;
use crate::kinds::{Kind, NAMESPACES};
use crate::server::{GcMode, GcTask, Server};
use crate::status_error::StatusError;
use crate::store::{Key, ObjectRef};
use crate::validation::{Causes, meta};

/// Upstream: `maxGeneratedNameLength`.
const PREFIX_BYTES_MAX: usize = 63 - 5;

impl Server {
    pub fn create(
        &mut self,
        target: &Target,
        given: Value,
        options: &WriteOptions,
    ) -> Result<WriteOutcome, StatusError> {
        let kind = target.kind;
        let read = body(kind, given, options)?;
        let mut object = read.object;
        check_namespace(target, &mut object)?;
        self.set_system_metadata(kind, &mut object)?;
        self.namespace_admits(target, &object)?;
        if kind.resource == "services" {
            // Before validation, as upstream does: `beginCreate` in core/service/storage.
            self.allocate(kind, &mut object, None)?;
        }
        (kind.rules.prepare_create)(&mut object);
        let object = normal(kind, object);
        self.validate_new(kind, &object)?;
        let name = text(&object["metadata"]["name"]);
        let key = Key::new(&target.namespace, &name);
        if self.store.get(kind.storage, &key).is_some() {
            return Err(StatusError::already_exists(kind, &name));
        }
        let shown = if options.dry_run {
            ResponseObject::Value(object)
        } else {
            ResponseObject::Stored(self.put(kind, key, object))
        };
        if self.settings.gc_mode == GcMode::Immediate {
            self.collect_garbage();
        }
        Ok(WriteOutcome { object: shown, is_new: true, warnings: read.warnings })
    }

    /// Sets name, uid, and creation time; removes fields the client may not set. Upstream:
    /// `FillObjectMeta`.
    fn set_system_metadata(&mut self, kind: &Kind, object: &mut Value) -> Result<(), StatusError> {
        let version = text(&object["metadata"]["resourceVersion"]);
        if !version.is_empty() && version != "0" {
            return Err(StatusError::internal(
                "resourceVersion should not be set on objects to be created",
            ));
        }
        let Some(meta) = object["metadata"].as_object_mut() else { return Ok(()) };
        for field in
            ["resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"]
        {
            meta.remove(field);
        }
        if !kind.is_namespaced() {
            meta.remove("namespace");
        }
        meta.insert("uid".to_owned(), json!(self.clock_and_ids.uid()));
        meta.insert("creationTimestamp".to_owned(), json!(self.now()));
        let prefix = meta.get("generateName").map(text).unwrap_or_default();
        let name = meta.get("name").map(text).unwrap_or_default();
        if name.is_empty() && !prefix.is_empty() {
            let end = prefix.floor_char_boundary(PREFIX_BYTES_MAX);
            let name = format!("{}{}", &prefix[..end], self.clock_and_ids.suffix());
            meta.insert("name".to_owned(), json!(name));
        }
        Ok(())
    }

    /// Upstream: admission plugin `NamespaceLifecycle`.
    fn namespace_admits(&self, target: &Target, object: &Value) -> Result<(), StatusError> {
        if !target.kind.is_namespaced() {
            return Ok(());
        }
        let name = &target.namespace;
        let Some(namespace) = self.store.get("namespaces", &Key::new("", name)) else {
            return Err(StatusError::not_found(&NAMESPACES, name));
        };
        if !namespace.is_deleting {
            return Ok(());
        }
        let why = format!(
            "unable to create new content in namespace {name} because it is being terminated"
        );
        let object_name = text(&object["metadata"]["name"]);
        let cause = format!("namespace {name} is being terminated");
        let error = StatusError::forbidden(target.kind, &object_name, &why);
        Err(error.caused_by("NamespaceTerminating", &cause, "metadata.namespace"))
    }

    fn validate_new(&self, kind: &Kind, object: &Value) -> Result<(), StatusError> {
        let mut causes = Causes::default();
        meta::validate(kind, &object["metadata"], &mut causes);
        (kind.rules.validate)(object, &mut causes);
        invalid_if_any(kind, object, causes)
    }

    pub(super) fn allocate(
        &mut self,
        kind: &Kind,
        object: &mut Value,
        old: Option<&Value>,
    ) -> Result<(), StatusError> {
        allocation::normalize(object, old);
        let causes = self.allocations.allocate(object, old);
        invalid_if_any(kind, object, causes)?;
        *object = normal(kind, object.take());
        Ok(())
    }

    /// Stores an object and queues the garbage collector tasks that follow.
    pub(crate) fn put(
        &mut self,
        kind: &Kind,
        key: Key,
        object: Value,
    ) -> std::sync::Arc<crate::store::Stored> {
        if kind.storage == "services" {
            if let Some(old) = self.store.get(kind.storage, &key) {
                let old = old.value();
                self.allocations.release(&old);
            }
            self.allocations.mark_allocated(&object);
        }
        let stored = self.store.put(kind.storage, key.clone(), object);
        let object_ref = ObjectRef { storage: kind.storage, key };
        if stored.is_deleting {
            self.gc_queue.push_back(GcTask::Owner(object_ref.clone()));
            if kind.storage == "namespaces" {
                self.terminating.insert(object_ref.key.name().to_owned());
                self.gc_queue.push_back(GcTask::Namespace(object_ref.key.name().to_owned()));
            }
        }
        if !stored.owners.is_empty() {
            self.gc_queue.push_back(GcTask::Owners(object_ref));
        }
        stored
    }
}

pub(super) fn invalid_if_any(
    kind: &Kind,
    object: &Value,
    causes: Causes,
) -> Result<(), StatusError> {
    if causes.is_empty() {
        return Ok(());
    }
    let name = text(&object["metadata"]["name"]);
    Err(StatusError::invalid(kind, &name, causes.into_vec()))
}

pub(super) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
