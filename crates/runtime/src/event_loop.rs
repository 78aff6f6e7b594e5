//! The event loop: passes every input to the engine and performs every effect it asks for.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use endpointd_client::recorder::Recorder;
use endpointd_engine::{Effect, Engine, Input, MonotonicTime};
use endpointd_model::{LiveRead, WatchSignal, WatchedResource};
use endpointd_status::{KeyQueries, LeadershipStatus, LoopQuery};
use tokio::sync::watch;
use tokio::task::yield_now;
use tokio::time::{sleep_until, timeout_at};

use crate::change_recorder::ChangeRecorder;
use crate::clusters::Clusters;
use crate::dispatcher::RequestDispatcher;
use crate::leadership::Leadership;
use crate::status_publisher::StatusPublisher;
use crate::supervisor::{Supervisor, TaskEnd};
use crate::watches::WatchTasks;

/// At shutdown, requests in flight get this long.
const FINISH_MAX: Duration = Duration::from_secs(10);
/// Effects performed before the tasks that send requests run and new inputs are taken: the initial
/// sync of a large cluster must not delay a live change.
const EFFECTS_MAX: usize = 32;
/// The loop never sleeps for less, so that a key that is due within the same instant cannot make
/// it spin.
const SLEEP_MIN: Duration = Duration::from_millis(1);

pub struct EventLoop {
    pub engine: Engine,
    pub supervisor: Supervisor,
    pub watches: WatchTasks,
    pub dispatcher: RequestDispatcher,
    pub leadership: Leadership,
    pub recorder: Recorder,
    pub key_queries: KeyQueries,
    /// Changes when resourceVersions went backwards.
    pub rollbacks: watch::Receiver<u64>,
    pub publisher: StatusPublisher,
    pub changes: ChangeRecorder,
    /// The others of the set.
    pub clusters: Clusters,
    /// The engine's clock starts here.
    pub started: Instant,
}

impl EventLoop {
    /// Runs until `shutdown` resolves or a task ends unexpectedly, then until nothing is in flight.
    pub async fn run_until(&mut self, shutdown: impl Future<Output = ()>) -> Result<(), TaskEnd> {
        let ended = self.run_loop(shutdown).await;
        if let Err(end) = &ended {
            tracing::error!(task = end.task, reason = end.reason, "task ended, stopping");
            self.publisher.on_failure(end.to_string());
        }
        self.finish().await;
        ended
    }

    async fn run_loop(&mut self, shutdown: impl Future<Output = ()>) -> Result<(), TaskEnd> {
        let mut shutdown = pin!(shutdown);
        for input in self.clusters.first_inputs() {
            self.handle(input);
        }
        if self.leadership.is_permanent() {
            self.handle(Input::LeadershipAcquired);
        }
        let (mut signals, mut results, mut inputs) = (Vec::new(), Vec::new(), Vec::new());
        let mut timer = pin!(sleep_until(Instant::now().into()));
        loop {
            let has_more = self.perform_effects();
            self.publisher.publish_if_due(&self.engine, self.now());
            if has_more {
                // Lets the tasks send their requests, and inputs arrive.
                yield_now().await;
            }
            let wake = if has_more { Instant::now() } else { self.next_wake() }.into();
            if timer.deadline() != wake {
                timer.as_mut().reset(wake);
            }
            tokio::select! {
                biased;
                () = &mut shutdown => return Ok(()),
                end = self.supervisor.unexpected_end() => return Err(end),
                leadership = self.leadership.next_change() => self.on_leadership(leadership),
                Ok(()) = self.rollbacks.changed() => self.handle(Input::VersionsRolledBack),
                query = self.key_queries.next() => self.on_query(query),
                received = self.dispatcher.receive(&mut results) => {
                    received?;
                    self.on_results(results.drain(..));
                }
                () = self.watches.receive(&mut signals) => self.on_signals(signals.drain(..)),
                () = self.clusters.receive(&mut inputs) => self.on_clusters(inputs.drain(..)),
                () = &mut timer => {}
            }
        }
    }

    /// Sends nothing more, and waits for the results of requests in flight.
    async fn finish(&mut self) {
        tracing::info!("stopping: waiting for requests in flight");
        self.changes.stop();
        self.handle(Input::LeadershipLost);
        let deadline = (Instant::now() + FINISH_MAX).into();
        let mut results = Vec::new();
        self.perform_effects();
        while !self.engine.is_idle() {
            let received = timeout_at(deadline, self.dispatcher.receive(&mut results)).await;
            if !matches!(received, Ok(Ok(()))) {
                tracing::warn!("some requests got no response");
                break;
            }
            self.on_results(results.drain(..));
            self.perform_effects();
        }
        self.publisher.publish(&self.engine, self.now());
    }

    fn on_clusters(&mut self, inputs: impl Iterator<Item = Input>) {
        let now = self.now();
        for input in inputs {
            let is_clock = matches!(input, Input::Clock(_));
            self.engine.handle(input, now);
            if is_clock {
                self.clusters.on_statuses(self.engine.source_statuses(now));
            }
        }
    }

    fn on_signals(&mut self, signals: impl Iterator<Item = (WatchedResource, WatchSignal)>) {
        let now = self.now();
        for (resource, signal) in signals {
            // Bookmarks change nothing that a snapshot shows, apart from ages.
            if !matches!(signal, WatchSignal::Bookmark(_)) {
                self.publisher.note_change();
            }
            self.changes.on_signal(&signal);
            self.engine.handle(Input::Watch(resource, signal), now);
        }
    }

    fn on_results(&mut self, results: impl Iterator<Item = Input>) {
        let now = self.now();
        self.publisher.note_change();
        for result in results {
            self.changes.on_result(&result);
            self.engine.handle(result, now);
        }
    }

    fn on_leadership(&mut self, leadership: LeadershipStatus) {
        self.handle(match leadership.is_leading() {
            true => Input::LeadershipAcquired,
            false => Input::LeadershipLost,
        });
        self.publisher.on_leadership(leadership);
    }

    fn on_query(&self, query: LoopQuery) {
        match query {
            LoopQuery::Key(query) => {
                // The page may have stopped waiting.
                let _ = query.reply.send(self.engine.report_key(&query.key, self.now()));
            }
            LoopQuery::Question(question) => {
                question.answer(&self.changes.state(&self.engine, self.now()));
            }
        }
    }

    /// Performs effects, at most [`EFFECTS_MAX`]. Returns whether there may be more.
    fn perform_effects(&mut self) -> bool {
        for _ in 0..EFFECTS_MAX {
            let now = self.now();
            let Some(effect) = self.engine.next(now) else { return false };
            match effect {
                Effect::Send { id, controller, write } => {
                    let write = Arc::from(write);
                    self.changes.on_send(&self.engine, id, controller, &write);
                    self.dispatcher.send(id, controller, write);
                }
                Effect::LiveRead { id, read: LiveRead::Source(cluster, read) } => {
                    let client = self.clusters.client(&cluster);
                    self.dispatcher.live_read_elsewhere(id, *read, client);
                }
                Effect::LiveRead { id, read } => self.dispatcher.live_read(id, read),
                Effect::Relist(resource) => {
                    let resource_name = resource.as_str();
                    tracing::warn!(
                        resource = resource_name,
                        "list older than cache or short, relisting"
                    );
                    self.watches.relist(resource, &mut self.supervisor);
                }
                Effect::RelistAll => {
                    tracing::error!(
                        "resourceVersions went backwards (was etcd restored from a backup?): \
                         listing everything again"
                    );
                    self.watches.relist_all(&mut self.supervisor);
                    // Even a short time without complete lists must be seen.
                    self.publisher.publish(&self.engine, self.now());
                }
                Effect::RelistSource { cluster, .. } => self.clusters.relist(&cluster),
                Effect::RecordEvent { controller, key, uid, record } => {
                    self.recorder.record(controller, key, uid, record);
                }
                Effect::SyncFinished(sync) => {
                    self.publisher.on_sync(&sync);
                    self.changes.on_sync(&sync);
                }
            }
        }
        true
    }

    /// When the engine has a key that becomes due, or a snapshot is due.
    fn next_wake(&self) -> Instant {
        let snapshot = self.publisher.next_due();
        let key = self.engine.wake_at().map(|due| due.since(MonotonicTime::START));
        let key = key.and_then(|due| self.started.checked_add(due));
        let wake = key.map_or(snapshot, |due| due.min(snapshot));
        wake.max(Instant::now() + SLEEP_MIN)
    }

    fn handle(&mut self, input: Input) {
        self.publisher.note_change();
        let now = self.now();
        self.engine.handle(input, now);
    }

    fn now(&self) -> MonotonicTime {
        MonotonicTime::after_start(self.started.elapsed())
    }
}
