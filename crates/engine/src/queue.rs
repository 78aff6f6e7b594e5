//! What must be synced, when, and in which order. One queue per controller.
//!
//! A key is waiting or in flight, never twice; changes meanwhile coalesce. Nothing is ever dropped.

use std::collections::BTreeMap;
use std::time::Duration;

use endpointd_model::Key;
use hashbrown::HashMap;

use crate::MonotonicTime;

/// How urgent a sync is; the first goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// Takes an endpoint out that should get no more traffic.
    Removal,
    /// Something changed.
    Live,
    /// Start-up and take-over: nothing is known to be wrong.
    Background,
}

const N_PRIORITIES: usize = 3;

/// Of so many turns, one goes to whoever has waited longest, so that nothing starves.
const FAIRNESS_INTERVAL: u64 = 8;

/// Room that is kept for waiting keys when none waits.
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
    /// When the first change came in that this sync answers.
    since: MonotonicTime,
    sequence: u64,
}

#[derive(Clone, Copy, Debug)]
struct InFlight {
    since: MonotonicTime,
    /// Changed again meanwhile.
    again: Option<(Priority, MonotonicTime)>,
}

/// A key that was taken to be synced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dequeued {
    pub key: Key,
    pub priority: Priority,
    pub since: MonotonicTime,
}

/// Where a key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyPhase {
    Waiting { since: MonotonicTime, due: MonotonicTime },
    InFlight { since: MonotonicTime },
}

impl Queue {
    /// Asks for a sync of `key`, not before `due`. The most urgent wish and the earliest time
    /// win; the age is that of the first wish.
    pub fn enqueue(
        &mut self,
        key: &Key,
        priority: Priority,
        due: MonotonicTime,
        now: MonotonicTime,
    ) {
        if let Some(in_flight) = self.in_flight.get_mut(key) {
            let (before, since) = in_flight.again.unwrap_or((priority, now));
            in_flight.again = Some((before.min(priority), since));
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

    /// The next key that is due; it counts as in flight until [`Queue::land`].
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
            // Everything waits at the start, and hardly anything ever after.
            self.waiting.shrink_to(WAITING_MIN);
        }
        self.in_flight.insert(key.clone(), InFlight { since: now, again: None });
        Some(Dequeued { key, priority, since })
    }

    /// The sync of `key` is over. Says what came in meanwhile, and since when.
    pub fn done(&mut self, key: &Key) -> Option<(Priority, MonotonicTime)> {
        self.in_flight.remove(key)?.again
    }

    /// Puts back a key that was taken and for which nothing was done, with what came in meanwhile.
    pub fn requeue(&mut self, dequeued: Dequeued, due: MonotonicTime) {
        let Dequeued { key, priority, since } = dequeued;
        let again = self.done(&key).map_or(priority, |(again, _)| again.min(priority));
        self.enqueue(&key, again, due, since);
    }

    /// Whether a key that was taken changed since.
    pub fn changed_in_flight(&self, key: &Key) -> bool {
        self.in_flight.get(key).is_some_and(|in_flight| in_flight.again.is_some())
    }

    /// When the next key is due.
    pub fn next_due(&self) -> Option<MonotonicTime> {
        self.order.iter().filter_map(|order| Some(order.first_key_value()?.0.0)).min()
    }

    pub fn phase(&self, key: &Key) -> Option<KeyPhase> {
        if let Some(in_flight) = self.in_flight.get(key) {
            return Some(KeyPhase::InFlight { since: in_flight.since });
        }
        let Waiting { since, due, .. } = self.waiting.get(key)?;
        Some(KeyPhase::Waiting { since: *since, due: *due })
    }

    /// Moves a waiting key to an earlier time; others stay as they are.
    pub fn expedite(&mut self, key: &Key, due: MonotonicTime) {
        let Some(waiting) = self.waiting.get(key).copied() else { return };
        self.enqueue(key, waiting.priority, due, waiting.since);
    }

    /// Forgets all that waits. What flies must still land.
    pub fn clear(&mut self) {
        self.waiting.clear();
        self.order.iter_mut().for_each(BTreeMap::clear);
        self.in_flight.values_mut().for_each(|in_flight| in_flight.again = None);
    }

    pub fn n_in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// Waiting and due, waiting for a later time, and the longest wait of the former.
    pub fn census(&self, now: MonotonicTime) -> (usize, usize, Duration) {
        let due = self.waiting.values().filter(|waiting| waiting.due <= now);
        let oldest = due.clone().map(|waiting| now.since(waiting.since)).max();
        let n_due = due.count();
        (n_due, self.waiting.len() - n_due, oldest.unwrap_or_default())
    }

    pub fn oldest_in_flight(&self, now: MonotonicTime) -> Duration {
        self.in_flight
            .values()
            .map(|in_flight| now.since(in_flight.since))
            .max()
            .unwrap_or_default()
    }

    /// Waiting and flying keys, in no particular order.
    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        self.waiting.keys().chain(self.in_flight.keys())
    }

    /// Distinct wishes since the beginning.
    pub fn n_adds(&self) -> u64 {
        self.n_adds
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

    fn order(queue: &mut Queue, now: MonotonicTime) -> Vec<String> {
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
        assert_eq!(order(&mut queue, at(2)), ["removal", "change", "start"]);
    }

    #[test]
    fn key_in_flight_is_not_dequeued_before_it_is_done() {
        let mut queue = Queue::default();
        queue.enqueue(&key("a"), Priority::Live, at(0), at(0));
        assert!(queue.pop(at(0)).is_some());
        queue.enqueue(&key("a"), Priority::Background, at(1), at(1));
        queue.enqueue(&key("a"), Priority::Removal, at(2), at(2));
        assert_eq!(queue.pop(at(9)), None);
        assert_eq!(queue.done(&key("a")), Some((Priority::Removal, at(1))));
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
    fn continuous_removals_do_not_starve_other_keys() {
        let mut queue = Queue::default();
        queue.enqueue(&key("start"), Priority::Background, at(0), at(0));
        let mut n_taken = 0;
        loop {
            queue.enqueue(&key(&format!("r{n_taken}")), Priority::Removal, at(1), at(1));
            n_taken += 1;
            if queue.pop(at(1)).expect("something is due").key.name.as_ref() == "start" {
                break;
            }
            assert!(n_taken <= FAIRNESS_INTERVAL, "starved");
        }
    }
}
