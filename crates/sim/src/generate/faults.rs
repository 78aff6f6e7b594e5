//! What goes wrong.

use std::time::Duration;

use endpointd_model::WatchedResource;

use super::changes::service;
use super::{Class, Swarm};
use crate::clock::{millis, secs};
use crate::dice::Dice;
use crate::script::{Act, Fault, Mishap, ProcessFault, WatchFault};

/// Five years, forth and back, and less.
const JUMPS: [i64; 6] = [0, 3600, -3600, 157_680_000, -157_680_000, 1];

pub fn watch(class: Class, dice: &mut Dice) -> Act {
    let fault = match class {
        Class::Delay => WatchFault::Delay(delay(dice)),
        Class::Freeze => WatchFault::Freeze(millis(dice.pick(&[100, 1000, 5000, 30_000, 95_000]))),
        Class::Cut => WatchFault::Cut(millis(dice.between(0, 5000))),
        Class::Replay => WatchFault::Replay(dice.between(1, 30) as u32),
        Class::Gone => WatchFault::Gone(millis(dice.between(0, 5000))),
        Class::OldPicture => WatchFault::OldPicture(dice.between(1, 60) as u32),
        // The two kinds whose absence is not believed.
        Class::EmptyPicture => {
            let kind = dice.pick(&[WatchedResource::Nodes, WatchedResource::Services]);
            return Act::Watch(dice.roll(2) as u8, kind, WatchFault::EmptyPicture);
        }
        _ => WatchFault::Bookmark,
    };
    Act::Watch(dice.roll(2) as u8, dice.pick(&WatchedResource::ALL), fault)
}

fn delay(dice: &mut Dice) -> Duration {
    millis(match dice.roll(10) {
        0..=3 => 0,
        4..=6 => dice.roll(100),
        7 | 8 => dice.roll(2000),
        _ => dice.roll(30_000),
    })
}

pub fn mishap(class: Class, dice: &mut Dice) -> Act {
    let time = millis(dice.pick(&[10, 100, 1000, 8000]));
    Act::Mishap(match class {
        Class::Lost if dice.percent(50) => Mishap::LostApplied,
        Class::Lost => Mishap::LostNotApplied,
        Class::Late => Mishap::AppliedLate(time),
        Class::Errors => dice.pick(&[Mishap::ServerError, Mishap::Unreachable, Mishap::Forbidden]),
        Class::Throttle => Mishap::Throttled(dice.pick(&[0, 1, 5])),
        Class::Overtake => Mishap::Overtaken,
        _ if dice.percent(50) => Mishap::SlowAnswer(time),
        _ => Mishap::SlowRequest(time),
    })
}

pub fn trouble(class: Class, swarm: &Swarm, dice: &mut Dice) -> Act {
    let time = millis(dice.pick(&[200, 2000, 10_000, 40_000]));
    let process = dice.roll(2) as u8;
    match class {
        Class::Outage => Act::Fault(Fault::Outage(time)),
        Class::Blind => Act::Fault(Fault::Blind(time)),
        Class::Quota => Act::Fault(Fault::NoCreates(time)),
        Class::Refused => Act::Fault(Fault::Refused(service(swarm, dice), time)),
        Class::Webhook => Act::Fault(Fault::Webhook(time)),
        Class::Clock => Act::Fault(Fault::ClockJump(dice.pick(&JUMPS))),
        Class::Compact => Act::Fault(Fault::Compact(dice.pick(&WatchedResource::ALL))),
        Class::Crash => {
            let down = millis(dice.pick(&[1, 100, 3000, 20_000]));
            Act::Process(process, ProcessFault::Crash(down))
        }
        Class::Sleep => {
            let sleep = secs(dice.pick(&[1, 5, 12, 60]));
            Act::Process(process, ProcessFault::Sleep(sleep))
        }
        _ if dice.percent(50) => Act::Process(process, ProcessFault::StealLease),
        _ => Act::Process(process, ProcessFault::CutOffLease(secs(dice.pick(&[3, 9, 12, 30])))),
    }
}
