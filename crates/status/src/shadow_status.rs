//! The result of a dry run: which keys differ from what another controller publishes.

use std::time::Duration;

use endpointd_model::{Controller, Key};
use serde_json::{Value, json};

/// Differences that `/report` lists.
const SHOWN_MAX: usize = 200;

/// Counts are of keys of controllers: a Service has slices and Endpoints.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShadowStatus {
    pub n_agreeing: usize,
    /// Keys that changed a moment ago, and that may not differ for long.
    pub n_unsettled: usize,
    /// Keys that have differed for longer than a controller needs.
    pub differences: Vec<ShadowDifference>,
    /// Since a key last differed; since the start if none has.
    pub agreed_for: Duration,
}

/// A key that differs, and what would be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShadowDifference {
    pub controller: Controller,
    pub key: Key,
    pub lasted: Duration,
    pub n_creates: usize,
    pub n_updates: usize,
    pub n_deletes: usize,
}

impl ShadowStatus {
    pub(crate) fn to_json(&self) -> Value {
        let Self { n_agreeing, n_unsettled, differences, agreed_for } = self;
        json!({
            "agrees": n_agreeing,
            "unsettled": n_unsettled,
            "differs": differences.len(),
            "agreedForSeconds": agreed_for.as_secs_f64(),
            "differences": differences.iter().take(SHOWN_MAX).map(row).collect::<Vec<_>>(),
        })
    }
}

fn row(one: &ShadowDifference) -> Value {
    let ShadowDifference { controller, key, lasted, n_creates, n_updates, n_deletes } = one;
    json!({
        "controller": controller.name(),
        "key": key.to_string(),
        "seconds": lasted.as_secs_f64(),
        "creates": n_creates,
        "updates": n_updates,
        "deletes": n_deletes,
    })
}
