//! `endpointd_shadow_*`: set by a dry run.

use prometheus::GaugeVec;

use super::family::Families;
use super::upstream::NO_LABELS;
use crate::shadow_status::ShadowStatus;

pub(super) struct ShadowGauges {
    keys: GaugeVec,
    agreed_for: GaugeVec,
}

impl ShadowGauges {
    pub fn register(families: &mut Families) -> Self {
        Self {
            keys: families.gauge(
                "endpointd_shadow_keys",
                "In a dry run: keys of controllers, by whether what is published agrees with the \
                 plan (agrees, differs), or changed a moment ago (unsettled)",
                &["state"],
            ),
            agreed_for: families.gauge(
                "endpointd_shadow_agreed_seconds",
                "In a dry run: time since a key last differed, or since the start if none has",
                NO_LABELS,
            ),
        }
    }

    pub fn set(&self, shadow: &ShadowStatus) {
        let ShadowStatus { n_agreeing, n_unsettled, differences, agreed_for } = shadow;
        let counts =
            [("agrees", *n_agreeing), ("unsettled", *n_unsettled), ("differs", differences.len())];
        for (state, n) in counts {
            self.keys.with_label_values(&[state]).set(n as f64);
        }
        self.agreed_for.with_label_values(NO_LABELS).set(agreed_for.as_secs_f64());
    }
}
