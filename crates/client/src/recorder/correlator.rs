//! Which Event a record becomes: a new one, another count on an old one, one of many combined, or
//! none. Upstream: `EventCorrelator` in client-go's tools/record/events_cache.go.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use endpointd_model::{Controller, EventReason, InvolvedKind, Key, Timestamp, Uid};

use super::EventRequest;
use super::event::Event;
use super::recent::LruMap;
use crate::budget::TokenBucket;
use crate::moment::Now;

/// Of each memory; upstream: `maxLruCacheEntries`.
const ENTRIES_MAX: usize = 4096;
/// So many different messages of one kind are told one by one; upstream: `defaultAggregateMaxEvents`.
const SIMILAR_MAX: usize = 10;
/// AggregateState ones further apart are not combined.
const SIMILAR_WITHIN: Duration = Duration::from_secs(600);
/// Of one source about one object: so many at once, then one in five minutes.
const SPAM_BURST: u32 = 25;
const SPAM_PER_SEC: f32 = 1.0 / 300.0;
const COMBINED: &str = "(combined from similar events): ";

pub(super) struct Correlator {
    similar: LruMap<AggregateKey, AggregateState>,
    told: LruMap<(AggregateKey, String), RecordedEvent>,
    spam: LruMap<EventSubject, TokenBucket>,
}

/// One source about one object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct EventSubject {
    controller: Controller,
    involved_kind: InvolvedKind,
    key: Key,
    uid: Uid,
}

/// What is similar; the reason decides the type as well.
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
            similar: LruMap::new(ENTRIES_MAX),
            told: LruMap::new(ENTRIES_MAX),
            spam: LruMap::new(ENTRIES_MAX),
        }
    }
}

impl Correlator {
    /// `None`: this object has had more than its share.
    pub(super) fn correlate(&mut self, remark: EventRequest, now: Now) -> Option<Event> {
        let EventRequest { controller, key, uid, record } = &remark;
        let subject = EventSubject {
            controller: *controller,
            involved_kind: record.involved_kind,
            key: key.clone(),
            uid: uid.clone(),
        };
        let theme = AggregateKey { subject: subject.clone(), reason: record.reason };
        let is_combined = self.combines(&theme, &record.message, now.instant);
        // All combined ones are one Event, whatever they say: its message is the latest.
        let (told_as, message) = if is_combined {
            (String::new(), format!("{COMBINED}{}", record.message))
        } else {
            (record.message.clone(), record.message.clone())
        };
        let told = self.told.entry((theme, told_as), || RecordedEvent {
            name: event_name(&key.name, now.wall),
            first: now.wall,
            count: 0,
        });
        told.count += 1;
        let event = Event {
            name: told.name.clone(),
            is_new: told.count == 1,
            count: told.count,
            first: told.first,
            last: now.wall,
            message,
            remark,
        };
        let full = || TokenBucket::full(SPAM_PER_SEC, SPAM_BURST, now.instant);
        self.spam.entry(subject, full).try_take(now.instant).then_some(event)
    }

    fn combines(&mut self, theme: &AggregateKey, message: &str, now: Instant) -> bool {
        let fresh = || AggregateState { messages: BTreeSet::new(), last: now };
        let similar = self.similar.entry(theme.clone(), fresh);
        if now.saturating_duration_since(similar.last) > SIMILAR_WITHIN {
            *similar = fresh();
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

/// As client-go names them: the object and the time.
fn event_name(object: &str, now: Timestamp) -> String {
    let time = format!(".{:x}", now.as_nanosecond());
    let room = NAME_CHARS_MAX - time.len();
    // Names are ASCII; a longer one would only be refused.
    let object: String = object.chars().take(room).collect();
    format!("{}{time}", object.trim_end_matches(['.', '-']))
}

#[cfg(test)]
mod tests;
