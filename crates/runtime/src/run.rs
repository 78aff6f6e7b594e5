//! Starts the parts of the daemon, runs the event loop, and stops the parts in order.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::time::Instant;

use endpointd_client::election::{ElectionOptions, InvalidElectionConfig, WritePermit};
use endpointd_client::recorder::Recorder;
use endpointd_client::{Client, ConnectError, ConnectOptions};
use endpointd_engine::{Engine, Settings, WriteMode};
use endpointd_model::SharedStr;
use endpointd_secure_serving::TlsError;
use endpointd_status::{
    AddedPages, KeyQueries, LeadershipStatus, Metrics, ProcessInfo, StatusHandle,
};

use crate::change_recorder::ChangeRecorder;
use crate::clusters::{ClusterOptions, Clusters};
use crate::dispatcher::RequestDispatcher;
use crate::event_loop::EventLoop;
use crate::leadership::Leadership;
use crate::listeners::{Listeners, SecureServing};
use crate::shadow::Shadow;
use crate::status_publisher::StatusPublisher;
use crate::status_server::{Pages, StatusServer};
use crate::supervisor::{Supervisor, TaskEnd};
use crate::watches::WatchTasks;

pub struct Options {
    pub connect: ConnectOptions,
    pub settings: Settings,
    /// `None`: no leader election, this process always writes.
    pub election: Option<ElectionOptions>,
    /// Where the pages are served over plain HTTP, for processes of the same host; `None`: nowhere.
    pub status: Option<SocketAddr>,
    /// Where the pages are served over HTTPS to those who may see them; `None`: nowhere.
    pub secure_serving: Option<SecureServing>,
    /// Further pages for the loopback server.
    pub added_pages: Option<AddedPages>,
    /// Where the other clusters of the set are configured; `None`: there are none.
    pub clusters: Option<ClusterOptions>,
    pub version: SharedStr,
}

/// Handles for a caller in the same process.
pub struct Running {
    pub status: StatusHandle,
    pub metrics: Metrics,
    /// The address of the plain HTTP server, if there is one.
    pub address: Option<SocketAddr>,
    /// The address of the HTTPS server, if there is one.
    pub secure_address: Option<SocketAddr>,
}

#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error("cannot serve pages on `{address}`: {reason}")]
    Bind { address: SocketAddr, reason: io::Error },
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error(transparent)]
    Election(#[from] InvalidElectionConfig),
    #[error("cannot start the thread of the status server: {0}")]
    Thread(io::Error),
    #[error(transparent)]
    TaskEnd(#[from] TaskEnd),
}

/// Runs the controllers until `shutdown` resolves; then waits for requests in flight and releases
/// the lease. Fails when a task that must run ends. `on_start` is called once everything is set up.
pub async fn run(
    options: Options,
    on_start: impl FnOnce(Running),
    shutdown: impl Future<Output = ()>,
) -> Result<(), RunError> {
    let Options {
        connect,
        settings,
        election,
        status,
        secure_serving,
        added_pages,
        clusters,
        version,
    } = options;
    if let Some(election) = &election {
        election.check()?;
    }
    let client = Client::connect(connect.clone()).await?;
    let listeners = Listeners::open(status, secure_serving, connect).await?;
    let (address, secure_address) = (listeners.address(), listeners.secure_address());
    match settings.write_mode {
        WriteMode::Send => {}
        WriteMode::DryRun => tracing::info!("dry run: writes nothing, takes no lease"),
    }
    tracing::info!(
        server = client.server(),
        status_address = address.map(tracing::field::display),
        secure_address = secure_address.map(tracing::field::display),
        "starting"
    );
    let process = process_info(version, election.as_ref());
    let (status, key_queries) =
        StatusHandle::new(process, initial_leadership(settings.write_mode, election.as_ref()));
    let metrics = Metrics::new();
    on_start(Running { status: status.clone(), metrics: metrics.clone(), address, secure_address });

    let parts = Parts {
        client,
        settings,
        election,
        listeners,
        added_pages,
        clusters,
        status,
        key_queries,
        metrics,
    };
    let (mut event_loop, server) = parts.start()?;
    let ended = event_loop.run_until(shutdown).await;
    let EventLoop { leadership, watches, mut supervisor, dispatcher, .. } = event_loop;
    // No write may leave after the lease is released.
    drop(dispatcher);
    leadership.release().await;
    watches.stop();
    if let Some(server) = server {
        server.stop(&mut supervisor).await;
    }
    tracing::info!("stopped");
    Ok(ended?)
}

/// What the event loop is made of.
struct Parts {
    client: Client,
    settings: Settings,
    election: Option<ElectionOptions>,
    listeners: Listeners,
    added_pages: Option<AddedPages>,
    clusters: Option<ClusterOptions>,
    status: StatusHandle,
    key_queries: KeyQueries,
    metrics: Metrics,
}

impl Parts {
    /// Spawns all tasks.
    fn start(self) -> Result<(EventLoop, Option<StatusServer>), RunError> {
        let Self {
            client,
            settings,
            election,
            listeners,
            added_pages,
            clusters,
            status,
            key_queries,
            metrics,
        } = self;
        let mut supervisor = Supervisor::default();
        let pages = Pages { status: status.clone(), metrics: metrics.clone(), added_pages };
        let server = StatusServer::start(listeners, pages, &mut supervisor);
        let server = server.map_err(RunError::Thread)?;
        let leadership = Leadership::start(client.clone(), election, &mut supervisor)?;
        let (recorder, recorder_task) = Recorder::new(client.clone());
        supervisor.spawn("events", recorder_task);
        let write_mode = settings.write_mode;
        let home = settings.clusters.as_ref().map(|settings| settings.home.clone());
        let engine = Engine::new(settings);
        let resources = engine.watched_resources();
        let watches = WatchTasks::start(&client, &resources, &mut supervisor);
        let (permit, shadow) = match write_mode {
            WriteMode::Send => (leadership.permit(), None),
            WriteMode::DryRun => (WritePermit::Never, Some(Shadow::default())),
        };
        let clusters =
            Clusters::start(&client, (home, clusters), leadership.permit(), &mut supervisor);
        let changes = ChangeRecorder::new(status.change_log(), write_mode);
        let event_loop = EventLoop {
            engine,
            supervisor,
            watches,
            dispatcher: RequestDispatcher::new(client.clone(), permit, metrics.clone()),
            leadership,
            recorder: recorder.clone(),
            key_queries,
            rollbacks: client.rollbacks(),
            publisher: StatusPublisher::new(status, metrics, client, recorder, shadow),
            changes,
            clusters,
            started: Instant::now(),
        };
        Ok((event_loop, server))
    }
}

fn process_info(version: SharedStr, election: Option<&ElectionOptions>) -> ProcessInfo {
    let identity = election.map_or("no_election", |election| &election.identity);
    ProcessInfo { version, identity: identity.into() }
}

fn initial_leadership(
    write_mode: WriteMode,
    election: Option<&ElectionOptions>,
) -> LeadershipStatus {
    match (write_mode, election) {
        (WriteMode::DryRun, _) => LeadershipStatus::DryRun,
        (WriteMode::Send, None) => LeadershipStatus::NoElection,
        (WriteMode::Send, Some(election)) => {
            LeadershipStatus::Standby { lease: election.lease.name.clone(), holder: None }
        }
    }
}

#[cfg(test)]
mod tests;
