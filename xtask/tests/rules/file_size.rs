//! Files have a header and at most 400 lines without tests. Clippy checks the size of functions.

use super::{assert_none, files, without_tests};

const LINES_MAX: usize = 400;
/// Longer files, with the number of lines they must not exceed. To be split.
const LONGER: &[(&str, usize)] = &[];

#[test]
fn files_have_a_header_and_are_small() {
    let mut violations = Vec::new();
    for source in files(&[".rs"]) {
        let path = &source.path;
        if !source.text.starts_with("//!") {
            violations.push(format!("{path}: a `//!` header must say what this file is for"));
        }
        let is_test = path.contains("/tests/") || path.contains("/benches/");
        let known = LONGER.iter().find(|(longer, _)| longer == path);
        let max = known.map_or(LINES_MAX, |(_, max)| *max);
        let n_lines = without_tests(&source.text).lines().count();
        if !is_test && n_lines > max {
            violations.push(format!("{path}: {n_lines} lines without tests, more than {max}"));
        }
    }
    assert_none(&violations);
}
