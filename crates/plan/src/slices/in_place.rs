//! Plans slices whose endpoints stay where they are, because only conditions of published pods have
//! changed since the last plan of the Service.
//!
//! Packing moves endpoints only if some are added or removed. So such a change concerns the slices
//! that publish the changed pods, and no other one: each of them is planned alone, by the same steps
//! as all of them. [`slices`](crate::slices) gives the same plan, in time linear in the pods of the
//! Service.

use std::collections::BTreeMap;

use endpointd_model::{
    AddressType, EndpointSlice, Object, Selection, Service, SharedStr, TopologyMode, Write,
};

use super::desired::PodsByName;
use super::template::Template;
use super::{families, pack_family};
use crate::packing::SliceAction;
use crate::{
    CarriedHints, CarriedState, Counts, ExcludedPod, NodeState, Plan, PodOnNode, Settings,
    SliceSnapshot, Topology, hints, tolerate_unready, trigger, writes,
};

/// One slice, after a plan that moves no endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedSlice {
    pub name: SharedStr,
    /// The pods that it publishes.
    pub pods: Vec<SharedStr>,
    pub n_ready: usize,
    /// The plan writes it: until a later plan finds it as it should be, every plan looks at it.
    pub is_written: bool,
}

/// Input of [`slices_in_place`].
#[derive(Clone, Debug)]
pub struct InPlaceSnapshot<'a> {
    pub service: &'a Service,
    pub topology: &'a Topology,
    /// All slices that the last plan that looked at them wrote, and those of pods that have changed
    /// since.
    pub slices: Vec<SliceWithPods<'a>>,
    /// Of the last plan.
    pub counts: &'a Counts,
    pub excluded_pods: &'a [ExcludedPod],
    pub carried: &'a CarriedState,
}

#[derive(Clone, Debug)]
pub struct SliceWithPods<'a> {
    pub slice: &'a EndpointSlice,
    /// The pods that it publishes, in any order.
    pub pods: Vec<PodOnNode<'a>>,
    /// As the last plan that looked at it counted them.
    pub n_ready: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub struct InPlacePlan {
    pub plan: Plan,
    /// Ready endpoints of each slice of the snapshot.
    pub n_ready: Vec<usize>,
}

/// Where a plan leaves the endpoints of all slices. None if it moves some, or if a change of one pod
/// could concern slices that do not publish it.
pub fn placement(
    snapshot: &SliceSnapshot,
    plan: &Plan,
    settings: &Settings,
) -> Option<Vec<PlacedSlice>> {
    let service = snapshot.service.filter(|service| stays_in_place(service, &plan.carried))?;
    let Counts { n_added, n_removed, .. } = plan.counts;
    let is_any_unknown = snapshot.pods.iter().any(|pod| pod.node == NodeState::Unknown);
    if (n_added, n_removed) != (0, 0) || plan.retry.is_some() || is_any_unknown {
        return None;
    }
    let mut written_by_name = BTreeMap::new();
    for write in &plan.writes {
        let Write::Update(Object::Slice(slice)) = write else { return None };
        written_by_name.insert(&slice.meta.name, slice);
    }
    let template = Template::of(service, &settings.managers.slices);
    let observed = template.observed(&snapshot.slices);
    let placed = observed.iter().map(|slice| {
        let written = written_by_name.remove(&slice.meta.name);
        let after = written.unwrap_or(slice);
        is_updated_in_place(slice, after).then(|| PlacedSlice {
            name: slice.meta.name.clone(),
            pods: after
                .endpoints
                .iter()
                .filter_map(|one| Some(&one.target_ref.as_ref()?.name))
                .cloned()
                .collect(),
            n_ready: n_ready(after),
            is_written: written.is_some(),
        })
    });
    let placed = placed.collect::<Option<Vec<_>>>()?;
    written_by_name.is_empty().then_some(placed)
}

/// Hints for zones depend on all endpoints of the Service.
fn stays_in_place(service: &Service, carried: &CarriedState) -> bool {
    let publishes_pods = match service.selection() {
        Selection::Pods(_) => true,
        Selection::Manual | Selection::External => false,
    };
    let has_hints_of_all = match service.topology {
        TopologyMode::Auto => true,
        TopologyMode::Off => carried.hints != CarriedHints::default(),
    };
    publishes_pods && !has_hints_of_all
}

fn is_updated_in_place(before: &EndpointSlice, after: &EndpointSlice) -> bool {
    let mut pairs = before.endpoints.iter().zip(&after.endpoints);
    let has_same_pods = pairs.all(|(before, after)| {
        let names = [before, after].map(|one| one.target_ref.as_ref().map(|target| &target.name));
        names[0].is_some() && names[0] == names[1] && before.addresses == after.addresses
    });
    has_same_pods && before.endpoints.len() == after.endpoints.len() && before.ports == after.ports
}

fn n_ready(slice: &EndpointSlice) -> usize {
    slice.endpoints.iter().filter(|endpoint| endpoint.conditions.ready == Some(true)).count()
}

/// Plans the Service if nothing but conditions of published pods has changed since a plan whose
/// [`placement`] is known. None if these slices cannot be planned without the others.
pub fn slices_in_place(snapshot: &InPlaceSnapshot, settings: &Settings) -> Option<InPlacePlan> {
    let InPlaceSnapshot { service, slices, counts, excluded_pods, carried, topology: _ } = snapshot;
    if !stays_in_place(service, carried) {
        return None;
    }
    let service: &Service = &tolerate_unready::effective(service, settings);
    let pods = slices.iter().flat_map(|one| &one.pods).map(|pod| pod.pod);
    let (time, trigger) = trigger::observe_changed(carried.trigger.as_ref()?, service, pods)?;
    let mut carried = CarriedState { trigger: Some(trigger), ..(*carried).clone() };
    let is_reported = &mut carried.has_reported_annotation;
    let event_records = tolerate_unready::invalid_event(service, settings, is_reported);
    let template = Template::of(service, &settings.managers.slices);
    let mut counts = Counts { n_updated: 0, n_added: 0, n_removed: 0, ..**counts };
    let (mut actions, mut n_ready) = (Vec::new(), Vec::new());
    for one in slices {
        let (action, counted) = plan_slice(one, service, &template, snapshot.topology, settings)?;
        counts.n_updated += counted.n_updated;
        counts.n_ready = (counts.n_ready + counted.n_ready).checked_sub(one.n_ready)?;
        n_ready.push(counted.n_ready);
        actions.push(action);
    }
    let writes = writes::of_actions(actions, service.is_deleting, |annotations| {
        trigger::annotate(annotations, time)
    });
    let plan = Plan {
        writes,
        event_records: event_records.into_iter().collect(),
        excluded_pods: excluded_pods.to_vec(),
        retry: None,
        counts,
        carried,
    };
    Some(InPlacePlan { plan, n_ready })
}

/// None if the slice should not publish exactly these pods.
fn plan_slice<'a>(
    one: &SliceWithPods<'a>,
    service: &Service,
    template: &Template,
    topology: &Topology,
    settings: &Settings,
) -> Option<(SliceAction<'a>, Counts)> {
    let SliceWithPods { slice, pods, n_ready: _ } = one;
    let is_of_type =
        |family: &endpointd_model::Family| AddressType::from(*family) == slice.address_type;
    let family = families(service).into_iter().find(is_of_type)?;
    let is_managed = !template.observed(&[*slice]).is_empty();
    // Whether a slice without endpoints is needed, and with which ports, depends on pods elsewhere.
    if !is_managed
        || slice.endpoints.is_empty()
        || pods.iter().any(|pod| pod.node == NodeState::Unknown)
    {
        return None;
    }
    let groups = PodsByName::of(service, pods).publish(family, &[*slice]);
    let mut counts = Counts::default();
    let mut packed = pack_family(template, &[*slice], groups, settings, &mut counts);
    let context = hints::Context { service, topology, family };
    hints::assign(&mut packed, &context, &mut CarriedHints::default());
    let is_in_place = [slice.endpoints.len(), pods.len()] == [counts.n_desired; 2]
        && (counts.n_added, counts.n_removed) == (0, 0);
    let action = packed.pop().filter(|_| packed.is_empty() && is_in_place)?;
    match action {
        SliceAction::Keep(_) | SliceAction::Update(_) => Some((action, counts)),
        SliceAction::Create(_) | SliceAction::Delete(_) => None,
    }
}
