//! Versions of objects that the engine has from the answers to its writes. The watch tells them
//! again, and what is known already need not be read a second time.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use endpointd_model::{Key, PublishedResource, ResourceVersion};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

/// An echo comes within moments of its answer; of more writes than this, the oldest are read again.
const VERSIONS_MAX: usize = 256;
/// An answer this much later than its echo may be lost, and the echo all that is ever told.
const ECHO_WAIT_MAX: Duration = Duration::from_millis(50);

#[derive(Debug, Default)]
pub(crate) struct EchoFilter {
    state: Mutex<State>,
    answered: Notify,
}

#[derive(Debug, Default)]
struct State {
    versions: VecDeque<(PublishedResource, ResourceVersion)>,
    /// As few as there are writes at once.
    in_flight_write: Vec<(PublishedResource, Key)>,
}

/// A write whose answer has not been taken in yet.
#[derive(Debug)]
#[must_use = "it ends when it is dropped"]
pub struct InFlightWrite {
    known: Arc<EchoFilter>,
    object: (PublishedResource, Key),
}

impl InFlightWrite {
    pub(crate) fn new(known: Arc<EchoFilter>, resource: PublishedResource, key: Key) -> Self {
        let object = (resource, key);
        known.lock().in_flight_write.push(object.clone());
        Self { known, object }
    }
}

impl Drop for InFlightWrite {
    fn drop(&mut self) {
        let mut state = self.known.lock();
        if let Some(at) = state.in_flight_write.iter().position(|one| *one == self.object) {
            state.in_flight_write.swap_remove(at);
        }
        drop(state);
        self.known.answered.notify_waiters();
    }
}

impl EchoFilter {
    pub(crate) fn add(&self, resource: PublishedResource, version: ResourceVersion) {
        if version == ResourceVersion::NONE {
            return;
        }
        let versions = &mut self.lock().versions;
        if versions.len() == VERSIONS_MAX {
            versions.pop_front();
        }
        versions.push_back((resource, version));
    }

    /// Each echo comes once.
    pub(crate) fn take(&self, resource: PublishedResource, version: ResourceVersion) -> bool {
        let versions = &mut self.lock().versions;
        let at = versions.iter().position(|one| *one == (resource, version));
        at.and_then(|at| versions.remove(at)).is_some()
    }

    /// Waits until no write to this object is under way, though not for ever.
    pub(crate) async fn settled(&self, resource: PublishedResource, key: &Key) {
        let deadline = Instant::now() + ECHO_WAIT_MAX;
        loop {
            // Before the look, or what happens in between would be missed.
            let answered = self.answered.notified();
            let is_under_way =
                self.lock().in_flight_write.iter().any(|one| one.0 == resource && one.1 == *key);
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
        let known = EchoFilter::default();
        known.add(PublishedResource::Slices, 7.into());
        assert!(!known.take(PublishedResource::Endpoints, 7.into()));
        assert!(known.take(PublishedResource::Slices, 7.into()));
        assert!(!known.take(PublishedResource::Slices, 7.into()));
    }

    #[test]
    fn only_the_latest_are_remembered_and_never_what_has_no_number() {
        let known = EchoFilter::default();
        known.add(PublishedResource::Slices, ResourceVersion::NONE);
        assert!(!known.take(PublishedResource::Slices, ResourceVersion::NONE));
        (0..1000).for_each(|n| known.add(PublishedResource::Slices, (n + 1).into()));
        assert!(!known.take(PublishedResource::Slices, 744.into()));
        assert!(known.take(PublishedResource::Slices, 745.into()));
    }

    #[tokio::test(start_paused = true)]
    async fn an_echo_waits_for_its_own_answer_and_for_no_other() {
        let known = Arc::new(EchoFilter::default());
        let (web, db) = (Key::new("shop", "web"), Key::new("shop", "db"));
        let began = Instant::now();
        let in_flight_write =
            InFlightWrite::new(known.clone(), PublishedResource::Slices, web.clone());
        known.settled(PublishedResource::Slices, &db).await;
        known.settled(PublishedResource::Endpoints, &web).await;
        assert_eq!(began.elapsed(), Duration::ZERO, "nobody else is waited for");

        let answering = async {
            tokio::time::sleep(ECHO_WAIT_MAX / 2).await;
            drop(in_flight_write);
        };
        tokio::join!(known.settled(PublishedResource::Slices, &web), answering);
        assert_eq!(began.elapsed(), ECHO_WAIT_MAX / 2, "until the answer");

        let _lost = InFlightWrite::new(known.clone(), PublishedResource::Slices, web.clone());
        known.settled(PublishedResource::Slices, &web).await;
        assert_eq!(began.elapsed(), ECHO_WAIT_MAX / 2 + ECHO_WAIT_MAX, "and not for ever");
    }
}
