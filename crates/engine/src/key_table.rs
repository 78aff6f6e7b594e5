//! What one controller remembers of each key.

use std::collections::BTreeSet;

use endpointd_model::{Failure, Key, LiveRead, SharedStr};
use endpointd_plan::CarriedState;
use hashbrown::HashMap;

use crate::cooldown::Cooldown;
use crate::key_stats::{KeyStats, TotalStats};

/// Names of foreign slices remembered per key; more than one is already strange.
const CONFLICTING_NAMES_MAX: usize = 16;

/// All keys of one controller. A picture of the engine is taken every second and must not cost
/// more the more keys there are: sums are kept, and keys in failure are kept apart.
#[derive(Debug, Default)]
pub struct KeyTable {
    /// Boxed: a table has up to twice the room it needs.
    states: HashMap<Key, Box<KeyEntry>>,
    /// Only of keys that do not simply work.
    failures: HashMap<Key, FailureState>,
    totals: TotalStats,
}

#[derive(Debug, Default)]
pub struct KeyEntry {
    pub carried: CarriedState,
    pub cooldown: Cooldown,
    stats: KeyStats,
}

#[derive(Debug, Default)]
pub struct FailureState {
    pub n_failures: u32,
    /// How often in a row what we knew was behind.
    pub n_conflicts: u32,
    pub failure: Option<Failure>,
    pub last_result: Option<&'static str>,
    /// Slices of others that have a name we wanted.
    pub conflicting_slice_names: Vec<SharedStr>,
    /// What must be read before anything is planned.
    pub reads_required: BTreeSet<LiveRead>,
    /// Absences a live read confirmed, for the next plan only.
    pub confirmed_absent: BTreeSet<LiveRead>,
}

impl KeyTable {
    pub fn len(&self) -> usize {
        self.states.len()
    }

    pub fn get(&self, key: &Key) -> Option<&KeyEntry> {
        self.states.get(key).map(|state| &**state)
    }

    pub fn get_mut(&mut self, key: &Key) -> Option<&mut KeyEntry> {
        self.states.get_mut(key).map(|state| &mut **state)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&Key, &KeyEntry)> {
        self.states.iter().map(|(key, state)| (key, &**state))
    }

    /// What is remembered of this key; nothing yet, if it is new.
    pub fn entry(&mut self, key: &Key) -> &mut KeyEntry {
        let Self { states, totals, .. } = self;
        states.entry_ref(key).or_insert_with(|| {
            let state = Box::<KeyEntry>::default();
            totals.add(&state.stats);
            state
        })
    }

    /// Takes over what a plan learned.
    pub fn record_plan(
        &mut self,
        key: &Key,
        carried: CarriedState,
        stats: KeyStats,
        cooldown: Cooldown,
    ) {
        let state = self.entry(key);
        state.carried = carried;
        state.cooldown = state.cooldown.and(cooldown);
        if state.stats != stats {
            let before = std::mem::replace(&mut state.stats, stats.clone());
            self.totals.subtract(&before);
            self.totals.add(&stats);
        }
    }

    pub fn stats(&self, key: &Key) -> Option<&KeyStats> {
        self.get(key).map(|state| &state.stats)
    }

    /// Of all keys together.
    pub fn totals(&self) -> &TotalStats {
        debug_assert_eq!(self.totals, self.states.values().map(|state| &state.stats).collect());
        &self.totals
    }

    pub fn remove(&mut self, key: &Key) {
        self.failures.remove(key);
        if let Some(state) = self.states.remove(key) {
            self.totals.subtract(&state.stats);
        }
    }

    pub fn clear(&mut self) {
        *self = Self::default();
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

    /// There is failure now, if there was none.
    pub fn failure_entry(&mut self, key: &Key) -> &mut FailureState {
        self.failures.entry_ref(key).or_default()
    }

    pub fn is_failing(&self, key: &Key) -> bool {
        self.failure_state(key).is_some_and(|failure| failure.n_failures > 0)
    }

    pub fn conflicting_slice_names(&self, key: &Key) -> &[SharedStr] {
        self.failure_state(key).map_or(&[], |failure| &failure.conflicting_slice_names)
    }

    pub fn add_conflicting_slice_name(&mut self, key: &Key, name: SharedStr) {
        let names = &mut self.failure_entry(key).conflicting_slice_names;
        if !names.contains(&name) {
            names.truncate(CONFLICTING_NAMES_MAX - 1);
            names.push(name);
        }
    }

    /// All went well: what was wrong is over.
    pub fn clear_failure(&mut self, key: &Key) {
        let Some(failure) = self.failures.get_mut(key) else { return };
        failure.n_failures = 0;
        failure.n_conflicts = 0;
        failure.failure = None;
        failure.last_result = None;
        if failure.conflicting_slice_names.is_empty() && failure.reads_required.is_empty() {
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
        keys.remove(&first);
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
        keys.remove(&first);
        keys.clear_failure(&second);
        assert_eq!(keys.failures().count(), 0);
    }

    #[test]
    fn conflicting_slice_names_outlast_a_success() {
        let key = Key::new("shop", "web");
        let mut keys = KeyTable::default();
        keys.add_conflicting_slice_name(&key, "web-abcde".into());
        keys.clear_failure(&key);
        assert_eq!(keys.conflicting_slice_names(&key), ["web-abcde".into()]);
    }
}
