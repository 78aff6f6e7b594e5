//! The findings as JSON; YAML has the same fields.

use endpointd_explain::FORMAT_VERSION;
use serde_json::{Value, json};

use super::answers::{Answer, Question};

/// One object has its findings at the top; several are items.
pub fn value(question: &Question, answers: &[&Answer], n_all: usize) -> Value {
    let one = |answer: &Answer| serde_json::to_value(&answer.findings).unwrap_or_default();
    if let (Question::One(_), [answer]) = (question, answers) {
        let mut value = one(answer);
        value["formatVersion"] = FORMAT_VERSION.into();
        return value;
    }
    let n_problems = answers.iter().filter(|answer| answer.needs_attention()).count();
    json!({
        "formatVersion": FORMAT_VERSION,
        "verdict": verdict(n_problems, n_all),
        "items": answers.iter().map(|answer| one(answer)).collect::<Vec<_>>(),
    })
}

/// The answer about several Services.
pub fn verdict(n_problems: usize, n_all: usize) -> String {
    match (n_problems, n_all) {
        (_, 0) => "There are no Services.".to_owned(),
        (0, 1) => "The only Service is well.".to_owned(),
        (0, n) => format!("All {n} Services are well."),
        (_, 1) => "The only Service has findings.".to_owned(),
        (1, n) => format!("1 of {n} Services has findings."),
        (problems, n) => format!("{problems} of {n} Services have findings."),
    }
}
