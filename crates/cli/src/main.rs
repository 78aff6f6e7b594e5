//! `endpointd`: selects the subcommand; each has its own file.

mod access_review;
mod browser;
mod changes;
mod check;
mod cli_error;
mod cluster;
mod completion;
mod dashboard;
mod diff;
mod duration;
mod endpoints;
mod explain;
mod input;
mod low_memory;
mod output;
mod plan;
#[cfg(all(feature = "playground", target_os = "linux"))]
mod playground;
#[cfg(any(test, not(all(feature = "playground", target_os = "linux"))))]
mod playground_disabled;
#[cfg(target_os = "linux")]
mod run;
mod shared_flags;
mod source_cluster;
mod stderr;
mod target;
mod terminal;
#[cfg(target_os = "linux")]
mod tokio_runtime;
mod yaml_output;

use std::path::PathBuf;
use std::process::ExitCode;

#[cfg(target_os = "linux")]
use clap::ArgMatches;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

#[cfg(not(all(feature = "playground", target_os = "linux")))]
use playground_disabled as playground;

/// The allocator with the lowest resident memory of those measured; tuned in `.cargo/config.toml`.
#[cfg(target_os = "linux")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Exit code of commands that look for findings or differences, if there are some.
const EXIT_FINDINGS: u8 = 1;
/// Exit code for every error; the same as clap's for invalid flags.
const EXIT_ERROR: u8 = 2;

/// Kubernetes controllers for Endpoints and EndpointSlices, in one process
#[derive(Parser)]
#[command(name = "endpointd", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Playground(playground::Flags),
    #[cfg(target_os = "linux")]
    Run(Box<run::Flags>),
    Plan(plan::Flags),
    Explain(Box<explain::Flags>),
    Diff(Box<diff::Flags>),
    Check(Box<check::Flags>),
    Dashboard(Box<dashboard::Flags>),
    Endpoints(Box<endpoints::Flags>),
    Cluster(Box<source_cluster::Flags>),
    Completion(completion::Flags),
    #[command(hide = true)]
    ManPages(completion::ManPageFlags),
}

/// A link of this name makes endpointd a plugin of kubectl: `kubectl endpointd explain`.
const PLUGIN: &str = "kubectl-endpointd";

/// The commands, with the name under which the user called them.
fn command() -> clap::Command {
    let program = std::env::args_os().next().map(PathBuf::from);
    let is_plugin = program.is_some_and(|path| path.file_stem().is_some_and(|stem| stem == PLUGIN));
    match is_plugin {
        true => Cli::command().bin_name("kubectl endpointd"),
        false => Cli::command(),
    }
}

/// The flags of the subcommand with their values, defaults included, for `/flagz`.
#[cfg(target_os = "linux")]
fn flag_values(matches: &ArgMatches) -> run::FlagValues {
    let Some((name, matches)) = matches.subcommand() else { return Vec::new() };
    let command = Cli::command();
    let arguments =
        command.find_subcommand(name).into_iter().flat_map(clap::Command::get_arguments);
    let value = |argument: &clap::Arg| {
        let values = matches.get_raw(argument.get_id().as_str())?;
        let values: Vec<_> = values.map(|value| value.to_string_lossy().into_owned()).collect();
        Some(format!("{}={}", argument.get_long()?, values.join(",")))
    };
    let mut values: Vec<String> = arguments.filter_map(value).collect();
    values.sort();
    values
}

fn main() -> ExitCode {
    low_memory::set_panic_hook();
    let matches = command().get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let result = match cli.command {
        Command::Playground(flags) => playground::run(&flags).map(|()| ExitCode::SUCCESS),
        #[cfg(target_os = "linux")]
        Command::Run(flags) => run::run(&flags, flag_values(&matches)).map(|()| ExitCode::SUCCESS),
        Command::Plan(flags) => plan::run(&flags),
        Command::Explain(flags) => explain::run(&flags),
        Command::Diff(flags) => diff::run(&flags),
        Command::Check(flags) => check::run(&flags),
        Command::Dashboard(flags) => dashboard::run(&flags),
        Command::Endpoints(flags) => endpoints::run(&flags),
        Command::Cluster(flags) => source_cluster::run(&flags),
        Command::Completion(flags) => completion::run(&flags, command()),
        Command::ManPages(flags) => completion::write_man_pages(&flags, command()),
    };
    match result {
        Ok(exit_code) => exit_code,
        Err(error) => {
            stderr::line(format_args!("error: {}", error.message));
            stderr::line(format_args!("hint: {}", error.hint));
            ExitCode::from(EXIT_ERROR)
        }
    }
}
