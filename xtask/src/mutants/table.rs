//! The results as lines of text and as the table of `docs/simulation.md`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::{Finished, Mutant, Outcome};

const PAGE: &str = "docs/simulation.md";
const HEAD: &str =
    "| mutant | what goes wrong | detected by | rule | runs |\n|---|---|---|---|---|\n";

pub fn line(one: &Finished) -> String {
    let Finished { mutant, outcome, time } = one;
    let (name, seconds) = (&mutant.name, time.as_secs_f64());
    match outcome {
        Outcome::Detected { by, rule, n_runs } => {
            format!("{name}: detected by {by}, {rule}, {n_runs} runs, {seconds:.0} s")
        }
        Outcome::Survived => format!("{name}: SURVIVED, {seconds:.0} s"),
        Outcome::Failed(error) => format!("{name}: FAILED: {error}"),
    }
}

pub fn write(root: &Path, all: &[Mutant], finished: &[Finished]) -> Result<()> {
    let path = root.join(PAGE);
    let page = fs::read_to_string(&path).context(PAGE)?;
    fs::write(&path, updated(&page, all, finished)?).context(PAGE)
}

/// Replaces the rows of the mutants that ran; the others keep theirs.
fn updated(page: &str, all: &[Mutant], finished: &[Finished]) -> Result<String> {
    let (before, rest) = page.split_once(HEAD).context("the page has no table of mutants")?;
    let n_rows = rest.lines().take_while(|line| line.starts_with("| ")).count();
    let old = rest.lines().take(n_rows).filter_map(|row| Some((name_of(row)?, row)));
    let mut rows: BTreeMap<&str, String> = old.map(|(name, row)| (name, row.to_owned())).collect();
    rows.retain(|name, _| all.iter().any(|mutant| mutant.name == *name));
    for one in finished {
        rows.insert(&one.mutant.name, row(one));
    }
    let table: String = rows.values().map(|row| format!("{row}\n")).collect();
    let after: String = rest.lines().skip(n_rows).map(|line| format!("{line}\n")).collect();
    Ok(format!("{before}{HEAD}{table}{after}"))
}

fn name_of(row: &str) -> Option<&str> {
    row.split('`').nth(1)
}

fn row(one: &Finished) -> String {
    let Finished { mutant: Mutant { name, description, .. }, outcome, time: _ } = one;
    match outcome {
        Outcome::Detected { by, rule, n_runs } => {
            format!("| `{name}` | {description} | {by} | {rule} | {n_runs} |")
        }
        Outcome::Survived | Outcome::Failed(_) => {
            format!("| `{name}` | {description} | not detected | | |")
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn mutant(name: &str) -> Mutant {
        Mutant { name: name.into(), description: "It fails.".into(), patch: None }
    }

    #[test]
    fn rows_of_mutants_that_did_not_run_stay_and_rows_of_removed_ones_go() {
        let page = format!("before\n{HEAD}| `kept` | a |\n| `removed` | b |\n\nafter\n");
        let outcome = Outcome::Detected {
            by: "seed 3".into(),
            rule: "S3 no loss".into(),
            n_runs: "4".into(),
        };
        let time = Duration::from_secs(1);
        let finished = [Finished { mutant: mutant("added"), outcome, time }];
        let all = [mutant("added"), mutant("kept")];
        let updated = updated(&page, &all, &finished).expect("the page has the table");
        let row = "| `added` | It fails. | seed 3 | S3 no loss | 4 |";
        assert_eq!(updated, format!("before\n{HEAD}{row}\n| `kept` | a |\n\nafter\n"));
    }
}
