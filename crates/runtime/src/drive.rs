//! The loop that drives the engine: whatever happens goes in, whatever it asks for is done.

use std::future::Future;
use std::pin::pin;
use std::time::{Duration, Instant};

use endpointd_client::recorder::Recorder;
use endpointd_client::{Client, RequestCount, RequestKind};
use endpointd_engine::{Effect, Engine, Input, MonotonicTime};
use endpointd_model::{
    PublishedResource, ResourceVersion, WatchSignal, WatchedResource, WriteResult,
};
use endpointd_status::{LeadershipStatus, Metrics, StatusHandle};
use std::collections::BTreeMap;
use tokio::time::{Sleep, sleep_until};

use crate::errands::{Completion, RequestDispatcher};
use crate::feeds::WatchTasks;
use crate::journal::StateChangeLogger;
use crate::office::{Leadership, LeadershipChange};
use crate::pace::PollBatcher;

/// How often a busy engine is pictured, and how often an idle one.
const REPORT_BUSY: Duration = Duration::from_secs(1);
const REPORT_IDLE: Duration = Duration::from_secs(10);
/// What is in flight at the end gets this long.
const FINISH_MAX: Duration = Duration::from_secs(10);
/// Effects carried out before requests are sent and what has arrived meanwhile is looked at: a long
/// start-up must not make a fresh change wait.
const EFFECTS_MAX: usize = 32;

pub struct EventLoop {
    pub engine: Engine,
    pub feeds: WatchTasks,
    pub errands: RequestDispatcher,
    pub recorder: Recorder,
    pub board: StatusHandle,
    pub metrics: Metrics,
    pub client: Client,
    pub pace: PollBatcher,
    pub log: StatusState,
}

/// What is remembered from one picture to the next.
pub struct StatusState {
    journal: StateChangeLogger,
    started: Instant,
    reported: Instant,
    is_changed: bool,
    requests: BTreeMap<RequestKind, RequestCount>,
    n_notices: (u64, u64),
}

impl Default for StatusState {
    fn default() -> Self {
        let now = Instant::now();
        Self {
            journal: StateChangeLogger::default(),
            started: now,
            reported: now,
            is_changed: true,
            requests: BTreeMap::new(),
            n_notices: (0, 0),
        }
    }
}

/// What the API server has since this answer.
fn stored_by(input: &Input) -> Option<(PublishedResource, ResourceVersion)> {
    let Input::WriteResult(_, WriteResult::Stored(object)) = input else { return None };
    Some((object.resource(), object.meta().resource_version))
}

impl EventLoop {
    /// Runs until `shutdown` resolves, then until nothing is in flight any more.
    pub async fn until(&mut self, office: &mut Leadership, shutdown: impl Future<Output = ()>) {
        let mut shutdown = pin!(shutdown);
        if office.first_turn() == Some(LeadershipChange::Lead) {
            self.turn(LeadershipChange::Lead, None);
        }
        let (mut news, mut answers) = (Vec::new(), Vec::new());
        let mut alarm = pin!(sleep_until(Instant::now().into()));
        loop {
            let has_more = self.perform();
            self.picture(REPORT_BUSY);
            if has_more {
                // Let what has arrived in, without waiting for it.
                tokio::task::yield_now().await;
            }
            self.pace.follow(&self.engine);
            let wake = if has_more { Instant::now() } else { self.wake_at() }.into();
            if !self.may_keep(&alarm, wake) {
                // Anew, because one that is only put off still wakes us at its old time.
                alarm.set(sleep_until(wake));
            }
            tokio::select! {
                biased;
                () = &mut shutdown => break,
                (turn, leadership) = office.next_turn() => {
                    self.turn(turn, Some(leadership));
                    office.stand_again().await;
                }
                () = self.errands.receive(&mut answers) => self.hear_answers(answers.drain(..)),
                () = self.feeds.receive(&mut news) => self.hear_news(news.drain(..)),
                () = &mut alarm => {}
            }
        }
        self.finish().await;
    }

    /// Nothing new is begun; answers still count, so that the log tells the truth.
    async fn finish(&mut self) {
        tracing::info!("stopping: finishing what is in flight");
        let now = self.now();
        self.engine.handle(Input::LeadershipLost, now);
        let deadline = tokio::time::Instant::now() + FINISH_MAX;
        let mut answers = Vec::new();
        self.perform();
        while !self.engine.is_idle() {
            let received = self.errands.receive(&mut answers);
            if tokio::time::timeout_at(deadline, received).await.is_err() {
                tracing::warn!("some writes were not answered in time");
                break;
            }
            self.hear_answers(answers.drain(..));
            self.perform();
        }
        self.picture(Duration::ZERO);
    }

    fn hear_news(&mut self, news: impl Iterator<Item = (WatchedResource, WatchSignal)>) {
        let now = self.now();
        for (kind, news) in news {
            // Bookmarks change nothing that people look at.
            self.log.is_changed |= !matches!(news, WatchSignal::Bookmark(_));
            self.engine.handle(Input::Watch(kind, news), now);
        }
    }

    fn hear_answers(&mut self, answers: impl Iterator<Item = Completion>) {
        let now = self.now();
        self.log.is_changed = true;
        for Completion { input, in_flight_write } in answers {
            let stored = stored_by(&input);
            self.engine.handle(input, now);
            // Only now: until then the watch may be the first to tell.
            if let Some((resource, version)) = stored {
                self.client.write_applied(resource, version);
            }
            drop(in_flight_write);
        }
    }

    fn turn(&mut self, turn: LeadershipChange, leadership: Option<LeadershipStatus>) {
        let now = self.now();
        self.log.is_changed = true;
        self.engine.handle(
            match turn {
                LeadershipChange::Lead => Input::LeadershipAcquired,
                LeadershipChange::Follow => Input::LeadershipLost,
            },
            now,
        );
        if let Some(leadership) = leadership {
            if let Some(lease) = leadership.lease() {
                self.metrics.leading(lease, leadership.is_leading());
            }
            self.board.lead(leadership);
        }
    }

    /// Does what the engine asks for. Says whether it may have more.
    fn perform(&mut self) -> bool {
        for _ in 0..EFFECTS_MAX {
            let now = self.now();
            let Some(effect) = self.engine.next(now) else { return false };
            match effect {
                Effect::Send { id, controller, write } => {
                    self.errands.send(id, controller, write);
                }
                Effect::LiveRead { id, read } => self.errands.look(id, read),
                Effect::Relist(kind) => self.relist(kind),
                Effect::RecordEvent { controller, key, uid, record } => {
                    self.recorder.record(controller, key, uid, record);
                }
                Effect::SyncFinished(synced) => {
                    self.log.is_changed = true;
                    self.metrics.synced(&synced);
                    self.log.journal.synced(&synced);
                }
            }
        }
        true
    }

    fn relist(&mut self, kind: WatchedResource) {
        tracing::warn!(kind = kind.as_str(), "the picture was older than what was known before");
        self.feeds.relist(kind);
    }

    /// When the engine wants to go on by itself, or a picture is due. The same moment however often
    /// it is asked: a timer that ends sooner than the last one costs a system call.
    fn wake_at(&self) -> Instant {
        let period = if self.log.is_changed { REPORT_BUSY } else { REPORT_IDLE };
        let report = self.log.reported + period;
        let due = self.engine.wake_at().map(|due| due.since(MonotonicTime::START));
        let due = due.and_then(|due| self.log.started.checked_add(due));
        let wake = due.map_or(report, |due| due.min(report));
        wake.max(Instant::now() + Duration::from_millis(1))
    }

    /// Most turns leave the alarm as it is, and setting it costs. One that is too early is good
    /// enough while answers are awaited: the client gives late ones a moment, and an alarm that
    /// is to ring before all others costs a system call and a turn of the thread for nothing.
    fn may_keep(&self, alarm: &Sleep, wake: tokio::time::Instant) -> bool {
        let is_early = alarm.deadline() < wake && !alarm.is_elapsed();
        alarm.deadline() == wake || (is_early && self.engine.n_writes() > 0)
    }

    /// Posts a picture of the engine if the last one is old enough to be wrong.
    fn picture(&mut self, busy: Duration) {
        self.board.beat();
        let age = self.log.reported.elapsed();
        if age < busy || (!self.log.is_changed && age < REPORT_IDLE) {
            return;
        }
        self.log.reported = Instant::now();
        self.log.is_changed = false;
        let report = self.engine.report(self.now());
        self.log.journal.reported(&report);
        self.board.post(report);
        self.count_requests();
    }

    /// The client and the recorder count by themselves; metrics want what is new.
    fn count_requests(&mut self) {
        let counts = self.client.stats().snapshot();
        let server = self.client.server();
        for (kind, count) in &counts {
            let before = self.log.requests.get(kind).map_or(0, |count| count.n_requests);
            let code = kind.code.map_or_else(|| "<error>".to_owned(), |code| code.to_string());
            for _ in before..count.n_requests {
                self.metrics.request(kind.method, &server, &code);
            }
        }
        self.log.requests = counts;
        let recorder = &self.recorder;
        let now = (recorder.n_written(), recorder.n_dropped() + recorder.n_failed());
        let (sent, dropped) = self.log.n_notices;
        self.metrics.event_records(now.0 - sent, now.1 - dropped);
        self.log.n_notices = now;
    }

    fn now(&self) -> MonotonicTime {
        MonotonicTime::after_start(self.log.started.elapsed())
    }
}
