//! Versions of objects that the engine has from the answers to its writes. The watch tells them
//! again, and what is known already need not be read a second time.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use endpointd_model::{Key, Resource, Version};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

/// An echo comes within moments of its answer; of more writes than this, the oldest are read again.
const VERSIONS_MAX: usize = 256;
/// An answer this much later than its echo may be lost, and the echo all that is ever told.
const PATIENCE: Duration = Duration::from_millis(50);

#[derive(Debug, Default)]
pub(crate) struct Known {
    state: Mutex<State>,
    answered: Notify,
}

#[derive(Debug, Default)]
struct State {
    versions: VecDeque<(Resource, Version)>,
    /// As few as there are writes at once.
    under_way: Vec<(Resource, Key)>,
}

/// A write whose answer has not been taken in yet.
#[derive(Debug)]
#[must_use = "it ends when it is dropped"]
pub struct UnderWay {
    known: Arc<Known>,
    object: (Resource, Key),
}

impl UnderWay {
    pub(crate) fn new(known: Arc<Known>, resource: Resource, key: Key) -> Self {
        let object = (resource, key);
        known.lock().under_way.push(object.clone());
        Self { known, object }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut state = self.known.lock();
        if let Some(at) = state.under_way.iter().position(|one| *one == self.object) {
            state.under_way.swap_remove(at);
        }
        drop(state);
        self.known.answered.notify_waiters();
    }
}

impl Known {
    pub(crate) fn add(&self, resource: Resource, version: Version) {
        if version == Version::OLDEST {
            return;
        }
        let versions = &mut self.lock().versions;
        if versions.len() == VERSIONS_MAX {
            versions.pop_front();
        }
        versions.push_back((resource, version));
    }

    /// Each echo comes once.
    pub(crate) fn take(&self, resource: Resource, version: Version) -> bool {
        let versions = &mut self.lock().versions;
        let at = versions.iter().position(|one| *one == (resource, version));
        at.and_then(|at| versions.remove(at)).is_some()
    }

    /// Waits until no write to this object is under way, though not for ever.
    pub(crate) async fn settled(&self, resource: Resource, key: &Key) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            // Before the look, or what happens in between would be missed.
            let answered = self.answered.notified();
            let is_under_way =
                self.lock().under_way.iter().any(|one| one.0 == resource && one.1 == *key);
            if !is_under_way || timeout_at(deadline, answered).await.is_err() {
                return;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_known_once_and_of_its_own_kind() {
        let known = Known::default();
        known.add(Resource::Slices, 7.into());
        assert!(!known.take(Resource::Endpoints, 7.into()));
        assert!(known.take(Resource::Slices, 7.into()));
        assert!(!known.take(Resource::Slices, 7.into()));
    }

    #[test]
    fn only_the_latest_are_remembered_and_never_what_has_no_number() {
        let known = Known::default();
        known.add(Resource::Slices, Version::OLDEST);
        assert!(!known.take(Resource::Slices, Version::OLDEST));
        (0..1000).for_each(|n| known.add(Resource::Slices, (n + 1).into()));
        assert!(!known.take(Resource::Slices, 744.into()));
        assert!(known.take(Resource::Slices, 745.into()));
    }

    #[tokio::test(start_paused = true)]
    async fn an_echo_waits_for_its_own_answer_and_for_no_other() {
        let known = Arc::new(Known::default());
        let (web, db) = (Key::new("shop", "web"), Key::new("shop", "db"));
        let began = Instant::now();
        let under_way = UnderWay::new(known.clone(), Resource::Slices, web.clone());
        known.settled(Resource::Slices, &db).await;
        known.settled(Resource::Endpoints, &web).await;
        assert_eq!(began.elapsed(), Duration::ZERO, "nobody else is waited for");

        let answering = async {
            tokio::time::sleep(PATIENCE / 2).await;
            drop(under_way);
        };
        tokio::join!(known.settled(Resource::Slices, &web), answering);
        assert_eq!(began.elapsed(), PATIENCE / 2, "until the answer");

        let _lost = UnderWay::new(known.clone(), Resource::Slices, web.clone());
        known.settled(Resource::Slices, &web).await;
        assert_eq!(began.elapsed(), PATIENCE / 2 + PATIENCE, "and not for ever");
    }
}
