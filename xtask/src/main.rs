//! Developer commands. `cargo xtask test` checks everything and is what CI runs.

mod archive;
mod bench;
mod bill_of_materials;
mod browser;
mod callgrind;
mod cargo;
mod cluster;
mod control_plane;
mod dependencies;
mod dist;
mod docs;
mod fuzz;
mod image;
mod install_tools;
mod man;
mod mutants;
mod notices;
mod parity;
mod release;
mod scenarios;
mod sim;
mod soak;
mod test;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Developer commands of endpointd")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run all checks of CI in the same order: format, lints, tests, simulator, parity
    Test,
    /// Find or build etcd, kube-apiserver and kube-controller-manager; prints their directory
    ControlPlane(control_plane::ReleaseFlag),
    /// Run the scenarios on a real control plane, of any supported release of Kubernetes
    Scenarios(scenarios::Args),
    /// Run a throw-away control plane until Ctrl-C; prints the KUBECONFIG to export
    Cluster(cluster::Args),
    /// Our plans against upstream's own code, on generated worlds
    Parity(parity::Flags),
    /// Test the live page in Chromium
    Browser(browser::Args),
    /// Compare endpointd with kube-controller-manager in one run on one machine
    Bench(bench::Args),
    /// Build with PGO and BOLT; prints the path of the program
    Dist,
    /// Build the documents as a site with search; prints its first page
    Docs,
    /// Build a container image without a container engine; prints its directory and digest
    Image(image::Args),
    /// Write the licenses of what the static program links, and its bill of materials
    Notices(image::NoticesArgs),
    /// Build programs, images, the chart, and the plugin, with checksums; prints their directory
    Release(release::Args),
    /// Write the manual pages of endpointd; prints their directory
    Man,
    /// Install what `dist`, `image`, and tests need, with rustup, apt-get, Go, and npm
    InstallTools,
    /// Run the daemon for hours on a real control plane with changes and faults
    Soak(soak::Args),
    /// Run the fault-injection simulator
    Sim(sim::Flags),
    /// Run the fuzz targets of the decoders
    Fuzz(fuzz::Flags),
    /// Check that the simulator detects deliberate bugs
    Mutants(mutants::Flags),
    /// Count the instructions of planning with callgrind
    Instructions,
}

fn main() -> ExitCode {
    let command = match Cli::try_parse() {
        Ok(Cli { command }) => command,
        Err(error) => return refuse(&error),
    };
    let done = match command {
        Command::Test => test::run(),
        Command::ControlPlane(flag) => control_plane::run(&flag),
        Command::Scenarios(args) => scenarios::run(&args),
        Command::Browser(args) => browser::run(&args),
        Command::Dist => dist::run(),
        Command::Docs => docs::run(),
        Command::Image(args) => image::run(&args),
        Command::Notices(args) => image::write_notices(&args),
        Command::Release(args) => release::run(&args),
        Command::Man => man::run(),
        Command::InstallTools => install_tools::run(),
        Command::Cluster(args) => cluster::run(&args),
        Command::Parity(flags) => return parity::run(&flags),
        Command::Soak(args) => return soak::run(&args),
        Command::Sim(flags) => return sim::run(&flags),
        Command::Fuzz(flags) => return fuzz::run(&flags),
        Command::Mutants(flags) => return mutants::run(&flags),
        Command::Bench(args) => {
            return bench::run(&args).unwrap_or_else(|error| {
                eprintln!("error: {error:#}");
                ExitCode::from(2)
            });
        }
        Command::Instructions => callgrind::run(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Prints help as requested, and any other error as one line with a hint.
fn refuse(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        drop(error.print());
        return ExitCode::SUCCESS;
    }
    let text = error.to_string();
    eprintln!("{}", text.lines().next().unwrap_or("error: bad flags"));
    eprintln!("hint: `cargo xtask help` lists the commands, `cargo xtask <command> --help` flags");
    ExitCode::from(2)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn every_command_has_valid_flags() {
        Cli::command().debug_assert();
    }
}
