//! What must be published, worked out the slow and obvious way from `spec/behaviour.md` and
//! `spec/beyond.md`. Shares nothing with the product but `model`.

pub mod endpoints;
pub mod hints;
pub mod mirror;
pub mod pods;
pub mod slices;

use endpointd_model::{EndpointSlice, Key, Labels, names};

use crate::api::Api;
use crate::script::Setup;

/// Everything that is not as it should be.
pub fn judge(api: &Api, setup: &Setup) -> Vec<String> {
    let mut complaints = Vec::new();
    for service in api.services.values() {
        complaints.extend(slices::judge(api, setup, service));
        complaints.extend(hints::judge(api, service));
        complaints.extend(endpoints::judge(api, service));
    }
    complaints.extend(endpoints::judge_leftovers(api));
    complaints.extend(mirror::judge(api, setup));
    complaints
}

/// Endpoints that are published and should not be.
pub fn unwanted(api: &Api) -> Vec<String> {
    api.services.values().flat_map(|service| slices::unwanted(api, service)).collect()
}

/// The slices that say they are for `key` and managed by `manager`, and are not on their way out.
pub fn slices_of<'a>(
    api: &'a Api,
    key: &'a Key,
    manager: &'a str,
) -> impl Iterator<Item = &'a EndpointSlice> {
    api.slices.values().filter(move |slice| {
        let meta = &slice.meta;
        meta.namespace == key.namespace
            && meta.labels.has(names::SERVICE_NAME, &key.name)
            && meta.labels.has(names::MANAGED_BY, manager)
            && !meta.is_deleting()
    })
}

/// Without the labels that only controllers set.
pub fn plain_labels(labels: &Labels, reserved: &[&str]) -> Labels {
    let plain = labels.iter().filter(|(key, _)| !reserved.contains(&key.as_ref()));
    plain.map(|(key, value)| (key.clone(), value.clone())).collect()
}
