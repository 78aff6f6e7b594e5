//! Collects the validation errors of an object, one [`Cause`] for each field. Upstream:
//! `field.Error`.

use serde_json::Value;

use crate::status_error::Cause;

#[derive(Debug, Default)]
pub(crate) struct Causes {
    found: Vec<Cause>,
}

impl Causes {
    pub(crate) fn into_vec(self) -> Vec<Cause> {
        self.found
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    fn push(&mut self, reason: &'static str, path: &str, message: String) {
        self.found.push(Cause { reason, message, field: path.to_owned() });
    }

    pub(crate) fn required(&mut self, path: &str, why: &str) {
        self.push("FieldValueRequired", path, with("Required value", why));
    }

    pub(crate) fn invalid(&mut self, path: &str, value: &Value, why: &str) {
        let message = with(&format!("Invalid value: {}", shown(value)), why);
        self.push("FieldValueInvalid", path, message);
    }

    pub(crate) fn invalid_text(&mut self, path: &str, value: &str, why: &str) {
        self.invalid(path, &Value::from(value), why);
    }

    pub(crate) fn duplicate(&mut self, path: &str, value: &Value) {
        self.push("FieldValueDuplicate", path, format!("Duplicate value: {}", shown(value)));
    }

    pub(crate) fn forbidden(&mut self, path: &str, why: &str) {
        self.push("FieldValueForbidden", path, with("Forbidden", why));
    }

    pub(crate) fn not_supported(&mut self, path: &str, value: &Value, supported: &[&str]) {
        let supported: Vec<String> = supported.iter().map(|one| quoted(one)).collect();
        let why = format!("supported values: {}", supported.join(", "));
        let message = with(&format!("Unsupported value: {}", shown(value)), &why);
        self.push("FieldValueNotSupported", path, message);
    }

    pub(crate) fn too_many(&mut self, path: &str, n: usize, max: usize) {
        let message = format!("Too many: {n}: must have at most {max} items");
        self.push("FieldValueTooMany", path, message);
    }

    pub(crate) fn too_long(&mut self, path: &str, max_bytes: usize) {
        let message = format!("Too long: may not be more than {max_bytes} bytes");
        self.push("FieldValueTooLong", path, message);
    }
}

fn with(what: &str, why: &str) -> String {
    if why.is_empty() { what.to_owned() } else { format!("{what}: {why}") }
}

/// Go's `%q`, for text without special characters.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        other => other.to_string(),
    }
}
