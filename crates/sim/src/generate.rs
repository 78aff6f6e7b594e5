//! A script from a seed. Each seed has its own mixture of what may happen (a swarm): some storms
//! are all crashes, some all watches, some have no fault at all.

mod changes;
mod faults;

use std::time::Duration;

use crate::clock::millis;
use crate::dice::Dice;
use crate::script::{Act, Script, Setup, Step};

/// How likely each class of acts is in one run; zero for those left out.
#[derive(Clone, Debug)]
struct Swarm {
    weights: Vec<(Class, u64)>,
    /// In thousandths of the usual pace.
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
    Garble,
    Delay,
    Freeze,
    Cut,
    Replay,
    Gone,
    OldPicture,
    EmptyPicture,
    Bookmark,
    Lost,
    Late,
    Errors,
    Throttle,
    Overtake,
    Slow,
    Outage,
    Blind,
    Quota,
    Refused,
    Webhook,
    Clock,
    Compact,
    Crash,
    Sleep,
    Lease,
}

/// What happens in every run.
const WORKLOAD: [(Class, u64); 6] = [
    (Class::Pods, 500),
    (Class::Services, 90),
    (Class::Nodes, 40),
    (Class::Endpoints, 50),
    (Class::Namespaces, 3),
    (Class::Slices, 40),
];

/// What happens only in some.
const FAULTS: [(Class, u64); 25] = [
    (Class::Garble, 10),
    (Class::Delay, 30),
    (Class::Freeze, 20),
    (Class::Cut, 20),
    (Class::Replay, 15),
    (Class::Gone, 15),
    (Class::OldPicture, 8),
    (Class::EmptyPicture, 4),
    (Class::Bookmark, 15),
    (Class::Lost, 40),
    (Class::Late, 20),
    (Class::Errors, 30),
    (Class::Throttle, 8),
    (Class::Overtake, 25),
    (Class::Slow, 30),
    (Class::Outage, 4),
    (Class::Blind, 10),
    (Class::Quota, 8),
    (Class::Refused, 10),
    (Class::Webhook, 5),
    (Class::Clock, 5),
    (Class::Compact, 10),
    (Class::Crash, 10),
    (Class::Sleep, 8),
    (Class::Lease, 12),
];

/// One seed, one script.
pub fn script_of(seed: u64, n_steps: usize) -> Script {
    let mut dice = Dice::new(seed);
    let setup = setup(&mut dice);
    let swarm = Swarm::new(&mut dice);
    let mut steps = Vec::with_capacity(n_steps);
    let calm_every = dice.between(120, 500) as usize;
    changes::begin(&mut steps, &mut dice);
    while steps.len() < n_steps {
        let is_calm = steps.len() % calm_every == calm_every - 1;
        let act = if is_calm { Act::Calm } else { swarm.act(&mut dice) };
        let pause = swarm.pause(&mut dice);
        steps.push(Step::new(act, pause));
    }
    steps.truncate(n_steps);
    Script { seed, setup, steps }
}

fn setup(dice: &mut Dice) -> Setup {
    Setup {
        endpoints_per_slice_max: dice.pick(&[1, 2, 3, 3, 4, 100]),
        mirrored_per_subset_max: dice.pick(&[1, 2, 3, 1000, 1000]),
        batch_period: dice.pick(&[Duration::ZERO, Duration::ZERO, millis(500)]),
        n_processes: dice.pick(&[1, 1, 2]),
    }
}

impl Swarm {
    fn new(dice: &mut Dice) -> Self {
        let mut weights = WORKLOAD.to_vec();
        // A few faults often, or many seldom.
        let share = dice.pick(&[0, 10, 30, 60, 100]);
        let strength = dice.between(1, 4);
        for (class, weight) in FAULTS {
            if dice.percent(share) {
                weights.push((class, weight * strength));
            }
        }
        Self {
            weights,
            pace: dice.pick(&[100, 300, 1000, 1000, 3000]),
            n_namespaces: dice.pick(&[1, 2, 2]),
            n_pods: dice.pick(&[2, 4, 8, 8, 12]),
        }
    }

    fn act(&self, dice: &mut Dice) -> Act {
        let total: u64 = self.weights.iter().map(|(_, weight)| weight).sum();
        let mut left = dice.roll(total);
        for (class, weight) in &self.weights {
            match left.checked_sub(*weight) {
                Some(rest) => left = rest,
                None => return self.act_of(*class, dice),
            }
        }
        Act::Calm
    }

    fn act_of(&self, class: Class, dice: &mut Dice) -> Act {
        match class {
            Class::Pods
            | Class::Services
            | Class::Nodes
            | Class::Endpoints
            | Class::Namespaces
            | Class::Slices
            | Class::Garble => changes::act(class, self, dice),
            Class::Delay
            | Class::Freeze
            | Class::Cut
            | Class::Replay
            | Class::Gone
            | Class::OldPicture
            | Class::EmptyPicture
            | Class::Bookmark => faults::watch(class, dice),
            Class::Lost
            | Class::Late
            | Class::Errors
            | Class::Throttle
            | Class::Overtake
            | Class::Slow => faults::mishap(class, dice),
            Class::Outage
            | Class::Blind
            | Class::Quota
            | Class::Refused
            | Class::Webhook
            | Class::Clock
            | Class::Compact
            | Class::Crash
            | Class::Sleep
            | Class::Lease => faults::trouble(class, self, dice),
        }
    }

    /// Mostly short, sometimes long enough for things to settle.
    fn pause(&self, dice: &mut Dice) -> Duration {
        let micros = match dice.roll(100) {
            0..=29 => 0,
            30..=69 => dice.roll(50_000),
            70..=89 => dice.roll(500_000),
            90..=97 => dice.roll(3_000_000),
            _ => dice.roll(30_000_000),
        };
        Duration::from_micros(micros * self.pace / 1000)
    }
}
