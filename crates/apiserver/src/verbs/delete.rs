//! Delete, and the deletion of a collection. Upstream: `Store.Delete`, `rest.BeforeDelete`.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::create::text;
use super::list::ListOptions;
use super::{ResponseObject, Target, WriteOutcome};
use crate::defaults::remove;
use crate::kinds::{Deleted, Kind};
use crate::schema::read::seconds;
use crate::server::{GcMode, GcTask, Server};
use crate::status_error::{Details, StatusError};
use crate::store::{Key, Stored};

pub(super) const ORPHAN: &str = "orphan";
pub(super) const FOREGROUND: &str = "foregroundDeletion";

/// The supported fields of `DeleteOptions`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    pub grace_secs: Option<i64>,
    pub propagation: Option<Propagation>,
    pub uid: Option<String>,
    pub resource_version: Option<String>,
    pub dry_run: bool,
}

/// What happens to the dependents of the deleted object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// They stay, without the owner reference.
    Orphan,
    /// They are deleted after it.
    Background,
    /// They are deleted before it.
    Foreground,
}

#[derive(Debug)]
pub enum Deletion {
    /// The object was removed.
    Removed(ResponseObject),
    /// The object is in deletion: its grace period runs or it has finalizers.
    Pending(ResponseObject),
}

impl Deletion {
    pub fn is_removed(&self) -> bool {
        matches!(self, Self::Removed(_))
    }

    pub fn object(&self) -> &ResponseObject {
        match self {
            Self::Removed(shown) | Self::Pending(shown) => shown,
        }
    }

    /// The body of the response; `None` means the object.
    pub(crate) fn status(&self, kind: &Kind) -> Option<Value> {
        let Self::Removed(shown) = self else { return None };
        if kind.deleted == Deleted::Object {
            return None;
        }
        let object = shown.value();
        let details = Details {
            name: text(&object["metadata"]["name"]),
            group: kind.group.to_owned(),
            kind: kind.resource.to_owned(),
            uid: text(&object["metadata"]["uid"]),
            ..Details::default()
        };
        Some(json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
            "details": details.to_json(),
        }))
    }
}

enum Grace {
    /// The kind has no grace period.
    None,
    /// A grace period that is not longer than the requested one already runs.
    Waits,
    /// Store this object; then remove it at once if the grace period is zero.
    Set { object: Value, secs: i64 },
}

impl Server {
    pub fn delete(
        &mut self,
        target: &Target,
        options: &DeleteOptions,
    ) -> Result<Deletion, StatusError> {
        let deletion = self.delete_one(target, options)?;
        if self.settings.gc_mode == GcMode::Immediate {
            self.collect_garbage();
        }
        Ok(deletion)
    }

    /// Deletes all selected objects, each as [`Server::delete`] does, and returns them.
    pub fn delete_collection(
        &mut self,
        target: &Target,
        selection: &ListOptions,
        options: &DeleteOptions,
    ) -> Result<Vec<Arc<Stored>>, StatusError> {
        let page = self.list(target, selection)?;
        for object in &page.objects {
            let (namespace, name) = (object.key.namespace(), object.key.name());
            let one = Target::object(target.kind, namespace, name);
            match self.delete_one(&one, options) {
                Ok(_) => {}
                Err(error) if error.code == 404 => {}
                Err(error) => return Err(error),
            }
        }
        if self.settings.gc_mode == GcMode::Immediate {
            self.collect_garbage();
        }
        Ok(page.objects)
    }

    pub(super) fn delete_one(
        &mut self,
        target: &Target,
        options: &DeleteOptions,
    ) -> Result<Deletion, StatusError> {
        let kind = target.kind;
        let found = self.store.get(kind.storage, &target.key());
        let Some(stored) = found.cloned() else {
            return Err(StatusError::not_found(kind, &target.name));
        };
        if kind.resource == "namespaces" {
            return self.delete_namespace(&stored, options);
        }
        check_preconditions(kind, &stored, options)?;
        let old = stored.value();
        let now = self.clock_and_ids.now();
        let mut new = old.clone();
        let grace = match grace_of(kind, &old, options, now) {
            Grace::Waits => return Ok(Deletion::Pending(ResponseObject::Stored(stored))),
            Grace::None => None,
            Grace::Set { object, secs } => {
                new = object;
                Some(secs)
            }
        };
        set_collector_finalizer(kind, &mut new, options.propagation);
        let waits_for_finalizers = !new["metadata"]["finalizers"].is_null();
        if waits_for_finalizers && grace.is_none() {
            mark_as_deleting(&mut new, now);
        }
        if options.dry_run {
            let shown = ResponseObject::Value(new);
            let pending = waits_for_finalizers || grace.is_some_and(|secs| secs > 0);
            return Ok(if pending { Deletion::Pending(shown) } else { Deletion::Removed(shown) });
        }
        let mut latest = stored;
        if new != old && (waits_for_finalizers || grace.is_some()) {
            latest = self.put(kind, target.key(), new);
        }
        if waits_for_finalizers || grace.is_some_and(|secs| secs > 0) {
            return Ok(Deletion::Pending(ResponseObject::Stored(latest)));
        }
        let removed = self.remove(kind, &target.key()).unwrap_or(latest);
        Ok(Deletion::Removed(ResponseObject::Stored(removed)))
    }

    /// Removes an object and queues the garbage collector tasks that follow.
    pub(crate) fn remove(&mut self, kind: &Kind, key: &Key) -> Option<Arc<Stored>> {
        let removed = self.store.remove(kind.storage, key)?;
        if kind.storage == "services" {
            let value = removed.value();
            self.allocations.release(&value);
        }
        if kind.storage == "namespaces" {
            self.terminating.remove(key.name());
        }
        self.gc_queue.push_back(GcTask::Dependents { uid: removed.uid.clone() });
        for owner in &removed.owners {
            // Its owner may be in foreground deletion.
            self.gc_queue.push_back(GcTask::Dependents { uid: owner.uid.clone() });
        }
        if self.terminating.contains(key.namespace()) {
            self.gc_queue.push_back(GcTask::Namespace(key.namespace().to_owned()));
        }
        Some(removed)
    }

    /// Writes an object without validation, for changes by the server itself.
    pub(super) fn rewrite(&mut self, kind: &Kind, key: &Key, object: Value) -> WriteOutcome {
        let shown = ResponseObject::Stored(self.put(kind, key.clone(), object));
        WriteOutcome { object: shown, is_new: false, warnings: Vec::new() }
    }
}

pub(super) fn check_preconditions(
    kind: &Kind,
    stored: &Stored,
    options: &DeleteOptions,
) -> Result<(), StatusError> {
    let conflict = |why: String| {
        // Here upstream names the kind, elsewhere the resource.
        let mut error = StatusError::conflict(kind, stored.key.name(), &why);
        let resource = kind.qualified_resource();
        error.message = error.message.replacen(&resource, &kind.qualified_kind(), 1);
        error.details.kind = kind.kind.to_owned();
        error
    };
    if let Some(uid) = options.uid.as_ref().filter(|uid| **uid != stored.uid) {
        return Err(conflict(format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({}). The \
             object might have been deleted and then recreated",
            stored.uid
        )));
    }
    let version = stored.revision.to_string();
    if let Some(requested) =
        options.resource_version.as_ref().filter(|requested| **requested != version)
    {
        return Err(conflict(format!(
            "the ResourceVersion in the precondition ({requested}) does not match the ResourceVersion \
             in record ({version}). The object might have been modified"
        )));
    }
    Ok(())
}

/// Only pods have a grace period. Upstream: `CheckGracefulDelete` in core/pod/strategy.go.
fn grace_of(kind: &Kind, old: &Value, options: &DeleteOptions, now: Timestamp) -> Grace {
    if kind.resource != "pods" {
        return Grace::None;
    }
    let mut object = old.clone();
    if old["metadata"]["deletionTimestamp"].is_string() {
        let Some(waiting) = old["metadata"]["deletionGracePeriodSeconds"].as_i64() else {
            return Grace::None;
        };
        let Some(secs) = options.grace_secs.filter(|secs| *secs < waiting) else {
            return Grace::Waits;
        };
        let until: Option<Timestamp> = text(&old["metadata"]["deletionTimestamp"]).parse().ok();
        let until = until.unwrap_or(now) - SignedDuration::from_secs(waiting - secs);
        object["metadata"]["deletionTimestamp"] = json!(seconds(until));
        object["metadata"]["deletionGracePeriodSeconds"] = json!(secs);
        return Grace::Set { object, secs };
    }
    let requested = options.grace_secs;
    let own = old["spec"]["terminationGracePeriodSeconds"].as_i64().unwrap_or(0);
    let mut secs = requested.unwrap_or(own);
    // A pod without a node has no containers to stop.
    let runs_nowhere = old["spec"]["nodeName"].is_null();
    if runs_nowhere || ["Failed", "Succeeded"].iter().any(|it| old["status"]["phase"] == *it) {
        secs = 0;
    }
    if secs < 0 {
        secs = 1;
    }
    object["metadata"]["deletionTimestamp"] = json!(seconds(now + SignedDuration::from_secs(secs)));
    object["metadata"]["deletionGracePeriodSeconds"] = json!(secs);
    bump_generation(&mut object);
    Grace::Set { object, secs }
}

fn bump_generation(object: &mut Value) {
    if let Some(generation) = object["metadata"]["generation"].as_i64().filter(|it| *it > 0) {
        object["metadata"]["generation"] = json!(generation + 1);
    }
}

/// Upstream: `markAsDeleting`.
pub(super) fn mark_as_deleting(object: &mut Value, now: Timestamp) {
    if object["metadata"]["deletionGracePeriodSeconds"].is_null() {
        bump_generation(object);
    }
    if object["metadata"]["deletionTimestamp"].is_null() {
        object["metadata"]["deletionTimestamp"] = json!(seconds(now));
    }
    object["metadata"]["deletionGracePeriodSeconds"] = json!(0);
}

/// Sets the finalizer of the garbage collector for a propagation policy. Upstream:
/// `deletionFinalizersForGarbageCollection`.
fn set_collector_finalizer(kind: &Kind, object: &mut Value, wanted: Option<Propagation>) {
    if kind.storage == "events" {
        return; // Events own nothing.
    }
    let finalizers = object["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
    let is_ours = |one: &Value| one == ORPHAN || one == FOREGROUND;
    let own = match wanted {
        Some(Propagation::Orphan) => Some(ORPHAN),
        Some(Propagation::Foreground) => Some(FOREGROUND),
        Some(Propagation::Background) => None,
        None => match finalizers.iter().find(|one| is_ours(one)) {
            Some(one) if one == ORPHAN => Some(ORPHAN),
            Some(_) => Some(FOREGROUND),
            None => None,
        },
    };
    let mut all: Vec<Value> = finalizers.into_iter().filter(|one| !is_ours(one)).collect();
    all.extend(own.map(|own| json!(own)));
    if all.is_empty() {
        remove(&mut object["metadata"], "finalizers");
    } else {
        object["metadata"]["finalizers"] = Value::Array(all);
    }
}
