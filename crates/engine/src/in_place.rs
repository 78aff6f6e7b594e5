//! Large Services whose slices are planned in place: which slices a change concerns.
//!
//! A plan of the whole Service costs time in proportion to its pods. Most changes concern the
//! conditions of one published pod, and the slice that publishes it. So the engine remembers which
//! slice that is, and which slices the last plans found as they should be. These are left out of
//! the next plan until something changes that they depend on; if that is anything but conditions of
//! published pods, the whole Service is planned.

use std::collections::BTreeSet;

use endpointd_model::{Key, SharedStr};
use endpointd_plan::{
    Counts, ExcludedPod, InPlacePlan, PlacedSlice, Plan, Settings, SliceSnapshot,
};

use crate::InPlaceCheck;
use crate::cache::{Cache, ChangeKind, PodId};
use crate::controllers::ControllerState;
use crate::planning::Planned;

/// Where the pods of one large Service are published.
#[derive(Debug)]
pub struct Placement {
    slices: Vec<PlacedIn>,
    /// Indexes of slices, sorted. A pod with addresses of two families is in two of them.
    slice_by_pod: Vec<(PodId, u32)>,
    /// Indexes of slices that the last plan that looked at them wrote, or whose pods have changed
    /// since. A plan has found all others as they should be.
    to_plan: BTreeSet<u32>,
    counts: Counts,
    excluded_pods: Vec<ExcludedPod>,
    n_removed_nodes: u64,
}

#[derive(Debug)]
struct PlacedIn {
    name: SharedStr,
    n_pods: usize,
    /// As the last plan that looked at it counted them.
    n_ready: usize,
}

/// What a plan changes in the placement of its key.
#[derive(Debug, Default)]
pub enum PlacementChange {
    /// The next plan is one of the whole Service.
    #[default]
    Forget,
    New(Box<Placement>),
    Planned(PlannedInPlace),
    /// The next plan looks at the same slices again.
    Keep,
}

#[derive(Debug)]
pub struct PlannedInPlace {
    slices: Vec<PlannedSlice>,
    counts: Counts,
}

#[derive(Debug)]
struct PlannedSlice {
    index: u32,
    n_ready: usize,
    is_written: bool,
}

impl PlacementChange {
    /// The next plan starts from the same carried state as this one.
    pub fn repeated(self) -> Self {
        match self {
            Self::Forget | Self::New(_) => Self::Forget,
            Self::Planned(_) | Self::Keep => Self::Keep,
        }
    }
}

impl Placement {
    /// Returns whether the slices can still be planned in place.
    pub fn note_change(&mut self, kind: ChangeKind) -> bool {
        let ChangeKind::Conditions(pod) = kind else { return false };
        let first = self.slice_by_pod.partition_point(|(one, _)| *one < pod);
        let of_pod = self.slice_by_pod[first..].iter().take_while(|(one, _)| *one == pod);
        let is_published = of_pod.clone().next().is_some();
        self.to_plan.extend(of_pod.map(|(_, slice)| *slice));
        is_published
    }

    pub fn record(&mut self, planned: PlannedInPlace) {
        self.counts = planned.counts;
        for PlannedSlice { index, n_ready, is_written } in planned.slices {
            self.slices[index as usize].n_ready = n_ready;
            if !is_written {
                self.to_plan.remove(&index);
            }
        }
    }

    /// The slices to plan, with the number of ready endpoints that the last plan counted.
    pub fn to_plan(&self) -> impl Iterator<Item = (u32, &SharedStr, usize)> {
        self.to_plan.iter().map(|index| {
            let PlacedIn { name, n_ready, .. } = &self.slices[*index as usize];
            (*index, name, *n_ready)
        })
    }

    /// Whether the slice publishes exactly these pods.
    pub fn publishes(&self, slice: u32, pods: &[PodId]) -> bool {
        let is_in = |pod: &PodId| self.slice_by_pod.binary_search(&(*pod, slice)).is_ok();
        self.slices[slice as usize].n_pods == pods.len() && pods.iter().all(is_in)
    }

    fn new(
        cache: &Cache,
        key: &Key,
        placed: Vec<PlacedSlice>,
        Plan { counts, excluded_pods, .. }: &Plan,
    ) -> Option<Self> {
        let (mut slices, mut slice_by_pod) = (Vec::new(), Vec::new());
        let mut to_plan = BTreeSet::new();
        for (index, PlacedSlice { name, pods, n_ready, is_written }) in (0..).zip(placed) {
            for pod in &pods {
                slice_by_pod.push((cache.pod_named(key, pod)?, index));
            }
            if is_written {
                to_plan.insert(index);
            }
            slices.push(PlacedIn { name, n_pods: pods.len(), n_ready });
        }
        slice_by_pod.sort_unstable();
        slice_by_pod.shrink_to_fit();
        let (counts, excluded_pods) = (*counts, excluded_pods.clone());
        let n_removed_nodes = cache.n_removed_nodes();
        Some(Self { slices, slice_by_pod, to_plan, counts, excluded_pods, n_removed_nodes })
    }
}

/// What is remembered after a plan of the whole Service.
pub fn placement(
    cache: &Cache,
    controller: &ControllerState,
    settings: &Settings,
    (snapshot, plan): (&SliceSnapshot<'_>, &Plan),
) -> PlacementChange {
    let is_large = plan.counts.n_slices >= controller.settings.in_place.slices_min;
    // A Service that does not change needs no placement, and one of a rollout would not keep it.
    let Some(service) = snapshot.service.filter(|_| is_large && !plan.writes.is_empty()) else {
        return PlacementChange::Forget;
    };
    let key = service.key();
    if cache.has_unlisted_pods(&key.namespace) {
        return PlacementChange::Forget;
    }
    let placed = endpointd_plan::placement(snapshot, plan, settings);
    let placement = placed.and_then(|placed| Placement::new(cache, &key, placed, plan));
    placement.map_or(PlacementChange::Forget, |one| PlacementChange::New(Box::new(one)))
}

/// Plans the slices that have changed. None if the whole Service must be planned.
pub fn plan(
    cache: &Cache,
    controller: &ControllerState,
    settings: &Settings,
    key: &Key,
) -> Option<(Plan, PlacementChange)> {
    let keys = &controller.keys;
    let placement = keys.placement(key)?;
    let entry = keys.get(key).filter(|entry| entry.are_pods_compared)?;
    let is_outdated = placement.n_removed_nodes != cache.n_removed_nodes();
    if is_outdated || cache.has_unlisted_pods(&key.namespace) {
        return None;
    }
    let inputs = cache.in_place_inputs(key, placement)?;
    let of_last = (&placement.counts, placement.excluded_pods.as_slice());
    let snapshot = inputs.snapshot(of_last, &entry.carried);
    let InPlacePlan { plan, n_ready } = endpointd_plan::slices_in_place(&snapshot, settings)?;
    let is_written = |name: &SharedStr| plan.writes.iter().any(|write| write.key().name == *name);
    let slices = placement.to_plan().zip(n_ready).map(|((index, name, _), n_ready)| PlannedSlice {
        index,
        n_ready,
        is_written: is_written(name),
    });
    let planned = PlannedInPlace { slices: slices.collect(), counts: plan.counts };
    Some((plan, PlacementChange::Planned(planned)))
}

/// Compares a plan in place with one of the whole Service, if the settings say so.
pub fn check(
    cache: &Cache,
    controller: &ControllerState,
    settings: &Settings,
    (key, planned): (&Key, &Planned),
) {
    match (&planned.placement, controller.settings.in_place.check) {
        (PlacementChange::Planned(_), InPlaceCheck::Compare) => {}
        (PlacementChange::Forget | PlacementChange::New(_) | PlacementChange::Keep, _)
        | (_, InPlaceCheck::Off) => return,
    }
    let Some(entry) = controller.keys.get(key) else { return };
    let inputs = cache.slice_inputs(key);
    let whole = endpointd_plan::slices(&inputs.snapshot(&entry.carried), settings);
    let plan = &planned.plan;
    assert!(*plan == whole, "{key}, planned in place:\n{plan:?}\nas a whole:\n{whole:?}");
}
