//! Cases in which our plan once differed from upstream's, with upstream's recorded answers. They
//! need no Go toolchain. `cargo xtask parity` prints a differing case as one line for these files.

use std::fs;
use std::path::Path;

use endpointd_parity::{Case, judge};

#[test]
fn every_regression_case_agrees() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("regressions");
    let files = fs::read_dir(folder).expect("the folder exists");
    let mut n_cases = 0;
    for file in files {
        let path = file.expect("a file").path();
        let text = fs::read_to_string(&path).expect("a readable file");
        for line in text.lines() {
            let case = Case::parse(line).expect("a case");
            let differences = judge(&case).expect("a valid case");
            let unexplained: Vec<String> = differences
                .iter()
                .filter(|one| one.deliberate.is_none())
                .map(ToString::to_string)
                .collect();
            assert!(unexplained.is_empty(), "{}:\n{}", case.id, unexplained.join("\n"));
            n_cases += 1;
        }
    }
    assert!(n_cases > 0);
}
