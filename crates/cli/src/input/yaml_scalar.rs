//! The value of a YAML scalar by the core schema of YAML 1.2, in which `yes` and `on` are strings.

use saphyr_parser::{ScalarStyle, Tag};
use serde_json::{Number, Value};

/// Quoted scalars and `!!str` are strings; the value of others depends on their text.
pub fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Value {
    let is_plain = match tag {
        Some(tag) if tag.is_yaml_core_schema() => tag.suffix != "str",
        Some(_) | None => style == ScalarStyle::Plain,
    };
    if is_plain { plain(text) } else { Value::String(text.to_owned()) }
}

fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        text => number(text).map_or_else(|| Value::String(text.to_owned()), Value::Number),
    }
}

/// JSON has no infinities; they stay strings.
fn number(text: &str) -> Option<Number> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if !digits.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
        return None;
    }
    for (prefix, radix) in [("0o", 8), ("0x", 16)] {
        if let Some(digits) = text.strip_prefix(prefix).filter(|rest| !rest.starts_with('+')) {
            return u64::from_str_radix(digits, radix).ok().map(Number::from);
        }
    }
    if let Ok(number) = text.parse::<i64>() {
        return Some(number.into());
    }
    if let Ok(number) = text.parse::<u64>() {
        return Some(number.into());
    }
    text.parse().ok().and_then(Number::from_f64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn plain_scalars_mean_what_yaml_1_2_says() {
        for (text, want) in [
            ("", json!(null)),
            ("~", json!(null)),
            ("null", json!(null)),
            ("true", json!(true)),
            ("FALSE", json!(false)),
            ("yes", json!("yes")),
            ("on", json!("on")),
            ("no", json!("no")),
            ("None", json!("None")),
            ("8080", json!(8080)),
            ("-1", json!(-1)),
            ("+1", json!(1)),
            ("007", json!(7)),
            ("0o14", json!(12)),
            ("0x1F", json!(31)),
            ("0x+1", json!("0x+1")),
            ("18446744073709551615", json!(18_446_744_073_709_551_615_u64)),
            ("1.5", json!(1.5)),
            ("1e3", json!(1000.0)),
            (".5", json!(0.5)),
            (".", json!(".")),
            (".inf", json!(".inf")),
            ("1e999", json!("1e999")),
            ("infinity", json!("infinity")),
            ("10.0.0.1", json!("10.0.0.1")),
            ("1_000", json!("1_000")),
            ("2026-01-01", json!("2026-01-01")),
            ("100m", json!("100m")),
            ("-", json!("-")),
        ] {
            assert_eq!(plain(text), want, "{text:?}");
        }
    }

    #[test]
    fn quotes_and_tags_take_precedence() {
        let core = |suffix: &str| Tag {
            handle: "tag:yaml.org,2002:".to_owned(),
            suffix: suffix.to_owned(),
        };
        let quoted = ScalarStyle::DoubleQuoted;
        assert_eq!(scalar("123", quoted, None), json!("123"));
        assert_eq!(scalar("123", ScalarStyle::Literal, None), json!("123"));
        assert_eq!(scalar("123", ScalarStyle::Plain, Some(&core("str"))), json!("123"));
        assert_eq!(scalar("123", quoted, Some(&core("int"))), json!(123));
    }
}
