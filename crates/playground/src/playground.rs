//! Puts the parts together and takes them down again in order.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use endpointd_apiserver::http::{Shared, serve};
use endpointd_apiserver::store::Limits;
use endpointd_apiserver::{Server, Settings, SystemStamps};
use endpointd_client::ConnectOptions;
use endpointd_runtime::{PollBatcher, RunError};
use endpointd_status::StatusHandle;
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use crate::kubeconfig::{Kubeconfig, Place, WriteError};
use crate::observer::Observer;
use crate::perform;
use crate::picture::{Picture, Work};
use crate::standin::{StandIn, Tempo};
use crate::story::Scenario;
use crate::summary::{Memory, Summary};
use crate::world::{Size, World};

/// What to play, already checked.
#[derive(Clone, Debug)]
pub struct Options {
    pub size: Size,
    pub workload: Workload,
    pub scenario: Scenario,
    pub seed: u64,
    pub tempo: Tempo,
    /// Zero: any that is free.
    pub port: u16,
    pub kubeconfig: Place,
    pub version: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// Services, and the Deployments behind them.
    World,
    /// Nodes only.
    None,
}

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("cannot listen on `127.0.0.1:{port}`: {reason}")]
    Bind { port: u16, reason: io::Error },
    #[error(transparent)]
    Kubeconfig(#[from] WriteError),
    #[error(transparent)]
    Controllers(#[from] RunError),
}

/// A running one.
pub struct Playground {
    options: Options,
    shared: Shared,
    started: Instant,
    url: String,
    pages: Option<SocketAddr>,
    kubeconfig: Kubeconfig,
    observer: Arc<Observer>,
    board: StatusHandle,
    stop: Stops,
    tasks: Tasks,
}

/// One switch for each that must stop before the next may.
struct Stops {
    stand_in: watch::Sender<bool>,
    controllers: oneshot::Sender<()>,
    server: oneshot::Sender<()>,
}

struct Tasks {
    stand_in: JoinHandle<()>,
    observer: JoinHandle<()>,
    controllers: JoinHandle<Result<(), RunError>>,
    server: JoinHandle<io::Result<()>>,
}

impl Playground {
    /// Returns when the controllers run; the world comes up by and by.
    pub async fn start(options: Options) -> Result<Self, StartError> {
        let started = Instant::now();
        let port = options.port;
        let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await;
        let bind = |reason| StartError::Bind { port, reason };
        let listener = bound.map_err(bind)?;
        let port = listener.local_addr().map_err(bind)?.port();
        let kubeconfig = Kubeconfig::write(options.kubeconfig.clone(), port)?;

        let world = match options.workload {
            Workload::World => World::generate(options.size, options.seed),
            Workload::None => World::empty(options.size, options.seed),
        };
        let server = Server::new(Box::new(SystemStamps), settings(world.n_pods()));
        let shared = Shared::new(server);
        let (stop_server, server_stopped) = oneshot::channel();
        let serving = serve(listener, shared.clone(), heard(server_stopped));
        let server = tokio::spawn(serving);

        let observer = Arc::new(Observer::new(world.n_pods()));
        let (stop_stand_in, stand_in_stopped) = watch::channel(false);
        let watching = {
            let (observer, shared) = (observer.clone(), shared.clone());
            let stop = stand_in_stopped.clone();
            tokio::spawn(async move { observer.run(shared, started, stop).await })
        };
        let begun = begin_controllers(&options, kubeconfig.path());
        let (board, pages, stop_controllers, controllers) = begun.await?;

        shared
            .with(|server| perform::create_world(server, &world))
            .expect("the API server takes the objects of the world");
        let stand_in = StandIn {
            shared: shared.clone(),
            world,
            scenario: options.scenario,
            seed: options.seed,
            tempo: options.tempo,
            observer: observer.clone(),
            started,
        };
        let stand_in = tokio::spawn(stand_in.run(stand_in_stopped));
        Ok(Self {
            options,
            shared,
            started,
            url: format!("http://127.0.0.1:{port}"),
            pages,
            kubeconfig,
            observer,
            board,
            stop: Stops {
                stand_in: stop_stand_in,
                controllers: stop_controllers,
                server: stop_server,
            },
            tasks: Tasks { stand_in, observer: watching, controllers, server },
        })
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// Where the controllers show what they know and do.
    pub fn pages(&self) -> Option<SocketAddr> {
        self.pages
    }

    pub fn kubeconfig(&self) -> &Path {
        self.kubeconfig.path()
    }

    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The API server itself, for whoever is in the same process.
    pub fn server(&self) -> &Shared {
        &self.shared
    }

    pub fn picture(&self) -> Picture {
        self.observer.picture(self.started.elapsed(), work(&self.board))
    }

    /// Stops the story, then the controllers, then the server.
    pub async fn stop(self) -> Summary {
        let Self { options, shared, started, observer, board, stop, tasks, kubeconfig, .. } = self;
        let picture = observer.picture(started.elapsed(), work(&board));
        let memory = Memory::of_this_process();
        // Who is gone already need not be told, and how they ended changes nothing.
        let _ = stop.stand_in.send(true);
        let _ = (tasks.stand_in.await, tasks.observer.await);
        let _ = stop.controllers.send(());
        let _ = tasks.controllers.await;
        let _ = stop.server.send(());
        let _ = tasks.server.await;
        drop((shared, kubeconfig));
        Summary {
            scenario: options.scenario.name(),
            seed: options.seed,
            picture,
            milestones: observer.milestones(),
            memory,
        }
    }
}

/// The past is kept for watchers that are a little behind, not for ever.
fn settings(n_pods: usize) -> Settings {
    const CHANGED_BYTES: usize = 8 << 20;
    const CHANGED_BYTES_PER_POD: usize = 128;
    let limits = Limits {
        changes_max: 10_000 + n_pods,
        changed_bytes_max: CHANGED_BYTES + n_pods * CHANGED_BYTES_PER_POD,
    };
    Settings { limits, ..Settings::default() }
}

type Controllers =
    (StatusHandle, Option<SocketAddr>, oneshot::Sender<()>, JoinHandle<Result<(), RunError>>);

/// `endpointd run`, in this process, over TCP like everybody else.
async fn begin_controllers(options: &Options, kubeconfig: &Path) -> Result<Controllers, RunError> {
    let run_options = endpointd_runtime::Options {
        connect: ConnectOptions {
            kubeconfig: Some(kubeconfig.to_owned()),
            user_agent: format!("endpointd/{}", options.version),
            ..ConnectOptions::default()
        },
        settings: endpointd_engine::Settings {
            seed: options.seed,
            ..endpointd_engine::Settings::default()
        },
        election: None,
        status: Some((Ipv4Addr::LOCALHOST, 0).into()),
        version: options.version.as_str().into(),
        pace: PollBatcher::default(),
    };
    let (stop, stopped) = oneshot::channel();
    let (sender, running) = oneshot::channel();
    let task = tokio::spawn(async move {
        let started = move |running: endpointd_runtime::Running| {
            let _ = sender.send((running.board, running.address));
        };
        endpointd_runtime::run(run_options, started, heard(stopped)).await
    });
    match running.await {
        Ok((board, pages)) => Ok((board, pages, stop, task)),
        // It ended before it began.
        Err(_) => match task.await {
            Ok(Err(error)) => Err(error),
            Ok(Ok(())) | Err(_) => panic!("the controllers ended without a reason"),
        },
    }
}

async fn heard(stopped: oneshot::Receiver<()>) {
    // A dropped sender says the same.
    let _ = stopped.await;
}

fn work(board: &StatusHandle) -> Work {
    let Some((report, _)) = board.view().report else { return Work::default() };
    let sum = |count: fn(&endpointd_engine::ControllerStatus) -> usize| -> usize {
        report.controllers.iter().map(count).sum()
    };
    Work {
        is_ready: report.is_ready(),
        n_waiting: sum(|one| one.n_waiting),
        n_in_flight: sum(|one| one.n_in_flight),
        n_backing_off: sum(|one| one.n_backing_off),
        error: report.keys.iter().find_map(|key| {
            let error = key.last_error.as_ref()?;
            Some(format!("{}: {error}", key.key))
        }),
    }
}
