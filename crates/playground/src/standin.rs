//! The loop around the stand-ins: shows them what changed, does what they decide, plays the story.

use std::sync::Arc;
use std::time::{Duration, Instant};

use endpointd_apiserver::http::Shared;
use endpointd_apiserver::{Kind, kinds};
use jiff::Timestamp;
use tokio::sync::watch;

use crate::cluster::{Act, Cluster};
use crate::observer::Observer;
use crate::perform;
use crate::reader::{News, Reader};
use crate::story::{Scenario, Step};
use crate::world::World;

/// Acts decided on at once.
const ACTS_MAX: usize = 256;
/// Acts done before others may use the server.
const ACTS_PER_TURN: usize = 16;
/// What was refused is looked at again after this.
const RETRY: Duration = Duration::from_secs(1);

pub struct StandIn {
    pub shared: Shared,
    pub world: World,
    pub scenario: Scenario,
    pub seed: u64,
    pub tempo: Tempo,
    pub observer: Arc<Observer>,
    pub started: Instant,
}

/// How fast the world lives, and how long its story is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tempo {
    /// Seconds of the world in one of ours.
    pub speed: u32,
    pub n_steps_max: u64,
}

impl Default for Tempo {
    fn default() -> Self {
        Self { speed: 1, n_steps_max: u64::MAX }
    }
}

/// The step of the story that comes next.
struct Playing {
    n: u64,
    due: Duration,
    step: Option<Step>,
}

impl StandIn {
    /// Runs until told to stop.
    pub async fn run(self, mut stop: watch::Receiver<bool>) {
        let mut written = self.shared.written();
        let (mut cluster, mut reader) = self.begin();
        let mut playing = self.next_step(0);
        loop {
            // Seen before reading: a write in between wakes the wait below.
            written.borrow_and_update();
            match self.shared.with(|server| reader.read(server)) {
                Ok(news) if !news.is_empty() => {
                    self.show(&mut cluster, &news);
                    continue;
                }
                Ok(_) => {}
                Err(_) => {
                    (cluster, reader) = self.begin();
                    continue;
                }
            }
            let acts = cluster.decide(self.now(), ACTS_MAX);
            let is_busy = !acts.is_empty();
            self.perform(&mut cluster, &acts).await;
            if playing.due <= self.now() {
                self.play(&cluster, &playing);
                playing = self.next_step(playing.n + 1);
            }
            if *stop.borrow() {
                return;
            }
            if is_busy {
                continue;
            }
            let due = cluster.wake_at().map_or(playing.due, |due| due.min(playing.due));
            let wait = due.saturating_sub(self.now()) / self.tempo.speed;
            tokio::select! {
                _ = stop.changed() => {}
                _ = written.changed() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    fn begin(&self) -> (Cluster, Reader) {
        let watched: Vec<&'static Kind> =
            [("", "nodes"), ("", "pods"), ("apps", "replicasets"), ("apps", "deployments")]
                .iter()
                .map(|(group, resource)| kinds::find(group, resource).expect("it is served"))
                .collect();
        let (reader, news) = self.shared.with(|server| Reader::start(server, &watched));
        let mut cluster = Cluster::new(self.seed);
        self.show(&mut cluster, &news);
        (cluster, reader)
    }

    fn show(&self, cluster: &mut Cluster, news: &[News]) {
        let now = self.now();
        for News { shelf, key, object } in news {
            cluster.see(shelf, key, object.as_deref(), now);
        }
    }

    async fn perform(&self, cluster: &mut Cluster, acts: &[Act]) {
        for turn in acts.chunks(ACTS_PER_TURN) {
            let refused: Vec<&Act> = self.shared.with(|server| {
                let now = Timestamp::now();
                turn.iter().filter(|act| perform::act(server, act, now).is_err()).collect()
            });
            for act in refused {
                self.look_again(cluster, act);
            }
            tokio::task::yield_now().await;
        }
    }

    /// Somebody was faster, or the API server does not take it: what is true is in the store.
    fn look_again(&self, cluster: &mut Cluster, act: &Act) {
        let (shelf, key) = act.about();
        let object = self.shared.with(|server| server.store().get(shelf, &key).cloned());
        cluster.see(shelf, &key, object.as_deref(), self.now() + RETRY);
    }

    fn play(&self, cluster: &Cluster, playing: &Playing) {
        let Some(step) = &playing.step else { return };
        self.observer.tell(self.started.elapsed(), &step.caption);
        for made in &step.moves {
            let done = self.shared.with(|server| perform::make(server, cluster, made));
            if let Err(refusal) = done {
                // People may have taken away what the story is about.
                self.observer
                    .tell(self.started.elapsed(), &format!("not done: {}", refusal.message));
            }
        }
    }

    fn next_step(&self, n: u64) -> Playing {
        let is_told = n < self.tempo.n_steps_max;
        let step = self.scenario.step(&self.world, self.seed, n).filter(|_| is_told);
        let wait = step.as_ref().map_or(Duration::MAX, |step| step.wait);
        Playing { n, due: self.now().saturating_add(wait), step }
    }

    /// The world's own time.
    fn now(&self) -> Duration {
        self.started.elapsed() * self.tempo.speed
    }
}
