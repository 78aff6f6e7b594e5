//! Targeted schedules: each checks one rule.

use std::time::Duration;

use endpointd_memory_api::Webhook;
use endpointd_model::WatchedResource;

use super::scenarios::{
    PLAIN_SERVICE, WEB, initial_steps, plain_endpoints, plain_node, plain_pod, pod,
};
use super::{Schedule, instances, many_services};
use crate::clock::{millis, secs};
use crate::run::RunOptions;
use crate::script::{
    Action, Check, EndpointsAction, Fault, NodeAction, Place, PodAction, ProcessFault,
    RequestFault, Script, ServiceAction, Setup, SliceAction, Step, WatchFault,
};

pub fn all() -> Vec<Schedule> {
    let mut schedules = vec![
        targeted("permanently rejected", permanently_rejected(1)),
        targeted("permanently rejected with 500", with_500(permanently_rejected(2))),
        targeted("rejected while a pod flaps", rejected_while_flapping()),
        targeted("removals proceed under a quota", quota()),
        targeted("removals proceed under creates that get 500", with_500(quota())),
        targeted("deletes proceed beside a refused create", deletes_beside_refused_create()),
        targeted(
            "deletes proceed beside a create that gets 500",
            with_500(deletes_beside_refused_create()),
        ),
        targeted("writes reported late", writes_reported_late()),
        targeted("webhook adds a label", rewritten(Webhook::Relabels)),
        targeted("webhook changes endpoints", rewritten(Webhook::Rezones)),
        targeted("another client relabels slices", relabelled()),
        targeted("removals proceed while slices are relabelled", removals_while_relabelled()),
        targeted("more than 1,000 pods, and writes fail", many_writes_fail()),
        targeted("many Services deleted at once", many_services::many_services_deleted()),
        limited("many Services deleted while no process runs", many_services::deleted_while_down()),
        targeted("deletes of few Services fail", many_services::deletes_fail()),
        limited("last pod of many Services missing from a list", many_services::last_pod_missing()),
        targeted(
            "Endpoints deleted before their Services",
            many_services::endpoints_deleted_first(),
        ),
        targeted("many Services created, requests lost", many_services::creates_lost()),
        targeted("Services created while writes fail", created_while_writes_fail()),
        targeted("many Services missing from a list", many_services::many_services_missing()),
        targeted("more than 1,000 pods", many_pods()),
        targeted("throttled", throttled()),
        targeted("one Service throttled", one_throttled()),
        elected("lease lost while writes wait", lease_lost_while_writes_wait()),
        targeted("live reads fail for ten minutes", failing_reads()),
        targeted("slice held by a finalizer", finalizer()),
        targeted("recreated before the response", recreated_before_response()),
    ];
    schedules.extend(instances::all());
    schedules.extend((0..30).map(|n| {
        targeted(&format!("Service and Endpoints deleted {n} ms apart"), both_deleted(n))
    }));
    schedules
}

pub fn targeted(name: &str, steps: Vec<Step>) -> Schedule {
    let setup = Setup { endpoints_per_slice_max: 4, ..Setup::default() };
    let script = Script { seed: 99, setup, steps };
    Schedule { name: name.into(), script, options: RunOptions::default() }
}

/// The deletion limiter may delay something for three minutes.
fn limited(name: &str, steps: Vec<Step>) -> Schedule {
    let mut schedule = targeted(name, steps);
    schedule.script.setup.convergence_extra = secs(180);
    schedule
}

/// Two processes compete for the lease.
pub fn elected(name: &str, steps: Vec<Step>) -> Schedule {
    let mut schedule = targeted(name, steps);
    schedule.script.setup.n_processes = 2;
    schedule
}

pub fn after(action: Action, pause: Duration) -> Step {
    Step::new(action, pause)
}

/// L5: few attempts per minute and controller; here two controllers have a write.
fn permanently_rejected(n_requests: u64) -> Vec<Step> {
    let mut steps = initial_steps();
    steps.extend([
        after(Action::Fault(Fault::Rejected(WEB, secs(600))), millis(1)),
        after(Action::Pod(pod(0), PodAction::Unready), secs(60)),
        after(Action::Check(Check::CountRequests), secs(300)),
        after(Action::Check(Check::RequestsAtMost(5 * 2 * 4 * n_requests)), secs(1)),
    ]);
    steps
}

/// L5: removals do not try a rejected write more often. Ten for each of two controllers in a minute.
fn rejected_while_flapping() -> Vec<Step> {
    let mut steps = initial_steps();
    steps.push(after(Action::Fault(Fault::Rejected(WEB, secs(600))), millis(1)));
    steps.push(after(Action::Check(Check::CountRequests), millis(0)));
    for _ in 0..100 {
        steps.push(after(Action::Pod(pod(0), PodAction::Unready), millis(250)));
        steps.push(after(Action::Pod(pod(0), PodAction::Ready), millis(250)));
    }
    steps.push(after(Action::Check(Check::RequestsAtMost(2 * 10)), secs(1)));
    steps
}

/// Answered 500 instead of 403: the client cannot know that the write was not applied.
fn with_500(mut steps: Vec<Step>) -> Vec<Step> {
    steps.insert(0, after(Action::Fault(Fault::RejectedWith500(secs(1000))), millis(1)));
    steps
}

/// F25: a webhook rewrites what plans compare. That is no reason to write again and again; when it
/// is gone, the next change of the Service repairs its slices.
fn rewritten(webhook: Webhook) -> Vec<Step> {
    let mut steps = initial_steps();
    steps.push(after(Action::Fault(Fault::Webhook(webhook, secs(300))), millis(1)));
    steps.push(after(Action::Check(Check::CountRequests), millis(1)));
    for number in 0..4 {
        steps.push(after(Action::Pod(pod(number), PodAction::Unready), secs(50)));
    }
    // Two controllers, and slices that change nothing because the webhook has written them before.
    steps.push(after(Action::Check(Check::RequestsAtMost(4 * 3)), secs(120)));
    steps.push(after(Action::Service(WEB, ServiceAction::Relabel(1)), secs(5)));
    steps
}

/// F38, L5: what another client adds again and again is removed a few times a minute: eight times in
/// a row and then every 30 s, and each time the API server is asked who it was.
fn relabelled() -> Vec<Step> {
    let mut steps = initial_steps();
    steps.extend([
        after(Action::Fault(Fault::Contested(secs(300))), millis(1)),
        after(Action::Check(Check::CountRequests), millis(1)),
        after(Action::Pod(pod(0), PodAction::Unready), secs(59)),
        // The pod: a slice and Endpoints.
        after(Action::Check(Check::RequestsAtMost(2 + 10 + 3)), millis(1)),
        after(Action::Check(Check::CountRequests), secs(120)),
        after(Action::Check(Check::RequestsAtMost(2 * 5)), secs(1)),
    ]);
    steps
}

/// F38: what pods cause does not wait for repairs.
fn removals_while_relabelled() -> Vec<Step> {
    let mut steps = initial_steps();
    steps.push(after(Action::Fault(Fault::Contested(secs(300))), millis(1)));
    steps.push(after(Action::Pod(pod(0), PodAction::Unready), secs(10)));
    for number in 1..4 {
        steps.push(after(Action::Pod(pod(number), PodAction::Unready), secs(2)));
        steps.push(after(Action::Check(Check::NoUnwantedEndpoint), millis(1)));
    }
    steps
}

/// L5: the writes of a large plan are sent again, but not all at once.
fn many_writes_fail() -> Vec<Step> {
    let mut steps = vec![after(Action::Fault(Fault::Errors(secs(10))), millis(0))];
    steps.extend(many_pods());
    steps
}

/// B6: with creates refused, what is dead is taken out all the same.
fn quota() -> Vec<Step> {
    let mut steps = initial_steps();
    steps.push(after(Action::Fault(Fault::NoCreates(secs(600))), millis(1)));
    for number in 10..16 {
        let shape = plain_pod(u32::from(number), 0);
        steps.push(after(Action::Pod(pod(number), PodAction::Create(shape)), secs(1)));
    }
    // Creates are tried so often that they have to wait.
    for _ in 0..5 {
        steps.push(after(Action::Pod(pod(0), PodAction::Unready), millis(200)));
        steps.push(after(Action::Pod(pod(0), PodAction::Ready), millis(200)));
    }
    for number in 0..4 {
        steps.push(after(Action::Pod(pod(number), PodAction::Unready), millis(10)));
    }
    steps.push(after(Action::Node(0, NodeAction::Put(plain_node(0))), secs(2)));
    steps.push(after(Action::Check(Check::NoUnwantedEndpoint), millis(10)));
    // A change of family: the old slices must be deleted, new ones created.
    steps.push(after(Action::Service(WEB, ServiceAction::Families(1)), secs(60)));
    steps.push(after(Action::Check(Check::NoUnwantedEndpoint), secs(1)));
    steps
}

/// B6: a create for the second family is refused, and at the same time a slice loses all its pods: it
/// is deleted at once, not with the next try.
fn deletes_beside_refused_create() -> Vec<Step> {
    let mut steps = initial_steps();
    for number in 4..8 {
        let shape = plain_pod(u32::from(number) + 8, 0);
        steps.push(after(Action::Pod(pod(number), PodAction::Create(shape)), millis(50)));
    }
    let mut steps = then_wait(steps, secs(2));
    steps.push(after(Action::Fault(Fault::NoCreates(secs(600))), millis(1)));
    steps.push(after(Action::Service(WEB, ServiceAction::Families(0)), millis(300)));
    let remove = |number| after(Action::Pod(pod(number), PodAction::Remove), millis(0));
    steps.extend((4..8).map(remove));
    steps.push(after(Action::Check(Check::CountRequests), millis(500)));
    steps.push(after(Action::Check(Check::NoUnwantedEndpoint), secs(1)));
    steps
}

/// What a response shows is known before the watch reports it: one write per change and object.
fn writes_reported_late() -> Vec<Step> {
    let mut steps = initial_steps();
    for resource in [WatchedResource::Slices, WatchedResource::Endpoints] {
        steps.push(after(Action::Watch(0, resource, WatchFault::Freeze(secs(60))), millis(1)));
    }
    steps.push(after(Action::Check(Check::CountRequests), millis(1)));
    for number in 0..4 {
        steps.push(after(Action::Pod(pod(number), PodAction::Unready), secs(2)));
    }
    steps.push(after(Action::Check(Check::RequestsAtMost(2 * 4)), secs(1)));
    steps
}

/// The pause after the last step.
pub(super) fn then_wait(mut steps: Vec<Step>, pause: Duration) -> Vec<Step> {
    if let Some(last) = steps.last_mut() {
        last.pause = pause;
    }
    steps
}

/// L1, F40: what was to be created while writes failed is there 5 s after they succeed again, and
/// the deletion limiter has nothing to do with it.
fn created_while_writes_fail() -> Vec<Step> {
    let mut steps = initial_steps();
    steps.push(after(Action::Fault(Fault::Errors(secs(5))), millis(1)));
    for number in 10..40 {
        let place = Place { namespace: 0, number };
        steps.push(after(Action::Service(place, ServiceAction::Create(PLAIN_SERVICE)), millis(1)));
    }
    steps.push(after(Action::Check(Check::CountRequests), secs(10)));
    steps.push(after(Action::Check(Check::Converged), millis(1)));
    steps
}

/// More addresses than an Endpoints object may hold, and changes of truncated ones.
fn many_pods() -> Vec<Step> {
    let mut steps = vec![
        after(Action::Node(0, NodeAction::Put(plain_node(0))), millis(1)),
        after(Action::Service(WEB, ServiceAction::Create(PLAIN_SERVICE)), millis(1)),
        after(Action::Watch(0, WatchedResource::Pods, WatchFault::Freeze(secs(5))), millis(1)),
    ];
    for number in 0..1010 {
        let shape = plain_pod(u32::from(number) % 24, 0);
        steps.push(after(Action::Pod(pod(number), PodAction::Create(shape)), millis(0)));
    }
    steps.push(after(Action::Quiesce, secs(1)));
    for number in [3, 500, 1009] {
        steps.push(after(Action::Pod(pod(number), PodAction::Unready), millis(20)));
        steps.push(after(Action::Pod(pod(number), PodAction::Ready), secs(1)));
    }
    steps
}

fn throttled() -> Vec<Step> {
    let mut steps = initial_steps();
    for _ in 0..6 {
        steps.push(after(Action::Request(RequestFault::Throttled(5)), millis(0)));
    }
    for number in 0..4 {
        steps.push(after(Action::Pod(pod(number), PodAction::Unready), millis(300)));
    }
    steps.push(after(Action::Check(Check::CountRequests), secs(20)));
    steps.push(after(Action::Check(Check::RequestsAtMost(12)), secs(1)));
    steps
}

/// A webhook answers 429 for one Service: another one is published at once.
fn one_throttled() -> Vec<Step> {
    let mut steps = initial_steps();
    for _ in 0..2 {
        steps.push(after(Action::Request(RequestFault::Throttled(600)), millis(0)));
    }
    let other = Place { namespace: 1, number: 2 };
    steps.extend([
        after(Action::Pod(pod(0), PodAction::Unready), secs(2)),
        after(Action::Check(Check::CountRequests), millis(0)),
        after(Action::Service(other, ServiceAction::Create(PLAIN_SERVICE)), secs(2)),
        after(Action::Check(Check::RequestsAtLeast(2)), secs(40)),
        after(Action::Check(Check::Converged), millis(0)),
    ]);
    steps
}

/// The first process leads. Its writes wait for the rate limiter until after its renew deadline.
fn lease_lost_while_writes_wait() -> Vec<Step> {
    let mut steps = initial_steps();
    steps.push(after(Action::Process(0, ProcessFault::CutOffLease(secs(30))), secs(5)));
    for number in 0..4 {
        steps.push(after(Action::Request(RequestFault::HeldBack(secs(20))), millis(0)));
        steps.push(after(Action::Pod(pod(number), PodAction::Unready), secs(1)));
    }
    steps.push(after(Action::Check(Check::CountRequests), secs(40)));
    steps
}

/// A Service is deleted while live reads fail: few reads, and no deletion.
fn failing_reads() -> Vec<Step> {
    let mut steps = initial_steps();
    steps.extend([
        after(Action::Fault(Fault::FailedReads(secs(600))), millis(0)),
        after(Action::Service(WEB, ServiceAction::RemoveOnly), secs(60)),
        after(Action::Check(Check::CountRequests), secs(300)),
        after(Action::Check(Check::RequestsAtMost(5 * 6)), secs(1)),
    ]);
    steps
}

/// Exactly one replacement for a slice that a finalizer keeps.
fn finalizer() -> Vec<Step> {
    let mut steps = initial_steps();
    steps.extend([
        after(Action::Slice(0, SliceAction::SetFinalizer), secs(1)),
        after(Action::Check(Check::CountRequests), millis(0)),
        after(Action::Slice(0, SliceAction::Delete), secs(30)),
        after(Action::Check(Check::RequestsAtMost(2)), secs(1)),
        after(Action::Endpoints(WEB, EndpointsAction::Empty), secs(1)),
        after(Action::Slice(0, SliceAction::DropFinalizer), secs(5)),
    ]);
    steps
}

/// A slice is recreated under its name before the response to our delete arrives.
fn recreated_before_response() -> Vec<Step> {
    let mut steps = initial_steps();
    steps.extend([
        after(Action::Request(RequestFault::SlowResponse(secs(2))), millis(0)),
        after(Action::Slice(0, SliceAction::AddMislabelled(0)), millis(300)),
        after(Action::Slice(0, SliceAction::AddMislabelled(0)), secs(5)),
    ]);
    steps
}

/// The Service is deleted, then the Endpoints that were mirrored for it.
fn both_deleted(apart: u64) -> Vec<Step> {
    let old = Place { namespace: 0, number: 3 };
    vec![
        after(Action::Service(old, ServiceAction::Create(PLAIN_SERVICE)), millis(1)),
        after(Action::Endpoints(old, EndpointsAction::Put(plain_endpoints(2, 0))), secs(2)),
        after(Action::Check(Check::CountRequests), millis(0)),
        after(Action::Service(old, ServiceAction::RemoveOnly), millis(apart)),
        after(Action::Endpoints(old, EndpointsAction::Remove), secs(10)),
        after(Action::Check(Check::RequestsAtMost(8)), secs(1)),
    ]
}
