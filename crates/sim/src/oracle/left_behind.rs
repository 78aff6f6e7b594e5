//! What is left of a time when a Service had a selector (3.2, 4.2), in runs that delete it.

use endpointd_engine::OrphanPolicy;
use endpointd_memory_api::MemoryApi;
use endpointd_model::{EndpointSlice, Endpoints, Service, names};

use super::endpoints::is_ours;
use super::slices::{is_owned, publishes};
use super::slices_of;
use crate::script::Setup;

/// A slice of the Service that the controller may delete.
pub fn is_slice_left(service: &Service, slice: &EndpointSlice) -> bool {
    !publishes(service) && !service.is_deleting && is_owned(slice, service)
}

/// The label alone does not say that nobody else has written addresses.
pub fn are_endpoints_left(service: &Service, endpoints: &Endpoints) -> bool {
    let mut addresses =
        endpoints.subsets.iter().flat_map(|one| [&one.addresses, &one.not_ready_addresses]);
    !publishes(service)
        && !service.is_deleting
        && is_ours(endpoints)
        && addresses.all(|all| {
            all.iter().all(|one| one.target_ref.as_ref().is_some_and(|one| &*one.kind == "Pod"))
        })
}

pub fn compare(api: &MemoryApi, setup: &Setup, service: &Service) -> Vec<String> {
    match setup.orphan_policy {
        OrphanPolicy::Keep => return Vec::new(),
        OrphanPolicy::Delete => {}
    }
    let key = service.key();
    let slices = slices_of(api, &key, names::MANAGED_BY_SLICES);
    let slices = slices.filter(|slice| is_slice_left(service, slice));
    let mut differences: Vec<String> =
        slices.map(|slice| format!("{key}: slice {} is left behind", slice.meta.name)).collect();
    let endpoints = api.endpoints.get(&key).filter(|one| !one.meta.is_deleting());
    if endpoints.is_some_and(|endpoints| are_endpoints_left(service, endpoints)) {
        differences.push(format!("{key}: Endpoints are left behind"));
    }
    differences
}
