//! The correlator with scripted times.

use endpointd_model::EventRecord;

use super::*;

struct Fixture {
    correlator: Correlator,
    now: Now,
}

impl Fixture {
    fn new() -> Self {
        // The full bucket starts 25 times five minutes earlier, which must be a valid `Instant`.
        let monotonic = Instant::now() + Duration::from_secs(100_000);
        let wall = "2026-01-01T00:00:00Z".parse().unwrap();
        Self { correlator: Correlator::default(), now: Now { monotonic, wall } }
    }

    fn pass(&mut self, secs: u64) {
        let time = Duration::from_secs(secs);
        self.now = Now { monotonic: self.now.monotonic + time, wall: self.now.wall + time };
    }

    fn record(&mut self, name: &str, message: &str) -> Option<Event> {
        let record = EventRecord {
            reason: EventReason::FailedToUpdateEndpointSlices,
            message: message.to_owned(),
            involved_kind: InvolvedKind::Service,
        };
        let request = EventRequest {
            controller: Controller::Slices,
            key: Key::new("shop", name),
            uid: Uid::from("u"),
            record,
        };
        self.correlator.correlate(request, self.now)
    }
}

#[test]
fn repeated_message_increases_the_count() {
    let mut fixture = Fixture::new();
    let first = fixture.record("web", "boom").unwrap();
    fixture.pass(5);
    let second = fixture.record("web", "boom").unwrap();
    assert_eq!((first.is_new, first.count), (true, 1));
    assert_eq!((second.is_new, second.count), (false, 2));
    assert_eq!(second.name, first.name);
    assert_eq!(second.first, first.first);
    assert!(second.last > first.last);
    assert_eq!(first.name, "web.18867251edfa0000");
}

#[test]
fn tenth_similar_message_within_ten_minutes_is_aggregated() {
    let mut fixture = Fixture::new();
    for n in 1..10 {
        let event = fixture.record("web", &format!("boom {n}")).unwrap();
        assert_eq!(event.message, format!("boom {n}"));
    }
    let tenth = fixture.record("web", "boom 10").unwrap();
    assert_eq!(tenth.message, "(combined from similar events): boom 10");
    assert_eq!((tenth.is_new, tenth.count), (true, 1));
    fixture.pass(1);
    let next = fixture.record("web", "boom 11").unwrap();
    assert_eq!(next.message, "(combined from similar events): boom 11");
    assert_eq!((next.is_new, next.count, next.name), (false, 2, tenth.name));
}

#[test]
fn messages_ten_minutes_apart_are_not_aggregated() {
    let mut fixture = Fixture::new();
    for n in 1..30 {
        fixture.pass(601);
        let event = fixture.record("web", &format!("boom {n}")).unwrap();
        assert_eq!(event.message, format!("boom {n}"));
    }
}

#[test]
fn rate_per_object_is_25_events_and_then_one_in_five_minutes() {
    let mut fixture = Fixture::new();
    let n_events = (0..100).filter(|_| fixture.record("web", "boom").is_some()).count();
    assert_eq!(n_events, 25);
    assert!(fixture.record("api", "boom").is_some(), "other objects have limits of their own");
    fixture.pass(299);
    assert!(fixture.record("web", "boom").is_none());
    fixture.pass(2);
    let event = fixture.record("web", "boom").unwrap();
    assert_eq!(event.count, 102, "dropped records are counted");
    assert!(fixture.record("web", "boom").is_none());
}

#[test]
fn long_object_name_is_truncated() {
    let mut fixture = Fixture::new();
    let event = fixture.record(&"a".repeat(253), "boom").unwrap();
    assert_eq!(event.name.len(), 253);
    assert!(event.name.ends_with(".18867251edfa0000"));
}
