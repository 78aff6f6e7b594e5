//! Maps of string to string as JSON objects, for `#[serde(with)]`.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserializer, Serializer};

use crate::meta::MapEntry;

pub(crate) fn serialize<S: Serializer>(
    string_map: &[MapEntry],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(string_map.iter().map(|MapEntry { key, value }| (key, value)))
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<MapEntry>, D::Error> {
    deserializer.deserialize_map(StringMapVisitor)
}

struct StringMapVisitor;

impl<'de> Visitor<'de> for StringMapVisitor {
    type Value = Vec<MapEntry>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map of strings")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Vec<MapEntry>, A::Error> {
        let mut string_map = Vec::new();
        while let Some((key, value)) = entries.next_entry()? {
            string_map.push(MapEntry { key, value });
        }
        Ok(string_map)
    }
}
