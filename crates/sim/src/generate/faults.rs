//! Faults.

use std::time::Duration;

use endpointd_memory_api::Webhook;
use endpointd_model::WatchedResource;
use endpointd_rng::SplitMix64;

use super::changes::service;
use super::{Class, Swarm};
use crate::clock::{millis, secs};
use crate::script::{Action, Fault, ProcessFault, RequestFault, WatchFault};

/// Up to five years forth or back.
const JUMPS: [i64; 6] = [0, 3600, -3600, 157_680_000, -157_680_000, 1];

pub fn watch(class: Class, rng: &mut SplitMix64) -> Action {
    let fault = match class {
        Class::Delay => WatchFault::Delay(delay(rng)),
        Class::Freeze => WatchFault::Freeze(millis(rng.pick(&[100, 1000, 5000, 30_000, 95_000]))),
        Class::Disconnect => WatchFault::Disconnect(millis(rng.between(0, 5000))),
        Class::Replay => WatchFault::Replay(rng.between(1, 30) as u32),
        Class::Expired => WatchFault::Expired(millis(rng.between(0, 5000))),
        Class::OutdatedList => WatchFault::OutdatedList(rng.between(1, 60) as u32),
        // The resources whose absence is confirmed by live reads.
        Class::EmptyList => {
            let resource = rng.pick(&[
                WatchedResource::Nodes,
                WatchedResource::Services,
                WatchedResource::Pods,
            ]);
            return Action::Watch(rng.below(2) as u8, resource, WatchFault::EmptyList);
        }
        _ => WatchFault::Bookmark,
    };
    Action::Watch(rng.below(2) as u8, rng.pick(&WatchedResource::DEFAULT), fault)
}

fn delay(rng: &mut SplitMix64) -> Duration {
    millis(match rng.below(10) {
        0..=3 => 0,
        4..=6 => rng.below(100),
        7 | 8 => rng.below(2000),
        _ => rng.below(30_000),
    })
}

pub fn request(class: Class, rng: &mut SplitMix64) -> Action {
    let time = millis(rng.pick(&[10, 100, 1000, 8000]));
    Action::Request(match class {
        Class::LostMessage if rng.percent(50) => RequestFault::ResponseLost,
        Class::LostMessage => RequestFault::RequestLost,
        Class::AppliedLate => RequestFault::AppliedLate(time),
        Class::Errors => rng.pick(&[
            RequestFault::ServerError,
            RequestFault::Unreachable,
            RequestFault::Forbidden,
        ]),
        Class::Throttle => RequestFault::Throttled(rng.pick(&[0, 1, 5, 600])),
        Class::ConcurrentWrite => RequestFault::ConcurrentWrite,
        Class::HeldBack => RequestFault::HeldBack(time),
        _ if rng.percent(50) => RequestFault::SlowResponse(time),
        _ => RequestFault::SlowRequest(time),
    })
}

pub fn other(class: Class, swarm: &Swarm, rng: &mut SplitMix64) -> Action {
    let time = millis(rng.pick(&[200, 2000, 10_000, 40_000]));
    let process = rng.below(2) as u8;
    match class {
        Class::Outage => Action::Fault(Fault::Outage(time)),
        Class::FailedReads => Action::Fault(Fault::FailedReads(time)),
        Class::AllErrors => Action::Fault(Fault::Errors(time)),
        Class::Quota => Action::Fault(Fault::NoCreates(time)),
        Class::Rejected => Action::Fault(Fault::Rejected(service(swarm, rng), time)),
        Class::RejectedWith500 => Action::Fault(Fault::RejectedWith500(time)),
        // The others change what plans compare; schedules have them.
        Class::Webhook => Action::Fault(Fault::Webhook(Webhook::Annotates, time)),
        Class::Clock => Action::Fault(Fault::ClockJump(rng.pick(&JUMPS))),
        Class::ProcessClock => Action::Process(process, ProcessFault::ClockJump(rng.pick(&JUMPS))),
        Class::Compact => Action::Fault(Fault::Compact(rng.pick(&WatchedResource::DEFAULT))),
        Class::Crash => {
            let down = millis(rng.pick(&[1, 100, 3000, 20_000]));
            Action::Process(process, ProcessFault::Crash(down))
        }
        Class::Sleep => {
            let sleep = secs(rng.pick(&[1, 5, 12, 60]));
            Action::Process(process, ProcessFault::Sleep(sleep))
        }
        _ if rng.percent(50) => Action::Process(process, ProcessFault::StealLease),
        _ => Action::Process(process, ProcessFault::CutOffLease(secs(rng.pick(&[3, 9, 12, 30])))),
    }
}
