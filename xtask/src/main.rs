//! Developer commands. `cargo xtask test` checks everything and is what CI runs.

mod cluster;
mod control_plane;
mod instructions;
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
    /// Format, lints, tests: everything CI runs, in the same order
    Test,
    /// Find or build etcd, kube-apiserver and kube-controller-manager; prints their directory
    ControlPlane,
    /// Run a throw-away control plane until Ctrl-C; prints the KUBECONFIG to export
    Cluster(cluster::Args),
    /// Count the instructions of planning; installs the runner it needs
    Instructions,
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Test => test::run(),
        Command::ControlPlane => control_plane::run(),
        Command::Cluster(args) => cluster::run(&args),
        Command::Instructions => instructions::run(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
