//! Watches: one per resource and process, each with its own delay and faults.

use std::time::Duration;

use endpointd_engine::Input;
use endpointd_model::{ResourceVersion, WatchSignal, WatchedResource};

use super::receive::Received;
use super::{Event, Simulation};
use crate::client_bug::ClientBug;
use crate::clock::{millis, secs};
use crate::process::{Watch, WatchState};
use crate::script::WatchFault;

/// A watch without events for so long is reconnected.
const DEAD_AFTER: Duration = Duration::from_secs(90);

impl Simulation {
    /// Schedules the next event of every watch that has one.
    pub(super) fn schedule_deliveries(&mut self) {
        for process in 0..self.processes.len() {
            if self.processes[process].engine.is_some() {
                for &resource in self.setup.resources() {
                    self.schedule_delivery(process, resource);
                }
            }
        }
    }

    fn schedule_delivery(&mut self, process: usize, resource: WatchedResource) {
        let watch = &self.processes[process].watches[resource as usize];
        if watch.state != WatchState::Live || watch.due.is_some() {
            return;
        }
        let Some(happened) = self.api.next_change(resource, watch.delivered) else { return };
        let (delay, frozen_until, connection) = (watch.delay, watch.frozen_until, watch.connection);
        let jitter = self.jitter(delay);
        let due = (happened + delay + jitter).max(frozen_until).max(self.now);
        self.processes[process].watch(resource).due = Some(due);
        let wait = due.since(self.now);
        self.schedule(wait, Event::Deliver { process, resource, connection });
    }

    fn jitter(&mut self, delay: Duration) -> Duration {
        let most = (delay.as_micros() as u64 / 4).max(2000);
        Duration::from_micros(self.rng.below(most))
    }

    pub(super) fn deliver(&mut self, process: usize, resource: WatchedResource, connection: u32) {
        let watch = self.processes[process].watch(resource);
        if watch.connection != connection || self.processes[process].engine.is_none() {
            return;
        }
        let watch = self.processes[process].watch(resource);
        watch.due = None;
        if self.now < watch.frozen_until {
            return self.schedule_delivery(process, resource);
        }
        let delivered = watch.delivered;
        if delivered < self.api.floor(resource)
            && self.api.next_change(resource, delivered).is_some()
        {
            // The next event has been compacted.
            self.coverage.count_fault("watch 410");
            return self.relist(process, resource);
        }
        let Some((revision, _, signal)) = self.api.next_signal(resource, delivered) else { return };
        let watch = self.processes[process].watch(resource);
        watch.delivered = revision;
        if !watch.has_false_list {
            watch.known_since = watch.known_since.max(revision);
        }
        if let Some(signal) = self.selected(process, resource, (revision, signal)) {
            self.receive(process, resource, signal, Received::Event);
        }
    }

    /// A new connection: resumes the watch, or lists if its position is compacted.
    pub(super) fn connect(&mut self, process: usize, resource: WatchedResource, connection: u32) {
        let now = self.now;
        let outage_until = self.faults.outage_until;
        let watch = self.processes[process].watch(resource);
        if watch.connection != connection || self.processes[process].engine.is_none() {
            return;
        }
        if now < outage_until {
            let wait = outage_until.since(now) + millis(self.rng.between(10, 1500));
            self.disconnect(process, resource);
            let connection = self.processes[process].watch(resource).connection;
            return self.schedule(wait, Event::Connect { process, resource, connection });
        }
        let (floor, revision) = (self.api.floor(resource), self.api.revision());
        let skips_missed = self.has_bug(ClientBug::ResumeFromNow);
        let watch = self.processes[process].watch(resource);
        if watch.state == WatchState::Live && watch.delivered >= floor {
            watch.due = None;
            if skips_missed {
                watch.delivered = revision;
            }
            if std::mem::take(&mut watch.is_disconnected) {
                self.handle_input(process, Input::Watch(resource, WatchSignal::Reconnected));
            }
            return self.schedule_delivery(process, resource);
        }
        if watch.state == WatchState::Live {
            self.coverage.count_fault("watch 410");
        }
        self.relist(process, resource);
    }

    /// A consistent list of the current objects.
    pub(super) fn relist(&mut self, process: usize, resource: WatchedResource) {
        let revision = self.api.revision();
        let is_first = self.processes[process].watch(resource).delivered == 0;
        if is_first && self.has_bug(ClientBug::FirstListFromCache) {
            self.begin_list(process, resource, revision.saturating_sub(20).max(1));
            // The list claims to be current; the monitor judges the engine by that claim.
            self.processes[process].watch(resource).known_since = revision;
            return;
        }
        if is_first && resource == WatchedResource::Pods && self.is_first_list_empty(process) {
            self.coverage.count_fault("empty first list");
            let watch = self.processes[process].watch(resource);
            watch.state = WatchState::Live;
            // As above.
            watch.known_since = revision;
            self.send_false_list(process, resource, 0);
            return self.schedule_delivery(process, resource);
        }
        self.begin_list(process, resource, revision);
    }

    /// New watches, which know nothing of what the old ones have delivered.
    pub(super) fn relist_all(&mut self, process: usize) {
        for &resource in self.setup.resources() {
            let watch = self.processes[process].watch(resource);
            let (connection, delay) = (watch.connection + 1, watch.delay);
            let mut begun_lists = std::mem::take(&mut watch.begun_lists);
            begun_lists.extend([watch.known_since, watch.delivered]);
            *watch = Watch { connection, delay, begun_lists, ..Watch::default() };
            self.relist(process, resource);
        }
    }

    pub(super) fn begin_list(&mut self, process: usize, resource: WatchedResource, revision: u64) {
        let watch = self.processes[process].watch(resource);
        watch.connection += 1;
        (watch.due, watch.is_disconnected, watch.has_false_list) = (None, false, false);
        watch.state = WatchState::Listing(revision);
        watch.known_since = watch.known_since.min(revision);
        watch.begun_lists.push(revision);
        let connection = watch.connection;
        self.handle_input(process, Input::Watch(resource, WatchSignal::InitStarted));
        let list = self.api.list_at(resource, revision);
        let half = list.len() / 2;
        self.trace(|| format!("  p{process} lists {} as of {revision}", resource.as_str()));
        for signal in list.into_iter().take(half) {
            self.receive(process, resource, signal, Received::InList);
        }
        let wait = if self.faults.is_quiescent { 5 } else { self.rng.between(1, 400) };
        self.schedule(millis(wait), Event::FinishList { process, resource, connection });
    }

    pub(super) fn finish_list(
        &mut self,
        process: usize,
        resource: WatchedResource,
        connection: u32,
    ) {
        let watch = self.processes[process].watch(resource);
        let WatchState::Listing(revision) = watch.state else { return };
        if watch.connection != connection || self.processes[process].engine.is_none() {
            return;
        }
        let list = self.api.list_at(resource, revision);
        let half = list.len() / 2;
        let is_partial = self.has_bug(ClientBug::PartialList);
        let rest = list.into_iter().skip(half).filter(|_| !is_partial);
        for signal in rest {
            self.receive(process, resource, signal, Received::InList);
        }
        let is_old = revision < self.processes[process].watch(resource).delivered;
        if resource == WatchedResource::Pods && !is_old {
            self.note_unconfirmed_pods(process, revision);
        }
        let watch = self.processes[process].watch(resource);
        watch.state = WatchState::Live;
        if !is_old {
            (watch.delivered, watch.known_since) = (revision, revision);
            watch.begun_lists.clear();
        }
        // The engine reacts to an outdated list by asking for another list.
        self.handle_input(
            process,
            Input::Watch(resource, WatchSignal::InitDone(ResourceVersion::from(revision))),
        );
        self.schedule_delivery(process, resource);
    }

    pub(super) fn disconnect(&mut self, process: usize, resource: WatchedResource) {
        let watch = self.processes[process].watch(resource);
        watch.connection += 1;
        watch.due = None;
        watch.is_disconnected = true;
        if matches!(watch.state, WatchState::Listing(_)) {
            watch.state = WatchState::Down;
            self.coverage.count_fault("list interrupted");
        }
        self.handle_input(
            process,
            Input::Watch(resource, WatchSignal::Disconnected("disconnected".into())),
        );
        self.check_readiness(process, resource);
    }

    pub(super) fn fault_watch(
        &mut self,
        process: u8,
        resource: WatchedResource,
        fault: WatchFault,
    ) {
        let process = usize::from(process) % self.processes.len();
        if self.processes[process].engine.is_none() {
            return;
        }
        let state = self.processes[process].watch(resource).state;
        match fault {
            WatchFault::Delay(delay) => {
                self.coverage.count_fault("watch delay");
                self.processes[process].watch(resource).delay = delay;
            }
            WatchFault::Freeze(time) => self.freeze(process, resource, time),
            WatchFault::Disconnect(time) => {
                self.coverage.count_fault("watch disconnected");
                self.disconnect(process, resource);
                self.reconnect(process, resource, time);
            }
            WatchFault::Replay(n) if state == WatchState::Live => {
                self.coverage.count_fault("events replayed");
                let floor = self.api.floor(resource);
                let watch = self.processes[process].watch(resource);
                // The cache has these events already: `known_since` stays.
                watch.delivered =
                    watch.delivered.saturating_sub(n.into()).max(floor.min(watch.delivered));
                watch.connection += 1;
                watch.due = None;
                self.schedule_delivery(process, resource);
            }
            WatchFault::Expired(time) => {
                self.api.compact(resource);
                self.disconnect(process, resource);
                let watch = self.processes[process].watch(resource);
                watch.state = WatchState::Down;
                self.coverage.count_fault("watch 410");
                self.reconnect(process, resource, time);
            }
            WatchFault::OutdatedList(back) if state == WatchState::Live => {
                self.coverage.count_fault("outdated list");
                // The list may contain objects whose deletion was acknowledged; the engine cannot know.
                self.processes[process].acknowledged_deletes.clear();
                let revision = self.api.revision().saturating_sub(back.into()).max(1);
                self.begin_list(process, resource, revision);
            }
            WatchFault::Bookmark if state == WatchState::Live => self.bookmark(process, resource),
            WatchFault::EmptyList if state == WatchState::Live => {
                self.coverage.count_fault("empty list");
                self.send_false_list(process, resource, 0);
            }
            WatchFault::ShortList if state == WatchState::Live => {
                self.coverage.count_fault("short list");
                let n_objects = self.api.keys(resource).len();
                self.send_false_list(process, resource, n_objects / 2);
            }
            WatchFault::Replay(_)
            | WatchFault::OutdatedList(_)
            | WatchFault::EmptyList
            | WatchFault::ShortList
            | WatchFault::Bookmark => {}
        }
    }

    /// A bookmark at the last revision before the next undelivered event.
    fn bookmark(&mut self, process: usize, resource: WatchedResource) {
        self.coverage.count_fault("bookmark");
        let delivered = self.processes[process].watch(resource).delivered;
        let is_behind = self.api.next_change(resource, delivered).is_some();
        let position = if is_behind { delivered } else { self.api.revision() };
        let watch = self.processes[process].watch(resource);
        watch.delivered = position;
        // After a false list the cache holds pods as they were before it.
        if !watch.has_false_list {
            watch.known_since = watch.known_since.max(position);
        }
        self.handle_input(
            process,
            Input::Watch(resource, WatchSignal::Bookmark(ResourceVersion::from(position))),
        );
    }

    fn freeze(&mut self, process: usize, resource: WatchedResource, time: Duration) {
        let is_dead = time >= DEAD_AFTER;
        self.coverage.count_fault(if is_dead { "watch dead for 90 s" } else { "watch frozen" });
        let until = self.now + time.min(DEAD_AFTER);
        let watch = self.processes[process].watch(resource);
        watch.frozen_until = until;
        if is_dead {
            // The client then notices that the connection is dead.
            let connection = watch.connection;
            self.schedule(DEAD_AFTER + secs(1), Event::Connect { process, resource, connection });
        }
    }

    pub(super) fn reconnect(&mut self, process: usize, resource: WatchedResource, wait: Duration) {
        let connection = self.processes[process].watch(resource).connection;
        self.schedule(wait, Event::Connect { process, resource, connection });
    }
}
