//! The mutants: each must be detected.

use std::process::ExitCode;

#[cfg(not(feature = "mutants"))]
pub fn run() -> ExitCode {
    eprintln!("error: this build has no mutants\nhint: use `cargo xtask sim mutants`");
    ExitCode::from(2)
}

#[cfg(feature = "mutants")]
pub fn run() -> ExitCode {
    use endpointd_mutants::Mutant;
    use endpointd_sim::{fault_schedules, hunt};

    let schedules = fault_schedules();
    let mutants = Mutant::ALL;
    let mut detections = vec![None; mutants.len()];
    super::on_all_cores(
        mutants.len(),
        |number| hunt(mutants[number], &schedules),
        |number, detection| detections[number] = detection,
    );
    let mut n_survived = 0;
    for (mutant, detection) in mutants.iter().zip(&detections) {
        match detection {
            Some(detection) => println!(
                "| {} | {} | {} | {} |",
                mutant.words(),
                detection.by,
                detection.rule.name(),
                detection.n_runs
            ),
            None => {
                n_survived += 1;
                println!("| {} | SURVIVED | | |", mutant.words());
            }
        }
    }
    println!("mutants: {} of {} detected", mutants.len() - n_survived, mutants.len());
    ExitCode::from(u8::from(n_survived > 0))
}
