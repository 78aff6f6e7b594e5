//! A script from a seed. Each seed has its own mixture of faults (swarm testing): some runs have
//! only crashes, some only watch faults, some none.

mod changes;
mod faults;
mod imports;

use std::time::Duration;

use endpointd_engine::{AdditionDelay, AnnotationPolicy, OrphanPolicy};
use endpointd_rng::SplitMix64;

use crate::clock::millis;
use crate::instances::Instances;
use crate::rng::rng_of;
use crate::script::{Action, FirstPodLists, Script, Setup, Step};

/// The weight of each class of actions in one run; classes left out never occur.
#[derive(Clone, Debug)]
struct Swarm {
    weights: Vec<(Class, u64)>,
    /// Factor of all pauses, in thousandths.
    pace: u64,
    n_namespaces: u8,
    n_pods: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Pods,
    Services,
    Nodes,
    Endpoints,
    Namespaces,
    Slices,
    Corrupt,
    Delay,
    Freeze,
    Disconnect,
    Replay,
    Expired,
    OutdatedList,
    EmptyList,
    Bookmark,
    LostMessage,
    AppliedLate,
    Errors,
    Throttle,
    ConcurrentWrite,
    Slow,
    HeldBack,
    Outage,
    AllErrors,
    FailedReads,
    Quota,
    Rejected,
    RejectedWith500,
    Webhook,
    Clock,
    ProcessClock,
    Compact,
    Crash,
    Sleep,
    Lease,
}

/// Classes of every run.
const WORKLOAD: [(Class, u64); 6] = [
    (Class::Pods, 500),
    (Class::Services, 90),
    (Class::Nodes, 40),
    (Class::Endpoints, 50),
    (Class::Namespaces, 3),
    (Class::Slices, 40),
];

/// Classes of some runs.
const FAULTS: [(Class, u64); 29] = [
    (Class::Corrupt, 10),
    (Class::Delay, 30),
    (Class::Freeze, 20),
    (Class::Disconnect, 20),
    (Class::Replay, 15),
    (Class::Expired, 15),
    (Class::OutdatedList, 8),
    (Class::EmptyList, 4),
    (Class::Bookmark, 15),
    (Class::LostMessage, 40),
    (Class::AppliedLate, 20),
    (Class::Errors, 30),
    (Class::Throttle, 8),
    (Class::ConcurrentWrite, 25),
    (Class::Slow, 30),
    (Class::HeldBack, 15),
    (Class::Outage, 4),
    (Class::AllErrors, 4),
    (Class::FailedReads, 10),
    (Class::Quota, 8),
    (Class::Rejected, 10),
    (Class::RejectedWith500, 6),
    (Class::Webhook, 5),
    (Class::Clock, 5),
    (Class::ProcessClock, 8),
    (Class::Compact, 10),
    (Class::Crash, 10),
    (Class::Sleep, 8),
    (Class::Lease, 12),
];

pub fn script_of(seed: u64, n_steps: usize) -> Script {
    let mut rng = rng_of(seed);
    let mut setup = setup(&mut rng);
    // Not drawn: the scripts of kept seeds stay as they are.
    if seed.is_multiple_of(3) {
        setup.tolerate_unready_annotation = AnnotationPolicy::Honor;
    }
    if seed % 4 == 1 {
        setup.orphan_policy = OrphanPolicy::Delete;
    }
    if seed % 5 == 2 {
        setup.addition_delay = noticeable_addition_delay();
    }
    setup.instances = match seed % 9 {
        2 => Instances::Namespaces,
        7 => Instances::Shards,
        _ if seed % 27 == 22 => Instances::Selectors,
        _ => Instances::One,
    };
    if seed % 11 == 5 {
        setup.first_pod_lists = FirstPodLists::Empty;
    }
    // An instance that runs it looks at everything.
    setup.runs_imports = setup.instances == Instances::One && imports::runs_imports(seed);
    let swarm = Swarm::new(&mut rng);
    let mut steps = Vec::with_capacity(n_steps);
    let quiesce_every = rng.between(120, 500) as usize;
    changes::initial_steps(&mut steps, &mut rng);
    let n_initial = steps.len();
    while steps.len() < n_steps {
        let is_quiescent = steps.len() % quiesce_every == quiesce_every - 1;
        let action = if is_quiescent { Action::Quiesce } else { swarm.action(&mut rng) };
        let pause = swarm.pause(&mut rng);
        steps.push(Step::new(action, pause));
    }
    if setup.runs_imports {
        steps = imports::interleaved(steps, seed, n_initial);
    }
    steps.truncate(n_steps);
    Script { seed, setup, steps }
}

/// The Services of a run have a handful of endpoints.
fn noticeable_addition_delay() -> AdditionDelay {
    AdditionDelay { undelayed_endpoints: 1, per_endpoint: millis(300), max: millis(1000) }
}

fn setup(rng: &mut SplitMix64) -> Setup {
    Setup {
        endpoints_per_slice_max: rng.pick(&[1, 2, 3, 3, 4, 100]),
        mirrored_per_subset_max: rng.pick(&[1, 2, 3, 1000, 1000]),
        batch_period: rng.pick(&[Duration::ZERO, Duration::ZERO, millis(500)]),
        n_processes: rng.pick(&[1, 1, 2]),
        ..Setup::default()
    }
}

impl Swarm {
    fn new(rng: &mut SplitMix64) -> Self {
        let mut weights = WORKLOAD.to_vec();
        // A few faults often, or many rarely.
        let share = rng.pick(&[0, 10, 30, 60, 100]);
        let strength = rng.between(1, 4);
        for (class, weight) in FAULTS {
            if rng.percent(share) {
                weights.push((class, weight * strength));
            }
        }
        Self {
            weights,
            pace: rng.pick(&[100, 300, 1000, 1000, 3000]),
            n_namespaces: rng.pick(&[1, 2, 2]),
            n_pods: rng.pick(&[2, 4, 8, 8, 12]),
        }
    }

    fn action(&self, rng: &mut SplitMix64) -> Action {
        let total: u64 = self.weights.iter().map(|(_, weight)| weight).sum();
        let mut left = rng.below(total);
        for (class, weight) in &self.weights {
            match left.checked_sub(*weight) {
                Some(rest) => left = rest,
                None => return self.action_of(*class, rng),
            }
        }
        Action::Quiesce
    }

    fn action_of(&self, class: Class, rng: &mut SplitMix64) -> Action {
        match class {
            Class::Pods
            | Class::Services
            | Class::Nodes
            | Class::Endpoints
            | Class::Namespaces
            | Class::Slices
            | Class::Corrupt => changes::action(class, self, rng),
            Class::Delay
            | Class::Freeze
            | Class::Disconnect
            | Class::Replay
            | Class::Expired
            | Class::OutdatedList
            | Class::EmptyList
            | Class::Bookmark => faults::watch(class, rng),
            Class::LostMessage
            | Class::AppliedLate
            | Class::Errors
            | Class::Throttle
            | Class::ConcurrentWrite
            | Class::Slow
            | Class::HeldBack => faults::request(class, rng),
            Class::Outage
            | Class::AllErrors
            | Class::FailedReads
            | Class::Quota
            | Class::Rejected
            | Class::RejectedWith500
            | Class::Webhook
            | Class::Clock
            | Class::ProcessClock
            | Class::Compact
            | Class::Crash
            | Class::Sleep
            | Class::Lease => faults::other(class, self, rng),
        }
    }

    /// Mostly short, sometimes long enough for the cluster to converge.
    fn pause(&self, rng: &mut SplitMix64) -> Duration {
        let micros = match rng.below(100) {
            0..=29 => 0,
            30..=69 => rng.below(50_000),
            70..=89 => rng.below(500_000),
            90..=97 => rng.below(3_000_000),
            _ => rng.below(30_000_000),
        };
        Duration::from_micros(micros * self.pace / 1000)
    }
}
