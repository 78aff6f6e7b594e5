//! Pods that change, and how long it takes until their slices say so.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::load::{PodNumber, Readiness};

/// Flips that wait to be shown, and those that were.
#[derive(Debug, Default)]
pub struct Flips {
    waiting: HashMap<PodNumber, Flip>,
    shown: Vec<Shown>,
}

#[derive(Clone, Copy, Debug)]
struct Flip {
    wanted: Readiness,
    /// When the server had stored it.
    stored: Option<Instant>,
    /// When a slice first said so.
    published: Option<Instant>,
}

/// One flip and what became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown {
    pub readiness: Readiness,
    /// From the acknowledged write to the slice's event; nothing if the event was faster.
    pub took: Duration,
    /// The pod flipped back before any slice had said so: it took longer than `took`.
    pub is_overtaken: bool,
}

impl Flips {
    /// Before the write is sent: its slice may be written before its answer is here. One that takes
    /// back what no slice has said yet has nothing to show: the slice may stay as it is.
    pub fn begin(&mut self, pod: PodNumber, wanted: Readiness, now: Instant) {
        if let Some(old) = self.waiting.remove(&pod) {
            let is_overtaken = old.published.is_none();
            let stored = old.stored.filter(|_| is_overtaken);
            let took = stored.map_or(Duration::ZERO, |stored| now - stored);
            self.shown.push(Shown { readiness: old.wanted, took, is_overtaken });
            if is_overtaken {
                return;
            }
        }
        self.waiting.insert(pod, Flip { wanted, stored: None, published: None });
    }

    pub fn stored(&mut self, pod: PodNumber, now: Instant) {
        if let Some(flip) = self.waiting.get_mut(&pod) {
            flip.stored = Some(now);
            self.end(pod);
        }
    }

    /// A slice says so about a pod. What it said before the flip is the opposite.
    pub fn published(&mut self, pod: PodNumber, readiness: Readiness, now: Instant) {
        if let Some(flip) = self.waiting.get_mut(&pod)
            && flip.wanted == readiness
        {
            flip.published.get_or_insert(now);
            self.end(pod);
        }
    }

    pub fn n_waiting(&self) -> usize {
        self.waiting.len()
    }

    /// All that were shown since the last time.
    pub fn take_shown(&mut self) -> Vec<Shown> {
        std::mem::take(&mut self.shown)
    }

    fn end(&mut self, pod: PodNumber) {
        let Some(&Flip { wanted, stored: Some(stored), published: Some(published) }) =
            self.waiting.get(&pod)
        else {
            return;
        };
        let took = published.saturating_duration_since(stored);
        self.shown.push(Shown { readiness: wanted, took, is_overtaken: false });
        self.waiting.remove(&pod);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_flip_takes_from_its_answer_to_the_first_event_that_shows_it() {
        let (mut flips, start) = (Flips::default(), Instant::now());
        flips.begin(1, Readiness::Unready, start);
        flips.stored(1, start + 2 * MS);
        flips.published(1, Readiness::Ready, start + 3 * MS); // Another pod of the slice changed.
        assert_eq!(flips.n_waiting(), 1);
        flips.published(1, Readiness::Unready, start + 5 * MS);
        flips.published(1, Readiness::Unready, start + 9 * MS);
        let want = Shown { readiness: Readiness::Unready, took: 3 * MS, is_overtaken: false };
        assert_eq!(flips.take_shown(), [want]);
        assert_eq!(flips.n_waiting(), 0);
    }

    #[test]
    fn an_event_may_be_faster_than_the_answer() {
        let (mut flips, start) = (Flips::default(), Instant::now());
        flips.begin(1, Readiness::Ready, start);
        flips.published(1, Readiness::Ready, start + MS);
        assert_eq!(flips.n_waiting(), 1);
        flips.stored(1, start + 2 * MS);
        assert_eq!(flips.take_shown()[0].took, Duration::ZERO);
    }

    #[test]
    fn a_flip_that_is_taken_back_unseen_is_told_apart_and_leaves_nothing_to_wait_for() {
        let (mut flips, start) = (Flips::default(), Instant::now());
        flips.begin(1, Readiness::Unready, start);
        flips.stored(1, start);
        flips.begin(1, Readiness::Ready, start + 7 * MS);
        flips.stored(1, start + 8 * MS);
        let want = Shown { readiness: Readiness::Unready, took: 7 * MS, is_overtaken: true };
        assert_eq!(flips.take_shown(), [want]);
        assert_eq!(flips.n_waiting(), 0);
    }

    #[test]
    fn a_flip_that_is_taken_back_after_it_was_seen_is_one_more() {
        let (mut flips, start) = (Flips::default(), Instant::now());
        flips.begin(1, Readiness::Unready, start);
        flips.published(1, Readiness::Unready, start + MS);
        flips.begin(1, Readiness::Ready, start + 2 * MS);
        assert!(!flips.take_shown()[0].is_overtaken);
        assert_eq!(flips.n_waiting(), 1);
    }
}
