//! Decides which Event a record becomes: a new one, a higher count of an existing one, part of an
//! aggregate, or none. Upstream: `EventCorrelator` in client-go's tools/record/events_cache.go.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use endpointd_model::{Controller, EventReason, InvolvedKind, Key, Timestamp, Uid};

use super::EventRequest;
use super::event::Event;
use super::lru_map::LruMap;
use crate::now::Now;
use crate::rate_limiter::TokenBucket;

/// Of each map; upstream: `maxLruCacheEntries`.
const ENTRIES_MAX: usize = 4096;
/// From this many different messages on, similar events are aggregated; upstream:
/// `defaultAggregateMaxEvents`.
const SIMILAR_MAX: usize = 10;
/// Similar events further apart are not aggregated.
const AGGREGATION_WINDOW: Duration = Duration::from_secs(600);
/// Per source and object: a burst, then one Event in five minutes.
const EVENT_BURST: u32 = 25;
const EVENTS_PER_SEC: f32 = 1.0 / 300.0;
const AGGREGATE_PREFIX: &str = "(combined from similar events): ";

pub(super) struct Correlator {
    aggregates: LruMap<AggregateKey, AggregateState>,
    recorded: LruMap<(AggregateKey, String), RecordedEvent>,
    rate_limits: LruMap<EventSubject, TokenBucket>,
}

/// One source and one involved object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct EventSubject {
    controller: Controller,
    involved_kind: InvolvedKind,
    key: Key,
    uid: Uid,
}

/// Events with the same key are similar; the reason determines the type.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct AggregateKey {
    subject: EventSubject,
    reason: EventReason,
}

struct AggregateState {
    messages: BTreeSet<String>,
    last: Instant,
}

struct RecordedEvent {
    name: String,
    first: Timestamp,
    count: u32,
}

impl Default for Correlator {
    fn default() -> Self {
        Self {
            aggregates: LruMap::new(ENTRIES_MAX),
            recorded: LruMap::new(ENTRIES_MAX),
            rate_limits: LruMap::new(ENTRIES_MAX),
        }
    }
}

impl Correlator {
    /// `None`: the rate limit of this object is exceeded.
    pub(super) fn correlate(&mut self, request: EventRequest, now: Now) -> Option<Event> {
        let EventRequest { controller, key, uid, record } = &request;
        let subject = EventSubject {
            controller: *controller,
            involved_kind: record.involved_kind,
            key: key.clone(),
            uid: uid.clone(),
        };
        let aggregate = AggregateKey { subject: subject.clone(), reason: record.reason };
        let is_aggregated = self.is_aggregated(&aggregate, &record.message, now.monotonic);
        // All aggregated records are one Event, with the message of the latest.
        let (identity, message) = if is_aggregated {
            (String::new(), format!("{AGGREGATE_PREFIX}{}", record.message))
        } else {
            (record.message.clone(), record.message.clone())
        };
        let recorded = self.recorded.get_or_insert_with((aggregate, identity), || RecordedEvent {
            name: event_name(&key.name, now.wall),
            first: now.wall,
            count: 0,
        });
        recorded.count += 1;
        let event = Event {
            name: recorded.name.clone(),
            is_new: recorded.count == 1,
            count: recorded.count,
            first: recorded.first,
            last: now.wall,
            message,
            request,
        };
        let full_bucket = || TokenBucket::full(EVENTS_PER_SEC, EVENT_BURST, now.monotonic);
        self.rate_limits
            .get_or_insert_with(subject, full_bucket)
            .try_take(now.monotonic)
            .then_some(event)
    }

    fn is_aggregated(&mut self, key: &AggregateKey, message: &str, now: Instant) -> bool {
        let new = || AggregateState { messages: BTreeSet::new(), last: now };
        let similar = self.aggregates.get_or_insert_with(key.clone(), new);
        if now.saturating_duration_since(similar.last) > AGGREGATION_WINDOW {
            *similar = new();
        }
        similar.last = now;
        similar.messages.insert(message.to_owned());
        let is_many = similar.messages.len() >= SIMILAR_MAX;
        if is_many {
            similar.messages.pop_first();
        }
        is_many
    }
}

const NAME_CHARS_MAX: usize = 253;

/// As in client-go: the name of the object and the time.
fn event_name(object: &str, now: Timestamp) -> String {
    let time = format!(".{:x}", now.as_nanosecond());
    let object_chars_max = NAME_CHARS_MAX - time.len();
    // Names are ASCII; a longer one would be rejected.
    let object: String = object.chars().take(object_chars_max).collect();
    format!("{}{time}", object.trim_end_matches(['.', '-']))
}

#[cfg(test)]
mod tests;
