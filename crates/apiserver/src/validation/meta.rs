//! `metadata`. Upstream: `apimachinery/pkg/api/validation/objectmeta.go`.

use serde_json::Value;

use super::{Causes, IMMUTABLE, items, names, text};
use crate::kinds::Kind;

const ANNOTATION_BYTES_MAX: usize = 256 * 1024;

pub(crate) fn validate(kind: &Kind, meta: &Value, causes: &mut Causes) {
    let rule = kind.names;
    let prefix = text(&meta["generateName"]);
    if !prefix.is_empty() {
        for wrong in rule.check_prefix(prefix) {
            causes.invalid_text("metadata.generateName", prefix, &wrong);
        }
    }
    match text(&meta["name"]) {
        "" => causes.required("metadata.name", "name or generateName is required"),
        name => {
            for wrong in rule.check(name) {
                causes.invalid_text("metadata.name", name, &wrong);
            }
        }
    }
    if !kind.is_namespaced() && meta["namespace"].is_string() {
        causes.forbidden("metadata.namespace", "not allowed on this type");
    }
    parts(meta, causes);
}

/// The rules for every write.
fn parts(meta: &Value, causes: &mut Causes) {
    labels(&meta["labels"], "metadata.labels", causes);
    annotations(&meta["annotations"], causes);
    owners(&meta["ownerReferences"], causes);
    for (index, finalizer) in items(&meta["finalizers"]) {
        finalizer_name(index, text(finalizer), causes);
    }
}

pub(crate) fn labels(labels: &Value, path: &str, causes: &mut Causes) {
    for (name, value) in labels.as_object().into_iter().flatten() {
        for wrong in names::qualified_name(name) {
            causes.invalid_text(path, name, &wrong);
        }
        for wrong in names::label_value(text(value)) {
            causes.invalid(path, value, &wrong);
        }
    }
}

fn annotations(annotations: &Value, causes: &mut Causes) {
    let path = "metadata.annotations";
    let mut n_bytes = 0;
    for (name, value) in annotations.as_object().into_iter().flatten() {
        for wrong in names::qualified_name(&name.to_lowercase()) {
            causes.invalid_text(path, name, &wrong);
        }
        n_bytes += name.len() + text(value).len();
    }
    if n_bytes > ANNOTATION_BYTES_MAX {
        causes.too_long(path, ANNOTATION_BYTES_MAX);
    }
}

fn owners(owners: &Value, causes: &mut Causes) {
    let path = "metadata.ownerReferences";
    let mut controller: Option<String> = None;
    for (_, owner) in items(owners) {
        let version = text(&owner["apiVersion"]).rsplit('/').next().unwrap_or_default();
        if version.is_empty() {
            let path = format!("{path}.apiVersion");
            causes.invalid(&path, &owner["apiVersion"], "version must not be empty");
        }
        for field in ["kind", "name", "uid"] {
            if text(&owner[field]).is_empty() {
                causes.invalid(&format!("{path}.{field}"), &owner[field], "must not be empty");
            }
        }
        if owner["controller"] == true {
            let this = format!("{}/{}", text(&owner["kind"]), text(&owner["name"]));
            if let Some(first) = &controller {
                let why = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in \
                     references for {first} and {this}"
                );
                causes.invalid(path, owners, &why);
            } else {
                controller = Some(this);
            }
        }
    }
}

/// Names without a domain are reserved for Kubernetes. Upstream: `ValidateFinalizerName` in
/// pkg/apis/core/validation.
fn finalizer_name(index: usize, name: &str, causes: &mut Causes) {
    const STANDARD: [&str; 3] = ["kubernetes", "orphan", "foregroundDeletion"];
    let path = "metadata.finalizers";
    let wrong = names::qualified_name(name);
    for wrong in &wrong {
        causes.invalid_text(path, name, wrong);
    }
    if wrong.is_empty() && !name.contains('/') && !STANDARD.contains(&name) {
        causes.invalid_text(
            &format!("{path}[{index}]"),
            name,
            "name is neither a standard finalizer name nor is it fully qualified",
        );
    }
}

/// Upstream: `ValidateObjectMetaAccessorUpdate`.
pub(crate) fn validate_update(new: &Value, old: &Value, causes: &mut Causes) {
    if old["deletionTimestamp"].is_string() {
        let known: Vec<&str> = items(&old["finalizers"]).map(|(_, one)| text(one)).collect();
        let added: Vec<String> = items(&new["finalizers"])
            .map(|(_, one)| text(one))
            .filter(|one| !known.contains(one))
            .map(|one| format!("\"{one}\""))
            .collect();
        if !added.is_empty() {
            let why = format!(
                "no new finalizers can be added if the object is being deleted, found new \
                 finalizers []string{{{}}}",
                added.join(", ")
            );
            causes.forbidden("metadata.finalizers", &why);
        }
    }
    for field in ["name", "namespace", "uid", "creationTimestamp"] {
        if new[field] != old[field] {
            causes.invalid(&format!("metadata.{field}"), &new[field], IMMUTABLE);
        }
    }
    parts(new, causes);
}
