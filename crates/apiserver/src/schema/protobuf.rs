//! Converts request bodies in Kubernetes' protobuf, as `kubectl create` sends them, to JSON.
//! Responses are always JSON, which every such client accepts.
//!
//! A body is `k8s\0` and an `Unknown { 1: TypeMeta { 1: apiVersion, 2: kind }, 2: raw }`.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::read::{micro_time, seconds};
use super::{Field, Leaf, Shape, Type, type_named};

const MAGIC: &[u8] = b"k8s\0";
const DEPTH_MAX: usize = 64;

/// Why a body is not protobuf of the type.
type Malformed = &'static str;

/// One field on the wire.
enum Wire<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The object in the body, with its `kind` and `apiVersion`.
pub(crate) fn object(type_name: &str, body: &[u8]) -> Result<Value, Malformed> {
    let unknown = body.strip_prefix(MAGIC).ok_or("the body does not start with k8s\\0")?;
    let mut api_version = String::new();
    let mut kind = String::new();
    let mut raw: &[u8] = &[];
    for field in Fields(unknown) {
        match field? {
            (1, Wire::Bytes(meta)) => {
                for field in Fields(meta) {
                    match field? {
                        (1, Wire::Bytes(text)) => api_version = utf8(text)?,
                        (2, Wire::Bytes(text)) => kind = utf8(text)?,
                        _ => {}
                    }
                }
            }
            (2, Wire::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    let mut object = message(type_named(type_name), raw, DEPTH_MAX)?;
    object.insert("kind".to_owned(), json!(kind));
    object.insert("apiVersion".to_owned(), json!(api_version));
    Ok(Value::Object(object))
}

fn message(of: &Type, bytes: &[u8], depth: usize) -> Result<Map<String, Value>, Malformed> {
    let mut object = Map::new();
    read_into(&mut object, of, 0, bytes, depth)?;
    Ok(object)
}

/// Fields of an embedded struct are a message in protobuf and inline in JSON.
fn read_into(
    object: &mut Map<String, Value>,
    of: &Type,
    within: u32,
    bytes: &[u8],
    depth: usize,
) -> Result<(), Malformed> {
    let depth = depth.checked_sub(1).ok_or("nested too deep")?;
    for field in Fields(bytes) {
        let (number, wire) = field?;
        let known = of.fields.iter().find(|one| one.within == within && one.number == number);
        match (known, wire) {
            (Some(known), wire) => put(object, known, wire, depth)?,
            (None, Wire::Bytes(inner))
                if within == 0 && of.fields.iter().any(|one| one.within == number) =>
            {
                read_into(object, of, number, inner, depth)?;
            }
            (None, _) => {}
        }
    }
    Ok(())
}

fn put(
    object: &mut Map<String, Value>,
    field: &Field,
    wire: Wire<'_>,
    depth: usize,
) -> Result<(), Malformed> {
    match &field.shape {
        Shape::Array { array } => {
            let item = value(array, wire, depth)?;
            let list = object.entry(field.name.clone()).or_insert_with(|| json!([]));
            list.as_array_mut().ok_or("one field in two shapes")?.push(item);
        }
        Shape::Map { map } => {
            let Wire::Bytes(entry) = wire else { return Err("a map entry is a message") };
            let (mut key, mut found) = (String::new(), None);
            for field in Fields(entry) {
                match field? {
                    (1, Wire::Bytes(text)) => key = utf8(text)?,
                    (2, wire) => found = Some(value(map, wire, depth)?),
                    _ => {}
                }
            }
            let entries = object.entry(field.name.clone()).or_insert_with(|| json!({}));
            let entries = entries.as_object_mut().ok_or("one field in two shapes")?;
            entries.insert(key, found.unwrap_or_else(|| json!("")));
        }
        shape @ (Shape::Leaf(_) | Shape::Object { .. }) => {
            let found = value(shape, wire, depth)?;
            if !found.is_null() {
                object.insert(field.name.clone(), found);
            }
        }
    }
    Ok(())
}

fn value(shape: &Shape, wire: Wire<'_>, depth: usize) -> Result<Value, Malformed> {
    match (shape, wire) {
        (Shape::Object { r#ref }, Wire::Bytes(bytes)) => {
            Ok(Value::Object(message(type_named(r#ref), bytes, depth)?))
        }
        (Shape::Leaf(Leaf::String), Wire::Bytes(bytes)) => Ok(json!(utf8(bytes)?)),
        (Shape::Leaf(Leaf::Bool), Wire::Number(number)) => Ok(json!(number != 0)),
        (Shape::Leaf(Leaf::Int32 | Leaf::Int64), Wire::Number(number)) => {
            Ok(json!(number.cast_signed()))
        }
        (Shape::Leaf(Leaf::Bytes), Wire::Bytes(bytes)) => {
            use base64::Engine;
            Ok(json!(base64::prelude::BASE64_STANDARD.encode(bytes)))
        }
        (Shape::Leaf(leaf @ (Leaf::Time | Leaf::MicroTime)), Wire::Bytes(bytes)) => {
            time(*leaf, bytes)
        }
        (Shape::Leaf(Leaf::Quantity), Wire::Bytes(bytes)) => match first_bytes(bytes)? {
            Some(text) => Ok(json!(utf8(text)?)),
            None => Ok(json!("0")),
        },
        (Shape::Leaf(Leaf::IntOrString), Wire::Bytes(bytes)) => int_or_string(bytes),
        (Shape::Leaf(Leaf::Any), Wire::Bytes(bytes)) => match first_bytes(bytes)? {
            Some(raw) => serde_json::from_slice(raw).map_err(|_| "raw bytes that are not JSON"),
            None => Ok(Value::Null),
        },
        _ => Err("a field of another type"),
    }
}

/// The single field of a message that wraps bytes.
fn first_bytes(message: &[u8]) -> Result<Option<&[u8]>, Malformed> {
    for field in Fields(message) {
        if let (1, Wire::Bytes(bytes)) = field? {
            return Ok(Some(bytes));
        }
    }
    Ok(None)
}

/// An empty message is Go's zero time, which JSON writes as null.
fn time(leaf: Leaf, message: &[u8]) -> Result<Value, Malformed> {
    let (mut secs, mut nanos) = (None, 0);
    for field in Fields(message) {
        match field? {
            (1, Wire::Number(number)) => secs = Some(number.cast_signed()),
            (2, Wire::Number(number)) => nanos = number.cast_signed(),
            _ => {}
        }
    }
    let Some(secs) = secs else { return Ok(Value::Null) };
    let nanos = i32::try_from(nanos).map_err(|_| "a time out of range")?;
    let time = Timestamp::new(secs, nanos).map_err(|_| "a time out of range")?;
    Ok(json!(if leaf == Leaf::MicroTime { micro_time(time) } else { seconds(time) }))
}

fn int_or_string(message: &[u8]) -> Result<Value, Malformed> {
    let (mut is_text, mut number, mut text) = (false, 0, String::new());
    for field in Fields(message) {
        match field? {
            (1, Wire::Number(kind)) => is_text = kind == 1,
            (2, Wire::Number(it)) => number = it.cast_signed(),
            (3, Wire::Bytes(bytes)) => text = utf8(bytes)?,
            _ => {}
        }
    }
    Ok(if is_text { json!(text) } else { json!(number) })
}

fn utf8(bytes: &[u8]) -> Result<String, Malformed> {
    String::from_utf8(bytes.to_vec()).map_err(|_| "text that is not UTF-8")
}

/// The fields of a message, in order.
struct Fields<'a>(&'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, Wire<'a>), Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.0 = &[];
        }
        Some(field)
    }
}

impl<'a> Fields<'a> {
    fn field(&mut self) -> Result<(u32, Wire<'a>), Malformed> {
        let tag = self.varint()?;
        let number = u32::try_from(tag >> 3).map_err(|_| "a field number out of range")?;
        let wire = match tag & 7 {
            0 => Wire::Number(self.varint()?),
            1 => Wire::Bytes(self.take(8)?),
            2 => {
                let length =
                    usize::try_from(self.varint()?).map_err(|_| "a length out of range")?;
                Wire::Bytes(self.take(length)?)
            }
            5 => Wire::Bytes(self.take(4)?),
            _ => return Err("an unknown wire type"),
        };
        Ok((number, wire))
    }

    fn varint(&mut self) -> Result<u64, Malformed> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first().ok_or("cut short")?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err("a number out of range")
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or("cut short")?;
        self.0 = rest;
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_decodes_to_its_json() {
        let mut body = MAGIC.to_vec();
        // Unknown { typeMeta { "v1", "Service" }, raw }
        body.extend(b"\x0a\x0d\x0a\x02v1\x12\x07Service");
        // raw: metadata { name: "a" }, spec { ports [{ port: 80, targetPort: "x" }] }
        let raw = b"\x0a\x03\x0a\x01a\x12\x0d\x0a\x0b\x18\x50\x22\x07\x08\x01\x10\x00\x1a\x01x";
        body.push(0x12);
        body.push(u8::try_from(raw.len()).unwrap());
        body.extend(raw);
        let read = object("io.k8s.api.core.v1.Service", &body).unwrap();
        assert_eq!(
            read,
            json!({
                "kind": "Service", "apiVersion": "v1", "metadata": {"name": "a"},
                "spec": {"ports": [{"port": 80, "targetPort": "x"}]},
            })
        );
        for length in 0..body.len() {
            // Truncated anywhere, it must not panic.
            let _ = object("io.k8s.api.core.v1.Service", &body[..length]);
        }
    }
}
