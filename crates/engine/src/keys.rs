//! What one controller remembers of each key.

use std::collections::{BTreeMap, BTreeSet};

use endpointd_model::{Failure, Key, Lookup, Text};
use endpointd_plan::{Counts, LeftOut, Memory, Reason};
use hashbrown::HashMap;

use crate::rest::Rest;

/// Names of foreign slices remembered per key; more than one is already strange.
const IN_THE_WAY_MAX: usize = 16;

/// Boxed: a table has up to twice the room it needs.
pub type Keys = HashMap<Key, Box<KeyState>>;

#[derive(Debug, Default)]
pub struct KeyState {
    pub memory: Memory,
    pub rest: Rest,
    pub n_desired: u32,
    pub n_slices: u32,
    pub n_slices_desired: u32,
    pub distribution: Option<&'static str>,
    /// Matching pods that are not published, by reason.
    pub left_out: Vec<(Reason, u32)>,
    /// Only of keys that do not simply work.
    pub trouble: Option<Box<Trouble>>,
}

#[derive(Debug, Default)]
pub struct Trouble {
    pub n_failures: u32,
    /// How often in a row what we knew was behind.
    pub n_stale: u32,
    pub failure: Option<Failure>,
    pub last_end: Option<&'static str>,
    /// Slices of others that have a name we wanted.
    pub in_the_way: Vec<Text>,
    /// What must be read before anything is planned.
    pub unsettled: BTreeSet<Lookup>,
    /// Absences a live read confirmed, for the next plan only.
    pub confirmed: BTreeSet<Lookup>,
}

impl KeyState {
    pub fn trouble(&mut self) -> &mut Trouble {
        self.trouble.get_or_insert_default()
    }

    pub fn in_the_way(&self) -> &[Text] {
        self.trouble.as_ref().map_or(&[], |trouble| &trouble.in_the_way)
    }

    pub fn is_backing_off(&self) -> bool {
        self.trouble.as_ref().is_some_and(|trouble| trouble.n_failures > 0)
    }

    /// Takes over what a plan learned.
    pub fn learn(&mut self, memory: Memory, counts: &Counts, left_out: &[LeftOut]) {
        self.memory = memory;
        self.n_desired = counts.n_desired as u32;
        self.n_slices = counts.n_slices as u32;
        self.n_slices_desired = counts.n_slices_desired as u32;
        let mut by_reason: BTreeMap<Reason, u32> = BTreeMap::new();
        for one in left_out {
            *by_reason.entry(one.reason).or_default() += 1;
        }
        self.left_out = by_reason.into_iter().collect();
    }

    /// All went well: what was wrong is over.
    pub fn recover(&mut self) {
        if let Some(trouble) = &mut self.trouble {
            trouble.n_failures = 0;
            trouble.n_stale = 0;
            trouble.failure = None;
            trouble.last_end = None;
            if trouble.in_the_way.is_empty() && trouble.unsettled.is_empty() {
                self.trouble = None;
            }
        }
    }

    pub fn note_in_the_way(&mut self, name: Text) {
        let names = &mut self.trouble().in_the_way;
        if !names.contains(&name) {
            names.truncate(IN_THE_WAY_MAX - 1);
            names.push(name);
        }
    }
}
