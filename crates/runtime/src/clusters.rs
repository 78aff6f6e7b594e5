//! The other clusters of the set: a directory with a kubeconfig for each, whose name is that of the
//! cluster. Each is watched by a task of its own, so one that does not answer delays nothing.

mod connection;
mod directory;
mod identity;
mod leases;
mod overrides;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use endpointd_client::Client;
use endpointd_client::election::WritePermit;
use endpointd_engine::{ContactLimits, Input, SourceInput, SourceState, SourceStatus};
use endpointd_model::{ClusterId, SharedStr, Timestamp};
use tokio::sync::mpsc;
use tokio::time::{Interval, interval};

use self::identity::Identity;
use self::overrides::ParseDuration;
use crate::supervisor::Supervisor;

/// Signals that wait for the engine. A full channel slows the watches down.
const SIGNALS_MAX: usize = 4096;
/// Between two times that the engine receives; the states of clusters follow from it.
const CLOCK_INTERVAL: Duration = Duration::from_secs(1);

/// Where the other clusters are configured.
#[derive(Clone, Debug)]
pub struct ClusterOptions {
    /// The kubeconfigs.
    pub directory: PathBuf,
    pub limits: ContactLimits,
    /// For the settings of one cluster.
    pub parse_duration: ParseDuration,
    /// The namespace of the Leases that say when a cluster was in contact last.
    pub lease_namespace: SharedStr,
    pub user_agent: String,
}

/// Everything about other clusters; nothing, unless the controller for them runs.
pub struct Clusters {
    clock: Option<Interval>,
    tasks: Option<ClusterTasks>,
}

impl Clusters {
    pub fn start(
        client: &Client,
        (home, options): (Option<ClusterId>, Option<ClusterOptions>),
        permit: WritePermit,
        supervisor: &mut Supervisor,
    ) -> Self {
        let clock = home.as_ref().map(|_| interval(CLOCK_INTERVAL));
        let start = |(home, options)| {
            ClusterTasks::start((client.clone(), home), options, permit, supervisor)
        };
        Self { clock, tasks: home.zip(options).map(start) }
    }

    /// Before anything else: the time, and whether there are no other clusters.
    pub fn first_inputs(&self) -> Vec<Input> {
        let time = self.clock.iter().map(|_| Input::Clock(Timestamp::now()));
        let is_alone = self.clock.is_some() && self.tasks.is_none();
        time.chain(is_alone.then_some(Input::SourcesListed)).collect()
    }

    /// Waits for an input, then adds it and others that are there. Cancel safe.
    pub async fn receive(&mut self, inputs: &mut Vec<Input>) {
        let Self { clock, tasks } = self;
        let tick = async {
            match clock {
                Some(interval) => drop(interval.tick().await),
                None => std::future::pending().await,
            }
        };
        let receive = async {
            match tasks {
                Some(tasks) => tasks.receive().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = tick => inputs.push(Input::Clock(Timestamp::now())),
            received = receive => inputs.extend(received),
        }
    }

    /// For live reads of a cluster; none while it is not known whether it is the right one.
    pub fn client(&self, cluster: &ClusterId) -> Option<Client> {
        self.tasks.as_ref()?.shared.clusters().get(cluster)?.client.clone()
    }

    /// Replaces all watches of a cluster by ones that begin with lists.
    pub fn relist(&self, cluster: &ClusterId) {
        if let Some(tasks) = &self.tasks
            && let Some(connected) = tasks.shared.clusters().get_mut(cluster)
        {
            connected.must_restart = true;
        }
    }

    pub fn on_statuses(&mut self, statuses: Vec<SourceStatus>) {
        if let Some(tasks) = &mut self.tasks {
            tasks.on_statuses(statuses);
        }
    }
}

/// Receives what happens to the other clusters.
struct ClusterTasks {
    receiver: mpsc::Receiver<Message>,
    shared: Arc<Shared>,
    states: BTreeMap<ClusterId, SourceState>,
}

/// Of a task of one cluster, or of the directory.
struct Message {
    /// The cluster and the number of its task: those of an earlier one are void.
    from: Option<(ClusterId, u64)>,
    input: Input,
}

/// What the tasks have in common.
struct Shared {
    home: Client,
    home_id: ClusterId,
    options: ClusterOptions,
    permit: WritePermit,
    sender: mpsc::Sender<Message>,
    clusters: Mutex<BTreeMap<ClusterId, Connected>>,
    statuses: Mutex<Vec<SourceStatus>>,
}

/// What is known of the connection to one cluster.
#[derive(Default)]
struct Connected {
    /// The number of the task that watches it.
    n_task: u64,
    identity: Identity,
    /// For live reads; none before its identity is known.
    client: Option<Client>,
    /// Its watches must begin with lists.
    must_restart: bool,
}

impl ClusterTasks {
    fn start(
        home: (Client, ClusterId),
        options: ClusterOptions,
        permit: WritePermit,
        supervisor: &mut Supervisor,
    ) -> Self {
        let (sender, receiver) = mpsc::channel(SIGNALS_MAX);
        let (home, home_id) = home;
        let shared = Arc::new(Shared {
            home,
            home_id,
            options,
            permit,
            sender,
            clusters: Mutex::default(),
            statuses: Mutex::default(),
        });
        supervisor.spawn("clusters", directory::run(shared.clone()));
        supervisor.spawn("leases of clusters", leases::run(shared.clone()));
        Self { receiver, shared, states: BTreeMap::new() }
    }

    /// Cancel safe.
    async fn receive(&mut self) -> Vec<Input> {
        let mut messages = Vec::new();
        self.receiver.recv_many(&mut messages, SIGNALS_MAX).await;
        let clusters = self.shared.clusters();
        let is_current = |message: &Message| match &message.from {
            Some((id, n_task)) => clusters.get(id).is_some_and(|one| one.n_task == *n_task),
            None => true,
        };
        messages.into_iter().filter(is_current).map(|message| message.input).collect()
    }

    /// Tells transitions once, and keeps the states for the Leases.
    fn on_statuses(&mut self, statuses: Vec<SourceStatus>) {
        for SourceStatus { cluster, state, last_contact, .. } in &statuses {
            let before = self.states.insert(cluster.clone(), *state);
            if before.map(SourceState::as_str) == Some(state.as_str()) {
                continue;
            }
            let last_contact = last_contact.map(tracing::field::display);
            match state {
                SourceState::Unknown | SourceState::InSync => {
                    tracing::info!(%cluster, state = state.as_str(), "state of a cluster");
                }
                SourceState::Lost { .. }
                | SourceState::Demoted { .. }
                | SourceState::Expired
                | SourceState::Removed => {
                    let state = state.as_str();
                    tracing::warn!(%cluster, state, last_contact, "state of a cluster");
                }
            }
        }
        *self.shared.statuses.lock().unwrap_or_else(PoisonError::into_inner) = statuses;
    }
}

impl Shared {
    fn clusters(&self) -> MutexGuard<'_, BTreeMap<ClusterId, Connected>> {
        self.clusters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn tell(&self, cluster: &ClusterId, input: SourceInput) {
        let input = Input::Source(cluster.clone(), input);
        // The event loop has ended if nobody receives it.
        let _ = self.sender.send(Message { from: None, input }).await;
    }
}
