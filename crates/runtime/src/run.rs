//! Puts the parts together and takes them down again in order.

use std::future::Future;
use std::io;
use std::net::SocketAddr;

use endpointd_client::election::{ElectionOptions, InvalidElectionConfig};
use endpointd_client::recorder::Recorder;
use endpointd_client::{Client, ConnectError, ConnectOptions};
use endpointd_engine::{Engine, Settings};
use endpointd_model::SharedStr;
use endpointd_status::{LeadershipStatus, Metrics, ProcessInfo, StatusHandle, serve};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::drive::{EventLoop, StatusState};
use crate::errands::RequestDispatcher;
use crate::feeds::WatchTasks;
use crate::office::Leadership;
use crate::pace::PollBatcher;

pub struct Options {
    pub connect: ConnectOptions,
    pub settings: Settings,
    /// Absent: this process leads, whoever else runs.
    pub election: Option<ElectionOptions>,
    /// Where metrics and health are served; absent: not_found.
    pub status: Option<SocketAddr>,
    pub version: SharedStr,
    /// For a thread that has nothing else to do; others leave it alone.
    pub pace: PollBatcher,
}

/// What a caller in the same process may look at.
pub struct Running {
    pub board: StatusHandle,
    pub metrics: Metrics,
    /// Where the pages are, if they are served.
    pub address: Option<SocketAddr>,
}

#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error("cannot serve metrics on `{address}`: {reason}")]
    Bind { address: SocketAddr, reason: io::Error },
    #[error(transparent)]
    Election(#[from] InvalidElectionConfig),
}

/// Runs the controllers until `shutdown` resolves; then finishes what is in flight and hands back
/// the lease. `started` hears once everything is set up.
pub async fn run(
    options: Options,
    started: impl FnOnce(Running),
    shutdown: impl Future<Output = ()>,
) -> Result<(), RunError> {
    let Options { connect, settings, election, status, version, pace } = options;
    if let Some(election) = &election {
        election.check()?;
    }
    let client = Client::connect(connect).await?;
    let listener = match status {
        Some(address) => Some(bind(address).await?),
        None => None,
    };
    let metrics = Metrics::new();
    let identity = election.as_ref().map_or("alone", |election| &election.identity);
    let about = ProcessInfo { version, identity: identity.into() };
    let board = StatusHandle::new(about, first_leadership(election.as_ref()));
    let address = listener.as_ref().and_then(|listener| listener.local_addr().ok());
    tracing::info!(
        server = client.server(),
        pages = address.map(tracing::field::display),
        "starting"
    );
    started(Running { board: board.clone(), metrics: metrics.clone(), address });

    let (stop_pages, pages_stopped) = oneshot::channel::<()>();
    let pages = listener.map(|listener| {
        let stopped = async move { drop(pages_stopped.await) };
        tokio::spawn(serve(listener, board.clone(), metrics.clone(), stopped))
    });
    let engine = Engine::new(settings);
    let mut office = Leadership::open(client.clone(), election)?;
    let mut drive = EventLoop {
        feeds: WatchTasks::start(&client, &engine.watched_resources()),
        errands: RequestDispatcher::new(client.clone(), office.term(), metrics.clone()),
        recorder: Recorder::start(client.clone()),
        engine,
        board,
        metrics,
        client,
        pace,
        log: StatusState::default(),
    };
    drive.until(&mut office, shutdown).await;
    office.close().await;
    drop(stop_pages);
    if let Some(pages) = pages {
        // Its end was asked for; how it ended changes nothing.
        let _ = pages.await;
    }
    tracing::info!("stopped");
    Ok(())
}

async fn bind(address: SocketAddr) -> Result<TcpListener, RunError> {
    TcpListener::bind(address).await.map_err(|reason| RunError::Bind { address, reason })
}

fn first_leadership(election: Option<&ElectionOptions>) -> LeadershipStatus {
    match election {
        None => LeadershipStatus::Alone,
        Some(election) => {
            LeadershipStatus::Standby { lease: election.lease.name.clone(), holder: None }
        }
    }
}
