//! The correlator with scripted times.

use endpointd_model::EventRecord;

use super::*;

struct Script {
    correlator: Correlator,
    now: Now,
}

impl Script {
    fn new() -> Self {
        // Far enough from the start of the machine's clock to look back five minutes times 25.
        let instant = Instant::now() + Duration::from_secs(100_000);
        let wall = "2026-01-01T00:00:00Z".parse().unwrap();
        Self { correlator: Correlator::default(), now: Now { instant, wall } }
    }

    fn pass(&mut self, secs: u64) {
        let time = Duration::from_secs(secs);
        self.now = Now { instant: self.now.instant + time, wall: self.now.wall + time };
    }

    fn say(&mut self, name: &str, message: &str) -> Option<Event> {
        let record = EventRecord {
            reason: EventReason::FailedToUpdateEndpointSlices,
            message: message.to_owned(),
            involved_kind: InvolvedKind::Service,
        };
        let remark = EventRequest {
            controller: Controller::Slices,
            key: Key::new("shop", name),
            uid: Uid::from("u"),
            record,
        };
        self.correlator.correlate(remark, self.now)
    }
}

#[test]
fn the_same_message_again_counts_on_the_same_event() {
    let mut script = Script::new();
    let first = script.say("web", "boom").unwrap();
    script.pass(5);
    let second = script.say("web", "boom").unwrap();
    assert_eq!((first.is_new, first.count), (true, 1));
    assert_eq!((second.is_new, second.count), (false, 2));
    assert_eq!(second.name, first.name);
    assert_eq!(second.first, first.first);
    assert!(second.last > first.last);
    assert_eq!(first.name, "web.18867251edfa0000");
}

#[test]
fn the_tenth_different_message_in_ten_minutes_is_combined() {
    let mut script = Script::new();
    for n in 1..10 {
        let event = script.say("web", &format!("boom {n}")).unwrap();
        assert_eq!(event.message, format!("boom {n}"));
    }
    let tenth = script.say("web", "boom 10").unwrap();
    assert_eq!(tenth.message, "(combined from similar events): boom 10");
    assert_eq!((tenth.is_new, tenth.count), (true, 1));
    script.pass(1);
    let next = script.say("web", "boom 11").unwrap();
    assert_eq!(next.message, "(combined from similar events): boom 11");
    assert_eq!((next.is_new, next.count, next.name), (false, 2, tenth.name));
}

#[test]
fn messages_ten_minutes_apart_are_not_combined() {
    let mut script = Script::new();
    for n in 1..30 {
        script.pass(601);
        let event = script.say("web", &format!("boom {n}")).unwrap();
        assert_eq!(event.message, format!("boom {n}"));
    }
}

#[test]
fn one_object_gets_25_events_and_then_one_in_five_minutes() {
    let mut script = Script::new();
    let n_told = (0..100).filter(|_| script.say("web", "boom").is_some()).count();
    assert_eq!(n_told, 25);
    assert!(script.say("api", "boom").is_some(), "others have their own share");
    script.pass(299);
    assert!(script.say("web", "boom").is_none());
    script.pass(2);
    let event = script.say("web", "boom").unwrap();
    assert_eq!(event.count, 102, "what was not told is counted");
    assert!(script.say("web", "boom").is_none());
}

#[test]
fn a_name_too_long_for_an_event_is_cut() {
    let mut script = Script::new();
    let event = script.say(&"a".repeat(253), "boom").unwrap();
    assert_eq!(event.name.len(), 253);
    assert!(event.name.ends_with(".18867251edfa0000"));
}
