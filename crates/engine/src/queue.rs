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
const FAIR_TURN: u64 = 8;

/// Room that is kept for waiting keys when none waits.
const WAITING_MIN: usize = 64;

#[derive(Debug, Default)]
pub struct Queue {
    waiting: HashMap<Key, Waiting>,
    /// The keys of `waiting` by priority, due time, and age.
    order: [BTreeMap<(MonotonicTime, u64), Key>; N_PRIORITIES],
    flying: HashMap<Key, Flying>,
    n_turns: u64,
    n_marks: u64,
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
struct Flying {
    since: MonotonicTime,
    /// Changed again meanwhile.
    again: Option<(Priority, MonotonicTime)>,
}

/// A key that was taken to be synced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    pub key: Key,
    pub priority: Priority,
    pub since: MonotonicTime,
}

/// Where a key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Waiting { since: MonotonicTime, due: MonotonicTime },
    Flying { since: MonotonicTime },
}

impl Queue {
    /// Asks for a sync of `key`, not before `due`. The most urgent wish and the earliest time
    /// win; the age is that of the first wish.
    pub fn mark(&mut self, key: &Key, priority: Priority, due: MonotonicTime, now: MonotonicTime) {
        if let Some(flying) = self.flying.get_mut(key) {
            let (before, since) = flying.again.unwrap_or((priority, now));
            flying.again = Some((before.min(priority), since));
            return;
        }
        let wish = match self.waiting.get(key).copied() {
            None => {
                self.n_marks += 1;
                Waiting { priority, due, since: now, sequence: self.n_marks }
            }
            Some(old) => {
                self.order[old.priority as usize].remove(&(old.due, old.sequence));
                let due = old.due.min(due);
                Waiting { priority: old.priority.min(priority), due, ..old }
            }
        };
        self.order[wish.priority as usize].insert((wish.due, wish.sequence), key.clone());
        self.waiting.insert(key.clone(), wish);
    }

    /// The next key that is due; it counts as in flight until [`Queue::land`].
    pub fn take(&mut self, now: MonotonicTime) -> Option<Taken> {
        let is_fair_turn = self.n_turns % FAIR_TURN == FAIR_TURN - 1;
        let first = |order: &BTreeMap<(MonotonicTime, u64), Key>| {
            order.first_key_value().map(|(at, _)| *at).filter(|(due, _)| *due <= now)
        };
        let firsts =
            self.order.iter().enumerate().filter_map(|(n, order)| Some((first(order)?, n)));
        let (at, class) =
            if is_fair_turn { firsts.min()? } else { firsts.min_by_key(|(_, class)| *class)? };
        self.n_turns += 1;
        let key = self.order[class].remove(&at)?;
        let Waiting { priority, since, .. } = self.waiting.remove(&key)?;
        if self.waiting.is_empty() {
            // Everything waits at the start, and hardly anything ever after.
            self.waiting.shrink_to(WAITING_MIN);
        }
        self.flying.insert(key.clone(), Flying { since: now, again: None });
        Some(Taken { key, priority, since })
    }

    /// The sync of `key` is over. Says what came in meanwhile, and since when.
    pub fn land(&mut self, key: &Key) -> Option<(Priority, MonotonicTime)> {
        self.flying.remove(key)?.again
    }

    /// Puts back a key that was taken and for which nothing was done, with what came in meanwhile.
    pub fn step_back(&mut self, taken: Taken, due: MonotonicTime) {
        let Taken { key, priority, since } = taken;
        let again = self.land(&key).map_or(priority, |(again, _)| again.min(priority));
        self.mark(&key, again, due, since);
    }

    /// Whether a key that was taken changed since.
    pub fn is_outdated(&self, key: &Key) -> bool {
        self.flying.get(key).is_some_and(|flying| flying.again.is_some())
    }

    /// When the next key is due.
    pub fn next_due(&self) -> Option<MonotonicTime> {
        self.order.iter().filter_map(|order| Some(order.first_key_value()?.0.0)).min()
    }

    pub fn place(&self, key: &Key) -> Option<Place> {
        if let Some(flying) = self.flying.get(key) {
            return Some(Place::Flying { since: flying.since });
        }
        let Waiting { since, due, .. } = self.waiting.get(key)?;
        Some(Place::Waiting { since: *since, due: *due })
    }

    /// Moves a waiting key to an earlier time; others stay as they are.
    pub fn hasten(&mut self, key: &Key, due: MonotonicTime) {
        let Some(waiting) = self.waiting.get(key).copied() else { return };
        self.mark(key, waiting.priority, due, waiting.since);
    }

    /// Forgets all that waits. What flies must still land.
    pub fn clear(&mut self) {
        self.waiting.clear();
        self.order.iter_mut().for_each(BTreeMap::clear);
        self.flying.values_mut().for_each(|flying| flying.again = None);
    }

    pub fn n_flying(&self) -> usize {
        self.flying.len()
    }

    /// Waiting and due, waiting for a later time, and the longest wait of the former.
    pub fn census(&self, now: MonotonicTime) -> (usize, usize, Duration) {
        let due = self.waiting.values().filter(|waiting| waiting.due <= now);
        let oldest = due.clone().map(|waiting| now.since(waiting.since)).max();
        let n_due = due.count();
        (n_due, self.waiting.len() - n_due, oldest.unwrap_or_default())
    }

    pub fn oldest_in_flight(&self, now: MonotonicTime) -> Duration {
        self.flying.values().map(|flying| now.since(flying.since)).max().unwrap_or_default()
    }

    /// Waiting and flying keys, in no particular order.
    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        self.waiting.keys().chain(self.flying.keys())
    }

    /// Distinct wishes since the beginning.
    pub fn n_marks(&self) -> u64 {
        self.n_marks
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
        std::iter::from_fn(|| queue.take(now)).map(|taken| taken.key.name.to_string()).collect()
    }

    #[test]
    fn removals_go_first_and_background_last() {
        let mut queue = Queue::default();
        queue.mark(&key("start"), Priority::Background, at(0), at(0));
        queue.mark(&key("change"), Priority::Live, at(1), at(1));
        queue.mark(&key("removal"), Priority::Removal, at(2), at(2));
        assert_eq!(order(&mut queue, at(2)), ["removal", "change", "start"]);
    }

    #[test]
    fn a_key_in_flight_is_not_taken_again_before_it_lands() {
        let mut queue = Queue::default();
        queue.mark(&key("a"), Priority::Live, at(0), at(0));
        assert!(queue.take(at(0)).is_some());
        queue.mark(&key("a"), Priority::Background, at(1), at(1));
        queue.mark(&key("a"), Priority::Removal, at(2), at(2));
        assert_eq!(queue.take(at(9)), None);
        assert_eq!(queue.land(&key("a")), Some((Priority::Removal, at(1))));
        assert_eq!(queue.land(&key("a")), None);
    }

    #[test]
    fn nothing_is_taken_before_it_is_due_and_changes_coalesce() {
        let mut queue = Queue::default();
        queue.mark(&key("a"), Priority::Live, at(5), at(0));
        queue.mark(&key("a"), Priority::Live, at(7), at(2));
        assert_eq!(queue.take(at(4)), None);
        assert_eq!(queue.next_due(), Some(at(5)));
        let taken = queue.take(at(5)).expect("due");
        assert_eq!((taken.since, queue.take(at(9))), (at(0), None));
    }

    #[test]
    fn who_steps_back_keeps_its_age_and_takes_what_came_meanwhile_along() {
        let mut queue = Queue::default();
        queue.mark(&key("a"), Priority::Live, at(1), at(1));
        let taken = queue.take(at(2)).expect("due");
        assert!(!queue.is_outdated(&key("a")));
        queue.mark(&key("a"), Priority::Removal, at(3), at(3));
        assert!(queue.is_outdated(&key("a")));
        queue.step_back(taken, at(4));
        assert_eq!((queue.take(at(3)), queue.n_flying()), (None, 0));
        let taken = queue.take(at(4)).expect("due again");
        assert_eq!((taken.since, taken.priority), (at(1), Priority::Removal));
    }

    #[test]
    fn a_stream_of_removals_does_not_starve_the_rest() {
        let mut queue = Queue::default();
        queue.mark(&key("start"), Priority::Background, at(0), at(0));
        let mut n_taken = 0;
        loop {
            queue.mark(&key(&format!("r{n_taken}")), Priority::Removal, at(1), at(1));
            n_taken += 1;
            if queue.take(at(1)).expect("something is due").key.name.as_ref() == "start" {
                break;
            }
            assert!(n_taken <= FAIR_TURN, "starved");
        }
    }
}
