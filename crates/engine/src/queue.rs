//! The work queue of one controller: which keys must be synced, when, and in which order.
//!
//! As in client-go's workqueue, a key is waiting or in flight, never both: changes of a waiting key
//! coalesce, and a key that changes in flight is enqueued again when its sync is done.

use std::collections::BTreeMap;
use std::time::Duration;

use endpointd_model::{Key, SharedStr};
use hashbrown::HashMap;

use crate::MonotonicTime;

/// How urgent a sync is, the most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// Removes an endpoint that must get no more traffic.
    Removal,
    /// Any other change.
    Live,
    /// Undoes what another client did to a published object.
    Repair,
    /// The initial sync: nothing is known to be wrong.
    Background,
}

const N_PRIORITIES: usize = 4;

/// Every 8th key is the one that has been due longest, of any priority, so that none starves.
const FAIRNESS_INTERVAL: u64 = 8;

/// Capacity that is kept for waiting keys when none waits.
const WAITING_MIN: usize = 64;

/// A sync in flight for longer is slow: its worker is free for keys of other namespaces.
const SLOW_AFTER: Duration = Duration::from_millis(500);

/// With slow syncs, so many times the number of workers are in flight at most.
const SLOW_FACTOR: usize = 8;

#[derive(Debug)]
pub struct Queue {
    /// Syncs in flight at once, except for slow ones; also the most of one namespace, slow or not.
    workers: usize,
    waiting: HashMap<Key, Waiting>,
    /// The keys of `waiting` by priority, due time, and age.
    order: Order,
    /// Keys of `waiting` that were due while their namespace had too many syncs in flight, by
    /// namespace.
    held_back: BTreeMap<SharedStr, Order>,
    in_flight: HashMap<Key, InFlight>,
    n_pops: u64,
    n_adds: u64,
}

type Order = [BTreeMap<(MonotonicTime, u64), Key>; N_PRIORITIES];

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

impl Default for Queue {
    fn default() -> Self {
        Self::new(usize::MAX)
    }
}

impl Queue {
    pub fn new(workers: usize) -> Self {
        Self {
            workers,
            waiting: HashMap::new(),
            order: Order::default(),
            held_back: BTreeMap::new(),
            in_flight: HashMap::new(),
            n_pops: 0,
            n_adds: 0,
        }
    }

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
                self.remove_from_order(key, old);
                let due = old.due.min(due);
                Waiting { priority: old.priority.min(priority), due, ..old }
            }
        };
        self.order[entry.priority as usize].insert((entry.due, entry.sequence), key.clone());
        self.waiting.insert(key.clone(), entry);
    }

    /// When a worker is free; none before a sync ends.
    pub fn worker_free_at(&self) -> Option<MonotonicTime> {
        let n_in_flight = self.in_flight.len();
        if n_in_flight < self.workers {
            return Some(MonotonicTime::START);
        }
        if n_in_flight >= self.workers.saturating_mul(SLOW_FACTOR) {
            return None;
        }
        let mut started: Vec<MonotonicTime> =
            self.in_flight.values().map(|one| one.since).collect();
        started.sort_unstable();
        Some(started[n_in_flight - self.workers] + SLOW_AFTER)
    }

    /// The next key that is due; it is in flight until [`Queue::done`]. A worker must be free.
    pub fn pop(&mut self, now: MonotonicTime) -> Option<Dequeued> {
        loop {
            let (key, waiting) = self.pop_due(now)?;
            if self.n_in_flight_of(&key.namespace) < self.workers {
                return Some(self.start(key, waiting, now));
            }
            let held_back = self.held_back.entry(key.namespace.clone()).or_default();
            let at = (waiting.due, waiting.sequence);
            held_back[waiting.priority as usize].insert(at, key);
        }
    }

    /// Takes the next key that is due out of the order.
    fn pop_due(&mut self, now: MonotonicTime) -> Option<(Key, Waiting)> {
        let is_fair_turn = self.n_pops % FAIRNESS_INTERVAL == FAIRNESS_INTERVAL - 1;
        let first = |order: &BTreeMap<(MonotonicTime, u64), Key>| {
            order.first_key_value().map(|(at, _)| *at).filter(|(due, _)| *due <= now)
        };
        let firsts =
            self.order.iter().enumerate().filter_map(|(n, order)| Some((first(order)?, n)));
        let (at, class) =
            if is_fair_turn { firsts.min()? } else { firsts.min_by_key(|(_, class)| *class)? };
        let key = self.order[class].remove(&at)?;
        let waiting = self.waiting.get(&key).copied()?;
        Some((key, waiting))
    }

    fn start(&mut self, key: Key, waiting: Waiting, now: MonotonicTime) -> Dequeued {
        let Waiting { priority, since, .. } = waiting;
        self.n_pops += 1;
        self.waiting.remove(&key);
        if self.waiting.is_empty() {
            // The initial sync enqueues every key; later only a few wait at a time.
            self.waiting.shrink_to(WAITING_MIN);
        }
        self.in_flight.insert(key.clone(), InFlight { since: now, changed: None });
        Dequeued { key, priority, since }
    }

    /// The sync of `key` has ended. Returns the changes that arrived meanwhile.
    pub fn done(&mut self, key: &Key) -> Option<ChangeInFlight> {
        let in_flight = self.in_flight.remove(key)?;
        self.release_held_back(&key.namespace);
        in_flight.changed
    }

    /// As many keys of a namespace as may start syncs now; the others stay.
    fn release_held_back(&mut self, namespace: &SharedStr) {
        let n_free = self.workers.saturating_sub(self.n_in_flight_of(namespace));
        let Some(held_back) = self.held_back.get_mut(namespace) else { return };
        for _ in 0..n_free {
            let first = held_back.iter_mut().enumerate().find(|(_, order)| !order.is_empty());
            let Some((priority, order)) = first else { break };
            let Some((at, key)) = order.pop_first() else { break };
            self.order[priority].insert(at, key);
        }
        if held_back.iter().all(BTreeMap::is_empty) {
            self.held_back.remove(namespace);
        }
    }

    fn n_in_flight_of(&self, namespace: &SharedStr) -> usize {
        self.in_flight.keys().filter(|key| key.namespace == *namespace).count()
    }

    fn remove_from_order(&mut self, key: &Key, waiting: Waiting) {
        let (class, at) = (waiting.priority as usize, (waiting.due, waiting.sequence));
        if self.order[class].remove(&at).is_none()
            && let Some(held_back) = self.held_back.get_mut(&key.namespace)
        {
            held_back[class].remove(&at);
        }
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

    /// A key could be synced for so long, and no worker was free. The initial sync does not count.
    pub fn has_overdue(&self, wait: Duration, now: MonotonicTime) -> bool {
        let changes = &self.order[..Priority::Background as usize];
        let mut firsts = changes.iter().filter_map(|order| Some(order.first_key_value()?.0.0));
        firsts.any(|due| due + wait <= now)
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
        self.held_back.clear();
        self.in_flight.values_mut().for_each(|in_flight| in_flight.changed = None);
    }

    #[cfg(test)]
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
    fn slow_syncs_of_one_namespace_leave_workers_to_others() {
        let mut queue = Queue::new(5);
        for n in 0..50 {
            queue.enqueue(&key(&format!("slow-{n}")), Priority::Removal, at(0), at(0));
        }
        let names = |n: std::ops::Range<u32>| n.map(|n| format!("slow-{n}")).collect::<Vec<_>>();
        for n in 0..5 {
            assert!(queue.worker_free_at() == Some(MonotonicTime::START), "for sync {n}");
            assert!(queue.pop(at(1)).is_some());
        }
        assert_eq!(queue.worker_free_at(), Some(at(1) + SLOW_AFTER));
        assert_eq!(queue.pop(at(2)), None, "the namespace has five syncs in flight");
        queue.enqueue(&Key::new("other", "web"), Priority::Live, at(2), at(2));
        assert_eq!(queue.next_due(), Some(at(2)), "keys that are held back are not due");
        assert_eq!(pop_all(&mut queue, at(2)), ["web"]);
        queue.expedite(&key("slow-30"), at(0));
        queue.done(&key("slow-0"));
        assert_eq!(pop_all(&mut queue, at(11)), names(5..6), "one for one");
        for n in 1..6 {
            assert_eq!(queue.done(&key(&format!("slow-{n}"))), None);
        }
        assert_eq!(pop_all(&mut queue, at(12)), names(6..11));
    }

    #[test]
    fn syncs_in_flight_are_bounded_even_if_all_are_slow() {
        let mut queue = Queue::new(2);
        for n in 0..50 {
            let key = Key::new(format!("ns-{n}").as_str(), "web");
            queue.enqueue(&key, Priority::Live, at(0), at(0));
        }
        let mut now = at(0);
        while let Some(free) = queue.worker_free_at() {
            now = now.max(free);
            assert!(queue.pop(now).is_some());
        }
        assert_eq!(queue.n_in_flight(), 2 * SLOW_FACTOR);
        queue.done(&Key::new("ns-0", "web"));
        assert!(queue.worker_free_at().is_some());
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
