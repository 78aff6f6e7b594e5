//! Quantities such as `3920m` or `4`. Upstream: `resource.ParseQuantity`.

use std::fmt;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer};

/// `resource.Quantity`, not parsed.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Quantity {
    #[prost(string, tag = "1")]
    pub text: String,
}

/// Further digits are rounded up. Twenty digits times 2^60 fit into 128 bits.
const DIGITS_MAX: usize = 20;
/// The largest quantity; larger ones are reduced to it, as upstream does.
const NANOS_MAX: u128 = i64::MAX as u128 * 1_000_000_000;

impl Quantity {
    /// In billionths, rounded away from zero; zero if the text is not a quantity.
    pub fn nanos(&self) -> i128 {
        parse_nanos(&self.text).unwrap_or(0)
    }
}

fn parse_nanos(text: &str) -> Option<i128> {
    let (is_negative, unsigned) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at(end);
    let number = Decimal::parse(number)?;
    let (decimal_exponent, binary_exponent) = exponents(suffix)?;
    let digits = number.digits << binary_exponent;
    let nanos = scale(digits, number.exponent.saturating_add(decimal_exponent).saturating_add(9))
        .min(NANOS_MAX);
    let nanos = i128::try_from(nanos).expect("cut to 94 bits");
    Some(if is_negative { -nanos } else { nanos })
}

/// `digits` times ten to the `exponent`.
struct Decimal {
    digits: u128,
    exponent: i32,
}

impl Decimal {
    fn parse(text: &str) -> Option<Self> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        if fraction.contains('.') || (whole.is_empty() && fraction.is_empty()) {
            return None;
        }
        let whole = whole.trim_start_matches('0');
        let n_fraction = i32::try_from(fraction.len()).ok()?;
        let all = whole.bytes().chain(fraction.bytes()).skip_while(|&digit| digit == b'0');
        let (mut digits, mut n_digits, mut n_dropped) = (0u128, 0, 0i32);
        let mut is_cut = false;
        for digit in all {
            if n_digits < DIGITS_MAX {
                digits = digits * 10 + u128::from(digit - b'0');
                n_digits += 1;
            } else {
                n_dropped = n_dropped.saturating_add(1);
                is_cut |= digit != b'0';
            }
        }
        let digits = digits + u128::from(is_cut);
        Some(Self { digits, exponent: n_dropped.saturating_sub(n_fraction) })
    }
}

/// The exponents of ten and of two.
fn exponents(suffix: &str) -> Option<(i32, u32)> {
    Some(match suffix {
        "n" => (-9, 0),
        "u" => (-6, 0),
        "m" => (-3, 0),
        "" => (0, 0),
        "k" => (3, 0),
        "M" => (6, 0),
        "G" => (9, 0),
        "T" => (12, 0),
        "P" => (15, 0),
        "E" => (18, 0),
        "Ki" => (0, 10),
        "Mi" => (0, 20),
        "Gi" => (0, 30),
        "Ti" => (0, 40),
        "Pi" => (0, 50),
        "Ei" => (0, 60),
        _ => (suffix.strip_prefix(['e', 'E'])?.parse().ok()?, 0),
    })
}

/// Rounds up and saturates.
fn scale(digits: u128, exponent: i32) -> u128 {
    let power = 10u128.checked_pow(exponent.unsigned_abs());
    match (digits, exponent >= 0, power) {
        (0, _, _) => 0,
        (_, true, power) => power.and_then(|power| digits.checked_mul(power)).unwrap_or(u128::MAX),
        (_, false, power) => power.map_or(1, |power| digits.div_ceil(power)),
    }
}

/// A JSON number is also a quantity.
impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(QuantityVisitor)
    }
}

struct QuantityVisitor;

impl Visitor<'_> for QuantityVisitor {
    type Value = Quantity;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a quantity")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Quantity, E> {
        Ok(Quantity { text: text.to_owned() })
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Quantity, E> {
        Ok(Quantity { text: value.to_string() })
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Quantity, E> {
        Ok(Quantity { text: value.to_string() })
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Quantity, E> {
        Ok(Quantity { text: value.to_string() })
    }

    fn visit_unit<E: Error>(self) -> Result<Quantity, E> {
        Ok(Quantity::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_parsed_in_billionths() {
        const CORE: i128 = 1_000_000_000;
        for (text, want) in [
            ("4", 4 * CORE),
            ("3920m", 3_920_000_000),
            ("1500u", 1_500_000),
            ("7n", 7),
            ("0.5", CORE / 2),
            (".5", CORE / 2),
            ("5.", 5 * CORE),
            ("+2", 2 * CORE),
            ("-2", -2 * CORE),
            ("0002", 2 * CORE),
            ("0", 0),
            ("0E", 0),
            ("2k", 2_000 * CORE),
            ("1M", 1_000_000 * CORE),
            ("1E", 10i128.pow(18) * CORE),
            ("1e3", 1_000 * CORE),
            ("1E3", 1_000 * CORE),
            ("1E-3", CORE / 1_000),
            ("15e-1", 1_500_000_000),
            ("1Ki", 1_024 * CORE),
            ("1.5Gi", 3 * (CORE << 29)),
            ("1Ei", CORE << 60),
            // Rounded away from zero, never to zero.
            ("0.1n", 1),
            ("-0.1n", -1),
            ("1.0000000001", CORE + 1),
            ("1.00000000000000000000000000001", CORE + 1),
            ("1e-999999999", 1),
            // Reduced to upstream's largest quantity.
            ("100E", i128::from(i64::MAX) * CORE),
            ("1e999999999", i128::from(i64::MAX) * CORE),
            ("-9999999999999999999999999999", -i128::from(i64::MAX) * CORE),
            // Not quantities.
            ("", 0),
            ("-", 0),
            (".", 0),
            ("m", 0),
            ("1.2.3", 0),
            ("1Zi", 0),
            ("1e", 0),
            ("1e99999999999999999999", 0),
            ("4 ", 0),
            ("é", 0),
            ("1é", 0),
        ] {
            let quantity = Quantity { text: text.to_owned() };
            assert_eq!(quantity.nanos(), want, "{text:?}");
        }
    }
}
