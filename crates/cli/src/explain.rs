//! `endpointd explain`: why pods are or are not behind a Service. Reads objects from a cluster or
//! files, asks `endpointd_explain`, and prints the findings.

mod answers;
mod controller_state;
mod flags;
mod label;
mod label_selector;
mod render_json;
mod render_text;

use std::process::ExitCode;

use self::answers::{Answer, Question};
pub use self::flags::Flags;
use self::flags::Format;
use crate::cli_error::CliError;
use crate::cluster::run_async;
use crate::terminal::Terminal;
use crate::{EXIT_ERROR, EXIT_FINDINGS, output};

pub fn run(flags: &Flags) -> Result<ExitCode, CliError> {
    let question = Question::resolve(flags)?;
    let answers = run_async(answers::answer(flags, &question))?;
    let exit_code = exit_code(&answers);
    let shows_all = !flags.only_problems || matches!(question, Question::One(_));
    let shown: Vec<&Answer> =
        answers.iter().filter(|one| shows_all || one.needs_attention()).collect();
    let text = match flags.output {
        Format::Json => format!("{:#}\n", render_json::value(&question, &shown, answers.len())),
        Format::Yaml => {
            crate::yaml_output::to_yaml(&render_json::value(&question, &shown, answers.len()))
        }
        Format::Text | Format::Wide => {
            if let ([one], Question::One(_)) = (answers.as_slice(), &question)
                && !one.is_found
            {
                return Err(render_text::not_found(&one.findings));
            }
            let detail = render_text::Detail::of(flags.output);
            let terminal = Terminal::of_stdout();
            render_text::render(&terminal, detail, &question, &shown, answers.len())
        }
    };
    output::print(&text)?;
    Ok(exit_code)
}

/// What could not be found out counts more than what was found.
fn exit_code(answers: &[Answer]) -> ExitCode {
    if answers.iter().any(|one| !one.is_found || one.is_partial) {
        ExitCode::from(EXIT_ERROR)
    } else if answers.iter().any(|one| one.findings.has_problems()) {
        ExitCode::from(EXIT_FINDINGS)
    } else {
        ExitCode::SUCCESS
    }
}
