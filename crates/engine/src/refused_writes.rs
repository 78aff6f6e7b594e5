//! Writes of one key that the API server refuses again and again: a quota, a permission, a policy, or
//! a webhook that is down. Changes of the key, removals included, must not try them without end, and
//! they must not delay its other writes.

use std::collections::BTreeSet;

use endpointd_model::{Failure, FailureKind, Key, PublishedResource, Write};

use crate::MonotonicTime;
use crate::deferred_writes::OrderedWrites;
use crate::requests::Verb;
use crate::try_budget::TryBudget;

#[derive(Debug)]
pub struct RefusedWrites {
    targets: BTreeSet<Target>,
    /// The last refusal.
    failure: Failure,
    budget: TryBudget,
}

/// What was refused: creates have a new name each time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Target {
    Creates(PublishedResource),
    Object(PublishedResource, Key),
}

/// The writes of a plan that may be sent now.
#[derive(Debug, Default)]
pub struct Permitted {
    pub writes: OrderedWrites,
    /// Refused writes, and deferred ones that depend on them, that have to wait.
    pub n_withheld: usize,
}

/// A failure that can concern this object only. Others pause every key, or end with the outage.
pub fn is_refusal(failure: &Failure) -> bool {
    match failure.kind {
        FailureKind::ServerError | FailureKind::Forbidden | FailureKind::Invalid => true,
        FailureKind::Unreachable | FailureKind::Unauthorized | FailureKind::Unreadable => false,
    }
}

impl RefusedWrites {
    /// None was refused yet.
    pub fn new(failure: Failure) -> Self {
        Self { targets: BTreeSet::new(), failure, budget: TryBudget::default() }
    }

    pub fn record(
        &mut self,
        (verb, resource, key): (Verb, PublishedResource, &Key),
        failure: Failure,
        now: MonotonicTime,
    ) {
        self.targets.insert(Target::new(verb, resource, key));
        self.failure = failure;
        self.budget.spend(now);
    }

    /// Whether this write was refused before. If it succeeds, so may the others.
    pub fn contains(&self, verb: Verb, resource: PublishedResource, key: &Key) -> bool {
        self.targets.contains(&Target::new(verb, resource, key))
    }

    /// The cause of the refusals may be over.
    pub fn grant_try(&mut self, now: MonotonicTime) {
        self.budget.refund(now);
    }

    pub fn failure(&self) -> &Failure {
        &self.failure
    }

    /// It changes nothing any more.
    pub fn is_expired(&self, now: MonotonicTime) -> bool {
        self.budget.is_full(now)
    }

    /// When the next refused write may be tried.
    pub fn next_try(&self, now: MonotonicTime) -> MonotonicTime {
        self.budget.next_try(now)
    }

    /// Refused writes go in turns: if one of them succeeds, the others follow.
    pub fn withhold(&self, writes: OrderedWrites, now: MonotonicTime) -> Permitted {
        let OrderedWrites { first, deferred, n_incomplete } = writes;
        let n_all = first.len() + deferred.len();
        let mut n_free = self.budget.n_left(now);
        let mut is_permitted = |write: &Write| {
            let is_refused = self.targets.contains(&Target::of(write));
            let is_permitted = !is_refused || n_free > 0;
            n_free -= u32::from(is_refused && is_permitted);
            is_permitted
        };
        let mut index_of = Vec::with_capacity(first.len());
        let mut kept = Vec::with_capacity(first.len());
        for write in first {
            let index = is_permitted(&write).then_some(kept.len());
            index_of.push(index);
            kept.extend(index.map(|_| write));
        }
        let mut kept_deferred = Vec::with_capacity(deferred.len());
        for (write, depends_on) in deferred {
            let depends_on: Option<Vec<usize>> =
                depends_on.into_iter().map(|index| index_of[index]).collect();
            if let Some(depends_on) = depends_on
                && is_permitted(&write)
            {
                kept_deferred.push((write, depends_on));
            }
        }
        let n_withheld = n_all - kept.len() - kept_deferred.len();
        let writes = OrderedWrites { first: kept, deferred: kept_deferred, n_incomplete };
        Permitted { writes, n_withheld }
    }
}

impl Target {
    fn new(verb: Verb, resource: PublishedResource, key: &Key) -> Self {
        match verb {
            Verb::Create => Self::Creates(resource),
            Verb::Update | Verb::Delete => Self::Object(resource, key.clone()),
        }
    }

    fn of(write: &Write) -> Self {
        let verb = match write {
            Write::Create(_) => Verb::Create,
            Write::Update(_) => Verb::Update,
            Write::Delete(_) => Verb::Delete,
        };
        Self::new(verb, write.resource(), &write.key())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use endpointd_model::{DeleteTarget, EndpointSlice, Meta, Object};

    use super::*;
    use crate::try_budget::TRIES_IN_A_ROW;

    const SLICES: PublishedResource = PublishedResource::Slices;

    fn at(secs: u64) -> MonotonicTime {
        MonotonicTime::after_start(Duration::from_secs(secs))
    }

    fn refusal() -> Failure {
        Failure { kind: FailureKind::Forbidden, message: "quota".into() }
    }

    fn slice(name: &str) -> Object {
        let meta = Meta { namespace: "ns".into(), name: name.into(), ..Meta::default() };
        Object::Slice(EndpointSlice { meta, ..EndpointSlice::default() })
    }

    #[test]
    fn ten_refused_writes_in_any_minute() {
        let key = Key::new("ns", "a");
        let mut refused = RefusedWrites::new(refusal());
        let mut tried = Vec::new();
        for secs in 0..600 {
            let first = || vec![Write::Update(slice("a"))];
            let writes = || OrderedWrites { first: first(), ..OrderedWrites::default() };
            while refused.withhold(writes(), at(secs)).n_withheld == 0 {
                refused.record((Verb::Update, SLICES, &key), refusal(), at(secs));
                tried.push(secs);
            }
            assert!(refused.next_try(at(secs)) > at(secs));
        }
        let in_minute =
            |from: &u64| tried.iter().filter(|at| (*from..from + 60).contains(at)).count();
        assert!(tried.iter().all(|from| in_minute(from) <= 10), "{tried:?}");
        assert!(tried.len() >= 27, "one every thirty seconds");
    }

    #[test]
    fn only_refused_writes_and_deletes_that_need_them_wait() {
        let mut refused = RefusedWrites::new(refusal());
        for _ in 0..TRIES_IN_A_ROW {
            refused.record((Verb::Create, SLICES, &Key::new("ns", "x")), refusal(), at(0));
        }
        let delete = |name: &str| {
            Write::Delete(DeleteTarget {
                resource: SLICES,
                key: Key::new("ns", name),
                uid: "u".into(),
                resource_version: 7.into(),
            })
        };
        let writes = || OrderedWrites {
            first: vec![Write::Create(slice("new")), Write::Update(slice("a"))],
            deferred: vec![(delete("b"), vec![0]), (delete("c"), vec![1]), (delete("d"), vec![])],
            n_incomplete: 0,
        };
        let Permitted { writes: permitted, n_withheld } = refused.withhold(writes(), at(1));
        let expected = OrderedWrites {
            first: vec![Write::Update(slice("a"))],
            deferred: vec![(delete("c"), vec![0]), (delete("d"), vec![])],
            n_incomplete: 0,
        };
        assert_eq!((permitted, n_withheld), (expected, 2));
        assert_eq!(refused.withhold(writes(), at(30)).n_withheld, 0, "one try is free again");
        assert!(!refused.contains(Verb::Update, SLICES, &Key::new("ns", "a")));
        assert!(refused.contains(Verb::Create, SLICES, &Key::new("ns", "any")));
        refused.grant_try(at(1));
        assert_eq!(refused.withhold(writes(), at(1)).n_withheld, 0);
    }

    #[test]
    fn refused_writes_of_a_large_plan_wait_for_thirty_seconds_at_most() {
        let mut refused = RefusedWrites::new(refusal());
        for _ in 0..1000 {
            refused.record((Verb::Create, SLICES, &Key::new("ns", "x")), refusal(), at(0));
        }
        assert_eq!(refused.next_try(at(0)), at(30));
        let writes = OrderedWrites {
            first: (0..1000).map(|n| Write::Create(slice(&format!("s{n}")))).collect(),
            ..OrderedWrites::default()
        };
        let permitted = refused.withhold(writes, at(30));
        assert_eq!((permitted.writes.first.len(), permitted.n_withheld), (1, 999));
    }
}
