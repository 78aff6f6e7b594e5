//! Conditions of Services and of custom resources (`metav1.Condition`).

use crate::{SharedStr, Timestamp};

/// One statement about an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Condition {
    pub condition_type: SharedStr,
    pub status: ConditionStatus,
    pub reason: SharedStr,
    pub message: SharedStr,
    pub observed_generation: Option<i64>,
    /// When the status changed last. The API server requires it; a write without it gets the time at
    /// which it is sent.
    pub last_transition: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConditionStatus {
    True,
    False,
    /// Also any text that the API server would reject.
    #[default]
    Unknown,
}

impl ConditionStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

impl From<&str> for ConditionStatus {
    fn from(text: &str) -> Self {
        match text {
            "True" => Self::True,
            "False" => Self::False,
            _ => Self::Unknown,
        }
    }
}
