//! Changes by users, kubelets, and other controllers.

use endpointd_model::WatchedResource;
use endpointd_rng::SplitMix64;

use super::{Class, Swarm};
use crate::clock::millis;
use crate::script::{
    Action, EndpointsAction, NamespaceAction, NodeAction, Place, PodAction, ServiceAction,
    SliceAction, Step,
};
use crate::workload::SERVICES;

/// The objects of a small cluster.
pub fn initial_steps(steps: &mut Vec<Step>, rng: &mut SplitMix64) {
    let mut add = |action| steps.push(Step::new(action, millis(1)));
    for node in 0..3 {
        add(Action::Node(node, NodeAction::Put(shape(rng))));
    }
    for number in 0..SERVICES.len() as u16 {
        let place = Place { namespace: 0, number };
        add(Action::Service(place, ServiceAction::Create(shape(rng))));
    }
    for number in 0..3 {
        add(Action::Pod(Place { namespace: 0, number }, PodAction::Create(shape(rng))));
    }
}

pub fn action(class: Class, swarm: &Swarm, rng: &mut SplitMix64) -> Action {
    match class {
        Class::Pods => Action::Pod(place(swarm, swarm.n_pods, rng), pod(rng)),
        Class::Services => Action::Service(service(swarm, rng), service_action(rng)),
        Class::Nodes => Action::Node(rng.below(4) as u8, node(rng)),
        Class::Endpoints => Action::Endpoints(endpoints(swarm, rng), endpoints_action(rng)),
        Class::Namespaces => {
            let what =
                rng.pick(&[NamespaceAction::End, NamespaceAction::Begin, NamespaceAction::Begin]);
            Action::Namespace(rng.below(swarm.n_namespaces.into()) as u8, what)
        }
        Class::Slices => Action::Slice(shape(rng), slice(rng)),
        _ => Action::Corrupt(rng.pick(&WatchedResource::DEFAULT), shape(rng)),
    }
}

fn shape(rng: &mut SplitMix64) -> u32 {
    rng.next_u64() as u32
}

fn place(swarm: &Swarm, n: u16, rng: &mut SplitMix64) -> Place {
    let namespace = rng.below(swarm.n_namespaces.into()) as u8;
    Place { namespace, number: rng.below(n.into()) as u16 }
}

pub fn service(swarm: &Swarm, rng: &mut SplitMix64) -> Place {
    place(swarm, SERVICES.len() as u16, rng)
}

/// Mostly for `old`, which has no selector.
fn endpoints(swarm: &Swarm, rng: &mut SplitMix64) -> Place {
    let place = service(swarm, rng);
    let number = if rng.percent(75) { SERVICES.len() as u16 - 1 } else { place.number };
    Place { number, ..place }
}

fn pod(rng: &mut SplitMix64) -> PodAction {
    let shape = shape(rng);
    match rng.below(100) {
        0..=29 => PodAction::Create(shape),
        30..=44 => PodAction::Ready,
        45..=57 => PodAction::Unready,
        58..=65 => PodAction::Terminate,
        66..=77 => PodAction::Remove,
        78..=81 => PodAction::Fail,
        82 => PodAction::Succeed,
        83..=87 => PodAction::Replace(shape),
        88..=91 => PodAction::Relabel(shape),
        92..=94 => PodAction::ChangeAddress(shape),
        95..=97 => PodAction::Move(shape),
        _ => PodAction::Rename(shape),
    }
}

fn service_action(rng: &mut SplitMix64) -> ServiceAction {
    let shape = shape(rng);
    match rng.below(100) {
        0..=29 => ServiceAction::Create(shape),
        30..=35 => ServiceAction::Remove,
        36..=37 => ServiceAction::RemoveOnly,
        38..=47 => ServiceAction::Recreate(shape),
        48..=55 => ServiceAction::Relabel(shape),
        56..=63 => ServiceAction::Ports(shape),
        64..=71 => ServiceAction::Select(shape),
        72..=75 => ServiceAction::Unselect,
        76..=77 => ServiceAction::External,
        78..=80 => ServiceAction::Internal,
        81..=83 => ServiceAction::PublishNotReady,
        84..=85 => ServiceAction::PublishReady,
        86 => ServiceAction::Tolerate(shape),
        87..=91 => ServiceAction::Families(shape),
        92..=97 => ServiceAction::Topology(shape),
        _ => ServiceAction::Delete,
    }
}

fn node(rng: &mut SplitMix64) -> NodeAction {
    if rng.percent(25) { NodeAction::Remove } else { NodeAction::Put(shape(rng)) }
}

fn endpoints_action(rng: &mut SplitMix64) -> EndpointsAction {
    let shape = shape(rng);
    match rng.below(100) {
        0..=54 => EndpointsAction::Put(shape),
        55..=60 => EndpointsAction::SkipMirror,
        61..=64 => EndpointsAction::Lock,
        65..=74 => EndpointsAction::RemoveMarks,
        75..=82 => EndpointsAction::Annotate(shape),
        83..=86 => EndpointsAction::Empty,
        87..=92 => EndpointsAction::Remove,
        _ => EndpointsAction::Recreate(shape),
    }
}

fn slice(rng: &mut SplitMix64) -> SliceAction {
    let shape = shape(rng);
    match rng.below(100) {
        0..=24 => SliceAction::Delete,
        25..=39 => SliceAction::DropEndpoint,
        40..=49 => SliceAction::ChangeAddress,
        50..=54 => SliceAction::DropHints,
        55..=64 => SliceAction::Relabel,
        65..=71 => SliceAction::DropOwners,
        72..=78 => SliceAction::ChangeManager,
        79..=83 => SliceAction::SetFinalizer,
        84..=88 => SliceAction::DropFinalizer,
        89..=93 => SliceAction::AddForeign(shape),
        _ => SliceAction::AddMislabelled(shape),
    }
}
