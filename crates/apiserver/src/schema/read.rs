//! Normalizes JSON as a round trip through upstream's Go structs does: drops and reports unknown
//! fields, omits or writes zero values, and makes quantities and times canonical. All stored
//! objects are in this form.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{Empty, Field, Leaf, Shape, Type, quantity, type_named};

/// A normalized object, and the paths of its unknown fields.
#[derive(Debug)]
pub(crate) struct Read {
    pub object: Value,
    pub unknown: Vec<String>,
}

/// The message of Go's decoder, for a `BadRequest`.
pub(crate) fn read(type_name: &str, value: Value) -> Result<Read, String> {
    let mut reader = Reader { unknown: Vec::new(), path: Vec::new() };
    let object = match value {
        Value::Object(fields) => reader.object(type_named(type_name), fields)?,
        other => {
            let go = &type_named(type_name).go_name;
            return Err(format!(
                "json: cannot unmarshal {} into Go value of type v1.{go}",
                kind_of(&other)
            ));
        }
    };
    Ok(Read { object, unknown: reader.unknown })
}

struct Reader {
    unknown: Vec<String>,
    path: Vec<String>,
}

/// The struct and field of a value, for Go's type errors.
struct FieldContext<'a> {
    owner: &'a str,
    field: &'a Field,
}

impl Reader {
    fn object(&mut self, of: &Type, mut given: Map<String, Value>) -> Result<Value, String> {
        let mut written = Map::new();
        for field in &of.fields {
            let value = given.remove(&field.name).unwrap_or(Value::Null);
            self.path.push(field.name.clone());
            let value =
                self.shape(&field.shape, value, &FieldContext { owner: &of.go_name, field })?;
            self.path.pop();
            if let Some(value) = as_written(field, value) {
                written.insert(field.name.clone(), value);
            }
        }
        for name in given.keys() {
            let path = self.path_text();
            let dot = if path.is_empty() { "" } else { "." };
            self.unknown.push(format!("{path}{dot}{name}"));
        }
        Ok(Value::Object(written))
    }

    /// `Null` means Go's zero value or nil.
    fn shape(
        &mut self,
        shape: &Shape,
        value: Value,
        at: &FieldContext<'_>,
    ) -> Result<Value, String> {
        match (shape, value) {
            (Shape::Object { r#ref }, Value::Null) if !at.field.pointer => {
                self.object(type_named(r#ref), Map::new())
            }
            (_, Value::Null) => Ok(Value::Null),
            (Shape::Leaf(leaf), value) => self.leaf(*leaf, value, at),
            (Shape::Object { r#ref }, Value::Object(fields)) => {
                self.object(type_named(r#ref), fields)
            }
            (Shape::Array { array }, Value::Array(items)) => self.array(array, items, at),
            (Shape::Map { map }, Value::Object(entries)) => {
                let mut written = Map::new();
                for (key, value) in entries {
                    let value = self.shape(map, value, at)?;
                    written.insert(key, if value.is_null() { zero(map) } else { value });
                }
                Ok(if written.is_empty() { Value::Null } else { Value::Object(written) })
            }
            (_, other) => Err(self.mismatch(kind_of(&other), at, shape)),
        }
    }

    fn array(
        &mut self,
        inner: &Shape,
        items: Vec<Value>,
        at: &FieldContext<'_>,
    ) -> Result<Value, String> {
        let last = self.path.pop().unwrap_or_default();
        let mut written = Vec::with_capacity(items.len());
        for (index, item) in items.into_iter().enumerate() {
            self.path.push(format!("{last}[{index}]"));
            let item = self.shape(inner, item, at)?;
            let item = if item.is_null() { zero(inner) } else { item };
            written.push(item);
            self.path.pop();
        }
        self.path.push(last);
        Ok(if written.is_empty() { Value::Null } else { Value::Array(written) })
    }

    fn leaf(&self, leaf: Leaf, value: Value, at: &FieldContext<'_>) -> Result<Value, String> {
        let mismatch = |value: &Value| self.mismatch(kind_of(value), at, &Shape::Leaf(leaf));
        match (leaf, value) {
            (Leaf::Any, value)
            | (Leaf::String | Leaf::Bytes, value @ Value::String(_))
            | (Leaf::Bool, value @ Value::Bool(_))
            | (Leaf::IntOrString, value @ Value::String(_)) => Ok(value),
            (Leaf::Int64, Value::Number(number)) if number.is_i64() => Ok(Value::Number(number)),
            (Leaf::Int32 | Leaf::IntOrString, Value::Number(number))
                if number.as_i64().is_some_and(|n| i32::try_from(n).is_ok()) =>
            {
                Ok(Value::Number(number))
            }
            (Leaf::Int32 | Leaf::Int64 | Leaf::IntOrString, Value::Number(number)) => {
                Err(self.mismatch(&format!("number {number}"), at, &Shape::Leaf(leaf)))
            }
            (Leaf::Quantity, Value::String(text)) => Ok(json!(quantity::canonical(&text)?)),
            (Leaf::Quantity, Value::Number(number)) => {
                Ok(json!(quantity::canonical(&number.to_string())?))
            }
            (Leaf::Time | Leaf::MicroTime, Value::String(text)) => time(leaf, &text),
            (_, other) => Err(mismatch(&other)),
        }
    }

    fn path_text(&self) -> String {
        self.path.join(".")
    }

    fn mismatch(&self, given: &str, at: &FieldContext<'_>, shape: &Shape) -> String {
        let path: Vec<&str> = self
            .path
            .iter()
            .map(|part| part.split_once('[').map_or(part.as_str(), |(name, _)| name))
            .collect();
        let wanted = go_type(at.field, shape);
        let (owner, path) = (at.owner, path.join("."));
        format!(
            "json: cannot unmarshal {given} into Go struct field {owner}.{path} of type {wanted}"
        )
    }
}

/// How Go encodes a field with this value; `None` omits it.
fn as_written(field: &Field, value: Value) -> Option<Value> {
    let is_zero = match &value {
        Value::Null => true,
        _ if field.pointer => false,
        Value::String(text) => text.is_empty(),
        Value::Bool(it) => !it,
        Value::Number(number) => number.as_i64() == Some(0) && !is_int_or_string(&field.shape),
        Value::Object(fields) => field.empty == Empty::Omit && fields.is_empty(),
        Value::Array(_) => false,
    };
    match (is_zero, field.empty) {
        (true, Empty::Omit) => None,
        (true, Empty::Keep) if field.pointer => Some(Value::Null),
        (true, Empty::Keep) => Some(if value.is_null() { zero(&field.shape) } else { value }),
        (false, Empty::Omit | Empty::Keep) => Some(value),
    }
}

fn is_int_or_string(shape: &Shape) -> bool {
    matches!(shape, Shape::Leaf(Leaf::IntOrString))
}

fn zero(shape: &Shape) -> Value {
    match shape {
        Shape::Leaf(Leaf::String) => json!(""),
        Shape::Leaf(Leaf::Bool) => json!(false),
        Shape::Leaf(Leaf::Int32 | Leaf::Int64 | Leaf::IntOrString) => json!(0),
        Shape::Leaf(Leaf::Quantity) => json!("0"),
        Shape::Leaf(Leaf::Time | Leaf::MicroTime | Leaf::Bytes | Leaf::Any)
        | Shape::Array { .. }
        | Shape::Map { .. }
        | Shape::Object { .. } => Value::Null,
    }
}

fn time(leaf: Leaf, text: &str) -> Result<Value, String> {
    let layout = if leaf == Leaf::Time {
        "2006-01-02T15:04:05Z07:00"
    } else {
        "2006-01-02T15:04:05.000000Z07:00"
    };
    let parsed: Timestamp = text.parse().map_err(|_| {
        format!("parsing time \"{text}\" as \"{layout}\": cannot parse \"{text}\" as \"2006\"")
    })?;
    Ok(json!(match leaf {
        Leaf::MicroTime => micro_time(parsed),
        _ => seconds(parsed),
    }))
}

/// `metav1.Time`: whole seconds, in UTC.
pub(crate) fn seconds(time: Timestamp) -> String {
    let whole = Timestamp::from_second(time.as_second()).expect("it was a timestamp before");
    format!("{whole:.0}")
}

/// `metav1.MicroTime`: always six digits.
pub(crate) fn micro_time(time: Timestamp) -> String {
    format!("{time:.6}")
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn go_type(field: &Field, shape: &Shape) -> String {
    match shape {
        Shape::Leaf(_) if !field.go_type.is_empty() => field.go_type.clone(),
        Shape::Leaf(Leaf::String | Leaf::IntOrString) => "string".to_owned(),
        Shape::Leaf(Leaf::Bool) => "bool".to_owned(),
        Shape::Leaf(Leaf::Int32) => "int32".to_owned(),
        Shape::Leaf(Leaf::Int64) => "int64".to_owned(),
        Shape::Leaf(Leaf::Bytes) => "[]uint8".to_owned(),
        Shape::Leaf(Leaf::Time) => "string".to_owned(),
        Shape::Leaf(Leaf::MicroTime) => "string".to_owned(),
        Shape::Leaf(Leaf::Quantity | Leaf::Any) => "string".to_owned(),
        Shape::Array { array } => format!("[]{}", go_type(field, array)),
        Shape::Map { map } => format!("map[string]{}", go_type(field, map)),
        Shape::Object { r#ref } => format!("v1.{}", type_named(r#ref).go_name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(given: Value) -> Read {
        read("io.k8s.api.core.v1.Service", given).unwrap()
    }

    #[test]
    fn zero_values_are_encoded_as_in_go() {
        let read = service(json!({
            "metadata": {"name": "a", "labels": {}, "creationTimestamp": null},
            "spec": {"ports": [{"port": 80, "name": ""}], "selector": null},
        }));
        assert_eq!(
            read.object,
            json!({
                "metadata": {"name": "a"},
                "spec": {"ports": [{"port": 80, "targetPort": 0}]},
                "status": {"loadBalancer": {}},
            })
        );
    }

    #[test]
    fn unknown_fields_are_dropped_and_reported() {
        let read = service(json!({"spec": {"ports": [{"port": 80, "prot": 1}], "x": 1}, "y": 2}));
        assert_eq!(read.unknown, ["spec.ports[0].prot", "spec.x", "y"]);
    }

    #[test]
    fn a_type_mismatch_has_the_message_of_go() {
        let wrong = json!({"spec": {"ports": [{"port": "80"}]}});
        assert_eq!(
            read("io.k8s.api.core.v1.Service", wrong).unwrap_err(),
            "json: cannot unmarshal string into Go struct field ServicePort.spec.ports.port of \
             type int32"
        );
    }

    #[test]
    fn a_pointer_keeps_its_zero_and_an_array_without_omitempty_is_null() {
        let given = json!({"addressType": "IPv4", "endpoints": [], "ports": [{"port": 0}]});
        let read = read("io.k8s.api.discovery.v1.EndpointSlice", given).unwrap();
        assert_eq!(read.object["endpoints"], Value::Null);
        assert_eq!(read.object["ports"], json!([{"port": 0}]));
    }
}
