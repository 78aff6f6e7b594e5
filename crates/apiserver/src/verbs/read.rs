//! Bodies into objects: Go's reading, defaults, and the checks every body must pass.

use serde_json::{Value, json};

use super::{FieldValidation, Target, WriteOptions, is_converted};
use crate::defaults::events;
use crate::kinds::{KINDS, Kind};
use crate::refusal::Refusal;
use crate::schema::read::read;

/// A body in the form that is stored, with defaults, and what to warn about.
pub(super) struct Body {
    pub object: Value,
    pub warnings: Vec<String>,
}

pub(super) fn body(kind: &Kind, given: Value, options: &WriteOptions) -> Result<Body, Refusal> {
    check_type(kind, &given)?;
    let cannot = |why: String| {
        Refusal::bad_request(format!(
            "{name} in version \"{version}\" cannot be handled as a {name}: {why}",
            name = kind.kind,
            version = Kind::VERSION,
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
        // Nobody applies on the server side here, so nobody's fields are tracked.
        meta.remove("managedFields");
        meta.remove("selfLink");
    }
    if is_converted(kind) {
        object = events::complete_core(events::to_core(object));
    }
    (kind.rules.default)(&mut object);
    Ok(Body { object: normal(kind, object), warnings })
}

/// The form Go would write: defaults and preparation may have left nulls behind.
pub(super) fn normal(kind: &Kind, object: Value) -> Value {
    let schema = if is_converted(kind) { CORE_EVENT } else { kind.schema };
    read(schema, object).expect("it was read before, and only valid fields were added").object
}

const CORE_EVENT: &str = "io.k8s.api.core.v1.Event";

/// `kind` and `apiVersion` may be left out; if given they must fit.
fn check_type(kind: &Kind, given: &Value) -> Result<(), Refusal> {
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
        return Err(Refusal::bad_request(format!(
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
        of(group, Kind::VERSION, wanted)
    );
    // Upstream shows the first bytes of the body; nobody compares those.
    Err(Refusal::bad_request(sentence))
}

/// The namespace of the body must be that of the path, if it names one.
pub(super) fn settle_namespace(target: &Target, object: &mut Value) -> Result<(), Refusal> {
    let given = object["metadata"]["namespace"].as_str().unwrap_or_default();
    if !target.kind.is_namespaced() {
        return Ok(());
    }
    if !given.is_empty() && given != target.namespace {
        return Err(Refusal::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    object["metadata"]["namespace"] = json!(target.namespace);
    Ok(())
}
