//! Schedules of instances beside each other, whose scopes are shards or label selectors.

use std::time::Duration;

use super::Schedule;
use super::scenarios::{OLD, PLAIN_SERVICE, WEB, initial_steps, plain_endpoints, plain_pod, pod};
use super::targeted::{after, elected, targeted};
use crate::clock::{millis, secs};
use crate::instances::Instances;
use crate::script::{
    Action, Check, EndpointsAction, InstanceAction, Place, PodAction, ProcessFault, ServiceAction,
    Step,
};

/// In the namespace of the other shard.
const FAR: Place = Place { namespace: 1, number: 0 };
/// Milliseconds between the actions of a hand-over.
const APART: [u64; 7] = [0, 1, 5, 20, 100, 400, 2000];

pub fn all() -> Vec<Schedule> {
    let name = "the standby of a shard takes over";
    let mut schedules = vec![with(elected(name, shard_taken_over()), Instances::Shards)];
    schedules.extend(APART.map(|apart| {
        let schedule =
            targeted(&format!("shards take over, {apart} ms apart"), handed_over(millis(apart)));
        with(schedule, Instances::HandOver)
    }));
    let name = "a Service moves between label selectors";
    schedules.push(with(targeted(name, moved_between_selectors()), Instances::Selectors));
    schedules
}

fn with(mut schedule: Schedule, instances: Instances) -> Schedule {
    schedule.script.setup.instances = instances;
    schedule
}

/// Each namespace has a Service and pods.
fn both_namespaces() -> Vec<Step> {
    let mut steps = initial_steps();
    let create = Action::Service(FAR, ServiceAction::Create(PLAIN_SERVICE));
    steps.push(after(create, millis(1)));
    steps.push(after(Action::Pod(FAR, PodAction::Create(plain_pod(5, 0))), secs(2)));
    steps
}

/// L1: changes of both namespaces while nobody has the Lease of one shard; its standby knows them.
fn shard_taken_over() -> Vec<Step> {
    let mut steps = both_namespaces();
    steps.extend([
        after(Action::Process(1, ProcessFault::Crash(secs(600))), secs(1)),
        after(Action::Pod(FAR, PodAction::Unready), millis(1)),
        after(Action::Pod(pod(0), PodAction::Unready), secs(20)),
        after(Action::Check(Check::Converged), millis(1)),
    ]);
    steps
}

/// Shards replace the instance that looks at everything: both write for some time, and changes go on.
fn handed_over(apart: Duration) -> Vec<Step> {
    let mut steps = both_namespaces();
    let flap = |steps: &mut Vec<Step>| {
        for place in [pod(0), FAR] {
            steps.push(after(Action::Pod(place, PodAction::Unready), apart));
            steps.push(after(Action::Pod(place, PodAction::Ready), apart));
        }
    };
    for instance in [1, 2] {
        steps.push(after(Action::Instance(instance, InstanceAction::Start), apart));
    }
    flap(&mut steps);
    // Until the new ones lead and have listed everything.
    steps.push(after(Action::Pod(pod(1), PodAction::Unready), secs(2)));
    steps.push(after(Action::Instance(0, InstanceAction::Stop), apart));
    flap(&mut steps);
    steps.push(after(Action::Pod(FAR, PodAction::Unready), secs(2)));
    steps.push(after(Action::Check(Check::Converged), millis(1)));
    steps
}

/// Of [`Instances::Selectors`], by the labels that the Service gets.
const OF_TEAM_A: u32 = 0;
const OF_OTHERS: u32 = 1;

/// Its Endpoints and slices stay while it moves, also while the instance that it moves to is down, and
/// when the instance that it has left starts again.
fn moved_between_selectors() -> Vec<Step> {
    let relabel = |shape| Action::Service(WEB, ServiceAction::Relabel(shape));
    let mut steps = initial_steps();
    for shape in [OF_TEAM_A, OF_OTHERS] {
        steps.extend([
            after(Action::Process(u8::from(shape == OF_OTHERS), CRASH), millis(1)),
            after(relabel(shape), secs(20)),
            after(Action::Check(Check::Converged), millis(1)),
            after(Action::Pod(pod(0), PodAction::Unready), secs(1)),
            after(Action::Process(u8::from(shape == OF_TEAM_A), CRASH), secs(20)),
            after(Action::Pod(pod(0), PodAction::Ready), secs(2)),
            after(Action::Check(Check::Converged), millis(1)),
        ]);
    }
    // Users write Endpoints of another Service, which are mirrored.
    steps.extend([
        after(Action::Service(OLD, ServiceAction::Create(PLAIN_SERVICE)), millis(1)),
        after(Action::Endpoints(OLD, EndpointsAction::Put(plain_endpoints(2, 0))), secs(1)),
        after(Action::Service(OLD, ServiceAction::Relabel(OF_TEAM_A)), secs(2)),
        after(Action::Service(OLD, ServiceAction::Relabel(OF_OTHERS)), secs(2)),
        after(Action::Process(0, CRASH), secs(20)),
        after(Action::Check(Check::Converged), millis(1)),
    ]);
    steps
}

const CRASH: ProcessFault = ProcessFault::Crash(Duration::from_secs(5));
