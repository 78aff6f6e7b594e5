//! Exhaustive plans, after Sieve: every write of a scenario is trapped in every way, every change is
//! seen late or not at all, every deletion is followed by a namesake nobody saw come.

mod scenarios;
mod trials;

use endpointd_model::WatchedResource;

use crate::clock::{millis, secs};
use crate::play::{Manner, play};
use crate::script::{
    Act, EndpointsAct, NodeAct, PodAct, ProcessFault, Script, ServiceAct, SliceAct, Step,
    WatchFault,
};
use crate::world::{Snare, Trap};

pub use scenarios::{PLAIN_SERVICE, plain_endpoints, plain_node, plain_pod};

/// One run with a name people can find it by.
#[derive(Clone, Debug)]
pub struct Plan {
    pub name: String,
    pub script: Script,
    pub manner: Manner,
}

const TRAPS: [(Trap, &str); 6] = [
    (Trap::CrashBefore, "killed before write"),
    (Trap::CrashUnanswered, "killed before the answer to write"),
    (Trap::CrashAfter, "killed after write"),
    (Trap::LoseApplied, "lost the answer to write"),
    (Trap::LoseNotApplied, "lost write"),
    (Trap::ApplyLate, "delayed write"),
];

/// All of them.
pub fn plans() -> Vec<Plan> {
    let mut plans = Vec::new();
    for (name, script) in scenarios::all() {
        plans.extend(trapped(name, &script));
        plans.extend(disturbed(name, &script));
        plans.push(Plan { name: name.into(), script, manner: Manner::default() });
    }
    plans.extend(trials::all());
    plans
}

/// Each write in each trap.
fn trapped(name: &str, script: &Script) -> Vec<Plan> {
    let n_writes = play(script).n_sent;
    let mut plans = Vec::new();
    for at in 0..n_writes {
        for (trap, words) in TRAPS {
            let manner = Manner { snare: Some(Snare { at, trap }), ..Manner::default() };
            let name = format!("{name}, {words} {at}");
            plans.push(Plan { name, script: script.clone(), manner });
        }
    }
    plans
}

/// Each change seen late, after a restart, or not at all.
fn disturbed(name: &str, script: &Script) -> Vec<Plan> {
    let mut plans = Vec::new();
    for at in 0..script.steps.len() {
        let Some(kind) = kind_of(&script.steps[at].act) else { continue };
        let watch = |kind, fault| Act::Watch(0, kind, fault);
        let frozen = watch(kind, WatchFault::Freeze(secs(20)));
        let crash = Act::Process(0, ProcessFault::Crash(millis(10)));
        let mut add = |words: &str, before: Vec<Act>, after: Vec<Act>| {
            let script = with(script, at, before, after);
            let name = format!("{name}, change {at} {words}");
            plans.push(Plan { name, script, manner: Manner::default() });
        };
        add("seen late", vec![frozen.clone()], vec![]);
        add("seen after a restart", vec![frozen], vec![crash]);
        add("not seen", vec![watch(kind, WatchFault::Gone(secs(3)))], vec![]);
        add("seen twice", vec![], vec![watch(kind, WatchFault::Replay(8))]);
        add("behind an old picture", vec![], vec![watch(kind, WatchFault::OldPicture(5))]);
        if let Some(again) = namesake(&script.steps[at].act) {
            let gone = watch(kind, WatchFault::Gone(secs(3)));
            add("followed by a namesake nobody saw come", vec![gone], vec![again.clone()]);
            add("followed by a namesake at once", vec![], vec![again]);
        }
        add("without nodes", vec![watch(WatchedResource::Nodes, WatchFault::EmptyPicture)], vec![]);
        add(
            "with late nodes",
            vec![watch(WatchedResource::Nodes, WatchFault::Gone(secs(40)))],
            vec![],
        );
        add(
            "without Services",
            vec![watch(WatchedResource::Services, WatchFault::EmptyPicture)],
            vec![],
        );
    }
    plans
}

fn with(script: &Script, at: usize, before: Vec<Act>, after: Vec<Act>) -> Script {
    let mut script = script.clone();
    let step = |act| Step::new(act, millis(0));
    let tail = script.steps.split_off(at + 1);
    let mut changed = script.steps.pop().expect("the step is there");
    let pause = std::mem::take(&mut changed.pause);
    script.steps.extend(before.into_iter().map(step));
    script.steps.push(changed);
    script.steps.extend(after.into_iter().map(step));
    if let Some(last) = script.steps.last_mut() {
        last.pause = pause;
    }
    script.steps.extend(tail);
    script
}

/// What an act changes.
fn kind_of(act: &Act) -> Option<WatchedResource> {
    match act {
        Act::Pod(..) => Some(WatchedResource::Pods),
        Act::Service(..) => Some(WatchedResource::Services),
        Act::Node(..) => Some(WatchedResource::Nodes),
        Act::Endpoints(..) => Some(WatchedResource::Endpoints),
        Act::Slice(..) => Some(WatchedResource::Slices),
        Act::Namespace(..)
        | Act::Garble(..)
        | Act::Watch(..)
        | Act::Mishap(_)
        | Act::Fault(_)
        | Act::Process(..)
        | Act::Check(_)
        | Act::Calm => None,
    }
}

/// Another object under the name of what an act removes.
fn namesake(act: &Act) -> Option<Act> {
    const VARIETY: u32 = 1_000_003;
    match act {
        Act::Pod(place, PodAct::Remove) => Some(Act::Pod(*place, PodAct::Create(VARIETY))),
        Act::Service(place, ServiceAct::Remove) => {
            Some(Act::Service(*place, ServiceAct::Create(VARIETY)))
        }
        Act::Node(number, NodeAct::Remove) => Some(Act::Node(*number, NodeAct::Put(VARIETY))),
        Act::Endpoints(place, EndpointsAct::Remove) => {
            Some(Act::Endpoints(*place, EndpointsAct::Put(plain_endpoints(4, 0))))
        }
        Act::Slice(_, SliceAct::Delete) => Some(Act::Slice(0, SliceAct::AddImpostor(VARIETY))),
        _ => None,
    }
}
