//! The label selector of `-l`.

use endpointd_model::{InvalidSelector, LabelSelector};
use serde_json::Value;

use crate::cli_error::CliError;

pub fn parse(text: &str) -> Result<LabelSelector, CliError> {
    LabelSelector::parse(text).map_err(|InvalidSelector(part)| {
        CliError::new(
            format!("not a label selector: `{part}`"),
            "known are `key=value`, `key!=value`, `key`, and `!key`, separated by commas",
        )
    })
}

pub fn matches(selector: &LabelSelector, object: &Value) -> bool {
    let label = |key: &str| object.pointer("/metadata/labels")?.get(key)?.as_str();
    selector.matches(label)
}
