//! `docs/explain.md` has an anchor per code, and none that no code has.

use endpointd_explain::{Code, Level};

/// Headings and titles: `EPD103 a label value is nearly right`.
fn headings(page: &str) -> Vec<String> {
    let sections = page.split("\n### ").skip(1);
    let heading = |section: &str| {
        let mut lines = section.lines().filter(|line| !line.is_empty());
        let (code, title) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
        format!("{code} {}", title.trim_matches('*'))
    };
    sections.map(heading).collect()
}

#[test]
fn each_code_is_documented() {
    let page = include_str!("../../../../docs/explain.md");
    let wanted: Vec<String> =
        Code::ALL.iter().map(|code| format!("{code} {}", code.title())).collect();
    assert_eq!(headings(page), wanted);
}

#[test]
fn each_section_says_the_cause_how_to_see_it_and_what_to_do() {
    let page = include_str!("../../../../docs/explain.md");
    let sections = page.split("\n### ").skip(1);
    for section in sections {
        let heading = section.lines().next().unwrap_or_default();
        for part in ["*Cause:*", "*See:*", "*Do:*"] {
            assert!(section.contains(part), "{heading}: no {part}");
        }
    }
}

#[test]
fn codes_are_unique_and_sorted() {
    let numbers: Vec<u16> = Code::ALL.iter().map(|code| code.number()).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
    assert_eq!(numbers.len(), 81);
    assert_eq!(Code::AllWell.level(), Level::Info);
}
