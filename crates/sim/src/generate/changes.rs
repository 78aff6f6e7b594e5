//! What people, kubelets, and other controllers do.

use endpointd_model::WatchedResource;

use super::{Class, Swarm};
use crate::clock::millis;
use crate::dice::Dice;
use crate::script::{
    Act, EndpointsAct, NamespaceAct, NodeAct, Place, PodAct, ServiceAct, SliceAct, Step,
};
use crate::workload::SERVICES;

/// A small cluster to begin with.
pub fn begin(steps: &mut Vec<Step>, dice: &mut Dice) {
    let mut add = |act| steps.push(Step::new(act, millis(1)));
    for node in 0..3 {
        add(Act::Node(node, NodeAct::Put(variety(dice))));
    }
    for number in 0..SERVICES.len() as u16 {
        let place = Place { namespace: 0, number };
        add(Act::Service(place, ServiceAct::Create(variety(dice))));
    }
    for number in 0..3 {
        add(Act::Pod(Place { namespace: 0, number }, PodAct::Create(variety(dice))));
    }
}

pub fn act(class: Class, swarm: &Swarm, dice: &mut Dice) -> Act {
    match class {
        Class::Pods => Act::Pod(place(swarm, swarm.n_pods, dice), pod(dice)),
        Class::Services => Act::Service(service(swarm, dice), service_act(dice)),
        Class::Nodes => Act::Node(dice.roll(4) as u8, node(dice)),
        Class::Endpoints => Act::Endpoints(endpoints(swarm, dice), endpoints_act(dice)),
        Class::Namespaces => {
            let what = dice.pick(&[NamespaceAct::End, NamespaceAct::Begin, NamespaceAct::Begin]);
            Act::Namespace(dice.roll(swarm.n_namespaces.into()) as u8, what)
        }
        Class::Slices => Act::Slice(variety(dice), slice(dice)),
        _ => Act::Garble(dice.pick(&WatchedResource::ALL), variety(dice)),
    }
}

fn variety(dice: &mut Dice) -> u32 {
    dice.number() as u32
}

fn place(swarm: &Swarm, n: u16, dice: &mut Dice) -> Place {
    let namespace = dice.roll(swarm.n_namespaces.into()) as u8;
    Place { namespace, number: dice.roll(n.into()) as u16 }
}

pub fn service(swarm: &Swarm, dice: &mut Dice) -> Place {
    place(swarm, SERVICES.len() as u16, dice)
}

/// Mostly for `old`, which has no selector.
fn endpoints(swarm: &Swarm, dice: &mut Dice) -> Place {
    let place = service(swarm, dice);
    let number = if dice.percent(75) { SERVICES.len() as u16 - 1 } else { place.number };
    Place { number, ..place }
}

fn pod(dice: &mut Dice) -> PodAct {
    let variety = variety(dice);
    match dice.roll(100) {
        0..=29 => PodAct::Create(variety),
        30..=44 => PodAct::Ready,
        45..=57 => PodAct::Unready,
        58..=65 => PodAct::Terminate,
        66..=77 => PodAct::Remove,
        78..=81 => PodAct::Fail,
        82 => PodAct::Succeed,
        83..=87 => PodAct::Replace(variety),
        88..=91 => PodAct::Relabel(variety),
        92..=94 => PodAct::Readdress(variety),
        95..=97 => PodAct::Move(variety),
        _ => PodAct::Rename(variety),
    }
}

fn service_act(dice: &mut Dice) -> ServiceAct {
    let variety = variety(dice);
    match dice.roll(100) {
        0..=29 => ServiceAct::Create(variety),
        30..=37 => ServiceAct::Remove,
        38..=47 => ServiceAct::Recreate(variety),
        48..=55 => ServiceAct::Relabel(variety),
        56..=63 => ServiceAct::Ports(variety),
        64..=71 => ServiceAct::Select(variety),
        72..=75 => ServiceAct::Unselect,
        76..=77 => ServiceAct::External,
        78..=80 => ServiceAct::Internal,
        81..=83 => ServiceAct::PublishNotReady,
        84..=86 => ServiceAct::PublishReady,
        87..=91 => ServiceAct::Families(variety),
        92..=97 => ServiceAct::Topology(variety),
        _ => ServiceAct::Delete,
    }
}

fn node(dice: &mut Dice) -> NodeAct {
    if dice.percent(25) { NodeAct::Remove } else { NodeAct::Put(variety(dice)) }
}

fn endpoints_act(dice: &mut Dice) -> EndpointsAct {
    let variety = variety(dice);
    match dice.roll(100) {
        0..=54 => EndpointsAct::Put(variety),
        55..=60 => EndpointsAct::SkipMirror,
        61..=64 => EndpointsAct::Lock,
        65..=74 => EndpointsAct::Unmark,
        75..=82 => EndpointsAct::Annotate(variety),
        83..=86 => EndpointsAct::Empty,
        87..=92 => EndpointsAct::Remove,
        _ => EndpointsAct::Recreate(variety),
    }
}

fn slice(dice: &mut Dice) -> SliceAct {
    let variety = variety(dice);
    match dice.roll(100) {
        0..=24 => SliceAct::Delete,
        25..=39 => SliceAct::DropEndpoint,
        40..=49 => SliceAct::Readdress,
        50..=54 => SliceAct::Unhint,
        55..=64 => SliceAct::Relabel,
        65..=71 => SliceAct::Disown,
        72..=78 => SliceAct::GiveAway,
        79..=83 => SliceAct::SetFinalizer,
        84..=88 => SliceAct::DropFinalizer,
        89..=93 => SliceAct::AddForeign(variety),
        _ => SliceAct::AddImpostor(variety),
    }
}
