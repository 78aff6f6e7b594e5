//! The entry of each key in one controller, from one sync to the next.

use std::collections::BTreeSet;

use endpointd_model::{Failure, FailureKind, Key, LiveRead, LiveReadResult, SharedStr};
use endpointd_plan::CarriedState;
use hashbrown::HashMap;

use crate::MonotonicTime;
use crate::absence::{ConfirmedFacts, ReportedDeletions};
use crate::cache::ChangeKind;
use crate::cooldown::Cooldown;
use crate::in_place::{Placement, PlacementChange};
use crate::key_stats::{KeyStats, TotalStats};
use crate::refused_writes::RefusedWrites;
use crate::repairs::Repairs;

/// All keys of one controller. A status snapshot is taken every second and must not visit all keys:
/// totals are maintained, and keys with failures have a table of their own.
#[derive(Debug, Default)]
pub struct KeyTable {
    /// Boxed, because a hash table has up to twice the capacity it needs.
    entries: HashMap<Key, Box<KeyEntry>>,
    /// Only keys with failures, conflicts, or reads to do.
    failures: HashMap<Key, FailureState>,
    /// Only large Services whose slices can be planned in place.
    placements: HashMap<Key, Box<Placement>>,
    pub repairs: Repairs,
    /// In a dry run: the keys whose last plan has writes, and the last plan that a change caused.
    pub differing: HashMap<Key, MonotonicTime>,
    totals: TotalStats,
}

/// A key that has been planned.
#[derive(Debug, Default)]
pub struct KeyEntry {
    pub carried: CarriedState,
    pub cooldown: Cooldown,
    pub reported_deletions: ReportedDeletions,
    pub refused: Option<Box<RefusedWrites>>,
    /// A list did not contain some of its pods, and a live list has confirmed that they are gone.
    pub has_lost_pods: bool,
    /// No plan un-publishes pods any more because the first list of pods did not contain them.
    pub are_pods_compared: bool,
    stats: KeyStats,
}

/// What went wrong with a key since its last success, and what the next plan must know of it.
#[derive(Debug, Default)]
pub struct FailureState {
    /// Failed syncs in a row.
    pub n_failures: u32,
    /// Conflicts in a row.
    pub n_conflicts: u32,
    pub failure: Option<Failure>,
    pub last_result: Option<&'static str>,
    /// Objects of unknown state: they must be read before the next plan.
    pub reads_required: BTreeSet<LiveRead>,
    /// What live reads have found.
    pub confirmed: ConfirmedFacts,
    /// No sync of this key before: the API server has throttled a write of it.
    pub throttled_until: MonotonicTime,
}

impl FailureState {
    /// It says nothing any more.
    pub fn is_over(&self, now: MonotonicTime) -> bool {
        let Self { n_failures, n_conflicts, reads_required, throttled_until, .. } = self;
        (*n_failures, *n_conflicts) == (0, 0)
            && reads_required.is_empty()
            && *throttled_until <= now
    }

    /// What remains of it when all else is void.
    fn throttled(self, now: MonotonicTime) -> Option<Self> {
        let throttled_until = self.throttled_until;
        (throttled_until > now).then(|| Self { throttled_until, ..Self::default() })
    }

    /// For people, while the key is failing or throttled.
    pub fn message(&self, now: MonotonicTime) -> Option<SharedStr> {
        let throttled = || {
            let is_throttled = self.throttled_until > now;
            is_throttled.then(|| "the API server throttles the writes of this key (429)".into())
        };
        self.failure.as_ref().map(|failure| failure.message.clone()).or_else(throttled)
    }
}

impl KeyTable {
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn get(&self, key: &Key) -> Option<&KeyEntry> {
        self.entries.get(key).map(|entry| &**entry)
    }

    pub fn get_mut(&mut self, key: &Key) -> Option<&mut KeyEntry> {
        self.entries.get_mut(key).map(|entry| &mut **entry)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&Key, &KeyEntry)> {
        self.entries.iter().map(|(key, entry)| (key, &**entry))
    }

    /// The entry of this key; a default one, if it is new.
    pub fn entry(&mut self, key: &Key) -> &mut KeyEntry {
        let Self { entries, totals, .. } = self;
        entries.entry_ref(key).or_insert_with(|| {
            let entry = Box::<KeyEntry>::default();
            totals.add(&entry.stats);
            entry
        })
    }

    /// Stores what a plan carries over to the next one, and its numbers.
    pub fn record_plan(
        &mut self,
        key: &Key,
        carried: CarriedState,
        stats: KeyStats,
        cooldown: Cooldown,
    ) {
        let entry = self.entry(key);
        entry.carried = carried;
        // Not the later of both: with fewer ready endpoints than before, an addition is urgent.
        entry.cooldown = cooldown;
        if entry.stats != stats {
            let before = std::mem::replace(&mut entry.stats, stats.clone());
            self.totals.subtract(&before);
            self.totals.add(&stats);
        }
    }

    pub fn placement(&self, key: &Key) -> Option<&Placement> {
        self.placements.get(key).map(|placement| &**placement)
    }

    /// Something has changed since the last plan.
    pub fn note_change(&mut self, key: &Key, kind: ChangeKind) {
        if let Some(placement) = self.placements.get_mut(key)
            && !placement.note_change(kind)
        {
            self.placements.remove(key);
        }
    }

    pub fn record_placement(&mut self, key: &Key, change: PlacementChange) {
        match change {
            PlacementChange::Forget => drop(self.placements.remove(key)),
            PlacementChange::New(placement) => {
                self.placements.insert(key.clone(), placement);
            }
            PlacementChange::Planned(planned) => {
                if let Some(placement) = self.placements.get_mut(key) {
                    placement.record(planned);
                }
            }
            PlacementChange::Keep => {}
        }
    }

    pub fn stats(&self, key: &Key) -> Option<&KeyStats> {
        self.get(key).map(|entry| &entry.stats)
    }

    /// Totals of all keys.
    pub fn totals(&self) -> &TotalStats {
        debug_assert_eq!(self.totals, self.entries.values().map(|entry| &entry.stats).collect());
        &self.totals
    }

    /// Drops what is known of the key, except for the time before which the API server wants no
    /// write of it: that says nothing about the Service that is gone.
    pub fn remove(&mut self, key: &Key, now: MonotonicTime) {
        if let Some(throttled) = self.failures.remove(key).and_then(|one| one.throttled(now)) {
            self.failures.insert(key.clone(), throttled);
        }
        self.placements.remove(key);
        self.repairs.remove(key);
        self.differing.remove(key);
        if let Some(entry) = self.entries.remove(key) {
            self.totals.subtract(&entry.stats);
        }
    }

    /// Drops everything, except for the times before which the API server wants no writes.
    pub fn clear(&mut self, now: MonotonicTime) {
        let Self { failures, .. } = std::mem::take(self);
        let throttled =
            failures.into_iter().filter_map(|(key, one)| Some((key, one.throttled(now)?)));
        self.failures = throttled.collect();
    }

    pub fn failures(&self) -> impl Iterator<Item = (&Key, &FailureState)> {
        self.failures.iter()
    }

    pub fn failure_state(&self, key: &Key) -> Option<&FailureState> {
        self.failures.get(key)
    }

    pub fn failure_mut(&mut self, key: &Key) -> Option<&mut FailureState> {
        self.failures.get_mut(key)
    }

    /// The failure state of this key; a default one, if it has none.
    pub fn failure_entry(&mut self, key: &Key) -> &mut FailureState {
        self.failures.entry_ref(key).or_default()
    }

    /// The key is not synced before.
    pub fn throttled_until(&self, key: &Key) -> MonotonicTime {
        self.failure_state(key).map(|failure| failure.throttled_until).unwrap_or_default()
    }

    pub fn is_failing(&self, key: &Key) -> bool {
        self.failure_state(key).is_some_and(|failure| failure.n_failures > 0)
    }

    /// The last sync of this key failed in this way.
    pub fn had_failure(&self, key: &Key, kind: FailureKind) -> bool {
        let failure = self.failure_state(key).and_then(|failures| failures.failure.as_ref());
        failure.is_some_and(|failure| failure.kind == kind)
    }

    /// The watch reports a Service that a live read did not find: it was created again, or the event
    /// is older than the read. Another live read decides.
    pub fn doubt_absence_of_service(&mut self, key: &Key) {
        let service = LiveRead::Service(key.clone());
        if let Some(failures) = self.failure_mut(key)
            && failures.confirmed.forget_absent(&service)
        {
            failures.reads_required.insert(service);
        }
    }

    /// What a live read for this key found that was sent at this time.
    pub fn record_read(
        &mut self,
        key: &Key,
        read: &LiveRead,
        result: &LiveReadResult,
        sent_at: MonotonicTime,
    ) {
        self.failure_entry(key).confirmed.record(read, result, sent_at);
    }

    /// A sync succeeded.
    pub fn clear_failure(&mut self, key: &Key) {
        let Some(failure) = self.failures.get_mut(key) else { return };
        failure.n_failures = 0;
        failure.n_conflicts = 0;
        failure.failure = None;
        failure.last_result = None;
        failure.throttled_until = MonotonicTime::START;
        if failure.reads_required.is_empty() {
            self.failures.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use endpointd_plan::Counts;

    use super::*;

    fn stats(n_slices: usize) -> KeyStats {
        KeyStats::new(&Counts { n_slices, ..Counts::default() }, &[], Some("PreferSameZone"))
    }

    #[test]
    fn totals_follow_recorded_and_removed_keys() {
        let (first, second) = (Key::new("shop", "web"), Key::new("shop", "till"));
        let mut keys = KeyTable::default();
        keys.record_plan(&first, CarriedState::default(), stats(3), Cooldown::default());
        keys.record_plan(&first, CarriedState::default(), stats(5), Cooldown::default());
        keys.entry(&second);
        assert_eq!(keys.totals().n_slices, 5);
        assert_eq!(
            keys.totals().n_by_distribution,
            [(None, 1), (Some("PreferSameZone"), 1)].into()
        );
        keys.remove(&first, MonotonicTime::START);
        assert_eq!(keys.totals().n_slices, 0);
        assert_eq!(keys.totals().n_by_distribution, [(None, 1)].into());
    }

    #[test]
    fn failure_state_is_removed_with_its_key_or_after_success() {
        let (first, second) = (Key::new("shop", "web"), Key::new("shop", "till"));
        let mut keys = KeyTable::default();
        keys.failure_entry(&first).n_failures = 2;
        keys.failure_entry(&second).n_conflicts = 1;
        assert!(keys.is_failing(&first) && !keys.is_failing(&second));
        keys.remove(&first, MonotonicTime::START);
        keys.clear_failure(&second);
        assert_eq!(keys.failures().count(), 0);
    }
}
