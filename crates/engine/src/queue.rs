//! The work queue of one controller: which keys must be synced, when, and in which order.
//!
//! As in client-go's workqueue, a key is waiting or in flight, never both: changes of a waiting key
//! coalesce, and a key that changes in flight is enqueued again when its sync is done.

use std::collections::BTreeMap;
use std::time::Duration;

use endpointd_model::Key;
use hashbrown::HashMap;

use crate::MonotonicTime;

/// How urgent a sync is, the most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// Removes an endpoint that must get no more traffic.
    Removal,
    /// Any other change.
    Live,
    /// The initial sync: nothing is known to be wrong.
    Background,
}

const N_PRIORITIES: usize = 3;

/// Every 8th key is the one that has been due longest, of any priority, so that none starves.
const FAIRNESS_INTERVAL: u64 = 8;

/// Capacity that is kept for waiting keys when none waits.
const WAITING_MIN: usize = 64;

#[derive(Debug, Default)]
pub struct Queue {
    waiting: HashMap<Key, Waiting>,
    /// The keys of `waiting` by priority, due time, and age.
    order: [BTreeMap<(MonotonicTime, u64), Key>; N_PRIORITIES],
    in_flight: HashMap<Key, InFlight>,
    n_pops: u64,
    n_adds: u64,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    priority: Priority,
    due: MonotonicTime,
    /// When the first change arrived that this sync answers.
    since: MonotonicTime,
    sequence: u64,
}

#[derive(Clone, Copy, Debug)]
struct InFlight {
    since: MonotonicTime,
    /// Set when the key changed in flight.
    changed: Option<ChangeInFlight>,
}

/// The changes of a key in flight: their highest priority, when the first arrived, and the
/// earliest time at which one of them is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeInFlight {
    pub priority: Priority,
    pub since: MonotonicTime,
    pub due: MonotonicTime,
}

/// A key that is in flight now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dequeued {
    pub key: Key,
    pub priority: Priority,
    pub since: MonotonicTime,
}

/// The position of a key in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyPhase {
    Waiting { since: MonotonicTime, due: MonotonicTime },
    InFlight { since: MonotonicTime },
}

/// Sizes and ages of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueCounts {
    /// Keys that wait and are due; keys due later are not counted.
    pub n_due: usize,
    /// The longest wait of a key that is due.
    pub oldest_wait: Duration,
    pub n_in_flight: usize,
    pub oldest_in_flight: Duration,
    /// Keys that started to wait, since the start of the process.
    pub n_adds: u64,
}

impl Queue {
    /// Enqueues `key` for a sync not before `due`. Of several calls, the highest priority and the
    /// earliest due time count, and the time of the first.
    pub fn enqueue(
        &mut self,
        key: &Key,
        priority: Priority,
        due: MonotonicTime,
        now: MonotonicTime,
    ) {
        if let Some(in_flight) = self.in_flight.get_mut(key) {
            let new = ChangeInFlight { priority, since: now, due };
            let old = in_flight.changed.unwrap_or(new);
            let (priority, due) = (old.priority.min(priority), old.due.min(due));
            in_flight.changed = Some(ChangeInFlight { priority, due, since: old.since });
            return;
        }
        let entry = match self.waiting.get(key).copied() {
            None => {
                self.n_adds += 1;
                Waiting { priority, due, since: now, sequence: self.n_adds }
            }
            Some(old) => {
                self.order[old.priority as usize].remove(&(old.due, old.sequence));
                let due = old.due.min(due);
                Waiting { priority: old.priority.min(priority), due, ..old }
            }
        };
        self.order[entry.priority as usize].insert((entry.due, entry.sequence), key.clone());
        self.waiting.insert(key.clone(), entry);
    }

    /// The next key that is due; it is in flight until [`Queue::done`].
    pub fn pop(&mut self, now: MonotonicTime) -> Option<Dequeued> {
        let is_fair_turn = self.n_pops % FAIRNESS_INTERVAL == FAIRNESS_INTERVAL - 1;
        let first = |order: &BTreeMap<(MonotonicTime, u64), Key>| {
            order.first_key_value().map(|(at, _)| *at).filter(|(due, _)| *due <= now)
        };
        let firsts =
            self.order.iter().enumerate().filter_map(|(n, order)| Some((first(order)?, n)));
        let (at, class) =
            if is_fair_turn { firsts.min()? } else { firsts.min_by_key(|(_, class)| *class)? };
        self.n_pops += 1;
        let key = self.order[class].remove(&at)?;
        let Waiting { priority, since, .. } = self.waiting.remove(&key)?;
        if self.waiting.is_empty() {
            // The initial sync enqueues every key; later only a few wait at a time.
            self.waiting.shrink_to(WAITING_MIN);
        }
        self.in_flight.insert(key.clone(), InFlight { since: now, changed: None });
        Some(Dequeued { key, priority, since })
    }

    /// The sync of `key` has ended. Returns the changes that arrived meanwhile.
    pub fn done(&mut self, key: &Key) -> Option<ChangeInFlight> {
        self.in_flight.remove(key)?.changed
    }

    /// Enqueues a key again for which nothing was sent, together with later changes.
    pub fn requeue(&mut self, dequeued: Dequeued, due: MonotonicTime) {
        let Dequeued { key, priority, since } = dequeued;
        let priority = self.done(&key).map_or(priority, |changed| changed.priority.min(priority));
        self.enqueue(&key, priority, due, since);
    }

    /// Whether a key in flight has changed since it was dequeued.
    pub fn changed_in_flight(&self, key: &Key) -> bool {
        self.in_flight.get(key).is_some_and(|in_flight| in_flight.changed.is_some())
    }

    /// When the next key is due.
    pub fn next_due(&self) -> Option<MonotonicTime> {
        self.order.iter().filter_map(|order| Some(order.first_key_value()?.0.0)).min()
    }

    /// None if the key is neither waiting nor in flight.
    pub fn phase(&self, key: &Key) -> Option<KeyPhase> {
        if let Some(in_flight) = self.in_flight.get(key) {
            return Some(KeyPhase::InFlight { since: in_flight.since });
        }
        let Waiting { since, due, .. } = self.waiting.get(key)?;
        Some(KeyPhase::Waiting { since: *since, due: *due })
    }

    /// Makes a waiting key due earlier; does nothing for other keys.
    pub fn expedite(&mut self, key: &Key, due: MonotonicTime) {
        let Some(waiting) = self.waiting.get(key).copied() else { return };
        self.enqueue(key, waiting.priority, due, waiting.since);
    }

    /// Drops all waiting keys. Keys in flight stay until [`Queue::done`].
    pub fn clear(&mut self) {
        self.waiting.clear();
        self.order.iter_mut().for_each(BTreeMap::clear);
        self.in_flight.values_mut().for_each(|in_flight| in_flight.changed = None);
    }

    pub fn n_in_flight(&self) -> usize {
        self.in_flight.len()
    }

    pub fn counts(&self, now: MonotonicTime) -> QueueCounts {
        let due = self.waiting.values().filter(|waiting| waiting.due <= now);
        let oldest_wait = due.clone().map(|waiting| now.since(waiting.since)).max();
        let oldest_in_flight = self.in_flight.values().map(|one| now.since(one.since)).max();
        QueueCounts {
            n_due: due.count(),
            oldest_wait: oldest_wait.unwrap_or_default(),
            n_in_flight: self.in_flight.len(),
            oldest_in_flight: oldest_in_flight.unwrap_or_default(),
            n_adds: self.n_adds,
        }
    }

    /// All keys that are waiting or in flight, in no particular order.
    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        self.waiting.keys().chain(self.in_flight.keys())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> MonotonicTime {
        MonotonicTime::after_start(Duration::from_secs(secs))
    }

    fn key(name: &str) -> Key {
        Key::new("ns", name)
    }

    fn pop_all(queue: &mut Queue, now: MonotonicTime) -> Vec<String> {
        std::iter::from_fn(|| queue.pop(now))
            .map(|dequeued| dequeued.key.name.to_string())
            .collect()
    }

    #[test]
    fn removals_are_dequeued_first_and_background_last() {
        let mut queue = Queue::default();
        queue.enqueue(&key("start"), Priority::Background, at(0), at(0));
        queue.enqueue(&key("change"), Priority::Live, at(1), at(1));
        queue.enqueue(&key("removal"), Priority::Removal, at(2), at(2));
        assert_eq!(pop_all(&mut queue, at(2)), ["removal", "change", "start"]);
    }

    #[test]
    fn key_in_flight_is_not_dequeued_before_it_is_done() {
        let mut queue = Queue::default();
        queue.enqueue(&key("a"), Priority::Live, at(0), at(0));
        assert!(queue.pop(at(0)).is_some());
        queue.enqueue(&key("a"), Priority::Background, at(7), at(1));
        queue.enqueue(&key("a"), Priority::Removal, at(5), at(2));
        assert_eq!(queue.pop(at(9)), None);
        let changed = ChangeInFlight { priority: Priority::Removal, since: at(1), due: at(5) };
        assert_eq!(queue.done(&key("a")), Some(changed));
        assert_eq!(queue.done(&key("a")), None);
    }

    #[test]
    fn keys_are_dequeued_when_due_and_changes_coalesce() {
        let mut queue = Queue::default();
        queue.enqueue(&key("a"), Priority::Live, at(5), at(0));
        queue.enqueue(&key("a"), Priority::Live, at(7), at(2));
        assert_eq!(queue.pop(at(4)), None);
        assert_eq!(queue.next_due(), Some(at(5)));
        let dequeued = queue.pop(at(5)).expect("due");
        assert_eq!((dequeued.since, queue.pop(at(9))), (at(0), None));
    }

    #[test]
    fn requeued_key_keeps_its_age_and_gets_the_higher_priority() {
        let mut queue = Queue::default();
        queue.enqueue(&key("a"), Priority::Live, at(1), at(1));
        let dequeued = queue.pop(at(2)).expect("due");
        assert!(!queue.changed_in_flight(&key("a")));
        queue.enqueue(&key("a"), Priority::Removal, at(3), at(3));
        assert!(queue.changed_in_flight(&key("a")));
        queue.requeue(dequeued, at(4));
        assert_eq!((queue.pop(at(3)), queue.n_in_flight()), (None, 0));
        let dequeued = queue.pop(at(4)).expect("due again");
        assert_eq!((dequeued.since, dequeued.priority), (at(1), Priority::Removal));
    }

    #[test]
    fn counts_leave_out_keys_that_are_due_later() {
        let mut queue = Queue::default();
        queue.enqueue(&key("sent"), Priority::Live, at(0), at(0));
        assert!(queue.pop(at(1)).is_some());
        queue.enqueue(&key("due"), Priority::Live, at(2), at(2));
        queue.enqueue(&key("later"), Priority::Live, at(9), at(2));
        let counts = queue.counts(at(5));
        assert_eq!((counts.n_due, counts.oldest_wait), (1, Duration::from_secs(3)));
        assert_eq!((counts.n_in_flight, counts.oldest_in_flight), (1, Duration::from_secs(4)));
        assert_eq!(counts.n_adds, 3);
    }

    #[test]
    fn continuous_removals_do_not_starve_other_keys() {
        let mut queue = Queue::default();
        queue.enqueue(&key("start"), Priority::Background, at(0), at(0));
        let mut n_popped = 0;
        loop {
            queue.enqueue(&key(&format!("r{n_popped}")), Priority::Removal, at(1), at(1));
            n_popped += 1;
            if queue.pop(at(1)).expect("something is due").key.name.as_ref() == "start" {
                break;
            }
            assert!(n_popped <= FAIRNESS_INTERVAL, "starved");
        }
    }
}
