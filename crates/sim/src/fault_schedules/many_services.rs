//! Schedules of many Services that are created or deleted at once.

use endpointd_model::WatchedResource;

use super::scenarios::{PLAIN_SERVICE, plain_node, plain_pod, pod};
use super::targeted::{after, then_wait};
use crate::clock::{millis, secs};
use crate::script::{
    Action, Check, Fault, NodeAction, Place, PodAction, ProcessFault, RequestFault, ServiceAction,
    Step, WatchFault,
};

pub(super) fn many_services(n: u16) -> Vec<Step> {
    let mut steps = vec![after(Action::Node(0, NodeAction::Put(plain_node(0))), millis(1))];
    for number in 10..10 + n {
        let place = Place { namespace: 0, number };
        steps.push(after(Action::Service(place, ServiceAction::Create(PLAIN_SERVICE)), millis(1)));
    }
    steps.push(after(Action::Pod(pod(0), PodAction::Create(plain_pod(1, 0))), secs(20)));
    steps
}

/// Their Endpoints stay.
fn remove_services(n: u16) -> Vec<Step> {
    let place = |number| Place { namespace: 0, number };
    let how = ServiceAction::RemoveOnly;
    let remove = |number| after(Action::Service(place(number), how), millis(1));
    (10..10 + n).map(remove).collect()
}

/// The watch reports each deletion: nothing is limited.
pub(super) fn many_services_deleted() -> Vec<Step> {
    let mut steps = many_services(50);
    steps.extend(then_wait(remove_services(50), secs(5)));
    steps.push(after(Action::Check(Check::Converged), millis(1)));
    steps
}

/// S5: at most twenty deletions pass per minute that no event has reported.
pub(super) fn deleted_while_down() -> Vec<Step> {
    let mut steps = many_services(50);
    steps.push(after(Action::Process(0, ProcessFault::Crash(secs(5))), millis(1)));
    steps.extend(remove_services(50));
    steps
}

/// S5: fewer than twenty. That their deletes get 500 and are sent again makes them no more.
pub(super) fn deletes_fail() -> Vec<Step> {
    let mut steps = many_services(15);
    steps.push(after(Action::Process(0, ProcessFault::Crash(secs(5))), millis(1)));
    steps.push(after(Action::Fault(Fault::Errors(secs(30))), millis(1)));
    then_wait([steps, remove_services(15)].concat(), secs(40))
}

/// S5: the watch does not report that the only pod of fifty Services is deleted. A live list confirms
/// it, and twenty Services are emptied per minute: slices and Endpoints.
pub(super) fn last_pod_missing() -> Vec<Step> {
    let mut steps = many_services(50);
    let expired = WatchFault::Expired(secs(3));
    steps.extend([
        after(Action::Check(Check::CountRequests), millis(1)),
        after(Action::Watch(0, WatchedResource::Pods, expired), millis(1)),
        after(Action::Pod(pod(0), PodAction::Remove), secs(30)),
        after(Action::Check(Check::RequestsAtMost(2 * 20 + 1)), millis(1)),
    ]);
    steps
}

/// As the API server does it, and the watch of Services is late: one live read each, and no write
/// but of slices that the garbage collector was quick to delete.
pub(super) fn endpoints_deleted_first() -> Vec<Step> {
    let mut steps = many_services(20);
    let late = WatchFault::Delay(millis(300));
    steps.push(after(Action::Watch(0, WatchedResource::Services, late), millis(1)));
    steps.push(after(Action::Check(Check::CountRequests), millis(1)));
    for number in 10..30 {
        let place = Place { namespace: 0, number };
        steps.push(after(Action::Service(place, ServiceAction::Remove), millis(1)));
    }
    let mut steps = then_wait(steps, secs(10));
    steps.push(after(Action::Check(Check::RequestsAtMost(30)), millis(1)));
    steps
}

/// Creates that are repeated are no deletions: nothing limits them.
pub(super) fn creates_lost() -> Vec<Step> {
    let lost = || after(Action::Request(RequestFault::ServerError), millis(0));
    let mut steps: Vec<Step> = (0..60).map(|_| lost()).collect();
    steps.extend(many_services(30));
    steps.push(after(Action::Check(Check::Converged), millis(1)));
    steps
}

pub(super) fn many_services_missing() -> Vec<Step> {
    let mut steps = many_services(40);
    steps.push(after(Action::Watch(0, WatchedResource::Services, WatchFault::EmptyList), secs(30)));
    steps.push(after(Action::Pod(pod(0), PodAction::Unready), secs(10)));
    steps
}
