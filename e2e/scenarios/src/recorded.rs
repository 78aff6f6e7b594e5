//! Checkpoints of each scenario under kube-controller-manager on a real API server, recorded in
//! files, for runs without either.

use std::fs;
use std::path::PathBuf;

use crate::run::Checkpoints;
use crate::scenarios::Scenario;
use crate::test_namespace::Checkpoint;

/// Set to rewrite the files, as for other expected output in this repository.
const UPDATE_VARIABLE: &str = "UPDATE_EXPECT";
/// Starts the line with the name of a checkpoint; no line of a canonical form starts like this.
const HEADING: &str = "== ";

/// Compares a run with its recording, or writes the recording if `UPDATE_EXPECT` is set.
pub fn compare_or_update(scenario: &Scenario, checkpoints: &Checkpoints) -> Result<(), String> {
    if std::env::var_os(UPDATE_VARIABLE).is_some() {
        return fs::write(path(scenario), text(checkpoints)).map_err(|error| error.to_string());
    }
    if load(scenario)? == *checkpoints {
        return Ok(());
    }
    Err(format!("the recording differs from upstream's run: set `{UPDATE_VARIABLE}=1`"))
}

pub fn load(scenario: &Scenario) -> Result<Checkpoints, String> {
    let text = fs::read_to_string(path(scenario))
        .map_err(|error| format!("no recording: {error}; set `{UPDATE_VARIABLE}=1`"))?;
    let mut checkpoints = Checkpoints::new();
    for line in text.lines() {
        match line.strip_prefix(HEADING) {
            Some(name) => {
                checkpoints.push(Checkpoint { name: name.to_owned(), form: String::new() });
            }
            None => {
                let checkpoint =
                    checkpoints.last_mut().ok_or("a recording starts with a heading")?;
                checkpoint.form.push_str(line);
                checkpoint.form.push('\n');
            }
        }
    }
    Ok(checkpoints)
}

fn text(checkpoints: &Checkpoints) -> String {
    let one =
        |checkpoint: &Checkpoint| format!("{HEADING}{}\n{}", checkpoint.name, checkpoint.form);
    checkpoints.iter().map(one).collect()
}

fn path(scenario: &Scenario) -> PathBuf {
    let name = format!("recorded/{}.txt", scenario.name);
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(name)
}
