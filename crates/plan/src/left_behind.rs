//! What a controller published for a Service that had a selector before, and has none now or is an
//! ExternalName (docs/spec.md, 3.2 and 4.2). Upstream leaves it as it is.

use endpointd_model::{
    DeleteTarget, EndpointSlice, Endpoints, PublishedResource, Selection, Service, names,
};

use crate::Settings;
use crate::slices::owns;

/// What plans make of such objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OrphanPolicy {
    /// As upstream.
    #[default]
    Keep,
    Delete,
}

/// The slices with our managed-by label and the Service as owner, sorted by name.
pub fn slices_left_behind(
    service: &Service,
    slices: &[&EndpointSlice],
    settings: &Settings,
) -> Vec<DeleteTarget> {
    if !is_left(service) {
        return Vec::new();
    }
    let is_ours = |slice: &&&EndpointSlice| {
        let meta = &slice.meta;
        meta.namespace == service.namespace
            && meta.labels.has(names::SERVICE_NAME, &service.name)
            && meta.labels.has(names::MANAGED_BY, &settings.managers.slices)
            && !meta.is_deleting()
            && owns(service, slice)
    };
    let ours = slices.iter().filter(is_ours);
    let mut targets: Vec<DeleteTarget> =
        ours.map(|slice| DeleteTarget::of(PublishedResource::Slices, &slice.meta)).collect();
    targets.sort_by(|a, b| a.key.cmp(&b.key));
    targets
}

/// Endpoints with our managed-by label whose addresses are pods. Endpoints have no owner, and the
/// label stays when a user writes addresses of his own into them: those are kept.
pub fn endpoints_left_behind(
    service: &Service,
    endpoints: Option<&Endpoints>,
) -> Option<DeleteTarget> {
    let Endpoints { meta, subsets } = endpoints.filter(|_| is_left(service))?;
    let mut addresses =
        subsets.iter().flat_map(|one| one.addresses.iter().chain(&one.not_ready_addresses));
    let is_of_pods = addresses.all(|address| {
        address.target_ref.as_ref().is_some_and(|target| target.kind.as_ref() == "Pod")
    });
    let is_ours = meta.labels.has(names::ENDPOINTS_MANAGED_BY, names::MANAGED_BY_ENDPOINTS)
        && !meta.annotations.contains_key(names::LEADER)
        && !meta.is_deleting();
    (is_ours && is_of_pods).then(|| DeleteTarget::of(PublishedResource::Endpoints, meta))
}

/// The garbage collector deletes what a Service leaves that is being deleted.
fn is_left(service: &Service) -> bool {
    match service.selection() {
        Selection::Pods(_) => false,
        Selection::Manual | Selection::External => !service.is_deleting,
    }
}
