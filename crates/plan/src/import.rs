//! Plans the import controller (docs/spec.md, section 10): a Service without a selector publishes the
//! endpoints of a Service in another namespace, if the owner of that Service agrees. Upstream has
//! nothing like it.

mod condition;
mod copies;
mod ports;
mod state;

use endpointd_model::{EndpointSlice, Key, ReferenceGrant, Selection, Service};

use self::condition::condition_write;
use self::copies::Copies;
pub(crate) use self::copies::is_allowed;
use self::ports::PortMap;
pub use self::state::{ImportState, PortLabel};
use crate::{CarriedState, Plan, Settings, Topology};

/// Input of [`import`].
#[derive(Clone, Debug)]
pub struct ImportSnapshot<'a> {
    /// The consumer. None if it does not exist.
    pub service: Option<&'a Service>,
    /// The Service that the consumer names. None if it does not exist.
    pub source: Option<&'a Service>,
    /// The slices with the source's name as service-name label, in any order.
    pub source_slices: Vec<&'a EndpointSlice>,
    /// The grants in the namespace of the source.
    pub grants: Vec<&'a ReferenceGrant>,
    /// As in [`SliceSnapshot::slices`](crate::SliceSnapshot::slices).
    pub slices: Vec<&'a EndpointSlice>,
    pub topology: &'a Topology,
    pub carried: &'a CarriedState,
}

/// The writes for one consumer, and what its Service tells about them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ImportPlan {
    pub plan: Plan,
    pub state: ImportState,
}

impl ImportPlan {
    /// The whole plan of a consumer, with the write of its condition.
    pub fn with_condition(self, service: Option<&Service>) -> Plan {
        let Self { mut plan, state } = self;
        plan.writes.extend(service.and_then(|service| condition_write(service, &state)));
        plan
    }
}

/// Plans the slices of one consumer.
pub fn import(snapshot: &ImportSnapshot, settings: &Settings) -> ImportPlan {
    let manager = &*settings.managers.import;
    // Without a Service the garbage collector deletes the slices through their ownerReference.
    let Some(service) = snapshot.service else { return ImportPlan::default() };
    match permitted_source(service, snapshot) {
        Ok((key, source)) => publish(service, (&key, source), snapshot, manager),
        Err(state) => {
            let plan = Copies::default().plan(service, snapshot, manager);
            ImportPlan { plan, state }
        }
    }
}

/// The source, if the consumer asks for one and may publish its endpoints. Consent comes first: a
/// namespace without it learns nothing about the source, not even whether it exists.
fn permitted_source<'a>(
    service: &Service,
    snapshot: &ImportSnapshot<'a>,
) -> Result<(Key, &'a Service), ImportState> {
    let wish = service.cross_namespace.as_ref().and_then(|cross| cross.source());
    let key = match wish {
        None => return Err(ImportState::NotRequested),
        Some(Err(invalid)) => return Err(ImportState::InvalidReference(invalid)),
        Some(Ok(key)) => key,
    };
    match service.selection() {
        Selection::Pods(_) => return Err(ImportState::HasSelector),
        Selection::External => return Err(ImportState::ExternalName),
        Selection::Manual => {}
    }
    if !is_permitted(service, &key, snapshot) {
        return Err(ImportState::NotPermitted {
            source: key,
            namespace: service.namespace.clone(),
        });
    }
    let Some(source) = snapshot.source else {
        return Err(ImportState::SourceNotFound { source: key });
    };
    // A chain could be a loop.
    if is_consumer(source) {
        return Err(ImportState::ChainNotAllowed { source: key });
    }
    Ok((key, source))
}

fn is_permitted(service: &Service, source: &Key, snapshot: &ImportSnapshot) -> bool {
    let by_owner = snapshot.source.and_then(|source| source.cross_namespace.as_ref());
    service.namespace == source.namespace
        || by_owner.is_some_and(|cross| cross.permits(&service.namespace))
        || snapshot.grants.iter().any(|grant| {
            grant.namespace == source.namespace
                && grant.permits_service(&service.namespace, &source.name)
        })
}

/// A Service with a selector publishes its own pods, whatever it asks for.
fn is_consumer(service: &Service) -> bool {
    let asks = service.cross_namespace.as_ref().is_some_and(|cross| cross.from.is_some());
    asks && service.selection() == Selection::Manual
}

fn publish(
    service: &Service,
    (key, source): (&Key, &Service),
    snapshot: &ImportSnapshot,
    manager: &str,
) -> ImportPlan {
    let ports = PortMap::new(service, source);
    let copies = Copies::of((service, manager), key, &ports, &snapshot.source_slices);
    let state = match ports.unmatched.is_empty() {
        true => ImportState::Mirrored {
            source: key.clone(),
            n_endpoints: copies.n_endpoints(),
            n_slices: copies.n_slices(),
        },
        false => ImportState::PortNotFound { source: key.clone(), ports: ports.unmatched },
    };
    ImportPlan { plan: copies.plan(service, snapshot, manager), state }
}
