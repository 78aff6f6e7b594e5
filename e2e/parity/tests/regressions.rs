//! Worlds in which we once decided otherwise than upstream, with upstream's recorded answers. No
//! Go is needed: `cargo xtask parity` prints a world that differs as one line for these files.

use std::fs;
use std::path::Path;

use endpointd_parity::{Case, judge};

#[test]
fn every_regression_stays_repaired() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("regressions");
    let files = fs::read_dir(folder).expect("the regressions are part of the project");
    let mut n_cases = 0;
    for file in files {
        let path = file.expect("a file").path();
        let text = fs::read_to_string(&path).expect("a readable file");
        for line in text.lines() {
            let case = Case::parse(line).expect("a case");
            let differences = judge(&case).expect("a world we can read");
            let unexplained: Vec<String> = differences
                .iter()
                .filter(|one| one.choice.is_none())
                .map(ToString::to_string)
                .collect();
            assert!(unexplained.is_empty(), "{}:\n{}", case.id, unexplained.join("\n"));
            n_cases += 1;
        }
    }
    assert!(n_cases > 0);
}
