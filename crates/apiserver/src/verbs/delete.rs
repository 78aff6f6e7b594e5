//! Delete, and the deletion of a collection. Upstream: `Store.Delete`, `rest.BeforeDelete`.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::create::text;
use super::list::ListOptions;
use super::{Outcome, Shown, Target};
use crate::defaults::remove;
use crate::kinds::{Deleted, Kind};
use crate::refusal::{Details, Refusal};
use crate::schema::read::seconds;
use crate::server::{Server, Sweep, Sweeping};
use crate::store::{Key, Stored};

pub(super) const ORPHAN: &str = "orphan";
pub(super) const FOREGROUND: &str = "foregroundDeletion";

/// The parts of a `DeleteOptions` that count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    pub grace_secs: Option<i64>,
    pub propagation: Option<Propagation>,
    pub uid: Option<String>,
    pub resource_version: Option<String>,
    pub dry_run: bool,
}

/// What happens to the objects this one owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// They lose their owner and stay.
    Orphan,
    /// They go after it.
    Background,
    /// It goes after them.
    Foreground,
}

/// What became of a deletion.
#[derive(Debug)]
pub enum Deletion {
    /// It is gone.
    Removed(Shown),
    /// It waits: for its grace period, or for its finalizers.
    Pending(Shown),
}

impl Deletion {
    pub fn is_removed(&self) -> bool {
        matches!(self, Self::Removed(_))
    }

    pub fn shown(&self) -> &Shown {
        match self {
            Self::Removed(shown) | Self::Pending(shown) => shown,
        }
    }

    /// The body of the answer; `None` means the object itself.
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

/// What the grace period of a deletion asks for.
enum Grace {
    /// This kind knows none.
    None,
    /// It already waits, and not for longer than now asked.
    Waits,
    /// Write this down first; then it goes at once when the period is zero.
    Set { object: Value, secs: i64 },
}

impl Server {
    pub fn delete(
        &mut self,
        target: &Target,
        options: &DeleteOptions,
    ) -> Result<Deletion, Refusal> {
        let deletion = self.delete_one(target, options)?;
        if self.settings.sweeping == Sweeping::AtOnce {
            self.sweep();
        }
        Ok(deletion)
    }

    /// Deletes what the options select, each as [`Server::delete`] would, and shows them.
    pub fn delete_collection(
        &mut self,
        target: &Target,
        selection: &ListOptions,
        options: &DeleteOptions,
    ) -> Result<Vec<Arc<Stored>>, Refusal> {
        let page = self.list(target, selection)?;
        for object in &page.objects {
            let (namespace, name) = (object.key.namespace(), object.key.name());
            let one = Target::object(target.kind, namespace, name);
            match self.delete_one(&one, options) {
                Ok(_) => {}
                Err(refusal) if refusal.code == 404 => {}
                Err(refusal) => return Err(refusal),
            }
        }
        if self.settings.sweeping == Sweeping::AtOnce {
            self.sweep();
        }
        Ok(page.objects)
    }

    pub(super) fn delete_one(
        &mut self,
        target: &Target,
        options: &DeleteOptions,
    ) -> Result<Deletion, Refusal> {
        let kind = target.kind;
        let found = self.store.get(kind.shelf, &target.key());
        let Some(stored) = found.cloned() else {
            return Err(Refusal::not_found(kind, &target.name));
        };
        if kind.resource == "namespaces" {
            return self.delete_namespace(&stored, options);
        }
        check_preconditions(kind, &stored, options)?;
        let old = stored.value();
        let now = self.stamps.now();
        let mut new = old.clone();
        let grace = match grace_of(kind, &old, options, now) {
            Grace::Waits => return Ok(Deletion::Pending(Shown::Stored(stored))),
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
            let shown = Shown::Value(new);
            let pending = waits_for_finalizers || grace.is_some_and(|secs| secs > 0);
            return Ok(if pending { Deletion::Pending(shown) } else { Deletion::Removed(shown) });
        }
        let mut latest = stored;
        if new != old && (waits_for_finalizers || grace.is_some()) {
            latest = self.put(kind, target.key(), new);
        }
        if waits_for_finalizers || grace.is_some_and(|secs| secs > 0) {
            return Ok(Deletion::Pending(Shown::Stored(latest)));
        }
        let removed = self.remove(kind, &target.key()).unwrap_or(latest);
        Ok(Deletion::Removed(Shown::Stored(removed)))
    }

    /// Takes an object away and remembers what a sweep must look at because of it.
    pub(crate) fn remove(&mut self, kind: &Kind, key: &Key) -> Option<Arc<Stored>> {
        let removed = self.store.remove(kind.shelf, key)?;
        if kind.shelf == "services" {
            let value = removed.value();
            self.allocations.release(&value);
        }
        if kind.shelf == "namespaces" {
            self.terminating.remove(key.name());
        }
        self.to_sweep.push_back(Sweep::Dependents { uid: removed.uid.clone() });
        for owner in &removed.owners {
            // Its owner may have waited for it.
            self.to_sweep.push_back(Sweep::Dependents { uid: owner.uid.clone() });
        }
        if self.terminating.contains(key.namespace()) {
            self.to_sweep.push_back(Sweep::Namespace(key.namespace().to_owned()));
        }
        Some(removed)
    }

    /// Writes an object as it is: for the server's own bookkeeping.
    pub(super) fn rewrite(&mut self, kind: &Kind, key: &Key, object: Value) -> Outcome {
        let shown = Shown::Stored(self.put(kind, key.clone(), object));
        Outcome { shown, is_new: false, warnings: Vec::new() }
    }
}

pub(super) fn check_preconditions(
    kind: &Kind,
    stored: &Stored,
    options: &DeleteOptions,
) -> Result<(), Refusal> {
    let conflict = |why: String| {
        // Upstream names the kind here where it elsewhere names the resource.
        let mut refusal = Refusal::conflict(kind, stored.key.name(), &why);
        let resource = kind.qualified_resource();
        refusal.message = refusal.message.replacen(&resource, &kind.qualified_kind(), 1);
        refusal.details.kind = kind.kind.to_owned();
        refusal
    };
    if let Some(uid) = options.uid.as_ref().filter(|uid| **uid != stored.uid) {
        return Err(conflict(format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({}). The \
             object might have been deleted and then recreated",
            stored.uid
        )));
    }
    let version = stored.revision.to_string();
    if let Some(asked) = options.resource_version.as_ref().filter(|asked| **asked != version) {
        return Err(conflict(format!(
            "the ResourceVersion in the precondition ({asked}) does not match the ResourceVersion \
             in record ({version}). The object might have been modified"
        )));
    }
    Ok(())
}

/// Only pods are given time to end. Upstream: `CheckGracefulDelete` in core/pod/strategy.go.
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
    let asked = options.grace_secs;
    let own = old["spec"]["terminationGracePeriodSeconds"].as_i64().unwrap_or(0);
    let mut secs = asked.unwrap_or(own);
    // Where nothing runs there is nothing to wait for.
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

/// The collector's own finalizers: what a propagation asks it to do. Upstream:
/// `deletionFinalizersForGarbageCollection`.
fn set_collector_finalizer(kind: &Kind, object: &mut Value, wanted: Option<Propagation>) {
    if kind.shelf == "events" {
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
