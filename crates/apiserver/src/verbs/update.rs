//! Update, of the object or of its status. Upstream: `Store.Update` and `rest.BeforeUpdate`.

use serde_json::{Value, json};

use super::create::{refuse_if_any, text};
use super::read::{body, normal};
use super::{Outcome, Shown, Target, WriteOptions};
use crate::defaults::carry;
use crate::kinds::{Kind, Subresource, Updates};
use crate::refusal::Refusal;
use crate::server::{Server, Sweeping};
use crate::validation::{Causes, meta};

/// Which part of an object a write is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Object,
    Status,
    /// Of a namespace: the finalizers of its spec.
    Finalize,
}

/// An update that is ready to be checked and stored.
struct Edit {
    part: Part,
    new: Value,
    old: Value,
}

impl Part {
    pub(crate) fn of(subresource: Option<Subresource>) -> Option<Self> {
        match subresource {
            None => Some(Self::Object),
            Some(Subresource::Status) => Some(Self::Status),
            Some(Subresource::Finalize) => Some(Self::Finalize),
            Some(Subresource::Scale | Subresource::Binding) => None,
        }
    }
}

impl Server {
    pub fn update(
        &mut self,
        target: &Target,
        given: Value,
        options: &WriteOptions,
    ) -> Result<Outcome, Refusal> {
        self.replace(target, Part::Object, given, options)
    }

    pub fn update_status(
        &mut self,
        target: &Target,
        given: Value,
        options: &WriteOptions,
    ) -> Result<Outcome, Refusal> {
        self.replace(target, Part::Status, given, options)
    }

    pub(crate) fn replace(
        &mut self,
        target: &Target,
        part: Part,
        given: Value,
        options: &WriteOptions,
    ) -> Result<Outcome, Refusal> {
        let kind = target.kind;
        let read = body(kind, given, options)?;
        let mut new = read.object;
        settle_names(target, &mut new)?;
        let Some(stored) = self.store.get(kind.shelf, &target.key()) else {
            if part == Part::Object && kind.updates != Updates::Existing {
                return self.create(target, new, options);
            }
            return Err(Refusal::not_found(kind, &target.name));
        };
        let old = stored.value();
        settle_version(kind, &mut new, &old)?;
        settle_meta(&mut new, &old);
        if kind.resource == "services" && part == Part::Object {
            // Before validation, as upstream does: `beginUpdate` in core/service/storage.
            self.allocate(kind, &mut new, Some(&old))?;
        }
        let new = prepared(kind, part, new, &old);
        let mut outcome = self.store_update(target, Edit { part, new, old }, options)?;
        outcome.warnings = read.warnings;
        if self.settings.sweeping == Sweeping::AtOnce {
            self.sweep();
        }
        Ok(outcome)
    }

    fn store_update(
        &mut self,
        target: &Target,
        edit: Edit,
        options: &WriteOptions,
    ) -> Result<Outcome, Refusal> {
        let kind = target.kind;
        let Edit { part, new, old } = edit;
        if part == Part::Object {
            validate_update(kind, &new, &old)?;
        } else {
            let mut causes = Causes::default();
            meta::validate_update(&new["metadata"], &old["metadata"], &mut causes);
            if part == Part::Status {
                (kind.rules.validate_status)(&new, &mut causes);
            }
            refuse_if_any(kind, &new, causes)?;
        }
        let key = target.key();
        let outcome = |shown| Ok(Outcome { shown, is_new: false, warnings: Vec::new() });
        if options.dry_run {
            return outcome(Shown::Value(new));
        }
        if leaves_with_its_last_finalizer(&new, &old) || is_finalized(kind, &new) {
            self.remove(kind, &key);
            return outcome(Shown::Value(new));
        }
        if new == old {
            // Nothing to write: the version stays. Upstream: `GuaranteedUpdate` in etcd3/store.go.
            let same = self.store.get(kind.shelf, &key).cloned();
            return outcome(same.map_or(Shown::Value(new), Shown::Stored));
        }
        outcome(Shown::Stored(self.put(kind, key, new)))
    }
}

/// The names of the body must be those of the path, if it gives any.
fn settle_names(target: &Target, new: &mut Value) -> Result<(), Refusal> {
    let (name, namespace) = (text(&new["metadata"]["name"]), text(&new["metadata"]["namespace"]));
    if !name.is_empty() && name != target.name {
        return Err(Refusal::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            target.name
        )));
    }
    if name.is_empty() {
        new["metadata"]["name"] = json!(target.name);
    }
    if !target.kind.is_namespaced() {
        return Ok(());
    }
    if !namespace.is_empty() && namespace != target.namespace {
        return Err(Refusal::bad_request(format!(
            "the namespace of the object ({namespace}) does not match the namespace on the URL ({})",
            target.namespace
        )));
    }
    new["metadata"]["namespace"] = json!(target.namespace);
    Ok(())
}

/// Optimistic concurrency: the version of the body must be the one that is stored.
fn settle_version(kind: &Kind, new: &mut Value, old: &Value) -> Result<(), Refusal> {
    let name = text(&old["metadata"]["name"]);
    let uid = text(&new["metadata"]["uid"]);
    if !uid.is_empty() && uid != text(&old["metadata"]["uid"]) {
        let why = format!(
            "StorageError: invalid object, Code: 4, Key: /registry/{}/{}/{name}, ResourceVersion: \
             0, AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, UID in object \
             meta: {}",
            kind.resource,
            text(&old["metadata"]["namespace"]),
            text(&old["metadata"]["uid"])
        );
        return Err(Refusal::conflict(kind, &name, &why));
    }
    let version = text(&new["metadata"]["resourceVersion"]);
    if version.is_empty() || version == "0" {
        if kind.updates == Updates::OrCreateConditional {
            let mut causes = Causes::default();
            let why = "must be specified for an update";
            causes.invalid("metadata.resourceVersion", &json!(0), why);
            let refusal = Refusal::invalid(kind, &name, causes.into_vec());
            return Err(refusal.naming(kind.group, kind.resource));
        }
        new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"].clone();
    } else if version.parse::<u64>().is_err() {
        let why = format!("strconv.ParseUint: parsing \"{version}\": invalid syntax");
        return Err(Refusal::internal(why));
    } else if version != text(&old["metadata"]["resourceVersion"]) {
        return Err(Refusal::modified_meanwhile(kind, &name));
    }
    Ok(())
}

/// What the client may leave out, and what it may not touch.
fn settle_meta(new: &mut Value, old: &Value) {
    let (new, old) = (&mut new["metadata"], &old["metadata"]);
    for field in ["uid", "creationTimestamp"] {
        if new.get(field).is_none() {
            carry(new, old, field);
        }
    }
    for field in ["generation", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        carry(new, old, field);
    }
}

fn prepared(kind: &Kind, part: Part, new: Value, old: &Value) -> Value {
    let mut new = normal(kind, new);
    match part {
        Part::Object => (kind.rules.prepare_update)(&mut new, old),
        Part::Status => (kind.rules.prepare_status)(&mut new, old),
        Part::Finalize => carry(&mut new, old, "status"),
    }
    normal(kind, new)
}

fn validate_update(kind: &Kind, new: &Value, old: &Value) -> Result<(), Refusal> {
    let mut causes = Causes::default();
    // Upstream checks metadata for all kinds, and then most kinds do it again.
    meta::validate_update(&new["metadata"], &old["metadata"], &mut causes);
    match kind.resource {
        "endpointslices" => meta::validate(kind, &new["metadata"], &mut causes),
        _ => meta::validate_update(&new["metadata"], &old["metadata"], &mut causes),
    }
    (kind.rules.validate_update)(new, old, &mut causes);
    refuse_if_any(kind, new, causes)
}

/// Upstream: `ShouldDeleteDuringUpdate`.
fn leaves_with_its_last_finalizer(new: &Value, old: &Value) -> bool {
    new["metadata"]["finalizers"].is_null()
        && old["metadata"]["deletionTimestamp"].is_string()
        && old["metadata"]["deletionGracePeriodSeconds"] == 0
        && !old["metadata"]["finalizers"].is_null()
}

/// A namespace goes when nobody has to clean it up any more.
fn is_finalized(kind: &Kind, new: &Value) -> bool {
    kind.resource == "namespaces"
        && new["metadata"]["deletionTimestamp"].is_string()
        && new["spec"]["finalizers"].is_null()
        && new["metadata"]["finalizers"].is_null()
}
