//! Why something was not done, and what to do about it.

/// Ends the command with exit code 2: one sentence, and a hint.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    pub message: String,
    pub hint: String,
}

impl Refusal {
    pub fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { message: message.into(), hint: hint.into() }
    }
}
