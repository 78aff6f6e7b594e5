//! Update, of the object or of its status. Upstream: `Store.Update` and `rest.BeforeUpdate`.

use serde_json::{Value, json};

use super::create::{invalid_if_any, text};
use super::read::{body, normal};
use super::{ResponseObject, Target, WriteOptions, WriteOutcome};
use crate::defaults::copy_field;
use crate::kinds::{Kind, Subresource, Updates};
use crate::server::{GcMode, Server};
use crate::status_error::StatusError;
use crate::validation::{Causes, meta};

/// Which part of an object a write changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Object,
    Status,
    /// The finalizers in the spec of a namespace.
    Finalize,
}

/// A prepared update, to be validated and stored.
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
    ) -> Result<WriteOutcome, StatusError> {
        self.replace(target, Part::Object, given, options)
    }

    pub fn update_status(
        &mut self,
        target: &Target,
        given: Value,
        options: &WriteOptions,
    ) -> Result<WriteOutcome, StatusError> {
        self.replace(target, Part::Status, given, options)
    }

    pub(crate) fn replace(
        &mut self,
        target: &Target,
        part: Part,
        given: Value,
        options: &WriteOptions,
    ) -> Result<WriteOutcome, StatusError> {
        let kind = target.kind;
        let read = body(kind, given, options)?;
        let mut new = read.object;
        check_names(target, &mut new)?;
        let Some(stored) = self.store.get(kind.storage, &target.key()) else {
            if part == Part::Object && kind.updates != Updates::Existing {
                return self.create(target, new, options);
            }
            return Err(StatusError::not_found(kind, &target.name));
        };
        let old = stored.value();
        check_version(kind, &mut new, &old)?;
        restore_metadata(&mut new, &old);
        if kind.resource == "services" && part == Part::Object {
            // Before validation, as upstream does: `beginUpdate` in core/service/storage.
            self.allocate(kind, &mut new, Some(&old))?;
        }
        let new = prepared(kind, part, new, &old);
        let mut outcome = self.store_update(target, Edit { part, new, old }, options)?;
        outcome.warnings = read.warnings;
        if self.settings.gc_mode == GcMode::Immediate {
            self.collect_garbage();
        }
        Ok(outcome)
    }

    fn store_update(
        &mut self,
        target: &Target,
        edit: Edit,
        options: &WriteOptions,
    ) -> Result<WriteOutcome, StatusError> {
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
            invalid_if_any(kind, &new, causes)?;
        }
        let key = target.key();
        let outcome =
            |shown| Ok(WriteOutcome { object: shown, is_new: false, warnings: Vec::new() });
        if options.dry_run {
            return outcome(ResponseObject::Value(new));
        }
        if removes_last_finalizer(&new, &old) || is_finalized(kind, &new) {
            self.remove(kind, &key);
            return outcome(ResponseObject::Value(new));
        }
        if new == old {
            // No change: the version stays. Upstream: `GuaranteedUpdate` in etcd3/store.go.
            let same = self.store.get(kind.storage, &key).cloned();
            return outcome(same.map_or(ResponseObject::Value(new), ResponseObject::Stored));
        }
        outcome(ResponseObject::Stored(self.put(kind, key, new)))
    }
}

/// Name and namespace in the body are optional and must match the path.
fn check_names(target: &Target, new: &mut Value) -> Result<(), StatusError> {
    let (name, namespace) = (text(&new["metadata"]["name"]), text(&new["metadata"]["namespace"]));
    if !name.is_empty() && name != target.name {
        return Err(StatusError::bad_request(format!(
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
        return Err(StatusError::bad_request(format!(
            "the namespace of the object ({namespace}) does not match the namespace on the URL ({})",
            target.namespace
        )));
    }
    new["metadata"]["namespace"] = json!(target.namespace);
    Ok(())
}

/// Optimistic concurrency: the version in the body must be the stored one.
fn check_version(kind: &Kind, new: &mut Value, old: &Value) -> Result<(), StatusError> {
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
        return Err(StatusError::conflict(kind, &name, &why));
    }
    let version = text(&new["metadata"]["resourceVersion"]);
    if version.is_empty() || version == "0" {
        if kind.updates == Updates::OrCreateConditional {
            let mut causes = Causes::default();
            let why = "must be specified for an update";
            causes.invalid("metadata.resourceVersion", &json!(0), why);
            let error = StatusError::invalid(kind, &name, causes.into_vec());
            return Err(error.naming(kind.group, kind.resource));
        }
        new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"].clone();
    } else if version.parse::<u64>().is_err() {
        let why = format!("strconv.ParseUint: parsing \"{version}\": invalid syntax");
        return Err(StatusError::internal(why));
    } else if version != text(&old["metadata"]["resourceVersion"]) {
        return Err(StatusError::modified_since_read(kind, &name));
    }
    Ok(())
}

/// Restores metadata that the client may omit or may not change.
fn restore_metadata(new: &mut Value, old: &Value) {
    let (new, old) = (&mut new["metadata"], &old["metadata"]);
    for field in ["uid", "creationTimestamp"] {
        if new.get(field).is_none() {
            copy_field(new, old, field);
        }
    }
    for field in ["generation", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        copy_field(new, old, field);
    }
}

fn prepared(kind: &Kind, part: Part, new: Value, old: &Value) -> Value {
    let mut new = normal(kind, new);
    match part {
        Part::Object => (kind.rules.prepare_update)(&mut new, old),
        Part::Status => (kind.rules.prepare_status)(&mut new, old),
        Part::Finalize => copy_field(&mut new, old, "status"),
    }
    normal(kind, new)
}

fn validate_update(kind: &Kind, new: &Value, old: &Value) -> Result<(), StatusError> {
    let mut causes = Causes::default();
    // Upstream validates metadata twice for most kinds.
    meta::validate_update(&new["metadata"], &old["metadata"], &mut causes);
    match kind.resource {
        "endpointslices" => meta::validate(kind, &new["metadata"], &mut causes),
        _ => meta::validate_update(&new["metadata"], &old["metadata"], &mut causes),
    }
    (kind.rules.validate_update)(new, old, &mut causes);
    invalid_if_any(kind, new, causes)
}

/// Upstream: `ShouldDeleteDuringUpdate`.
fn removes_last_finalizer(new: &Value, old: &Value) -> bool {
    new["metadata"]["finalizers"].is_null()
        && old["metadata"]["deletionTimestamp"].is_string()
        && old["metadata"]["deletionGracePeriodSeconds"] == 0
        && !old["metadata"]["finalizers"].is_null()
}

/// A namespace is removed when it has no finalizers left.
fn is_finalized(kind: &Kind, new: &Value) -> bool {
    kind.resource == "namespaces"
        && new["metadata"]["deletionTimestamp"].is_string()
        && new["spec"]["finalizers"].is_null()
        && new["metadata"]["finalizers"].is_null()
}
