//! `metav1.Condition`, as Services and custom resources have it.

use endpointd_model as model;
use endpointd_model::ConditionStatus;
use serde::{Deserialize, Serialize};

use crate::lenient::is_default;
use crate::meta::text;
use crate::time::Time;

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Condition {
    #[prost(string, tag = "1")]
    #[serde(rename = "type")]
    pub type_: String,
    #[prost(string, tag = "2")]
    pub status: String,
    #[prost(int64, tag = "3")]
    #[serde(skip_serializing_if = "is_default")]
    pub observed_generation: i64,
    #[prost(message, optional, tag = "4")]
    #[serde(skip_serializing_if = "is_default")]
    pub last_transition_time: Option<Time>,
    #[prost(string, tag = "5")]
    pub reason: String,
    #[prost(string, tag = "6")]
    pub message: String,
}

impl From<Condition> for model::Condition {
    fn from(condition: Condition) -> Self {
        let Condition { type_, status, observed_generation, last_transition_time, reason, message } =
            condition;
        Self {
            condition_type: text(type_),
            status: ConditionStatus::from(status.as_str()),
            reason: text(reason),
            message: text(message),
            observed_generation: (observed_generation != 0).then_some(observed_generation),
            last_transition: last_transition_time.and_then(Time::when),
        }
    }
}

impl From<&model::Condition> for Condition {
    fn from(condition: &model::Condition) -> Self {
        let model::Condition {
            condition_type,
            status,
            reason,
            message,
            observed_generation,
            last_transition,
        } = condition;
        Self {
            type_: condition_type.to_string(),
            status: status.as_str().to_owned(),
            observed_generation: observed_generation.unwrap_or_default(),
            last_transition_time: last_transition.map(Time::from),
            reason: reason.to_string(),
            message: message.to_string(),
        }
    }
}
