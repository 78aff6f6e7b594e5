//! Create. Upstream: `Store.Create` and `rest.BeforeCreate`.

use serde_json::{Value, json};

use super::read::{body, normal, settle_namespace};
use super::{Outcome, Shown, Target, WriteOptions};
use crate::defaults::allocation;
use crate::kinds::{Kind, NAMESPACES};
use crate::refusal::Refusal;
use crate::server::{Server, Sweep, Sweeping};
use crate::store::{Key, Place};
use crate::validation::{Causes, meta};

/// Upstream: `maxGeneratedNameLength`.
const PREFIX_BYTES_MAX: usize = 63 - 5;

impl Server {
    pub fn create(
        &mut self,
        target: &Target,
        given: Value,
        options: &WriteOptions,
    ) -> Result<Outcome, Refusal> {
        let kind = target.kind;
        let read = body(kind, given, options)?;
        let mut object = read.object;
        settle_namespace(target, &mut object)?;
        self.stamp_new(kind, &mut object)?;
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
        if self.store.get(kind.shelf, &key).is_some() {
            return Err(Refusal::already_exists(kind, &name));
        }
        let shown = if options.dry_run {
            Shown::Value(object)
        } else {
            Shown::Stored(self.put(kind, key, object))
        };
        if self.settings.sweeping == Sweeping::AtOnce {
            self.sweep();
        }
        Ok(Outcome { shown, is_new: true, warnings: read.warnings })
    }

    /// Names and stamps; what the client may not set is taken away. Upstream: `FillObjectMeta`.
    fn stamp_new(&mut self, kind: &Kind, object: &mut Value) -> Result<(), Refusal> {
        let version = text(&object["metadata"]["resourceVersion"]);
        if !version.is_empty() && version != "0" {
            return Err(Refusal::internal(
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
        meta.insert("uid".to_owned(), json!(self.stamps.uid()));
        meta.insert("creationTimestamp".to_owned(), json!(self.now()));
        let prefix = meta.get("generateName").map(text).unwrap_or_default();
        let name = meta.get("name").map(text).unwrap_or_default();
        if name.is_empty() && !prefix.is_empty() {
            let end = prefix.floor_char_boundary(PREFIX_BYTES_MAX);
            let name = format!("{}{}", &prefix[..end], self.stamps.suffix());
            meta.insert("name".to_owned(), json!(name));
        }
        Ok(())
    }

    /// Upstream: admission plugin `NamespaceLifecycle`.
    fn namespace_admits(&self, target: &Target, object: &Value) -> Result<(), Refusal> {
        if !target.kind.is_namespaced() {
            return Ok(());
        }
        let name = &target.namespace;
        let Some(namespace) = self.store.get("namespaces", &Key::new("", name)) else {
            return Err(Refusal::not_found(&NAMESPACES, name));
        };
        if !namespace.is_deleting {
            return Ok(());
        }
        let why = format!(
            "unable to create new content in namespace {name} because it is being terminated"
        );
        let object_name = text(&object["metadata"]["name"]);
        let cause = format!("namespace {name} is being terminated");
        let refusal = Refusal::forbidden(target.kind, &object_name, &why);
        Err(refusal.caused_by("NamespaceTerminating", &cause, "metadata.namespace"))
    }

    fn validate_new(&self, kind: &Kind, object: &Value) -> Result<(), Refusal> {
        let mut causes = Causes::default();
        meta::validate(kind, &object["metadata"], &mut causes);
        (kind.rules.validate)(object, &mut causes);
        refuse_if_any(kind, object, causes)
    }

    pub(super) fn allocate(
        &mut self,
        kind: &Kind,
        object: &mut Value,
        old: Option<&Value>,
    ) -> Result<(), Refusal> {
        allocation::normalize(object, old);
        let causes = self.allocations.allocate(object, old);
        refuse_if_any(kind, object, causes)?;
        *object = normal(kind, object.take());
        Ok(())
    }

    /// Stores an object and remembers what a sweep must look at because of it.
    pub(crate) fn put(
        &mut self,
        kind: &Kind,
        key: Key,
        object: Value,
    ) -> std::sync::Arc<crate::store::Stored> {
        if kind.shelf == "services" {
            if let Some(old) = self.store.get(kind.shelf, &key) {
                let old = old.value();
                self.allocations.release(&old);
            }
            self.allocations.take(&object);
        }
        let stored = self.store.put(kind.shelf, key.clone(), object);
        let place = Place { shelf: kind.shelf, key };
        if stored.is_deleting {
            self.to_sweep.push_back(Sweep::Owner(place.clone()));
            if kind.shelf == "namespaces" {
                self.terminating.insert(place.key.name().to_owned());
                self.to_sweep.push_back(Sweep::Namespace(place.key.name().to_owned()));
            }
        }
        if !stored.owners.is_empty() {
            self.to_sweep.push_back(Sweep::Owners(place));
        }
        stored
    }
}

pub(super) fn refuse_if_any(kind: &Kind, object: &Value, causes: Causes) -> Result<(), Refusal> {
    if causes.is_empty() {
        return Ok(());
    }
    let name = text(&object["metadata"]["name"]);
    Err(Refusal::invalid(kind, &name, causes.into_vec()))
}

pub(super) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
