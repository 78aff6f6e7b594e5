//! The outcomes for people and for programs.

use serde_json::{Value, json};

use super::outcome::{Outcome, Result as CheckResult};
use crate::terminal::{Style, Terminal};

/// The version of this form; a field never changes its meaning.
const FORMAT_VERSION: &str = "1.0";

pub fn text(terminal: &Terminal, outcomes: &[Outcome]) -> String {
    let mut out = String::new();
    for Outcome { result, message, hint, .. } in outcomes {
        let (mark, style) = match result {
            CheckResult::Ok => ("√", Style::Good),
            CheckResult::Warning => ("!", Style::Warning),
            CheckResult::Failed => ("×", Style::Bad),
            CheckResult::Skipped => ("?", Style::Dim),
        };
        let lines = terminal.wrap(message, 2);
        out.push_str(&format!("{} {}\n", terminal.paint(style, mark), lines.join("\n  ")));
        if let Some(hint) = hint {
            let lines = terminal.wrap(hint, 10);
            let hint = terminal.paint(Style::Dim, "hint: ");
            out.push_str(&format!("    {hint}{}\n", lines.join("\n          ")));
        }
    }
    out.push_str(&format!("\n{}\n", terminal.paint(Style::Bold, &verdict(outcomes))));
    out
}

fn verdict(outcomes: &[Outcome]) -> String {
    let count = |result| outcomes.iter().filter(|one| one.result == result).count();
    let (failed, warnings) = (count(CheckResult::Failed), count(CheckResult::Warning));
    let counted = |n: usize, what: &str| match n {
        1 => format!("1 {what}"),
        n => format!("{n} {what}s"),
    };
    match (failed, warnings) {
        (0, 0) => "All checks passed.".to_owned(),
        (0, n) => format!("All checks passed, with {}.", counted(n, "warning")),
        (failed, 0) => format!("{} failed.", counted(failed, "check")),
        (failed, n) => format!("{} failed, {}.", counted(failed, "check"), counted(n, "warning")),
    }
}

pub fn json(outcomes: &[Outcome]) -> Value {
    let check = |one: &Outcome| {
        json!({
            "name": one.name, "result": one.result.as_str(), "message": one.message, "hint": one.hint,
        })
    };
    json!({
        "formatVersion": FORMAT_VERSION,
        "verdict": verdict(outcomes),
        "checks": outcomes.iter().map(check).collect::<Vec<_>>(),
    })
}
