//! Decodes request bodies into objects: Go's decoding rules, defaults, and checks for all kinds.

use serde_json::{Value, json};

use super::{FieldValidation, Target, WriteOptions, is_converted};
use crate::defaults::events;
use crate::kinds::{KINDS, Kind};
use crate::schema::read::read;
use crate::status_error::StatusError;

/// A decoded body with defaults, and its warnings.
pub(super) struct Body {
    pub object: Value,
    pub warnings: Vec<String>,
}

pub(super) fn body(kind: &Kind, given: Value, options: &WriteOptions) -> Result<Body, StatusError> {
    check_type(kind, &given)?;
    let cannot = |why: String| {
        StatusError::bad_request(format!(
            "{name} in version \"{version}\" cannot be handled as a {name}: {why}",
            name = kind.kind,
            version = kind.version(),
        ))
    };
    let found = read(kind.schema, given).map_err(cannot)?;
    let sentences: Vec<String> =
        found.unknown.iter().map(|field| format!("unknown field \"{field}\"")).collect();
    let warnings = match options.field_validation {
        FieldValidation::Ignore => Vec::new(),
        FieldValidation::Warn => sentences,
        FieldValidation::Strict if sentences.is_empty() => Vec::new(),
        FieldValidation::Strict => {
            return Err(cannot(format!("strict decoding error: {}", sentences.join(", "))));
        }
    };
    let mut object = found.object;
    if let Value::Object(fields) = &mut object {
        fields.remove("kind");
        fields.remove("apiVersion");
    }
    if let Some(Value::Object(meta)) = object.get_mut("metadata") {
        // There is no server-side apply, so there are no managed fields.
        meta.remove("managedFields");
        meta.remove("selfLink");
    }
    if is_converted(kind) {
        object = events::complete_core(events::to_core(object));
    }
    (kind.rules.default)(&mut object);
    Ok(Body { object: normal(kind, object), warnings })
}

/// Without the nulls that defaulting may have inserted, as Go would encode the object.
pub(super) fn normal(kind: &Kind, object: Value) -> Value {
    let schema = if is_converted(kind) { CORE_EVENT } else { kind.schema };
    read(schema, object).expect("it was read before, and only valid fields were added").object
}

const CORE_EVENT: &str = "io.k8s.api.core.v1.Event";

/// `kind` and `apiVersion` are optional; if given, they must match.
fn check_type(kind: &Kind, given: &Value) -> Result<(), StatusError> {
    let text = |field: &str| given[field].as_str().unwrap_or_default().to_owned();
    let (name, version) = (text("kind"), text("apiVersion"));
    let same_name = name.is_empty() || name == kind.kind;
    let same_version = version.is_empty() || version == kind.api_version();
    if same_name && same_version {
        return Ok(());
    }
    let is_known = KINDS.iter().any(|one| one.kind == name && one.api_version() == version)
        || version.is_empty();
    if !is_known {
        return Err(StatusError::bad_request(format!(
            "no kind \"{name}\" is registered for version \"{version}\" in scheme \
             \"pkg/api/legacyscheme/scheme.go:30\""
        )));
    }
    let (group, wanted) = (kind.group, kind.kind);
    let (found_group, found_version) = version.split_once('/').unwrap_or(("", &version));
    let of = |group: &str, version: &str, kind: &str| match group {
        "" => format!("/{version}, Kind={kind}"),
        group => format!("{group}/{version}, Kind={kind}"),
    };
    let found = of(found_group, found_version, &name);
    let sentence = format!(
        "the object provided is unrecognized (must be of type {wanted}): expected {}, but got {found}",
        of(group, kind.version(), wanted)
    );
    // Upstream adds the first bytes of the body.
    Err(StatusError::bad_request(sentence))
}

/// The namespace of the body must be that of the path, if it names one.
pub(super) fn check_namespace(target: &Target, object: &mut Value) -> Result<(), StatusError> {
    let given = object["metadata"]["namespace"].as_str().unwrap_or_default();
    if !target.kind.is_namespaced() {
        return Ok(());
    }
    if !given.is_empty() && given != target.namespace {
        return Err(StatusError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    object["metadata"]["namespace"] = json!(target.namespace);
    Ok(())
}
