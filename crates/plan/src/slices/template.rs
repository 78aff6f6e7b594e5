//! The metadata of every slice of one Service, and which observed slices belong to it.

use endpointd_model::{EndpointSlice, Family, Labels, Meta, OwnerRef, Service, SharedStr, names};

use crate::packing::LabelUpdate;
use crate::port_set::PortSet;
use crate::slice_names::generate_name;

/// Labels that only the controller sets. A difference in them alone causes no write (4.9).
const RESERVED_LABELS: [&str; 3] = [names::SERVICE_NAME, names::MANAGED_BY, names::HEADLESS];

pub struct Template<'a> {
    service: &'a Service,
    /// The value of the managed-by label.
    manager: &'a SharedStr,
    /// The Service's labels without the reserved ones.
    inherited: Labels,
    /// All labels a slice should carry.
    labels: Labels,
}

impl<'a> Template<'a> {
    /// Upstream: `setEndpointSliceLabels`.
    pub fn of(service: &'a Service, manager: &'a SharedStr) -> Self {
        let inherited: Labels = inherited(&service.labels).collect();
        let mut labels = inherited.to_map();
        labels.insert(names::SERVICE_NAME.into(), service.name.clone());
        labels.insert(names::MANAGED_BY.into(), manager.clone());
        if service.is_labelled_headless() {
            labels.insert(names::HEADLESS.into(), SharedStr::default());
        }
        Self { service, manager, inherited, labels: labels.into_iter().collect() }
    }

    /// The slices that the controller considers (4.3), sorted by name. Slices that are being
    /// deleted are ignored.
    pub fn observed<'s>(&self, slices: &[&'s EndpointSlice]) -> Vec<&'s EndpointSlice> {
        let is_managed = |slice: &&&EndpointSlice| {
            let meta = &slice.meta;
            meta.namespace == self.service.namespace
                && meta.labels.has(names::SERVICE_NAME, &self.service.name)
                && meta.labels.has(names::MANAGED_BY, self.manager)
                && !meta.is_deleting()
        };
        let mut observed: Vec<_> = slices.iter().filter(is_managed).copied().collect();
        observed.sort_by(|a, b| a.meta.name.cmp(&b.meta.name));
        observed
    }

    pub fn owns(&self, slice: &EndpointSlice) -> bool {
        owns(self.service, slice)
    }

    pub fn label_update(&self, slice: &EndpointSlice) -> LabelUpdate {
        let is_needed = !inherited(&slice.meta.labels).eq(inherited(&self.inherited));
        LabelUpdate { is_needed, labels: self.labels.clone() }
    }

    /// A new slice without endpoints.
    pub fn new_slice(&self, family: Family, ports: &PortSet) -> EndpointSlice {
        let service = self.service;
        let owner = OwnerRef {
            api_version: "v1".into(),
            kind: "Service".into(),
            name: service.name.clone(),
            uid: service.uid.clone(),
            controller: Some(true),
            block_owner_deletion: Some(true),
        };
        EndpointSlice {
            meta: Meta {
                namespace: service.namespace.clone(),
                generate_name: Some(generate_name(&service.name).into()),
                labels: self.labels.clone(),
                owners: vec![owner],
                ..Meta::default()
            },
            address_type: family.into(),
            endpoints: Vec::new(),
            ports: ports.as_slice().to_vec(),
        }
    }
}

/// Upstream: `ownedBy`. A slice of a deleted Service of the same name has another owner uid.
pub fn owns(service: &Service, slice: &EndpointSlice) -> bool {
    slice.meta.owners.iter().any(|owner| {
        owner.uid == service.uid
            && owner.kind.as_ref() == "Service"
            && owner.api_version.as_ref() == "v1"
    })
}

fn inherited(labels: &Labels) -> impl Iterator<Item = (SharedStr, SharedStr)> {
    labels
        .iter()
        .filter(|(key, _)| !RESERVED_LABELS.contains(&key.as_ref()))
        .map(|(key, value)| (key.clone(), value.clone()))
}

/// Upstream: `placeholderSliceCompare`, in which an absent and an empty label value are equal.
pub fn is_same_placeholder(observed: &EndpointSlice, placeholder: &EndpointSlice) -> bool {
    let covers = |a: &Labels, b: &Labels| {
        a.iter().all(|(key, value)| b.get(key).map_or("", AsRef::as_ref) == value.as_ref())
    };
    let (a, b) = (&observed.meta.labels, &placeholder.meta.labels);
    observed.address_type == placeholder.address_type
        && observed.ports.is_empty()
        && observed.endpoints.is_empty()
        && covers(a, b)
        && covers(b, a)
}
