//! Durations in the syntax of Go's flags: `1m30s`, `500ms`, `0`.

use std::time::Duration;

const UNITS: [(&str, f64); 6] =
    [("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];

/// `None` for malformed and for negative durations. Upstream: `time.ParseDuration`.
pub fn parse_duration(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let mut rest = text;
    let mut secs = 0.0;
    while !rest.is_empty() {
        let number_len = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at(number_len);
        let unit_len = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_len);
        let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit)?;
        secs += number.parse::<f64>().ok()? * factor;
        rest = after;
    }
    if text.is_empty() { None } else { Duration::try_from_secs_f64(secs).ok() }
}

#[cfg(test)]
mod fuzz;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed_as_in_go() {
        let millis = |text| parse_duration(text).map(|time| time.as_millis());
        assert_eq!(millis("0"), Some(0));
        assert_eq!(millis("0s"), Some(0));
        assert_eq!(millis("500ms"), Some(500));
        assert_eq!(millis("1m30s"), Some(90_000));
        assert_eq!(millis("1.5h"), Some(5_400_000));
        for bad in ["", "5", "-1s", "s", "1x", "1s2", "one", "1..2s"] {
            assert_eq!(parse_duration(bad), None, "{bad}");
        }
    }
}
