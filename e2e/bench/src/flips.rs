//! Pods that change, and how long it takes until their slices say so.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::load::{PodNumber, Readiness};

/// Flips that wait to be shown, and those that do not any more.
#[derive(Debug, Default)]
pub struct Flips {
    waiting: HashMap<PodNumber, Flip>,
    ended: Vec<Ended>,
}

#[derive(Clone, Copy, Debug)]
struct Flip {
    wanted: Readiness,
    /// When the server had stored it.
    stored: Option<Instant>,
}

/// One flip and how long it took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    pub readiness: Readiness,
    pub latency: Latency,
}

/// From the acknowledged write to the slice's event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Latency {
    Took(Duration),
    /// The event was here before the answer.
    BeforeAnswer,
    /// The pod flipped back before any slice had said so.
    MoreThan(Duration),
    /// The pod flipped back before its write was answered, and before any slice had said so: there
    /// is nothing to count from.
    Unknown,
}

impl Latency {
    /// The least it can have been; none where nothing is known.
    pub fn at_least(self) -> Option<Duration> {
        match self {
            Self::Took(time) | Self::MoreThan(time) => Some(time),
            Self::BeforeAnswer => Some(Duration::ZERO),
            Self::Unknown => None,
        }
    }

    pub fn is_overtaken(self) -> bool {
        match self {
            Self::MoreThan(_) | Self::Unknown => true,
            Self::Took(_) | Self::BeforeAnswer => false,
        }
    }
}

impl Flips {
    /// Before the write is sent: its slice may be written before its answer is here. One that takes
    /// back what no slice has said yet has nothing to show: the slice may stay as it is.
    pub fn begin(&mut self, pod: PodNumber, wanted: Readiness, now: Instant) {
        let Some(old) = self.waiting.remove(&pod) else {
            self.waiting.insert(pod, Flip { wanted, stored: None });
            return;
        };
        let latency = old.stored.map_or(Latency::Unknown, |stored| Latency::MoreThan(now - stored));
        self.ended.push(Ended { readiness: old.wanted, latency });
    }

    /// The answer may be that of the pod's flip before, which wanted the opposite: a pod's next write
    /// is sent only after it.
    pub fn stored(&mut self, pod: PodNumber, readiness: Readiness, now: Instant) {
        if let Some(flip) = self.waiting.get_mut(&pod)
            && flip.wanted == readiness
        {
            flip.stored = Some(now);
        }
    }

    /// A slice says so about a pod. What it said before the flip is the opposite.
    pub fn published(&mut self, pod: PodNumber, readiness: Readiness, now: Instant) {
        if let Some(&Flip { wanted, stored }) = self.waiting.get(&pod)
            && wanted == readiness
        {
            let latency = stored.map_or(Latency::BeforeAnswer, |then| Latency::Took(now - then));
            self.ended.push(Ended { readiness, latency });
            self.waiting.remove(&pod);
        }
    }

    pub fn n_waiting(&self) -> usize {
        self.waiting.len()
    }

    /// All that ended since the last time.
    pub fn take_ended(&mut self) -> Vec<Ended> {
        std::mem::take(&mut self.ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Readiness::{Ready, Unready};

    const MS: Duration = Duration::from_millis(1);

    fn ended(flips: &mut Flips) -> Vec<(Readiness, Latency)> {
        flips.take_ended().into_iter().map(|one| (one.readiness, one.latency)).collect()
    }

    #[test]
    fn a_flip_takes_from_its_answer_to_the_first_event_that_shows_it() {
        let (mut flips, start) = (Flips::default(), Instant::now());
        flips.begin(1, Unready, start);
        flips.stored(1, Unready, start + 2 * MS);
        flips.published(1, Ready, start + 3 * MS); // Another pod of the slice changed.
        assert_eq!(flips.n_waiting(), 1);
        flips.published(1, Unready, start + 5 * MS);
        flips.published(1, Unready, start + 9 * MS);
        assert_eq!(ended(&mut flips), [(Unready, Latency::Took(3 * MS))]);
        assert_eq!(flips.n_waiting(), 0);
    }

    #[test]
    fn an_event_may_be_faster_than_the_answer() {
        let (mut flips, start) = (Flips::default(), Instant::now());
        flips.begin(1, Ready, start);
        flips.published(1, Ready, start + MS);
        flips.stored(1, Ready, start + 2 * MS);
        assert_eq!(ended(&mut flips), [(Ready, Latency::BeforeAnswer)]);
        assert_eq!(Latency::BeforeAnswer.at_least(), Some(Duration::ZERO));
        assert_eq!(flips.n_waiting(), 0);
    }

    #[test]
    fn a_flip_that_is_taken_back_unseen_took_longer_and_leaves_nothing_to_wait_for() {
        let (mut flips, start) = (Flips::default(), Instant::now());
        flips.begin(1, Unready, start);
        flips.stored(1, Unready, start);
        flips.begin(1, Ready, start + 7 * MS);
        flips.stored(1, Ready, start + 8 * MS);
        assert_eq!(ended(&mut flips), [(Unready, Latency::MoreThan(7 * MS))]);
        assert_eq!(flips.n_waiting(), 0);
    }

    #[test]
    fn a_flip_that_is_taken_back_unanswered_has_no_latency_at_all() {
        let (mut flips, start) = (Flips::default(), Instant::now());
        flips.begin(1, Unready, start);
        flips.begin(1, Ready, start + 7 * MS);
        flips.stored(1, Unready, start + 8 * MS);
        assert_eq!(ended(&mut flips), [(Unready, Latency::Unknown)]);
        assert!(Latency::Unknown.is_overtaken());
        assert_eq!(Latency::Unknown.at_least(), None);
        assert_eq!(flips.n_waiting(), 0);
    }

    #[test]
    fn a_late_answer_is_not_that_of_the_next_flip() {
        let (mut flips, start) = (Flips::default(), Instant::now());
        flips.begin(1, Unready, start);
        flips.published(1, Unready, start + MS);
        flips.begin(1, Ready, start + 2 * MS);
        flips.stored(1, Unready, start + 3 * MS);
        flips.published(1, Ready, start + 4 * MS);
        flips.stored(1, Ready, start + 5 * MS);
        let want = [(Unready, Latency::BeforeAnswer), (Ready, Latency::BeforeAnswer)];
        assert_eq!(ended(&mut flips), want);
    }
}
