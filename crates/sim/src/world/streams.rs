//! Watches: one per kind and process, each with its own delay and its own bad luck.

use std::time::Duration;

use endpointd_engine::Input;
use endpointd_model::{ObjectEvent, ResourceEvent, ResourceVersion, WatchSignal, WatchedResource};
use endpointd_mutants::{Mutant, is_on};

use super::{Event, World};
use crate::clock::{millis, secs};
use crate::process::StreamState;
use crate::script::WatchFault;

/// A watch that shows nothing for so long is taken for dead.
const DEAD_AFTER: Duration = Duration::from_secs(90);

impl World {
    /// Something may have changed: whoever watches it will hear of it.
    pub(super) fn announce(&mut self) {
        for process in 0..self.processes.len() {
            if self.processes[process].engine.is_some() {
                for kind in WatchedResource::ALL {
                    self.expect_news(process, kind);
                }
            }
        }
    }

    fn expect_news(&mut self, process: usize, kind: WatchedResource) {
        let stream = &self.processes[process].streams[kind as usize];
        if stream.state != StreamState::Live || stream.due.is_some() {
            return;
        }
        let Some(happened) = self.api.next_change(kind, stream.seen) else { return };
        let (delay, frozen_until, connection) =
            (stream.delay, stream.frozen_until, stream.connection);
        let jitter = self.jitter(delay);
        let due = (happened + delay + jitter).max(frozen_until).max(self.now);
        self.processes[process].stream(kind).due = Some(due);
        let wait = due.since(self.now);
        self.schedule(wait, Event::Deliver { process, kind, connection });
    }

    fn jitter(&mut self, delay: Duration) -> Duration {
        let most = (delay.as_micros() as u64 / 4).max(2000);
        Duration::from_micros(self.dice.roll(most))
    }

    pub(super) fn deliver(&mut self, process: usize, kind: WatchedResource, connection: u32) {
        let stream = self.processes[process].stream(kind);
        if stream.connection != connection || self.processes[process].engine.is_none() {
            return;
        }
        let stream = self.processes[process].stream(kind);
        stream.due = None;
        if self.now < stream.frozen_until {
            return self.expect_news(process, kind);
        }
        let seen = stream.seen;
        if seen < self.api.floor(kind) && self.api.next_change(kind, seen).is_some() {
            // Too slow: what comes next is not kept any more.
            self.census.fault("watch 410");
            return self.relist(process, kind);
        }
        let Some((revision, _, news)) = self.api.next_news(kind, seen) else { return };
        let stream = self.processes[process].stream(kind);
        stream.seen = revision;
        if !stream.is_deceived {
            stream.known_since = stream.known_since.max(revision);
        }
        self.note_told(process, &news);
        self.tell(|| format!("  p{process} sees {}", brief(&news)));
        self.inform(process, Input::Watch(kind, news));
    }

    /// The versions of published objects that an engine may write to.
    pub(super) fn note_told(&mut self, process: usize, news: &WatchSignal) {
        if let WatchSignal::Event(change) = news {
            let version = match change.as_ref() {
                ResourceEvent::Endpoints(sight) => sight.object().meta.resource_version,
                ResourceEvent::Slice(sight) => sight.object().meta.resource_version,
                ResourceEvent::Service(_) | ResourceEvent::Pod(_) | ResourceEvent::Node(_) => {
                    return;
                }
            };
            self.processes[process].told.insert(version.number());
        }
    }

    /// A new connection: goes on from where it was, or begins with a picture.
    pub(super) fn connect(&mut self, process: usize, kind: WatchedResource, connection: u32) {
        let now = self.now;
        let outage_until = self.troubles.outage_until;
        let stream = self.processes[process].stream(kind);
        if stream.connection != connection || self.processes[process].engine.is_none() {
            return;
        }
        if now < outage_until {
            let wait = outage_until.since(now) + millis(self.dice.between(10, 1500));
            self.lose(process, kind);
            let connection = self.processes[process].stream(kind).connection;
            return self.schedule(wait, Event::Connect { process, kind, connection });
        }
        let floor = self.api.floor(kind);
        let stream = self.processes[process].stream(kind);
        if stream.state == StreamState::Live && stream.seen >= floor {
            stream.due = None;
            if is_on(Mutant::ResumeFromNow) {
                stream.seen = self.api.revision();
            }
            if std::mem::take(&mut stream.is_lost) {
                self.inform(process, Input::Watch(kind, WatchSignal::Reconnected));
            }
            return self.expect_news(process, kind);
        }
        if stream.state == StreamState::Live {
            self.census.fault("watch 410");
        }
        self.relist(process, kind);
    }

    /// A picture of the kind as it is now; a consistent read.
    pub(super) fn relist(&mut self, process: usize, kind: WatchedResource) {
        let revision = self.api.revision();
        let is_first = self.processes[process].stream(kind).seen == 0;
        if is_first && is_on(Mutant::FirstPictureFromCache) {
            self.begin_picture(process, kind, revision.saturating_sub(20).max(1));
            // It claims to know everything, and is judged by that.
            self.processes[process].stream(kind).known_since = revision;
            return;
        }
        self.begin_picture(process, kind, revision);
    }

    pub(super) fn begin_picture(&mut self, process: usize, kind: WatchedResource, revision: u64) {
        let stream = self.processes[process].stream(kind);
        stream.connection += 1;
        (stream.due, stream.is_lost, stream.is_deceived) = (None, false, false);
        stream.state = StreamState::Listing(revision);
        stream.known_since = stream.known_since.min(revision);
        let connection = stream.connection;
        self.inform(process, Input::Watch(kind, WatchSignal::InitStarted));
        let picture = self.api.list_at(kind, revision);
        let half = picture.len() / 2;
        self.tell(|| format!("  p{process} lists {} as of {revision}", kind.as_str()));
        for news in picture.into_iter().take(half) {
            self.note_told(process, &news);
            self.inform(process, Input::Watch(kind, news));
        }
        let wait = if self.troubles.is_calm { 5 } else { self.dice.between(1, 400) };
        self.schedule(millis(wait), Event::CompletePicture { process, kind, connection });
    }

    pub(super) fn complete_picture(
        &mut self,
        process: usize,
        kind: WatchedResource,
        connection: u32,
    ) {
        let stream = self.processes[process].stream(kind);
        let StreamState::Listing(revision) = stream.state else { return };
        if stream.connection != connection || self.processes[process].engine.is_none() {
            return;
        }
        let picture = self.api.list_at(kind, revision);
        let half = picture.len() / 2;
        let rest = picture.into_iter().skip(half).filter(|_| !is_on(Mutant::HalfPicture));
        for news in rest {
            self.note_told(process, &news);
            self.inform(process, Input::Watch(kind, news));
        }
        let stream = self.processes[process].stream(kind);
        let is_old = revision < stream.seen;
        stream.state = StreamState::Live;
        if !is_old {
            (stream.seen, stream.known_since) = (revision, revision);
        }
        // The engine answers an old picture with a request for a new one, before anything else.
        self.inform(
            process,
            Input::Watch(kind, WatchSignal::InitDone(ResourceVersion::from(revision))),
        );
        self.expect_news(process, kind);
    }

    pub(super) fn lose(&mut self, process: usize, kind: WatchedResource) {
        let stream = self.processes[process].stream(kind);
        stream.connection += 1;
        stream.due = None;
        stream.is_lost = true;
        if matches!(stream.state, StreamState::Listing(_)) {
            stream.state = StreamState::Down;
            self.census.fault("picture interrupted");
        }
        self.inform(
            process,
            Input::Watch(kind, WatchSignal::Disconnected("the watch is cut".into())),
        );
        self.check_readiness(process, kind);
    }

    pub(super) fn disturb_watch(&mut self, process: u8, kind: WatchedResource, fault: WatchFault) {
        let process = usize::from(process) % self.processes.len();
        if self.processes[process].engine.is_none() {
            return;
        }
        let state = self.processes[process].stream(kind).state;
        match fault {
            WatchFault::Delay(delay) => {
                self.census.fault("watch delay");
                self.processes[process].stream(kind).delay = delay;
            }
            WatchFault::Freeze(time) => self.freeze(process, kind, time),
            WatchFault::Cut(time) => {
                self.census.fault("watch cut");
                self.lose(process, kind);
                self.reconnect(process, kind, time);
            }
            WatchFault::Replay(n) if state == StreamState::Live => {
                self.census.fault("watch replayed");
                let floor = self.api.floor(kind);
                let stream = self.processes[process].stream(kind);
                // What is told again is known already: `known_since` stays.
                stream.seen = stream.seen.saturating_sub(n.into()).max(floor.min(stream.seen));
                stream.connection += 1;
                stream.due = None;
                self.expect_news(process, kind);
            }
            WatchFault::Gone(time) => {
                self.api.compact(kind);
                self.lose(process, kind);
                let stream = self.processes[process].stream(kind);
                stream.state = StreamState::Down;
                self.census.fault("watch 410");
                self.reconnect(process, kind, time);
            }
            WatchFault::OldPicture(back) if state == StreamState::Live => {
                self.census.fault("old picture");
                // It may show what we deleted, and there is no way to tell.
                self.processes[process].deleted.clear();
                let revision = self.api.revision().saturating_sub(back.into()).max(1);
                self.begin_picture(process, kind, revision);
            }
            WatchFault::Bookmark if state == StreamState::Live => self.bookmark(process, kind),
            WatchFault::EmptyPicture if state == StreamState::Live => {
                self.census.fault("empty picture");
                self.show_nothing(process, kind);
            }
            WatchFault::Replay(_)
            | WatchFault::OldPicture(_)
            | WatchFault::EmptyPicture
            | WatchFault::Bookmark => {}
        }
    }

    /// A picture without objects, as of now.
    fn show_nothing(&mut self, process: usize, kind: WatchedResource) {
        let revision = self.api.revision();
        let stream = self.processes[process].stream(kind);
        stream.connection += 1;
        stream.due = None;
        // A lie adds nothing to what is known.
        stream.seen = revision;
        stream.is_deceived = true;
        self.inform(process, Input::Watch(kind, WatchSignal::InitStarted));
        self.inform(
            process,
            Input::Watch(kind, WatchSignal::InitDone(ResourceVersion::from(revision))),
        );
    }

    /// Up to the version before the next change that is to be told.
    fn bookmark(&mut self, process: usize, kind: WatchedResource) {
        self.census.fault("bookmark");
        let seen = self.processes[process].stream(kind).seen;
        let is_behind = self.api.next_change(kind, seen).is_some();
        let passed = if is_behind { seen } else { self.api.revision() };
        let stream = self.processes[process].stream(kind);
        stream.seen = passed;
        stream.known_since = stream.known_since.max(passed);
        self.inform(
            process,
            Input::Watch(kind, WatchSignal::Bookmark(ResourceVersion::from(passed))),
        );
    }

    fn freeze(&mut self, process: usize, kind: WatchedResource, time: Duration) {
        let is_dead = time >= DEAD_AFTER;
        self.census.fault(if is_dead { "watch dead for 90 s" } else { "watch frozen" });
        let until = self.now + time.min(DEAD_AFTER);
        let stream = self.processes[process].stream(kind);
        stream.frozen_until = until;
        if is_dead {
            // The connection that is made then finds the old one dead.
            let connection = stream.connection;
            self.schedule(DEAD_AFTER + secs(1), Event::Connect { process, kind, connection });
        }
    }

    pub(super) fn reconnect(&mut self, process: usize, kind: WatchedResource, wait: Duration) {
        let connection = self.processes[process].stream(kind).connection;
        self.schedule(wait, Event::Connect { process, kind, connection });
    }
}

/// For the story.
fn brief(news: &WatchSignal) -> String {
    fn sight<T>(kind: &str, sight: &ObjectEvent<T>, name: impl Fn(&T) -> String) -> String {
        let gone = if matches!(sight, ObjectEvent::Deleted(_)) { " gone" } else { "" };
        format!("{kind} {}{gone}", name(sight.object()))
    }
    match news {
        WatchSignal::Event(change) => match change.as_ref() {
            ResourceEvent::Service(one) => sight("service", one, |it| it.key().to_string()),
            ResourceEvent::Pod(one) => sight("pod", one, |it| it.key().to_string()),
            ResourceEvent::Node(one) => sight("node", one, |it| it.name.to_string()),
            ResourceEvent::Endpoints(one) => {
                sight("endpoints", one, |it| it.meta.key().to_string())
            }
            ResourceEvent::Slice(one) => sight("slice", one, |it| it.meta.key().to_string()),
        },
        WatchSignal::DecodeError { key, .. } => format!("{key}, unreadable"),
        WatchSignal::InitStarted
        | WatchSignal::InitDone(_)
        | WatchSignal::Bookmark(_)
        | WatchSignal::Disconnected(_)
        | WatchSignal::Reconnected => {
            format!("{news:?}")
        }
    }
}
