//! `hunt`: looks for a violation and prints the first one.

use std::process::ExitCode;

use endpointd_sim::{ClientBug, hunt};

/// As in a simulation: exit code 1 for a violation, 0 without one.
pub fn run(bug: Option<&str>) -> ExitCode {
    let client_bug = match bug.map(|name| ClientBug::by_name(name).ok_or(name)) {
        None => None,
        Some(Ok(bug)) => Some(bug),
        Some(Err(name)) => {
            eprintln!("error: no client bug is called `{name}`");
            eprintln!("hint: `client-bugs` lists them");
            return ExitCode::from(2);
        }
    };
    match hunt(client_bug) {
        Some(found) => {
            println!("{}\t{}\t{}", found.by, found.rule.name(), found.n_runs);
            ExitCode::FAILURE
        }
        None => ExitCode::SUCCESS,
    }
}

/// One line for each deliberate bug of the simulator's own model: name, description.
pub fn print_client_bugs() -> ExitCode {
    for bug in ClientBug::ALL {
        println!("{}\t{}", bug.name(), bug.description());
    }
    ExitCode::SUCCESS
}
