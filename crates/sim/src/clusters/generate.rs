//! Scripts about several clusters: from seeds, and a few that check one rule each.

use std::time::Duration;

use endpointd_rng::SplitMix64;

use crate::clock::{millis, secs};
use crate::fault_schedules::Schedule;
use crate::rng::rng_of;
use crate::run::RunOptions;
use crate::script::{Action, ClusterAction, ProcessFault, Script, Setup, Step};

const SEEDS: u64 = 200;
const STEPS: usize = 120;
const OTHERS: usize = 2;

pub fn schedules() -> Vec<Schedule> {
    let seeds = (0..SEEDS).map(|seed| {
        let name = format!("clusters, seed {seed}");
        Schedule { name, script: script_of(seed), options: RunOptions::default() }
    });
    targeted().into_iter().chain(seeds).collect()
}

fn setup() -> Setup {
    Setup { n_other_clusters: OTHERS, ..Setup::default() }
}

fn step(site: u8, action: ClusterAction, pause: Duration) -> Step {
    Step::new(Action::Cluster(site, action), pause)
}

/// All clusters export the first Service.
fn all_export() -> Vec<Step> {
    let mut steps = Vec::new();
    for site in 0..=OTHERS as u8 {
        steps.push(step(site, ClusterAction::Service(0, 0), millis(0)));
        steps.push(step(site, ClusterAction::Slice(0, 3 * 3 + 1), millis(0)));
        steps.push(step(site, ClusterAction::Export(0, 0), secs(2)));
    }
    steps.push(Step::new(Action::Quiesce, millis(0)));
    steps
}

/// Each of these begins with a set at rest.
fn targeted() -> Vec<Schedule> {
    let crash = |secs| Step::new(Action::Process(0, ProcessFault::Crash(secs)), millis(0));
    let cut = |site, time| step(site, ClusterAction::Cut(time), millis(0));
    let wait = |time| step(0, ClusterAction::BackUp, time);
    let clock = |jump| Step::new(Action::Process(0, ProcessFault::ClockJump(jump)), secs(40));
    let cases: Vec<(&str, Vec<Step>)> = vec![
        (
            "exports that end together",
            (0..=2).map(|site| step(site, ClusterAction::Unexport(0), millis(30))).collect(),
        ),
        (
            "a process that starts while a cluster is cut off",
            vec![cut(1, secs(900)), crash(secs(1)), step(0, ClusterAction::Slice(0, 1), secs(600))],
        ),
        ("a demoted cluster that returns", vec![cut(1, secs(700)), wait(secs(900))]),
        ("no cluster answers", vec![cut(1, secs(900)), cut(2, secs(900)), wait(secs(1000))]),
        ("a cluster that expires", vec![cut(2, secs(5000)), wait(secs(5200))]),
        (
            "a cluster replaced while it is cut off",
            vec![cut(1, secs(60)), step(1, ClusterAction::Replace(0), secs(100))],
        ),
        ("a clock that jumps by a day", vec![clock(100_000), clock(-100_000), clock(0)]),
        (
            "a kubeconfig that is away for a while",
            vec![
                step(1, ClusterAction::RemoveKubeconfig, secs(60)),
                step(1, ClusterAction::ReturnKubeconfig, secs(60)),
            ],
        ),
        (
            "a kubeconfig that is replaced",
            vec![
                step(1, ClusterAction::RemoveKubeconfig, secs(6)),
                step(1, ClusterAction::ReturnKubeconfig, secs(60)),
            ],
        ),
        (
            "a cluster restored from a backup",
            vec![
                step(1, ClusterAction::BackUp, millis(0)),
                step(1, ClusterAction::Slice(0, 2), secs(5)),
                step(1, ClusterAction::Unexport(0), secs(60)),
                step(1, ClusterAction::Restore, secs(60)),
            ],
        ),
    ];
    let schedule = |(name, steps): (&str, Vec<Step>)| {
        let steps = all_export().into_iter().chain(steps).collect();
        let script = Script { seed: 1, setup: setup(), steps };
        Schedule { name: format!("clusters, {name}"), script, options: RunOptions::default() }
    };
    cases.into_iter().map(schedule).collect()
}

fn script_of(seed: u64) -> Script {
    let mut rng = rng_of(seed ^ 0x00c1_5e75);
    let fault_share = rng.pick(&[0, 10, 25, 50]);
    let mut steps = all_export();
    while steps.len() < STEPS {
        let action = match rng.percent(fault_share) {
            true => fault(&mut rng),
            false => change(&mut rng),
        };
        steps.push(Step::new(action, pause(&mut rng)));
        if rng.percent(2) {
            steps.push(Step::new(Action::Quiesce, millis(0)));
        }
    }
    Script { seed, setup: setup(), steps }
}

/// Mostly shorter than a request, sometimes longer than a limit.
fn pause(rng: &mut SplitMix64) -> Duration {
    match rng.below(20) {
        0..=7 => millis(rng.below(60)),
        8..=14 => millis(rng.below(2_000)),
        15..=18 => secs(rng.below(60)),
        _ => secs(rng.below(600)),
    }
}

fn change(rng: &mut SplitMix64) -> Action {
    let site = rng.below(OTHERS as u64 + 1) as u8;
    let (number, shape) = (rng.below(2) as u16, rng.next_u64() as u32);
    Action::Cluster(
        site,
        match rng.below(20) {
            0..=2 => ClusterAction::Service(number, shape),
            3 => ClusterAction::RemoveService(number),
            4..=6 => ClusterAction::Export(number, shape),
            7 | 8 => ClusterAction::Unexport(number),
            9..=16 => ClusterAction::Slice(number, shape),
            17 | 18 => ClusterAction::RemoveSlice(number, shape),
            _ => ClusterAction::Edit(number, shape),
        },
    )
}

fn fault(rng: &mut SplitMix64) -> Action {
    let site = rng.between(1, OTHERS as u64) as u8;
    let time = secs(rng.pick(&[1, 5, 20, 40, 200, 400, 4000]));
    Action::Cluster(
        site,
        match rng.below(20) {
            0..=4 => ClusterAction::Cut(time),
            5..=7 => ClusterAction::CutAndCompact(time),
            8 | 9 => ClusterAction::BackUp,
            10 | 11 => ClusterAction::Restore,
            12 => ClusterAction::Replace(rng.next_u64() as u32),
            13 => ClusterAction::RemoveKubeconfig,
            14 | 15 => ClusterAction::ReturnKubeconfig,
            16 => ClusterAction::Deny(time),
            17 => ClusterAction::ClockJump(rng.pick(&[-7200, 0, 30, 90_000])),
            18 => {
                let jump = rng.pick(&[-7200, 0, 60, 90_000]);
                return Action::Process(0, ProcessFault::ClockJump(jump));
            }
            _ => return Action::Process(0, ProcessFault::Crash(secs(rng.pick(&[1, 60])))),
        },
    )
}
