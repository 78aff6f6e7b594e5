//! The three kinds of patch. JSON patch and merge patch are the `json-patch` crate's; strategic merge
//! is upstream's own, in [`strategic`].

mod strategic;

use serde_json::Value;

use crate::refusal::Refusal;
use crate::verbs::PatchType;

/// The object as the patch wants it.
pub(crate) fn apply(
    patch_type: PatchType,
    mut object: Value,
    given: &Value,
    schema: &str,
) -> Result<Value, Refusal> {
    match patch_type {
        PatchType::Json => {
            let patch: json_patch::Patch = serde_json::from_value(given.clone())
                .map_err(|error| Refusal::bad_request(error.to_string()))?;
            json_patch::patch(&mut object, &patch).map_err(|_| Refusal::unprocessable())?;
            Ok(object)
        }
        PatchType::Merge => {
            must_be_object(given)?;
            json_patch::merge(&mut object, given);
            Ok(object)
        }
        PatchType::Strategic => {
            must_be_object(given)?;
            strategic::merge(&mut object, given, schema).map_err(|_| Refusal::unprocessable())?;
            Ok(object)
        }
    }
}

fn must_be_object(given: &Value) -> Result<(), Refusal> {
    if given.is_object() {
        return Ok(());
    }
    Err(Refusal::bad_request("couldn't get version/kind; json parse error: the patch is no object"))
}
