//! `docs/reference/metrics.md` is written by a test here (`UPDATE_EXPECT=1`) and otherwise compared;
//! what `docs/operating.md` names must be in it.

use std::collections::BTreeSet;

use endpointd_status::{Family, FamilyKind, Metrics};
use expect_test::expect_file;

const HEAD: &str = "\
# Metrics

Generated from the registry; a test of `endpointd-status` compares. To write it anew:
`UPDATE_EXPECT=1 cargo test -p endpointd-status reference`.

";

#[test]
fn the_reference_lists_every_family() {
    let metrics = Metrics::new();
    let (own, rest): (Vec<&Family>, Vec<&Family>) =
        metrics.families().iter().partition(|family| family.name.starts_with("endpointd_"));
    let (process, upstream): (Vec<&Family>, Vec<&Family>) =
        rest.into_iter().partition(|family| family.name.starts_with("process_"));
    let page = format!(
        "{HEAD}## Ours\n\n{}\n## By upstream's names\n\nNames, types, labels, and buckets are those \
         of kube-controller-manager v1.36; `upstream.rs` among the tests compares with a running \
         one.\n\n{}\n## The process\n\n{}",
        table(&own),
        table(&upstream),
        table(&process)
    );
    expect_file!["../../../../docs/reference/metrics.md"].assert_eq(&page);
}

/// Prefixes that only metrics have.
const PREFIXES: &[&str] = &["endpointd_", "endpoint_slice_", "leader_election_", "process_"];

/// An alert on a name that does not exist never fires.
#[test]
fn the_operators_page_names_only_what_exists() {
    let page = include_str!("../../../../docs/operating.md");
    let metrics = Metrics::new();
    let is_known = |name: &str| metrics.families().iter().any(|family| family.name == name);
    let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let words = page.split(|letter: char| !is_of_name(letter));
    let names: BTreeSet<&str> =
        words.filter(|word| PREFIXES.iter().any(|prefix| word.starts_with(prefix))).collect();
    for name in &names {
        assert!(is_known(name.trim_end_matches("_bucket")), "`{name}` is not_found");
    }
    assert!(names.len() > 15, "only {names:?} found");
}

fn table(families: &[&Family]) -> String {
    let head = "| name | type | labels | meaning |\n|---|---|---|---|\n".to_owned();
    families.iter().fold(head, |table, family| table + &row(family))
}

fn row(family: &Family) -> String {
    let Family { name, help, kind, labels } = family;
    let labels: Vec<String> = labels.iter().map(|label| format!("`{label}`")).collect();
    let buckets = match kind {
        FamilyKind::Histogram(bounds) => {
            let (first, last) = (bounds.first(), bounds.last());
            let ends = first.zip(last).expect("a histogram has buckets");
            format!(" ({} buckets, {} to {})", bounds.len(), ends.0, ends.1)
        }
        FamilyKind::Counter | FamilyKind::Gauge => String::new(),
    };
    format!("| `{name}` | {}{buckets} | {} | {help} |\n", kind.as_str(), labels.join(", "))
}
