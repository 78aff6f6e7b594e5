//! The mutants: each must be caught.

use std::process::ExitCode;

#[cfg(not(feature = "mutants"))]
pub fn run() -> ExitCode {
    eprintln!("error: this build has no mutants\nhint: use `cargo xtask sim mutants`");
    ExitCode::from(2)
}

#[cfg(feature = "mutants")]
pub fn run() -> ExitCode {
    use endpointd_mutants::Mutant;
    use endpointd_sim::{hunt, plans};

    let plans = plans();
    let mutants = Mutant::ALL;
    let mut kills = vec![None; mutants.len()];
    super::on_all_cores(
        mutants.len(),
        |number| hunt(mutants[number], &plans),
        |number, kill| kills[number] = kill,
    );
    let mut n_alive = 0;
    for (mutant, kill) in mutants.iter().zip(&kills) {
        match kill {
            Some(kill) => println!(
                "| {} | {} | {} | {} |",
                mutant.words(),
                kill.how,
                kill.rule.name(),
                kill.n_runs
            ),
            None => {
                n_alive += 1;
                println!("| {} | ALIVE | | |", mutant.words());
            }
        }
    }
    println!("mutants: {} of {} caught", mutants.len() - n_alive, mutants.len());
    ExitCode::from(u8::from(n_alive > 0))
}
