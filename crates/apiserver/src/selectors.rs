//! Label and field selectors, as query strings and as `LabelSelector` objects. Upstream:
//! `apimachinery/pkg/labels`, `pkg/fields`.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::kinds::Kind;
use crate::status_error::StatusError;
use crate::store::Stored;
use crate::validation::names;

/// All requirements must hold.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selector {
    labels: Vec<Requirement>,
    fields: Vec<FieldRequirement>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Requirement {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    Absent(String),
    Above(String, i64),
    Below(String, i64),
}

#[derive(Clone, Debug)]
struct FieldRequirement {
    field: String,
    value: String,
    equals: bool,
}

impl Selector {
    pub(crate) fn parse(kind: &Kind, labels: &str, fields: &str) -> Result<Self, StatusError> {
        Ok(Self {
            labels: parse_labels(labels).map_err(StatusError::bad_request)?,
            fields: parse_fields(kind, fields)?,
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    pub(crate) fn matches(&self, object: &Stored) -> bool {
        if !self.labels.iter().all(|one| one.holds(&object.labels)) {
            return false;
        }
        let by_key = |one: &FieldRequirement| match one.field.as_str() {
            "metadata.name" => Some(one.holds(object.key.name())),
            "metadata.namespace" => Some(one.holds(object.key.namespace())),
            _ => None,
        };
        let answers: Vec<Option<bool>> = self.fields.iter().map(by_key).collect();
        if answers.contains(&Some(false)) {
            return false;
        }
        if !answers.contains(&None) {
            return true;
        }
        let value = object.value();
        self.fields.iter().all(|one| match one.field.as_str() {
            "metadata.name" | "metadata.namespace" => true,
            field => one.holds(&field_text(&value, field)),
        })
    }
}

impl FieldRequirement {
    fn holds(&self, found: &str) -> bool {
        (found == self.value) == self.equals
    }
}

fn field_text(object: &Value, field: &str) -> String {
    let path = match field {
        // The reporter of an event, in either API.
        "source" => "source/component".to_owned(),
        field => field.replace('.', "/"),
    };
    match object.pointer(&format!("/{path}")) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Null) | None if field == "spec.unschedulable" => "false".to_owned(),
        Some(Value::Null) | None if field == "spec.hostNetwork" => "false".to_owned(),
        Some(Value::Null) | None if field == "status.replicas" => "0".to_owned(),
        Some(Value::Null) | None => String::new(),
        Some(other) => other.to_string(),
    }
}

impl Requirement {
    fn holds(&self, labels: &BTreeMap<String, String>) -> bool {
        let number = |name: &str| labels.get(name).and_then(|text| text.parse::<i64>().ok());
        match self {
            Self::In(name, values) => labels.get(name).is_some_and(|it| values.contains(it)),
            Self::NotIn(name, values) => labels.get(name).is_none_or(|it| !values.contains(it)),
            Self::Exists(name) => labels.contains_key(name),
            Self::Absent(name) => !labels.contains_key(name),
            Self::Above(name, limit) => number(name).is_some_and(|it| it > *limit),
            Self::Below(name, limit) => number(name).is_some_and(|it| it < *limit),
        }
    }
}

/// Commas separate requirements, except inside parentheses.
fn split(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut depth) = (0, 0);
    for (index, character) in text.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&text[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

fn parse_labels(text: &str) -> Result<Vec<Requirement>, String> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    split(text).into_iter().map(|part| parse_requirement(part.trim())).collect()
}

fn parse_requirement(text: &str) -> Result<Requirement, String> {
    let requirement = if let Some(name) = text.strip_prefix('!') {
        Requirement::Absent(name.trim().to_owned())
    } else if let Some((name, value)) = text.split_once("!=") {
        Requirement::NotIn(name.trim().to_owned(), vec![value.trim().to_owned()])
    } else if let Some((name, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
        Requirement::In(name.trim().to_owned(), vec![value.trim().to_owned()])
    } else if let Some((name, set)) = text.split_once('(') {
        parse_set(name, set)?
    } else if let Some((name, number)) = text.split_once('>') {
        Requirement::Above(name.trim().to_owned(), integer(number)?)
    } else if let Some((name, number)) = text.split_once('<') {
        Requirement::Below(name.trim().to_owned(), integer(number)?)
    } else {
        if let Some((_, word)) = text.split_once(char::is_whitespace) {
            return Err(format!(
                "unable to parse requirement: found '{}', expected: in, notin, =, ==, !=, gt, lt",
                word.trim()
            ));
        }
        Requirement::Exists(text.to_owned())
    };
    requirement.check()
}

fn integer(text: &str) -> Result<i64, String> {
    let wrong = |_| format!("for 'Gt', 'Lt' operators, the value must be an integer: {text}");
    text.trim().parse().map_err(wrong)
}

fn parse_set(name: &str, set: &str) -> Result<Requirement, String> {
    let set = set
        .strip_suffix(')')
        .ok_or("unable to parse requirement: found '', expected: ',' or ')'")?;
    let values = set.split(',').map(|value| value.trim().to_owned()).collect();
    match name.trim().rsplit_once(char::is_whitespace) {
        Some((name, "in")) => Ok(Requirement::In(name.trim().to_owned(), values)),
        Some((name, "notin")) => Ok(Requirement::NotIn(name.trim().to_owned(), values)),
        _ => {
            let found = name.trim();
            Err(format!("unable to parse requirement: found '{found}', expected: in, notin"))
        }
    }
}

impl Requirement {
    fn check(self) -> Result<Self, String> {
        let (name, values): (&str, &[String]) = match &self {
            Self::In(name, values) | Self::NotIn(name, values) => (name, values),
            Self::Exists(name)
            | Self::Absent(name)
            | Self::Above(name, _)
            | Self::Below(name, _) => (name, &[]),
        };
        if let Some(wrong) = names::qualified_name(name).first() {
            let shown = Value::from(name);
            return Err(format!(
                "unable to parse requirement: <nil>: Invalid value: {shown}: {wrong}"
            ));
        }
        for value in values {
            if let Some(wrong) = names::label_value(value).first() {
                let shown = Value::from(value.as_str());
                return Err(format!(
                    "unable to parse requirement: values[0][{name}]: Invalid value: {shown}: {wrong}"
                ));
            }
        }
        Ok(self)
    }
}

fn parse_fields(kind: &Kind, text: &str) -> Result<Vec<FieldRequirement>, StatusError> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let mut requirements = Vec::new();
    for part in text.split(',') {
        let (field, value, equals) = if let Some((field, value)) = part.split_once("!=") {
            (field, value, false)
        } else if let Some((field, value)) = part.split_once("==").or(part.split_once('=')) {
            (field, value, true)
        } else {
            let sentence = format!("invalid selector: '{text}'; can't understand '{part}'");
            return Err(StatusError::bad_request(sentence));
        };
        let is_known = matches!(field, "metadata.name" | "metadata.namespace")
            || kind.selectable.contains(&field);
        if !is_known {
            return Err(StatusError::bad_request(if kind.selectable.is_empty() {
                format!(
                    "\"{field}\" is not a known field selector: only \"metadata.name\", \
                     \"metadata.namespace\""
                )
            } else {
                format!("field label not supported: {field}")
            }));
        }
        let (field, value) = (field.to_owned(), value.to_owned());
        requirements.push(FieldRequirement { field, value, equals });
    }
    Ok(requirements)
}

/// A `LabelSelector` object against labels. Upstream: `LabelSelectorAsSelector`.
pub(crate) fn matches_label_selector(selector: &Value, labels: &Value) -> bool {
    let given: BTreeMap<String, String> = labels
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned()))
        .collect();
    let wanted = selector["matchLabels"].as_object().into_iter().flatten();
    let labels_match = wanted
        .into_iter()
        .all(|(name, value)| given.get(name).map(String::as_str) == value.as_str());
    let expressions = selector["matchExpressions"].as_array().into_iter().flatten();
    labels_match
        && expressions.into_iter().all(|one| {
            let name = one["key"].as_str().unwrap_or_default().to_owned();
            let values = one["values"].as_array().into_iter().flatten();
            let values = values.filter_map(|value| Some(value.as_str()?.to_owned())).collect();
            match one["operator"].as_str() {
                Some("In") => Requirement::In(name, values).holds(&given),
                Some("NotIn") => Requirement::NotIn(name, values).holds(&given),
                Some("Exists") => Requirement::Exists(name).holds(&given),
                Some("DoesNotExist") => Requirement::Absent(name).holds(&given),
                _ => false,
            }
        })
}

/// A `LabelSelector` object as a string, for `Scale`.
pub(crate) fn selector_text(selector: &Value) -> String {
    let labels = selector["matchLabels"].as_object().into_iter().flatten();
    let mut parts: Vec<String> = labels
        .map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or_default()))
        .collect();
    for one in selector["matchExpressions"].as_array().into_iter().flatten() {
        let name = one["key"].as_str().unwrap_or_default();
        let values = one["values"].as_array().into_iter().flatten();
        let values: Vec<&str> = values.filter_map(Value::as_str).collect();
        let values = values.join(",");
        parts.push(match one["operator"].as_str() {
            Some("In") => format!("{name} in ({values})"),
            Some("NotIn") => format!("{name} notin ({values})"),
            Some("DoesNotExist") => format!("!{name}"),
            _ => name.to_owned(),
        });
    }
    parts.sort();
    parts.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(selector: &str, labels: &[(&str, &str)]) -> bool {
        let labels =
            labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        parse_labels(selector).unwrap().iter().all(|one| one.holds(&labels))
    }

    #[test]
    fn label_selectors_match_as_upstream() {
        let labels = [("app", "web"), ("tier", "2")];
        for selector in [
            "",
            "app",
            "app=web",
            "app==web",
            "app!=db",
            "app in (web,db)",
            "app notin (db)",
            "!gone",
            "tier>1",
            "tier<3",
            "app=web,tier=2",
            "missing!=x",
            "missing notin (x, y)",
        ] {
            assert!(holds(selector, &labels), "{selector}");
        }
        for selector in ["gone", "app=db", "app!=web", "app in (db)", "!app", "tier>2", "x in (y)"]
        {
            assert!(!holds(selector, &labels), "{selector}");
        }
        for wrong in ["app in (web", "=x,,", "a b", "app=we b"] {
            assert!(parse_labels(wrong).is_err(), "{wrong}");
        }
    }
}
