//! Writes of the import controller. What it may publish depends on four objects: the consumer, its
//! source, a grant, and a slice of the source.

use endpointd_model::{
    Condition, Controller, EndpointSlice, Key, LiveRead, Object, OwnerRef, ReferenceGrant, Service,
    SharedStr, WatchedResource, Write, names,
};

use super::{Breach, Check, CheckedWrite, FRESH_SECS};
use crate::clock::secs;
use crate::coverage::Rule;
use crate::oracle::imports::{
    Content, Wish, content_of, copy_of, has_name_of_copy, is_chain, is_granted, is_listed,
    is_marked, is_owner, labels_of, refusal, wish, without_hints,
};
use crate::oracle::slices_of;
use crate::process::ObservedRevisions;
use crate::simulation::{Request, Simulation};

pub const CHECKS: [(Rule, Check); 4] = [
    (Rule::NoForeignObject, check_target),
    (Rule::NoByteWithoutConsent, check_consent),
    (Rule::NoWrongAddress, check_content),
    (Rule::NoLoss, check_loss),
];

impl CheckedWrite<'_> {
    fn consumers(&self) -> Vec<&Service> {
        self.services().into_iter().flatten().collect()
    }

    fn sources(&self, key: &Key) -> Vec<Option<&Service>> {
        self.api.services.window(key, self.observed.of(WatchedResource::Services))
    }

    /// All versions of all grants in the namespace of the source.
    fn grants(&self, source: &Key) -> Vec<Vec<Option<&ReferenceGrant>>> {
        let since = self.observed.of(WatchedResource::ReferenceGrants);
        let keys = self.api.grants.known_keys();
        let keys = keys.filter(|key| key.namespace == source.namespace);
        keys.map(|key| self.api.grants.window(key, since)).collect()
    }

    /// All versions of all slices in a namespace.
    fn slices_in(&self, namespace: &SharedStr) -> Vec<Vec<Option<&EndpointSlice>>> {
        let since = self.observed.of(WatchedResource::Slices);
        let keys = self.api.slices.known_keys().filter(|key| key.namespace == *namespace);
        keys.map(|key| self.api.slices.window(key, since)).collect()
    }

    /// The owner may have consented.
    fn may_use(&self, consumer: &Service, key: &Key, source: Option<&Service>) -> bool {
        let is_granted = |grant: &&ReferenceGrant| is_granted(grant, &consumer.namespace, key);
        consumer.namespace == key.namespace
            || source.is_some_and(|source| is_listed(source, &consumer.namespace))
            || self.grants(key).into_iter().flatten().flatten().any(|one| is_granted(&one))
    }

    /// The owner had consented all the time.
    fn always_may_use(&self, consumer: &Service, key: &Key, source: &Service) -> bool {
        let is_granted = |grant: &Option<&ReferenceGrant>| {
            grant.is_some_and(|grant| is_granted(grant, &consumer.namespace, key))
        };
        consumer.namespace == key.namespace
            || is_listed(source, &consumer.namespace)
            || self.grants(key).iter().any(|versions| versions.iter().all(is_granted))
    }

    /// Consumers and sources of which the owner may have consented.
    fn permitted(&self) -> Vec<(&Service, &Service)> {
        let mut permitted = Vec::new();
        for consumer in self.consumers() {
            let Wish::Source(key) = wish(consumer) else { continue };
            let sources = self.sources(&key).into_iter().flatten();
            let may_use = |source: &&Service| self.may_use(consumer, &key, Some(source));
            permitted.extend(sources.filter(may_use).map(|source| (consumer, source)));
        }
        permitted
    }
}

fn check_target(case: &CheckedWrite) -> Result<(), Breach> {
    let foreign = |text: String| Err((Rule::NoForeignObject, text));
    if let Some(Object::ServiceStatus(status)) = case.write.object() {
        let types = status.condition.iter().map(|one| one.condition_type.as_ref());
        return match types.into_iter().find(|one| *one != names::SOURCE_CONDITION) {
            None => Ok(()),
            Some(other) => foreign(format!("{}: condition {other}", case.key)),
        };
    }
    let consumers = case.consumers();
    if let Some(known) = case.known_slice()
        && (known.meta.is_deleting() || !is_copy(case, known))
    {
        return foreign(format!("{} is no copy of {}: {known:?}", known.meta.key(), case.key));
    }
    let Some(slice) = case.new_slice() else {
        return match case.known_slice() {
            Some(_) => Ok(()),
            None => foreign(format!("{} is no slice", case.write.key())),
        };
    };
    let is_right = |consumer: &&&Service| {
        slice.meta.namespace == consumer.namespace
            && slice.meta.labels == labels_of(consumer)
            && has_name_of_copy(&consumer.name, slice)
            && matches!(slice.meta.owners.as_slice(), [one] if is_controller(one, consumer))
    };
    let mut owning = consumers.iter().filter(is_right);
    if owning.clone().next().is_none() {
        return foreign(format!("{:?} for {}", slice.meta, case.key));
    }
    if case.is_create() && owning.all(|consumer| consumer.is_deleting) {
        return foreign(format!("{} is created for a deleting Service", case.write.key()));
    }
    Ok(())
}

fn is_controller(owner: &OwnerRef, consumer: &Service) -> bool {
    owner.controller == Some(true)
        && (&*owner.kind, &*owner.api_version) == ("Service", "v1")
        && (&owner.name, &owner.uid) == (&consumer.name, &consumer.uid)
}

/// By its labels, or by its owner and its annotation.
fn is_copy(case: &CheckedWrite, slice: &EndpointSlice) -> bool {
    let labels = &slice.meta.labels;
    let is_managed = labels.has(names::MANAGED_BY, names::MANAGED_BY_IMPORT);
    let is_owned = case.consumers().iter().any(|consumer| is_owner(consumer, slice));
    let is_named = labels.has(names::SERVICE_NAME, &case.key.name);
    slice.meta.namespace == case.key.namespace
        && ((is_managed && is_named) || (is_owned && (is_managed || is_marked(slice))))
}

/// Neither a slice nor a condition tells anything about a source without its owner's consent.
fn check_consent(case: &CheckedWrite) -> Result<(), Breach> {
    let breach = |text: String| Err((Rule::NoByteWithoutConsent, text));
    match case.write.object() {
        Some(Object::Slice(_)) if case.permitted().is_empty() => {
            breach(format!("{} is written without consent", case.write.key()))
        }
        Some(Object::ServiceStatus(status)) => match &status.condition {
            Some(condition) if !may_tell(case, condition) => {
                breach(format!("{} says {condition:?}", case.key))
            }
            Some(_) | None => Ok(()),
        },
        Some(Object::Slice(_) | Object::Endpoints(_) | Object::MultiCluster(_)) | None => Ok(()),
    }
}

fn may_tell(case: &CheckedWrite, condition: &Condition) -> bool {
    case.consumers().into_iter().any(|consumer| match wish(consumer) {
        Wish::None => false,
        Wish::Refused(reason) => *condition.reason == *reason,
        Wish::Source(key) => {
            let mut sources = case.sources(&key).into_iter();
            let may_use = |source| case.may_use(consumer, &key, source);
            match condition.reason.as_ref() {
                // The same words, whether the source exists or not.
                "RefNotPermitted" => *condition.message == *refusal(consumer, &key),
                "SourceNotFound" => sources.any(|source| source.is_none() && may_use(None)),
                "ChainNotAllowed" => {
                    sources.any(|source| source.is_some_and(is_chain) && may_use(source))
                }
                // It must not change with every endpoint.
                "Mirrored" => {
                    *condition.message == format!("has the endpoints of {key}")
                        && sources.any(|source| source.is_some() && may_use(source))
                }
                "PortNotFound" => sources.any(|source| source.is_some() && may_use(source)),
                _ => false,
            }
        }
    })
}

/// Every endpoint, with its ports, is one of the source.
fn check_content(case: &CheckedWrite) -> Result<(), Breach> {
    let Some(slice) = case.new_slice() else { return Ok(()) };
    let written = content_of(slice);
    let permitted = case.permitted();
    let is_right = permitted.iter().any(|(consumer, source)| {
        let slices = case.slices_in(&source.namespace);
        let versions = slices.into_iter().flatten().flatten();
        let copies: Vec<Content> =
            versions.filter_map(|one| copy_of(consumer, source, one)).collect();
        copies.iter().any(|copy| is_copy_with_moving(&written, copy, &copies))
    });
    if is_right || permitted.is_empty() {
        return Ok(());
    }
    Err((Rule::NoWrongAddress, format!("{} publishes {written:?}", slice.meta.key())))
}

/// One copy, and what moves from it to others.
fn is_copy_with_moving(written: &Content, copy: &Content, others: &[Content]) -> bool {
    let has_its_ports =
        |one: &&Content| (&one.address_type, &one.ports) == (&written.address_type, &written.ports);
    let Some(moving) = written.endpoints.strip_prefix(copy.endpoints.as_slice()) else {
        return false;
    };
    let published = others.iter().filter(has_its_ports).flat_map(|one| &one.endpoints);
    has_its_ports(&copy) && moving.iter().all(|one| published.clone().any(|other| other == one))
}

/// One address of a copy, with its ports.
fn addresses(content: &Content) -> Vec<Content> {
    let endpoints = content.endpoints.iter().map(|endpoint| {
        let mut endpoint = without_hints(endpoint);
        (endpoint.conditions, endpoint.zone, endpoint.node_name) = Default::default();
        endpoint
    });
    endpoints.map(|one| Content { endpoints: vec![one], ..content.clone() }).collect()
}

fn check_loss(case: &CheckedWrite) -> Result<(), Breach> {
    let Some(known) = case.known_slice() else { return Ok(()) };
    let copies = slices_of(case.api, &case.key, names::MANAGED_BY_IMPORT);
    let others = copies.filter(|slice| slice.meta.name != known.meta.name);
    let remaining: Vec<Content> =
        others.chain(case.new_slice()).flat_map(|slice| addresses(&content_of(slice))).collect();
    let was_elsewhere = |lost: &Content| {
        let mut all = case.slices_in(&case.key.namespace).into_iter().flatten().flatten();
        all.any(|slice| {
            slice.meta.name != known.meta.name && addresses(&content_of(slice)).contains(lost)
        })
    };
    for lost in addresses(&content_of(known)) {
        if !remaining.contains(&lost)
            && is_desired_throughout(case, &lost)
            // The plan left it to another copy, which another client has edited since.
            && !was_elsewhere(&lost)
        {
            return Err((Rule::NoLoss, format!("{} loses {lost:?}", known.meta.key())));
        }
    }
    Ok(())
}

/// In every version that the engine may have observed.
fn is_desired_throughout(case: &CheckedWrite, lost: &Content) -> bool {
    case.services().into_iter().all(|consumer| {
        let Some(consumer) = consumer.filter(|one| !one.is_deleting) else { return false };
        let Wish::Source(key) = wish(consumer) else { return false };
        let slices = case.slices_in(&key.namespace);
        case.sources(&key).into_iter().all(|source| {
            let Some(source) = source.filter(|source| !is_chain(source)) else { return false };
            let has = |slice: &Option<&EndpointSlice>| {
                let copy = slice.and_then(|slice| copy_of(consumer, source, slice));
                copy.is_some_and(|copy| addresses(&copy).contains(lost))
            };
            case.always_may_use(consumer, &key, source)
                && slices.iter().any(|versions| versions.iter().all(has))
        })
    })
}

impl Simulation {
    /// The consumers that a write of the import controller may be for. The labels of a copy that is
    /// deleted may have been edited.
    pub(crate) fn consumers_of(&self, write: &Write) -> Vec<Key> {
        let Write::Delete(target) = write else {
            return self.service_of(write).into_iter().collect();
        };
        let Some(slice) = self.deleted_version(target) else { return Vec::new() };
        let labelled = slice.meta.labels.get(names::SERVICE_NAME).into_iter();
        let owning = slice.meta.owners.iter().map(|owner| &owner.name);
        let mut keys: Vec<Key> = labelled
            .chain(owning)
            .map(|name| Key::new(slice.meta.namespace.clone(), name.clone()))
            .collect();
        keys.dedup();
        keys
    }

    /// What the engine had observed when it planned a write of the import controller.
    pub(crate) fn observed_for_consumers(
        &self,
        process: usize,
        keys: &[Key],
    ) -> Option<ObservedRevisions> {
        let observed = |key| self.observed_when_planned(process, Controller::Import, key);
        keys.iter().map(observed).reduce(ObservedRevisions::earliest)
    }

    /// The first consumer for which the write breaks no rule, or else the first breach.
    pub(super) fn check_import(&mut self, request: &Request, known: Option<&Object>) {
        let write = request.write.as_ref();
        let mut first: Option<Breach> = None;
        let keys = self.consumers_of(write);
        for key in keys {
            let (api, setup, observed) = (&self.api, &self.setup, request.observed);
            let case = CheckedWrite { api, setup, observed, write, known, key };
            let breach = CHECKS.iter().find_map(|(_, check)| check(&case).err());
            match breach {
                None => {
                    first = None;
                    break;
                }
                Some(breach) => drop(first.get_or_insert(breach)),
            }
        }
        for (rule, _) in CHECKS {
            self.coverage.count_rule(rule);
        }
        if let Some((rule, text)) = first {
            self.violate(rule, || text);
        }
    }

    /// A copy is deleted because its source is missing only after a live read of the source.
    pub(super) fn check_absent_source(&mut self, process: usize, write: &Write) {
        let keys = self.consumers_of(write);
        let Some(observed) = self.observed_for_consumers(process, &keys) else { return };
        let since = observed.of(WatchedResource::Services);
        let mut reads = Vec::new();
        for consumer in keys.iter().flat_map(|key| self.api.services.window(key, since)).flatten() {
            match wish(consumer) {
                Wish::Source(key)
                    if self.api.services.window(&key, since).iter().all(Option::is_none) =>
                {
                    reads.push(LiveRead::Service(key));
                }
                // The deletion may have another reason.
                Wish::Source(_) | Wish::Refused(_) | Wish::None => return,
            }
        }
        if reads.is_empty() {
            return;
        }
        self.coverage.count_rule(Rule::NoDeletionFromAbsence);
        let confirmed = &self.processes[process].confirmed_absences;
        let is_fresh = |read: &LiveRead| {
            confirmed.get(read).is_some_and(|at| self.now.since(*at) <= secs(FRESH_SECS))
        };
        if !reads.iter().any(is_fresh) {
            let text = format!("{} deleted without a live read of {reads:?}", write.key());
            self.violate(Rule::NoDeletionFromAbsence, || text);
        }
    }
}
