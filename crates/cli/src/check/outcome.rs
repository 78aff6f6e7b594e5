//! The outcome of one check.

use endpointd_client::ReadError;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// A stable word for programs.
    pub name: &'static str,
    pub result: Result,
    pub message: String,
    pub hint: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Result {
    Ok,
    /// endpointd works; something may not be as intended.
    Warning,
    /// endpointd cannot work, or must not.
    Failed,
    /// It could not be found out.
    Skipped,
}

impl Result {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        }
    }
}

impl Outcome {
    pub fn ok(name: &'static str, message: impl Into<String>) -> Self {
        Self { name, result: Result::Ok, message: message.into(), hint: None }
    }

    pub fn warning(
        name: &'static str,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        let (message, hint) = (message.into(), Some(hint.into()));
        Self { name, result: Result::Warning, message, hint }
    }

    pub fn failed(name: &'static str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        let (message, hint) = (message.into(), Some(hint.into()));
        Self { name, result: Result::Failed, message, hint }
    }

    pub fn skipped(name: &'static str, what: &str, error: &ReadError) -> Self {
        let message = format!("cannot read {what}: {error}");
        Self { name, result: Result::Skipped, message, hint: None }
    }
}
