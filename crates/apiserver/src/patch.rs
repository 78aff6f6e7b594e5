//! The three patch types. The `json-patch` crate does JSON patch and merge patch; strategic merge
//! patch is in [`strategic`].

mod strategic;

use serde_json::Value;

use crate::status_error::StatusError;
use crate::verbs::PatchType;

/// The patched object.
pub(crate) fn apply(
    patch_type: PatchType,
    mut object: Value,
    given: &Value,
    schema: &str,
) -> Result<Value, StatusError> {
    match patch_type {
        PatchType::Json => {
            let patch: json_patch::Patch = serde_json::from_value(given.clone())
                .map_err(|error| StatusError::bad_request(error.to_string()))?;
            json_patch::patch(&mut object, &patch).map_err(|_| StatusError::unprocessable())?;
            Ok(object)
        }
        PatchType::Merge => {
            must_be_object(given)?;
            json_patch::merge(&mut object, given);
            Ok(object)
        }
        PatchType::Strategic => {
            must_be_object(given)?;
            strategic::merge(&mut object, given, schema)
                .map_err(|_| StatusError::unprocessable())?;
            Ok(object)
        }
    }
}

fn must_be_object(given: &Value) -> Result<(), StatusError> {
    if given.is_object() {
        return Ok(());
    }
    Err(StatusError::bad_request(
        "couldn't get version/kind; json parse error: the patch is no object",
    ))
}
