//! Repairs: syncs that only undo what another client did to the objects that we publish. A client
//! that does it again and again would make the API server store both versions without end, so such
//! repairs are limited. A sync that also answers a change of a Service, a pod, or a node never waits.

use std::collections::BTreeMap;
use std::time::Duration;

use endpointd_model::{Key, PublishedResource, SharedStr};

use crate::MonotonicTime;
use crate::try_budget::TryBudget;

/// So long after a repair had to wait, its key counts as contested. Longer than the wait itself.
const CONTESTED_FOR: Duration = Duration::from_secs(60);
/// Keys that are kept without looking for those that need not be.
const KEPT_MIN: usize = 64;

/// The recent repairs of one controller.
#[derive(Debug)]
pub struct Repairs {
    by_key: BTreeMap<Key, Repair>,
    /// With so many keys, those whose repairs are long ago are dropped.
    sweep_at: usize,
}

#[derive(Debug, Default)]
struct Repair {
    budget: TryBudget,
    contested_until: MonotonicTime,
    /// The object that another client changed last.
    edited: Option<(PublishedResource, Key)>,
    /// Who changed it, as the API server records it.
    manager: Option<SharedStr>,
    /// The API server was asked since the last repair.
    is_asked: bool,
}

impl Default for Repairs {
    fn default() -> Self {
        Self { by_key: BTreeMap::new(), sweep_at: KEPT_MIN }
    }
}

impl Repairs {
    /// A write of a repair was stored.
    pub fn record(&mut self, key: &Key, now: MonotonicTime) {
        self.sweep(now);
        let repair = self.by_key.entry(key.clone()).or_default();
        repair.budget.spend(now);
        repair.is_asked = false;
    }

    /// Another client has changed what this key publishes. Returns when the repair may start.
    pub fn next(&mut self, key: &Key, now: MonotonicTime) -> MonotonicTime {
        let Some(repair) = self.by_key.get_mut(key) else { return now };
        let due = repair.budget.next_try(now);
        if due > now {
            repair.contested_until = now + CONTESTED_FOR;
        }
        due
    }

    /// Remembers the object, if this key was repaired recently.
    pub fn note_edit(&mut self, key: &Key, resource: PublishedResource, object: &Key) {
        if let Some(repair) = self.by_key.get_mut(key) {
            repair.edited = Some((resource, object.clone()));
        }
    }

    /// The object to ask the API server about: who changed it? Asked once per repair, while the
    /// change is still there.
    pub fn take_question(
        &mut self,
        key: &Key,
        now: MonotonicTime,
    ) -> Option<(PublishedResource, Key)> {
        let repair = self.by_key.get_mut(key)?;
        let has_to_wait = repair.budget.next_try(now) > now;
        if repair.is_asked || !has_to_wait || !repair.is_contested(now) {
            return None;
        }
        let object = repair.edited.clone()?;
        repair.is_asked = true;
        Some(object)
    }

    pub fn set_manager(&mut self, key: &Key, manager: SharedStr) {
        if let Some(repair) = self.by_key.get_mut(key) {
            repair.manager = Some(manager);
        }
    }

    pub fn is_contested(&self, key: &Key, now: MonotonicTime) -> bool {
        self.by_key.get(key).is_some_and(|repair| repair.is_contested(now))
    }

    /// Keys that another client changes again and again, in order.
    pub fn contested(&self, now: MonotonicTime) -> impl Iterator<Item = &Key> {
        self.by_key.iter().filter(move |(_, repair)| repair.is_contested(now)).map(|(key, _)| key)
    }

    /// For people, while the key is contested.
    pub fn message(&self, key: &Key, now: MonotonicTime) -> Option<SharedStr> {
        let repair = self.by_key.get(key).filter(|repair| repair.is_contested(now))?;
        let what = match &repair.edited {
            Some((resource, object)) => format!("{} {object}", resource.as_str()),
            None => "what is published".to_owned(),
        };
        let who = match &repair.manager {
            Some(manager) => format!("another client (field manager `{manager}`)"),
            None => "another client".to_owned(),
        };
        let message =
            format!("{who} changes {what} again and again: its changes are undone only every 30 s");
        Some(message.into())
    }

    pub fn remove(&mut self, key: &Key) {
        self.by_key.remove(key);
    }

    fn sweep(&mut self, now: MonotonicTime) {
        if self.by_key.len() >= self.sweep_at {
            let is_recent =
                |repair: &Repair| !repair.budget.is_full(now) || repair.is_contested(now);
            self.by_key.retain(|_, repair| is_recent(repair));
            self.sweep_at = KEPT_MIN.max(2 * self.by_key.len());
        }
    }
}

impl Repair {
    fn is_contested(&self, now: MonotonicTime) -> bool {
        now < self.contested_until
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::try_budget::TRIES_IN_A_ROW;

    fn at(secs: u64) -> MonotonicTime {
        MonotonicTime::after_start(Duration::from_secs(secs))
    }

    #[test]
    fn few_repairs_start_at_once_and_then_one_every_thirty_seconds() {
        let (mut repairs, key) = (Repairs::default(), Key::new("shop", "web"));
        for _ in 0..TRIES_IN_A_ROW {
            assert_eq!(repairs.next(&key, at(1)), at(1));
            repairs.record(&key, at(1));
            assert!(!repairs.is_contested(&key, at(1)));
        }
        assert_eq!(repairs.next(&key, at(1)), at(31));
        assert!(repairs.is_contested(&key, at(1)));
        (0..50).for_each(|_| repairs.record(&key, at(31)));
        assert_eq!(repairs.next(&key, at(32)), at(61), "however many writes it had");
        assert!(repairs.is_contested(&key, at(91)) && !repairs.is_contested(&key, at(92)));
    }

    #[test]
    fn question_is_asked_once_per_repair_and_only_while_repairs_wait() {
        let (mut repairs, key) = (Repairs::default(), Key::new("shop", "web"));
        let slice = Key::new("shop", "web-abc");
        let resource = PublishedResource::Slices;
        repairs.record(&key, at(1));
        repairs.note_edit(&key, resource, &slice);
        repairs.next(&key, at(1));
        assert_eq!(repairs.take_question(&key, at(1)), None, "it is repaired at once");
        (0..20).for_each(|_| repairs.record(&key, at(1)));
        repairs.next(&key, at(1));
        assert_eq!(repairs.take_question(&key, at(1)), Some((resource, slice.clone())));
        assert_eq!(repairs.take_question(&key, at(2)), None);
        repairs.record(&key, at(31));
        repairs.next(&key, at(31));
        assert_eq!(repairs.take_question(&key, at(31)), Some((resource, slice)));
        repairs.set_manager(&key, "meddler".into());
        let message = repairs.message(&key, at(31)).expect("it is contested");
        assert!(message.contains("`meddler`") && message.contains("shop/web-abc"), "{message}");
        assert_eq!(repairs.message(&key, at(91)), None);
    }

    #[test]
    fn keys_repaired_long_ago_are_dropped() {
        let mut repairs = Repairs::default();
        for n in 0..1000 {
            repairs.record(&Key::new("shop", format!("s{n}")), at(n));
        }
        assert!(repairs.by_key.len() < 200, "{}", repairs.by_key.len());
    }
}
