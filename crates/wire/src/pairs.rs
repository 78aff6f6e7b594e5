//! Lists of pairs as JSON objects, for `#[serde(with)]`.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserializer, Serializer};

use crate::meta::Pair;

pub(crate) fn serialize<S: Serializer>(pairs: &[Pair], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(pairs.iter().map(|Pair { key, value }| (key, value)))
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<Pair>, D::Error> {
    deserializer.deserialize_map(PairsVisitor)
}

struct PairsVisitor;

impl<'de> Visitor<'de> for PairsVisitor {
    type Value = Vec<Pair>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map of strings")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Vec<Pair>, A::Error> {
        let mut pairs = Vec::new();
        while let Some((key, value)) = entries.next_entry()? {
            pairs.push(Pair { key, value });
        }
        Ok(pairs)
    }
}
