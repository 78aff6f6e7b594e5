//! Our plan agrees with every recorded vector, except for the differences listed here.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use endpointd_parity::{Case, judge};

/// Vectors with a deliberate difference, and its id.
const DELIBERATE: &[(&str, &str)] = &[
    ("slice-000380", "B14"),
    ("slice-000830", "B6"),
    ("slice-001080", "B6"),
    ("slice-001140", "B9"),
    ("slice-001550", "B6"),
    ("slice-002050", "B14"),
    ("slice-002390", "B6"),
    ("slice-002420", "B9"),
    ("slice-002430", "B14"),
    ("slice-002910", "B18"),
    ("slice-003090", "B6"),
    ("slice-003650", "B9"),
    ("endpoints-000030", "B18"),
    ("endpoints-000120", "B8"),
    ("endpoints-000300", "B6"),
    ("endpoints-001170", "B6"),
    ("endpoints-001780", "B18"),
    ("endpoints-001790", "B6"),
    ("endpoints-001830", "B6"),
    ("endpoints-001950", "B18"),
    ("endpoints-001960", "B9"),
    ("mirror-000200", "B19"),
    ("mirror-000300", "B19"),
    ("mirror-000560", "B19"),
    ("mirror-000610", "B18"),
    ("mirror-000890", "B19"),
    ("mirror-001290", "B19"),
    ("mirror-001330", "B19"),
    ("mirror-001430", "B19"),
    ("mirror-001630", "B18"),
    ("mirror-001650", "B6"),
    ("mirror-001700", "B6"),
];

fn check(file: &str, n: usize) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors").join(file);
    let text = fs::read_to_string(path).expect("the vectors are part of the project");
    let cases: Vec<Case> = text.lines().map(|line| Case::parse(line).expect("a vector")).collect();
    assert_eq!(cases.len(), n);
    let mut unexplained = Vec::new();
    let mut deliberate = BTreeSet::new();
    for case in &cases {
        for difference in judge(case).expect("a valid case") {
            match difference.deliberate {
                Some(id) => drop(deliberate.insert((case.id.clone(), id.to_string()))),
                None => unexplained.push(format!("{}: {difference}", case.id)),
            }
        }
    }
    assert!(unexplained.is_empty(), "{}", unexplained.join("\n"));
    let ids: BTreeSet<&String> = cases.iter().map(|case| &case.id).collect();
    let listed: BTreeSet<(String, String)> = DELIBERATE
        .iter()
        .map(|(id, deliberate)| ((*id).to_owned(), (*deliberate).to_owned()))
        .filter(|(id, _)| ids.contains(id))
        .collect();
    assert_eq!(deliberate, listed, "the list of deliberate differences does not match");
}

#[test]
fn slices_agree_with_upstream() {
    check("endpointslice.jsonl", 400);
}

#[test]
fn endpoints_agree_with_upstream() {
    check("endpoints.jsonl", 200);
}

#[test]
fn mirrored_slices_agree_with_upstream() {
    check("mirroring.jsonl", 200);
}
