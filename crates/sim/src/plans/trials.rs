//! Histories with a question of their own.

use std::time::Duration;

use endpointd_model::WatchedResource;

use super::Plan;
use super::scenarios::{PLAIN_SERVICE, WEB, begin, plain_endpoints, plain_node, plain_pod, pod};
use crate::clock::{millis, secs};
use crate::play::Manner;
use crate::script::{
    Act, Check, EndpointsAct, Fault, Mishap, NodeAct, Place, PodAct, Script, ServiceAct, Setup,
    SliceAct, Step, WatchFault,
};

pub fn all() -> Vec<Plan> {
    let mut trials = vec![
        trial("refused for good", refused_for_good()),
        trial("a quota does not hold removals back", quota()),
        trial("many Services go at once", many_go()),
        trial("the view of many Services is lost", many_unseen()),
        trial("a crowd", crowd()),
        trial("throttled", throttled()),
        trial("blind for long", blind()),
        trial("held by a finalizer", finalizer()),
        trial("a namesake before the answer", namesake()),
    ];
    trials.extend((0..30).map(|n| trial(&format!("both go, {n} ms apart"), both_go(n))));
    trials
}

fn trial(name: &str, steps: Vec<Step>) -> Plan {
    let setup = Setup { endpoints_per_slice_max: 4, ..Setup::default() };
    let script = Script { seed: 99, setup, steps };
    Plan { name: name.into(), script, manner: Manner::default() }
}

fn after(act: Act, pause: Duration) -> Step {
    Step::new(act, pause)
}

/// L5: ten tries a minute and controller at most; here two controllers want to write.
fn refused_for_good() -> Vec<Step> {
    let mut steps = begin();
    steps.extend([
        after(Act::Fault(Fault::Refused(WEB, secs(600))), millis(1)),
        after(Act::Pod(pod(0), PodAct::Unready), secs(60)),
        after(Act::Check(Check::Mark), secs(300)),
        after(Act::Check(Check::FewRequests(5 * 2 * 4)), secs(1)),
    ]);
    steps
}

/// B6: with creates refused, what is dead is taken out all the same.
fn quota() -> Vec<Step> {
    let mut steps = begin();
    steps.push(after(Act::Fault(Fault::NoCreates(secs(600))), millis(1)));
    for number in 10..16 {
        let variety = plain_pod(u32::from(number), 0);
        steps.push(after(Act::Pod(pod(number), PodAct::Create(variety)), secs(1)));
    }
    for number in 0..4 {
        steps.push(after(Act::Pod(pod(number), PodAct::Unready), millis(10)));
    }
    // A family that nobody has any more: its slices are to be deleted, others to be created.
    steps.push(after(Act::Service(WEB, ServiceAct::Families(1)), secs(60)));
    steps.push(after(Act::Check(Check::NothingUnwanted), secs(1)));
    steps
}

fn crowd_of_services(n: u16) -> Vec<Step> {
    let mut steps = vec![after(Act::Node(0, NodeAct::Put(plain_node(0))), millis(1))];
    for number in 10..10 + n {
        let place = Place { namespace: 0, number };
        steps.push(after(Act::Service(place, ServiceAct::Create(PLAIN_SERVICE)), millis(1)));
    }
    steps.push(after(Act::Pod(pod(0), PodAct::Create(plain_pod(1, 0))), secs(20)));
    steps
}

/// S5: more than twenty deletions from absence in a minute are held back.
fn many_go() -> Vec<Step> {
    let mut steps = crowd_of_services(50);
    for number in 10..60 {
        let place = Place { namespace: 0, number };
        steps.push(after(Act::Service(place, ServiceAct::Remove), millis(1)));
    }
    steps
}

fn many_unseen() -> Vec<Step> {
    let mut steps = crowd_of_services(40);
    steps.push(after(Act::Watch(0, WatchedResource::Services, WatchFault::EmptyPicture), secs(30)));
    steps.push(after(Act::Pod(pod(0), PodAct::Unready), secs(10)));
    steps
}

/// More addresses than an Endpoints object holds, and changes beyond the cut.
fn crowd() -> Vec<Step> {
    let mut steps = vec![
        after(Act::Node(0, NodeAct::Put(plain_node(0))), millis(1)),
        after(Act::Service(WEB, ServiceAct::Create(PLAIN_SERVICE)), millis(1)),
        after(Act::Watch(0, WatchedResource::Pods, WatchFault::Freeze(secs(5))), millis(1)),
    ];
    for number in 0..1010 {
        let variety = plain_pod(u32::from(number) % 24, 0);
        steps.push(after(Act::Pod(pod(number), PodAct::Create(variety)), millis(0)));
    }
    steps.push(after(Act::Calm, secs(1)));
    for number in [3, 500, 1009] {
        steps.push(after(Act::Pod(pod(number), PodAct::Unready), millis(20)));
        steps.push(after(Act::Pod(pod(number), PodAct::Ready), secs(1)));
    }
    steps
}

fn throttled() -> Vec<Step> {
    let mut steps = begin();
    for _ in 0..6 {
        steps.push(after(Act::Mishap(Mishap::Throttled(5)), millis(0)));
    }
    for number in 0..4 {
        steps.push(after(Act::Pod(pod(number), PodAct::Unready), millis(300)));
    }
    steps.push(after(Act::Check(Check::Mark), secs(20)));
    steps.push(after(Act::Check(Check::FewRequests(12)), secs(1)));
    steps
}

/// Nothing can be read while something is absent: asked seldom, and nothing is deleted.
fn blind() -> Vec<Step> {
    let mut steps = begin();
    steps.extend([
        after(Act::Fault(Fault::Blind(secs(600))), millis(0)),
        after(Act::Service(WEB, ServiceAct::Remove), secs(60)),
        after(Act::Check(Check::Mark), secs(300)),
        after(Act::Check(Check::FewRequests(5 * 6)), secs(1)),
    ]);
    steps
}

/// Exactly one replacement for a slice that cannot go.
fn finalizer() -> Vec<Step> {
    let mut steps = begin();
    steps.extend([
        after(Act::Slice(0, SliceAct::SetFinalizer), secs(1)),
        after(Act::Check(Check::Mark), millis(0)),
        after(Act::Slice(0, SliceAct::Delete), secs(30)),
        after(Act::Check(Check::FewRequests(2)), secs(1)),
        after(Act::Endpoints(WEB, EndpointsAct::Empty), secs(1)),
        after(Act::Slice(0, SliceAct::DropFinalizer), secs(5)),
    ]);
    steps
}

/// What we deleted is there again, as another object, before we hear of the deletion.
fn namesake() -> Vec<Step> {
    let mut steps = begin();
    steps.extend([
        after(Act::Mishap(Mishap::SlowAnswer(secs(2))), millis(0)),
        after(Act::Slice(0, SliceAct::AddImpostor(0)), millis(300)),
        after(Act::Slice(0, SliceAct::AddImpostor(0)), secs(5)),
    ]);
    steps
}

/// The Service, and then the Endpoints that were mirrored for it.
fn both_go(apart: u64) -> Vec<Step> {
    let old = Place { namespace: 0, number: 3 };
    vec![
        after(Act::Service(old, ServiceAct::Create(PLAIN_SERVICE)), millis(1)),
        after(Act::Endpoints(old, EndpointsAct::Put(plain_endpoints(2, 0))), secs(2)),
        after(Act::Check(Check::Mark), millis(0)),
        after(Act::Service(old, ServiceAct::Remove), millis(apart)),
        after(Act::Endpoints(old, EndpointsAct::Remove), secs(10)),
        after(Act::Check(Check::FewRequests(8)), secs(1)),
    ]
}
