//! Writes of a key that were refused: when they are tried again, and what the key does meanwhile.

use endpointd_model::{Failure, Key, PublishedResource};

use super::{ControllerState, Controllers, Work};
use crate::deferred_writes::OrderedWrites;
use crate::in_flight::SyncEnd;
use crate::refused_writes::{Permitted, RefusedWrites, is_refusal};
use crate::requests::{PendingWrite, Verb};
use crate::{MonotonicTime, SyncResult};

impl Controllers {
    /// The writes of a plan without those that were refused and may not be tried yet. None if all
    /// of them have to wait: the key is planned again later.
    pub fn withhold_refused(
        &mut self,
        work: &Work,
        writes: OrderedWrites,
        now: MonotonicTime,
    ) -> Option<Permitted> {
        let keys = &mut self.of_mut(&work.owner).keys;
        let entry = keys.entry(&work.owner.key);
        if entry.refused.as_ref().is_some_and(|refused| refused.is_expired(now)) {
            entry.refused = None;
        }
        let Some(refused) = &entry.refused else {
            return Some(Permitted { writes, n_withheld: 0 });
        };
        let permitted = refused.withhold(writes, now);
        if permitted.n_withheld == 0 || permitted.writes.iter().next().is_some() {
            return Some(permitted);
        }
        let (failure, due) = (refused.failure().clone(), refused.next_try(now));
        let failures = keys.failure_entry(&work.owner.key);
        failures.n_failures = failures.n_failures.max(1);
        failures.last_result = Some(SyncResult::Failed(failure.clone()).as_str());
        failures.failure = Some(failure);
        self.postpone(work, due, now);
        None
    }
}

impl ControllerState {
    pub fn record_refused(
        &mut self,
        key: &Key,
        write: (Verb, PublishedResource, &Key),
        failure: &Failure,
        now: MonotonicTime,
    ) {
        if is_refusal(failure) && self.is_started() {
            let new = || Box::new(RefusedWrites::new(failure.clone()));
            let refused = self.keys.entry(key).refused.get_or_insert_with(new);
            refused.record(write, failure.clone(), now);
        }
    }

    /// The cause of the refusals may be over.
    pub fn grant_try(&mut self, key: &Key, now: MonotonicTime) {
        let entry = self.keys.get_mut(key);
        if let Some(refused) = entry.and_then(|entry| entry.refused.as_mut()) {
            refused.grant_try(now);
        }
    }

    /// A write was stored. If it was refused before, so may the others be stored now.
    pub fn record_accepted(&mut self, write: &PendingWrite) {
        let Some(entry) = self.keys.get_mut(&write.owner.key) else { return };
        let refused = entry.refused.take();
        entry.refused = refused.filter(|one| !one.contains(write.verb, write.resource, &write.key));
    }

    /// The end of a sync that withheld writes: the key is still failing, unless one of the refused
    /// writes was stored. Then the others follow at once.
    pub fn after_withheld(&mut self, key: &Key, end: SyncEnd, now: MonotonicTime) -> SyncEnd {
        match end.result {
            SyncResult::Unchanged | SyncResult::Written if end.n_withheld > 0 => {}
            _ => return end,
        }
        let entry = self.keys.entry(key);
        let Some(refused) = &entry.refused else {
            self.queue.enqueue(key, end.priority, now, now);
            return end;
        };
        SyncEnd { result: SyncResult::Failed(refused.failure().clone()), ..end }
    }
}
