//! The loop that runs the fake controllers and the scenario against the API server.

use std::sync::Arc;
use std::time::{Duration, Instant};

use endpointd_apiserver::http::Shared;
use endpointd_apiserver::{Kind, kinds};
use endpointd_page::ActionRequest;
use jiff::Timestamp;
use tokio::sync::{mpsc, watch};

use crate::apply;
use crate::cluster::{Cluster, ControllerAction};
use crate::cluster_spec::ClusterSpec;
use crate::controls::{Controls, Effect};
use crate::observer::Observer;
use crate::scenario::{Scenario, ScenarioAction, Step};
use crate::store_reader::{StoreChange, StoreReader};

/// Actions of one decision.
const ACTIONS_MAX: usize = 256;
/// Actions applied with one lock of the server.
const ACTIONS_PER_LOCK: usize = 16;
/// Delay before an object is read again after a failed action.
const RETRY: Duration = Duration::from_secs(1);

pub struct FakeControllers {
    pub shared: Shared,
    pub spec: ClusterSpec,
    pub scenario: Scenario,
    pub seed: u64,
    /// The number of the first node.
    pub first_node: u16,
    /// The view of another cluster that also shows what happens here, and the name of this one.
    pub shown_by: Option<(Arc<Observer>, &'static str)>,
    pub time_scale: TimeScale,
    pub observer: Arc<Observer>,
    pub started: Instant,
    /// From the buttons of the page.
    pub requests: mpsc::Receiver<ActionRequest>,
}

/// Speed and length of a run; tests run faster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeScale {
    /// Factor of simulated time.
    pub speed: u32,
    pub n_steps_max: u64,
}

impl Default for TimeScale {
    fn default() -> Self {
        Self { speed: 1, n_steps_max: u64::MAX }
    }
}

/// The next step of the scenario.
struct NextStep {
    n: u64,
    due: Duration,
    step: Option<Step>,
}

impl FakeControllers {
    /// Runs until `stop` is signalled.
    pub async fn run(mut self, mut stop: watch::Receiver<bool>) {
        let mut written = self.shared.written();
        let (mut cluster, mut reader) = self.start_reading();
        let mut next_step = self.next_step(0);
        let mut controls = Controls::default();
        loop {
            // Before reading, so that a write in between wakes the wait below.
            written.borrow_and_update();
            match self.shared.with(|server| reader.read(server)) {
                Ok(changes) if !changes.is_empty() => {
                    self.apply_changes(&mut cluster, &changes);
                    continue;
                }
                Ok(_) => {}
                Err(_) => {
                    (cluster, reader) = self.start_reading();
                    continue;
                }
            }
            let actions = cluster.decide(self.now(), ACTIONS_MAX);
            let is_busy = !actions.is_empty();
            self.apply_actions(&mut cluster, &actions).await;
            if next_step.due <= self.now() {
                self.run_step(&cluster, &next_step);
                next_step = self.next_step(next_step.n + 1);
            }
            if *stop.borrow() {
                return;
            }
            if is_busy {
                continue;
            }
            let due = cluster.wake_at().map_or(next_step.due, |due| due.min(next_step.due));
            let wait = due.saturating_sub(self.now()) / self.time_scale.speed;
            tokio::select! {
                _ = stop.changed() => {}
                _ = written.changed() => {}
                Some(request) = self.requests.recv() => {
                    self.press(&mut controls, &cluster, request);
                }
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    fn start_reading(&self) -> (Cluster, StoreReader) {
        let watched: Vec<&'static Kind> =
            [("", "nodes"), ("", "pods"), ("apps", "replicasets"), ("apps", "deployments")]
                .iter()
                .map(|(group, resource)| kinds::find(group, resource).expect("it is served"))
                .collect();
        let (reader, changes) = self.shared.with(|server| StoreReader::start(server, &watched));
        let mut cluster = Cluster::numbered_from(self.seed, self.first_node);
        self.apply_changes(&mut cluster, &changes);
        (cluster, reader)
    }

    fn apply_changes(&self, cluster: &mut Cluster, changes: &[StoreChange]) {
        let now = self.now();
        for StoreChange { resource, key, object } in changes {
            cluster.apply(resource, key, object.as_deref(), now);
        }
    }

    async fn apply_actions(&self, cluster: &mut Cluster, actions: &[ControllerAction]) {
        for batch in actions.chunks(ACTIONS_PER_LOCK) {
            let failed: Vec<&ControllerAction> = self.shared.with(|server| {
                let now = Timestamp::now();
                batch
                    .iter()
                    .filter(|action| apply::controller_action(server, action, now).is_err())
                    .collect()
            });
            for action in failed {
                self.reload(cluster, action);
            }
            tokio::task::yield_now().await;
        }
    }

    /// After a conflict or an error: reads the current object.
    fn reload(&self, cluster: &mut Cluster, action: &ControllerAction) {
        let (resource, key) = action.target();
        let object = self.shared.with(|server| server.store().get(resource, &key).cloned());
        cluster.apply(resource, &key, object.as_deref(), self.now() + RETRY);
    }

    fn run_step(&self, cluster: &Cluster, next_step: &NextStep) {
        if let Some(step) = &next_step.step {
            self.run_actions(cluster, &step.caption, &step.actions);
        }
    }

    /// A button of the page was pressed.
    fn press(&self, controls: &mut Controls, cluster: &Cluster, request: ActionRequest) {
        let ActionRequest { action, service, reply } = request;
        let pressed = controls.press(&self.spec, self.seed, &action, service.as_deref());
        let answer = pressed.map(|pressed| {
            match pressed.effect {
                Effect::Actions(actions) => {
                    self.run_actions(cluster, &pressed.performed.caption, &actions);
                }
                Effect::Outage(is_out) => {
                    self.log(&pressed.performed.caption);
                    self.shared.set_outage(is_out);
                }
            }
            pressed.performed
        });
        // The page may have stopped waiting.
        let _ = reply.send(answer);
    }

    fn run_actions(&self, cluster: &Cluster, caption: &str, actions: &[ScenarioAction]) {
        self.log(caption);
        for action in actions {
            if let ScenarioAction::SetOutage { is_out } = action {
                self.shared.set_outage(*is_out);
            }
            let done = self.shared.with(|server| apply::scenario_action(server, cluster, action));
            if let Err(error) = done {
                // The user may have deleted the object of the action.
                self.log(&format!("failed: {}", error.message));
            }
        }
    }

    fn log(&self, text: &str) {
        let now = self.started.elapsed();
        self.observer.log(now, text);
        if let Some((observer, name)) = &self.shown_by {
            observer.log(now, &format!("{name}: {text}"));
        }
    }

    fn next_step(&self, n: u64) -> NextStep {
        let is_within_limit = n < self.time_scale.n_steps_max;
        let step = self.scenario.step(&self.spec, self.seed, n).filter(|_| is_within_limit);
        let wait = step.as_ref().map_or(Duration::MAX, |step| step.wait);
        NextStep { n, due: self.now().saturating_add(wait), step }
    }

    /// Simulated time.
    fn now(&self) -> Duration {
        self.started.elapsed() * self.time_scale.speed
    }
}
