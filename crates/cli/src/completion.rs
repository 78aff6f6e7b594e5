//! `endpointd completion` and `endpointd man-pages`: generated from the flags.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Command};
use clap_complete::Shell;

use crate::cli_error::CliError;
use crate::output;

/// Print a completion script for a shell
#[derive(Args)]
#[command(after_long_help = "Examples:\n  \
        source <(endpointd completion bash)\n  \
        endpointd completion fish > ~/.config/fish/completions/endpointd.fish")]
pub struct Flags {
    #[arg(value_name = "SHELL", value_enum)]
    shell: Shell,
}

/// Write the manual pages into a directory
#[derive(Args)]
pub struct ManPageFlags {
    #[arg(value_name = "DIRECTORY")]
    directory: PathBuf,
}

pub fn run(flags: &Flags, mut command: Command) -> Result<ExitCode, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(flags.shell, &mut command, "endpointd", &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}

pub fn write_man_pages(flags: &ManPageFlags, command: Command) -> Result<ExitCode, CliError> {
    let written = std::fs::create_dir_all(&flags.directory)
        .and_then(|()| clap_mangen::generate_to(command, &flags.directory));
    written.map_err(|error| {
        CliError::new(
            format!("cannot write to `{}`: {error}", flags.directory.display()),
            "choose a directory that is writable",
        )
    })?;
    Ok(ExitCode::SUCCESS)
}
