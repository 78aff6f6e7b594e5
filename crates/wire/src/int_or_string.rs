//! A port as a number or a name.

use std::fmt;

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};

/// `intstr.IntOrString`.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct IntOrString {
    /// 0 for a number, 1 for a string.
    #[prost(int64, tag = "1")]
    pub type_: i64,
    #[prost(int32, tag = "2")]
    pub number: i32,
    #[prost(string, tag = "3")]
    pub text: String,
}

const TEXT: i64 = 1;

impl IntOrString {
    pub fn is_text(&self) -> bool {
        self.type_ == TEXT
    }
}

impl<'de> Deserialize<'de> for IntOrString {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(IntOrStringVisitor)
    }
}

struct IntOrStringVisitor;

impl Visitor<'_> for IntOrStringVisitor {
    type Value = IntOrString;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number of 32 bits or a string")
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<IntOrString, E> {
        let number = i32::try_from(value)
            .map_err(|_| E::invalid_value(Unexpected::Unsigned(value), &self))?;
        Ok(IntOrString { number, ..Default::default() })
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<IntOrString, E> {
        let number =
            i32::try_from(value).map_err(|_| E::invalid_value(Unexpected::Signed(value), &self))?;
        Ok(IntOrString { number, ..Default::default() })
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<IntOrString, E> {
        Ok(IntOrString { type_: TEXT, text: text.to_owned(), number: 0 })
    }

    fn visit_unit<E: Error>(self) -> Result<IntOrString, E> {
        Ok(IntOrString::default())
    }
}
