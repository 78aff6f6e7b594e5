//! Fault schedules, after Sieve: for every write of a scenario, one run with each fault at that
//! write; for every change, runs in which the watch reports it late, twice, or not at all; for every
//! deletion, runs in which an object of the same name follows.

mod imports;
mod instances;
mod many_services;
mod scenarios;
mod targeted;

use endpointd_model::WatchedResource;

use crate::clock::{millis, secs};
use crate::clusters;
use crate::run::{RunOptions, run_script};
use crate::script::{
    Action, EndpointsAction, FirstPodLists, ImportAction, NodeAction, PodAction, ProcessFault,
    Script, ServiceAction, SliceAction, Step, WatchFault,
};
use crate::simulation::{FaultPoint, PointFault};

pub use scenarios::{PLAIN_SERVICE, plain_endpoints, plain_node, plain_pod};

/// One run with a readable name.
#[derive(Clone, Debug)]
pub struct Schedule {
    pub name: String,
    pub script: Script,
    pub options: RunOptions,
}

const POINT_FAULTS: [(PointFault, &str); 6] = [
    (PointFault::CrashBefore, "crash before write"),
    (PointFault::CrashBeforeResponse, "crash before the response to write"),
    (PointFault::CrashAfter, "crash after write"),
    (PointFault::LoseResponse, "response lost of write"),
    (PointFault::LoseRequest, "request lost of write"),
    (PointFault::ApplyLate, "applied late: write"),
];

pub fn fault_schedules() -> Vec<Schedule> {
    // First the targeted ones: few, and each detects what no other schedule does.
    let mut schedules = targeted::all();
    schedules.extend(imports::targeted());
    schedules.extend(clusters::schedules());
    for (name, script) in scenarios::all().into_iter().chain(imports::scenarios()) {
        schedules.extend(at_each_write(name, &script));
        schedules.extend(at_each_change(name, &script));
        schedules.push(Schedule { name: name.into(), script, options: RunOptions::default() });
    }
    schedules
}

/// One run for each write and each fault at that write.
fn at_each_write(name: &str, script: &Script) -> Vec<Schedule> {
    let n_writes = run_script(script).n_sent;
    let mut schedules = Vec::new();
    for at in 0..n_writes {
        for (point_fault, words) in POINT_FAULTS {
            let options = RunOptions {
                fault_point: Some(FaultPoint { at, point_fault }),
                ..RunOptions::default()
            };
            let name = format!("{name}, {words} {at}");
            schedules.push(Schedule { name, script: script.clone(), options });
        }
    }
    schedules
}

/// For each change: watch faults around it.
fn at_each_change(name: &str, script: &Script) -> Vec<Schedule> {
    let mut schedules = Vec::new();
    for at in 0..script.steps.len() {
        let Some(resource) = resource_of(&script.steps[at].action) else { continue };
        let watch = |resource, fault| Action::Watch(0, resource, fault);
        let frozen = watch(resource, WatchFault::Freeze(secs(20)));
        let crash = Action::Process(0, ProcessFault::Crash(millis(10)));
        let mut add = |words: &str, before: Vec<Action>, after: Vec<Action>| {
            let script = with(script, at, before, after);
            let name = format!("{name}, change {at} {words}");
            schedules.push(Schedule { name, script, options: RunOptions::default() });
        };
        add("delivered late", vec![frozen.clone()], vec![]);
        add("delivered after a restart", vec![frozen], vec![crash.clone()]);
        add("not delivered", vec![watch(resource, WatchFault::Expired(secs(3)))], vec![]);
        add("delivered twice", vec![], vec![watch(resource, WatchFault::Replay(8))]);
        add(
            "followed by an outdated list",
            vec![],
            vec![watch(resource, WatchFault::OutdatedList(5))],
        );
        if let Some(again) = recreation(&script.steps[at].action) {
            let gone = watch(resource, WatchFault::Expired(secs(3)));
            add("followed by an undelivered recreation", vec![gone], vec![again.clone()]);
            add("followed by a recreation at once", vec![], vec![again]);
        }
        add(
            "with an empty list of nodes",
            vec![watch(WatchedResource::Nodes, WatchFault::EmptyList)],
            vec![],
        );
        add(
            "with late nodes",
            vec![watch(WatchedResource::Nodes, WatchFault::Expired(secs(40)))],
            vec![],
        );
        add(
            "with an empty list of Services",
            vec![watch(WatchedResource::Services, WatchFault::EmptyList)],
            vec![],
        );
        add(
            "with an empty list of pods",
            vec![watch(WatchedResource::Pods, WatchFault::EmptyList)],
            vec![],
        );
        add(
            "with a short list of pods",
            vec![watch(WatchedResource::Pods, WatchFault::ShortList)],
            vec![],
        );
        let mut script = with(script, at, vec![crash], vec![]);
        script.setup.first_pod_lists = FirstPodLists::Empty;
        let name = format!("{name}, change {at} during a restart with an empty list of pods");
        schedules.push(Schedule { name, script, options: RunOptions::default() });
    }
    schedules
}

fn with(script: &Script, at: usize, before: Vec<Action>, after: Vec<Action>) -> Script {
    let mut script = script.clone();
    let step = |action| Step::new(action, millis(0));
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

/// The resource that an action changes.
fn resource_of(action: &Action) -> Option<WatchedResource> {
    match action {
        Action::Pod(..) => Some(WatchedResource::Pods),
        Action::Service(..) => Some(WatchedResource::Services),
        Action::Node(..) => Some(WatchedResource::Nodes),
        Action::Endpoints(..) => Some(WatchedResource::Endpoints),
        Action::Slice(..) => Some(WatchedResource::Slices),
        Action::Import(what) => Some(resource_of_import(what)),
        Action::Namespace(..)
        | Action::Corrupt(..)
        | Action::Watch(..)
        | Action::Request(_)
        | Action::Fault(_)
        | Action::Process(..)
        | Action::Instance(..)
        | Action::Cluster(..)
        | Action::Check(_)
        | Action::Quiesce => None,
    }
}

fn resource_of_import(action: &ImportAction) -> WatchedResource {
    match action {
        ImportAction::Consumer(..)
        | ImportAction::Ask(..)
        | ImportAction::Select(_)
        | ImportAction::Permit(..)
        | ImportAction::EditCondition(_) => WatchedResource::Services,
        ImportAction::Grant(..) | ImportAction::Revoke(..) => WatchedResource::ReferenceGrants,
        ImportAction::WriteSlice(..) | ImportAction::EditCopy(..) => WatchedResource::Slices,
    }
}

/// Creates an object with the name of the one that the action removes.
fn recreation(action: &Action) -> Option<Action> {
    const SHAPE: u32 = 1_000_003;
    match action {
        Action::Pod(place, PodAction::Remove) => {
            Some(Action::Pod(*place, PodAction::Create(SHAPE)))
        }
        Action::Service(place, ServiceAction::Remove) => {
            Some(Action::Service(*place, ServiceAction::Create(SHAPE)))
        }
        Action::Node(number, NodeAction::Remove) => {
            Some(Action::Node(*number, NodeAction::Put(SHAPE)))
        }
        Action::Endpoints(place, EndpointsAction::Remove) => {
            Some(Action::Endpoints(*place, EndpointsAction::Put(plain_endpoints(4, 0))))
        }
        Action::Slice(_, SliceAction::Delete) => {
            Some(Action::Slice(0, SliceAction::AddMislabelled(SHAPE)))
        }
        _ => None,
    }
}
