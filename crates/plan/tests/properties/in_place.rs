//! A plan in place is the plan of the whole Service, on random cluster states with random changes of
//! conditions, lost writes, and plans that count for nothing.

use std::cell::Cell;
use std::collections::BTreeSet;

use endpointd_model::{Controller, Readiness, SharedStr, Timestamp};
use endpointd_plan::{
    CarriedState, ClusterState, Counts, ExcludedPod, InPlacePlan, InPlaceSnapshot, PlacedSlice,
    Plan, Settings, SliceSnapshot, SliceWithPods, placement, slices, slices_in_place,
};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use crate::generators::{ByteSource, Case, decode, key};

const CASES: u32 = 20_000;
const STEPS: usize = 12;

/// What a caller remembers between two plans.
struct Remembered {
    slices: Vec<PlacedSlice>,
    to_plan: BTreeSet<SharedStr>,
    counts: Counts,
    excluded_pods: Vec<ExcludedPod>,
}

impl Remembered {
    fn new(slices: Vec<PlacedSlice>, plan: &Plan) -> Self {
        let written = slices.iter().filter(|slice| slice.is_written);
        Self {
            to_plan: written.map(|slice| slice.name.clone()).collect(),
            slices,
            counts: plan.counts,
            excluded_pods: plan.excluded_pods.clone(),
        }
    }

    /// Returns whether a slice publishes the pod.
    fn note_change(&mut self, pod: &SharedStr) -> bool {
        let of_pod = self.slices.iter().filter(|slice| slice.pods.contains(pod));
        let names: Vec<_> = of_pod.map(|slice| slice.name.clone()).collect();
        self.to_plan.extend(names.iter().cloned());
        !names.is_empty()
    }

    fn plan(&self, whole: &SliceSnapshot, settings: &Settings) -> Option<InPlacePlan> {
        let to_plan = self.slices.iter().filter(|slice| self.to_plan.contains(&slice.name));
        let slices = to_plan.map(|placed| {
            let slice = whole.slices.iter().find(|slice| slice.meta.name == placed.name)?;
            let pods = whole.pods.iter().filter(|one| placed.pods.contains(&one.pod.name));
            let pods = pods.cloned().collect();
            Some(SliceWithPods { slice, pods, n_ready: placed.n_ready })
        });
        let snapshot = InPlaceSnapshot {
            service: whole.service?,
            topology: whole.topology,
            slices: slices.collect::<Option<Vec<_>>>()?,
            counts: &self.counts,
            excluded_pods: &self.excluded_pods,
            carried: whole.carried,
        };
        slices_in_place(&snapshot, settings)
    }

    fn record(&mut self, InPlacePlan { plan, n_ready }: InPlacePlan) {
        self.counts = plan.counts;
        let to_plan = &mut self.to_plan;
        let planned = self.slices.iter_mut().filter(|slice| to_plan.contains(&slice.name));
        planned.zip(n_ready).for_each(|(slice, n_ready)| slice.n_ready = n_ready);
        to_plan.retain(|name| plan.writes.iter().any(|write| write.key().name == *name));
    }
}

/// Changes conditions of one pod, and returns its name.
fn change_conditions(cluster: &mut ClusterState, source: &mut ByteSource) -> Option<SharedStr> {
    let at = source.pick(cluster.pods.len().max(1));
    let pod = cluster.pods.values_mut().nth(at)?;
    let since = Timestamp::from_second(200 + source.pick(40) as i64).ok();
    let is_ready = pod.is_ready();
    match source.pick(6) {
        0..3 => pod.readiness = Some(Readiness { is_ready: !is_ready, since }),
        3 => pod.readiness = Some(Readiness { is_ready, since }),
        4 => pod.readiness = None,
        _ => pod.is_terminating = !pod.is_terminating,
    }
    Some(pod.name.clone())
}

/// Returns the number of plans in place.
fn check(case: Case, changes: &[u8]) -> usize {
    let Case { mut cluster, settings } = case;
    let mut source = ByteSource { bytes: changes.iter() };
    let (mut carried, mut remembered) = (CarriedState::default(), None::<Remembered>);
    let mut n_in_place = 0;
    for _ in 0..STEPS {
        for _ in 0..source.pick(3) {
            let Some(pod) = change_conditions(&mut cluster, &mut source) else { continue };
            remembered = remembered.and_then(|mut one| one.note_change(&pod).then_some(one));
        }
        let before = carried.clone();
        let index = cluster.index();
        let snapshot = index.slice_snapshot(&key(), &before);
        let whole = slices(&snapshot, &settings);
        let in_place = remembered.as_ref().and_then(|one| one.plan(&snapshot, &settings));
        if let Some(in_place) = &in_place {
            assert_eq!(in_place.plan, whole, "as a whole: {whole}");
            n_in_place += 1;
        }
        // The engine drops the trigger time of a plan whose additions it leaves for later.
        let counts = !source.once_in(5);
        remembered = match (in_place, remembered) {
            (Some(in_place), Some(mut one)) => {
                if counts {
                    one.record(in_place);
                }
                Some(one)
            }
            (Some(_), None) | (None, _) => {
                let placed = placement(&snapshot, &whole, &settings).filter(|_| counts);
                placed.map(|placed| Remembered::new(placed, &whole))
            }
        };
        if counts {
            carried = whole.carried;
        }
        for write in whole.writes {
            if !source.once_in(4) {
                cluster.apply(&write);
            }
        }
    }
    n_in_place
}

#[test]
fn a_plan_in_place_is_the_plan_of_the_whole_service() {
    let bytes = || proptest::collection::vec(any::<u8>(), 0..500);
    let config = ProptestConfig { cases: CASES, ..ProptestConfig::default() };
    let n_in_place = Cell::new(0);
    let result = TestRunner::new(config).run(&(bytes(), bytes()), |(state, changes)| {
        n_in_place.set(n_in_place.get() + check(decode(Controller::Slices, &state), &changes));
        Ok(())
    });
    result.unwrap_or_else(|failure| panic!("{failure}"));
    assert!(n_in_place.get() > CASES as usize, "only {} plans in place", n_in_place.get());
}

/// A slice without endpoints lost a write. It stays for pods that other slices publish.
#[test]
fn a_slice_without_endpoints_is_not_planned_alone() {
    let state = [
        0, 0, 12, 0, 0, 27, 0, 0, 0, 0, 153, 0, 0, 0, 0, 0, 0, 0, 0, 72, 243, 0, 0, 0, 0, 101, 4,
        12, 0, 0, 140, 0, 0, 153, 34, 188, 4, 90, 0, 0, 0, 55, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        174, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 23, 0, 4, 0, 0, 0, 8, 0,
        0, 0, 0,
    ];
    let changes = [45, 0, 0, 143, 62, 0, 0, 0, 0, 0, 0, 0, 159, 54];
    check(decode(Controller::Slices, &state), &changes);
}
