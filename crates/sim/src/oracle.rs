//! The oracle: what must be published, computed in the simplest way from `docs/spec.md`. It shares
//! only `model` with the product.

pub mod endpoints;
pub mod hints;
pub mod imports;
pub mod left_behind;
pub mod mirror;
pub mod pods;
pub mod slices;

use endpointd_model::{EndpointSlice, Key, Labels, names};

use crate::instances::Instances;
use crate::script::Setup;
use endpointd_memory_api::MemoryApi;

/// All differences between the stored objects and the specification.
pub fn compare(api: &MemoryApi, setup: &Setup) -> Vec<String> {
    let mut differences = Vec::new();
    for service in api.services.values() {
        differences.extend(slices::compare(api, setup, service));
        differences.extend(hints::compare(api, service));
        differences.extend(endpoints::compare(api, service));
        differences.extend(left_behind::compare(api, setup, service));
        if setup.runs_imports {
            differences.extend(imports::compare(api, service));
        }
    }
    // Its Service may belong to another instance.
    if setup.instances != Instances::Selectors {
        differences.extend(endpoints::find_leftovers(api));
    }
    differences.extend(mirror::compare(api, setup));
    differences
}

/// Endpoints that are published but not desired.
pub fn unwanted(api: &MemoryApi) -> Vec<String> {
    let mut unwanted = Vec::new();
    for service in api.services.values() {
        unwanted.extend(slices::unwanted(api, service));
        unwanted.extend(imports::unwanted(api, service));
    }
    unwanted
}

/// Slices labelled for `key` and `manager` that are not being deleted.
pub fn slices_of<'a>(
    api: &'a MemoryApi,
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

/// Without the reserved labels.
pub fn plain_labels(labels: &Labels, reserved: &[&str]) -> Labels {
    let plain = labels.iter().filter(|(key, _)| !reserved.contains(&key.as_ref()));
    plain.map(|(key, value)| (key.clone(), value.clone())).collect()
}
