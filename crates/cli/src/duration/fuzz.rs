//! Fuzz target: durations in flags.

use endpointd_fuzz::{Format, Target, fuzz};

use super::*;

#[test]
fn fuzz_flags() {
    let recorded = ["15s", "1m30.5s", "1h2m3s4ms5us6ns", "0", "9999999h"];
    let recorded = recorded.map(|text| text.as_bytes().to_vec()).to_vec();
    fuzz(&Target { name: "flags", format: Format::Text, recorded }, |input| {
        let text = String::from_utf8_lossy(input);
        let parsed = parse_duration(&text);
        // Only digits, points, and units.
        let is_plain = |c: char| c.is_ascii_digit() || ".nusmh".contains(c);
        assert!(parsed.is_none() || (!text.is_empty() && text.chars().all(is_plain)), "{text:?}");
        format!("{} {}", parsed.is_some(), text.len().min(4))
    });
}
