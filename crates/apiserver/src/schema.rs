//! How Go reads and writes the types of our kinds: `schema/types.json`, made by reflection on
//! upstream's structs. One table serves reading ([`read`]), strategic merge, and OpenAPI.

pub(crate) mod protobuf;
pub(crate) mod quantity;
pub(crate) mod read;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

pub(crate) const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";

/// One Go struct.
#[derive(Debug, Deserialize)]
pub(crate) struct Type {
    #[serde(rename = "go")]
    pub go_name: String,
    #[serde(default)]
    pub doc: String,
    pub fields: Vec<Field>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Field {
    pub name: String,
    #[serde(rename = "type")]
    pub shape: Shape,
    /// The named Go type of a leaf, as decoding errors print it.
    #[serde(default, rename = "go")]
    pub go_type: String,
    /// In protobuf.
    #[serde(default)]
    pub number: u32,
    /// In protobuf: the number of the embedded message this field is in.
    #[serde(default)]
    pub within: u32,
    pub empty: Empty,
    #[serde(default)]
    pub pointer: bool,
    #[serde(default)]
    pub strategy: String,
    #[serde(default)]
    pub merge_key: String,
    #[serde(default)]
    pub doc: String,
}

/// What Go writes for a zero value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Empty {
    Omit,
    Keep,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Shape {
    Leaf(Leaf),
    Array { array: Box<Shape> },
    Map { map: Box<Shape> },
    Object { r#ref: String },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Leaf {
    String,
    Bool,
    Int32,
    Int64,
    Time,
    MicroTime,
    Quantity,
    IntOrString,
    Bytes,
    Any,
}

static TYPES: LazyLock<BTreeMap<String, Type>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../schema/types.json")).expect("the generated table is JSON")
});

/// # Panics
///
/// When the kinds table names a type that `schema/generate` does not write.
pub(crate) fn type_named(name: &str) -> &'static Type {
    TYPES.get(name).unwrap_or_else(|| panic!("`{name}` is not in schema/types.json"))
}

impl Type {
    pub(crate) fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::KINDS;

    #[test]
    fn every_kind_and_every_reference_has_a_type() {
        for kind in KINDS {
            type_named(kind.schema);
        }
        fn check(shape: &Shape) {
            match shape {
                Shape::Leaf(_) => {}
                Shape::Array { array: inner } | Shape::Map { map: inner } => check(inner),
                Shape::Object { r#ref } => assert!(TYPES.contains_key(r#ref), "{}", r#ref),
            }
        }
        TYPES.values().flat_map(|one| &one.fields).for_each(|field| check(&field.shape));
    }
}
