//! `endpointd diff`: what the controllers would write for a live cluster, compared with what is
//! published, in words. Writes nothing.

mod compared;
mod flags;
mod read;
mod render_json;
mod render_text;
mod render_unified;
mod shared_parts;

use std::process::ExitCode;

use self::compared::Compared;
pub use self::flags::Flags;
use self::flags::Format;
use crate::cli_error::CliError;
use crate::cluster::run_async;
use crate::terminal::Terminal;
use crate::{EXIT_FINDINGS, output, stderr};

pub fn run(flags: &Flags) -> Result<ExitCode, CliError> {
    let compared = run_async(compared::compare(flags))?;
    for warning in &compared.warnings {
        stderr::line(format_args!("warning: {warning}"));
    }
    output::print(&text(flags.output, &compared))?;
    Ok(match compared.differences.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(EXIT_FINDINGS),
    })
}

fn text(format: Format, compared: &Compared) -> String {
    let terminal = Terminal::of_stdout();
    match format {
        Format::Text => render_text::render(&terminal, compared),
        Format::Unified => render_unified::render(&terminal, compared),
        Format::Json => format!("{:#}\n", render_json::value(compared)),
    }
}
