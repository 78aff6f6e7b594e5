//! What one controller remembers of each key.

use std::collections::BTreeSet;

use endpointd_model::{Failure, Key, LiveRead, SharedStr};
use endpointd_plan::CarriedState;
use hashbrown::HashMap;

use crate::rest::Rest;
use crate::tally::{Sums, Tally};

/// Names of foreign slices remembered per key; more than one is already strange.
const IN_THE_WAY_MAX: usize = 16;

/// All keys of one controller. A picture of the engine is taken every second and must not cost
/// more the more keys there are: sums are kept, and keys in trouble are kept apart.
#[derive(Debug, Default)]
pub struct Keys {
    /// Boxed: a table has up to twice the room it needs.
    states: HashMap<Key, Box<KeyState>>,
    /// Only of keys that do not simply work.
    troubles: HashMap<Key, Trouble>,
    sums: Sums,
}

#[derive(Debug, Default)]
pub struct KeyState {
    pub carried: CarriedState,
    pub rest: Rest,
    tally: Tally,
}

#[derive(Debug, Default)]
pub struct Trouble {
    pub n_failures: u32,
    /// How often in a row what we knew was behind.
    pub n_stale: u32,
    pub failure: Option<Failure>,
    pub last_result: Option<&'static str>,
    /// Slices of others that have a name we wanted.
    pub in_the_way: Vec<SharedStr>,
    /// What must be read before anything is planned.
    pub unsettled: BTreeSet<LiveRead>,
    /// Absences a live read confirmed, for the next plan only.
    pub confirmed: BTreeSet<LiveRead>,
}

impl Keys {
    pub fn len(&self) -> usize {
        self.states.len()
    }

    pub fn get(&self, key: &Key) -> Option<&KeyState> {
        self.states.get(key).map(|state| &**state)
    }

    pub fn get_mut(&mut self, key: &Key) -> Option<&mut KeyState> {
        self.states.get_mut(key).map(|state| &mut **state)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&Key, &KeyState)> {
        self.states.iter().map(|(key, state)| (key, &**state))
    }

    /// What is remembered of this key; nothing yet, if it is new.
    pub fn of(&mut self, key: &Key) -> &mut KeyState {
        let Self { states, sums, .. } = self;
        states.entry_ref(key).or_insert_with(|| {
            let state = Box::<KeyState>::default();
            sums.add(&state.tally);
            state
        })
    }

    /// Takes over what a plan learned.
    pub fn learn(&mut self, key: &Key, carried: CarriedState, tally: Tally, rest: Rest) {
        let state = self.of(key);
        state.carried = carried;
        state.rest = state.rest.and(rest);
        if state.tally != tally {
            let before = std::mem::replace(&mut state.tally, tally.clone());
            self.sums.subtract(&before);
            self.sums.add(&tally);
        }
    }

    pub fn tally(&self, key: &Key) -> Option<&Tally> {
        self.get(key).map(|state| &state.tally)
    }

    /// Of all keys together.
    pub fn sums(&self) -> &Sums {
        debug_assert_eq!(self.sums, self.states.values().map(|state| &state.tally).collect());
        &self.sums
    }

    pub fn remove(&mut self, key: &Key) {
        self.troubles.remove(key);
        if let Some(state) = self.states.remove(key) {
            self.sums.subtract(&state.tally);
        }
    }

    pub fn clear(&mut self) {
        *self = Self::default();
    }

    pub fn troubles(&self) -> impl Iterator<Item = (&Key, &Trouble)> {
        self.troubles.iter()
    }

    pub fn trouble(&self, key: &Key) -> Option<&Trouble> {
        self.troubles.get(key)
    }

    pub fn known_trouble(&mut self, key: &Key) -> Option<&mut Trouble> {
        self.troubles.get_mut(key)
    }

    /// There is trouble now, if there was none.
    pub fn trouble_with(&mut self, key: &Key) -> &mut Trouble {
        self.troubles.entry_ref(key).or_default()
    }

    pub fn is_backing_off(&self, key: &Key) -> bool {
        self.trouble(key).is_some_and(|trouble| trouble.n_failures > 0)
    }

    pub fn in_the_way(&self, key: &Key) -> &[SharedStr] {
        self.trouble(key).map_or(&[], |trouble| &trouble.in_the_way)
    }

    pub fn note_in_the_way(&mut self, key: &Key, name: SharedStr) {
        let names = &mut self.trouble_with(key).in_the_way;
        if !names.contains(&name) {
            names.truncate(IN_THE_WAY_MAX - 1);
            names.push(name);
        }
    }

    /// All went well: what was wrong is over.
    pub fn recover(&mut self, key: &Key) {
        let Some(trouble) = self.troubles.get_mut(key) else { return };
        trouble.n_failures = 0;
        trouble.n_stale = 0;
        trouble.failure = None;
        trouble.last_result = None;
        if trouble.in_the_way.is_empty() && trouble.unsettled.is_empty() {
            self.troubles.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use endpointd_plan::Counts;

    use super::*;

    fn tally(n_slices: usize) -> Tally {
        Tally::new(&Counts { n_slices, ..Counts::default() }, &[], Some("PreferSameZone"))
    }

    #[test]
    fn sums_follow_what_is_learned_and_forgotten() {
        let (first, second) = (Key::new("shop", "web"), Key::new("shop", "till"));
        let mut keys = Keys::default();
        keys.learn(&first, CarriedState::default(), tally(3), Rest::default());
        keys.learn(&first, CarriedState::default(), tally(5), Rest::default());
        keys.of(&second);
        assert_eq!(keys.sums().n_slices, 5);
        assert_eq!(keys.sums().n_by_distribution, [(None, 1), (Some("PreferSameZone"), 1)].into());
        keys.remove(&first);
        assert_eq!(keys.sums().n_slices, 0);
        assert_eq!(keys.sums().n_by_distribution, [(None, 1)].into());
    }

    #[test]
    fn trouble_goes_with_its_key_or_when_all_is_well() {
        let (first, second) = (Key::new("shop", "web"), Key::new("shop", "till"));
        let mut keys = Keys::default();
        keys.trouble_with(&first).n_failures = 2;
        keys.trouble_with(&second).n_stale = 1;
        assert!(keys.is_backing_off(&first) && !keys.is_backing_off(&second));
        keys.remove(&first);
        keys.recover(&second);
        assert_eq!(keys.troubles().count(), 0);
    }

    #[test]
    fn names_in_the_way_outlast_a_recovery() {
        let key = Key::new("shop", "web");
        let mut keys = Keys::default();
        keys.note_in_the_way(&key, "web-abcde".into());
        keys.recover(&key);
        assert_eq!(keys.in_the_way(&key), ["web-abcde".into()]);
    }
}
