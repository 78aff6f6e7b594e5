//! Starts the parts of a playground and stops them in order.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use endpointd_apiserver::http::{Shared, serve};
use endpointd_apiserver::store::Limits;
use endpointd_apiserver::{Server, Settings, SystemClockAndIds};
use endpointd_client::ConnectOptions;
use endpointd_page::{PageOptions, PlaygroundControls};
use endpointd_runtime::RunError;
use endpointd_status::StatusHandle;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use crate::apply;
use crate::cluster_set::Membership;
use crate::cluster_spec::{ClusterSpec, Size};
use crate::controls;
use crate::fake_controllers::{FakeControllers, TimeScale};
use crate::kubeconfig::{self, Kubeconfig, KubeconfigTarget, WriteError};
use crate::observer::Observer;
use crate::scenario::Scenario;
use crate::summary::{Memory, Summary};
use crate::view_state::{ViewState, Work};

/// Presses of buttons that wait; a page waits for its turn after that.
const PRESSES_MAX: usize = 16;

/// Validated options.
#[derive(Clone, Debug)]
pub struct Options {
    pub size: Size,
    pub workload: Workload,
    pub scenario: Scenario,
    pub seed: u64,
    pub time_scale: TimeScale,
    /// Zero: any free port.
    pub port: u16,
    /// Of the page and the other pages of the controllers. Zero: any free port.
    pub page_port: u16,
    pub kubeconfig: KubeconfigTarget,
    pub version: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// Services and Deployments.
    Default,
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

/// The port of an API server.
pub(crate) struct Bound {
    listener: TcpListener,
    pub port: u16,
}

impl Bound {
    /// Zero: any free port.
    pub async fn open(port: u16) -> Result<Self, StartError> {
        let bind = |reason| StartError::Bind { port, reason };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.map_err(bind)?;
        let port = listener.local_addr().map_err(bind)?.port();
        Ok(Self { listener, port })
    }
}

/// A running playground.
pub struct Playground {
    options: Options,
    shared: Shared,
    started: Instant,
    url: String,
    status_address: Option<SocketAddr>,
    kubeconfig: Arc<Kubeconfig>,
    name: Option<&'static str>,
    observer: Arc<Observer>,
    status: StatusHandle,
    stop: StopSignals,
    tasks: Tasks,
}

/// One stop signal for each part, because they stop one after the other.
struct StopSignals {
    fake_controllers: watch::Sender<bool>,
    controllers: oneshot::Sender<()>,
    server: oneshot::Sender<()>,
}

struct Tasks {
    fake_controllers: JoinHandle<()>,
    observer: JoinHandle<()>,
    controllers: JoinHandle<Result<(), RunError>>,
    server: JoinHandle<io::Result<()>>,
}

impl Playground {
    /// Returns when the controllers run; the initial objects are created afterwards.
    pub async fn start(options: Options) -> Result<Self, StartError> {
        let bound = Bound::open(options.port).await?;
        let servers = [(kubeconfig::USER, bound.port)];
        let kubeconfig = Arc::new(Kubeconfig::write(options.kubeconfig.clone(), &servers)?);
        Self::start_on(options, bound, kubeconfig, None).await
    }

    /// On a port, with a kubeconfig that has a context for it.
    pub(crate) async fn start_on(
        options: Options,
        bound: Bound,
        kubeconfig: Arc<Kubeconfig>,
        member: Option<Membership>,
    ) -> Result<Self, StartError> {
        let started = Instant::now();
        let Bound { listener, port } = bound;
        let spec = match options.workload {
            Workload::Default => ClusterSpec::generate(options.size, options.seed),
            Workload::None => ClusterSpec::empty(options.size, options.seed),
        };
        let server = Server::new(Box::new(SystemClockAndIds), settings(spec.n_pods()));
        let shared = Shared::new(server);
        let (stop_server, server_stopped) = oneshot::channel();
        let serving = serve(listener, shared.clone(), wait_for_stop(server_stopped));
        let server = tokio::spawn(serving);

        let observer = Arc::new(Observer::new(spec.n_pods()));
        let (stop_fake_controllers, fake_controllers_stopped) = watch::channel(false);
        let observing = {
            let (observer, shared) = (observer.clone(), shared.clone());
            let stop = fake_controllers_stopped.clone();
            tokio::spawn(async move { observer.run(shared, started, stop).await })
        };
        let (sender, requests) = mpsc::channel(PRESSES_MAX);
        let actions = controls::actions(options.workload);
        let buttons = PlaygroundControls::new(actions, sender);
        let starting = start_controllers(&options, (kubeconfig.path(), member.as_ref()), buttons);
        let (status, status_address, stop_controllers, controllers) = starting.await?;

        let exports = member.as_ref().map_or(&[][..], Membership::exports);
        shared
            .with(|server| apply::create_objects(server, &spec, exports))
            .expect("the API server accepts the initial objects");
        let fake_controllers = FakeControllers {
            shared: shared.clone(),
            shown_by: member.as_ref().and_then(Membership::shown_by),
            first_node: member.as_ref().map_or(0, Membership::first_node),
            spec,
            scenario: options.scenario,
            seed: options.seed,
            time_scale: options.time_scale,
            observer: observer.clone(),
            started,
            requests,
        };
        let fake_controllers = tokio::spawn(fake_controllers.run(fake_controllers_stopped));
        Ok(Self {
            options,
            shared,
            started,
            url: format!("http://127.0.0.1:{port}"),
            status_address,
            kubeconfig,
            name: member.map(|member| member.name),
            observer,
            status,
            stop: StopSignals {
                fake_controllers: stop_fake_controllers,
                controllers: stop_controllers,
                server: stop_server,
            },
            tasks: Tasks { fake_controllers, observer: observing, controllers, server },
        })
    }

    pub(crate) fn observer(&self) -> Arc<Observer> {
        self.observer.clone()
    }

    /// Of one of several clusters.
    pub fn name(&self) -> Option<&'static str> {
        self.name
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// The live page.
    pub fn page_url(&self) -> Option<String> {
        self.status_address.map(|address| format!("http://{address}{}", endpointd_page::PATH))
    }

    /// The address of the controllers' status server.
    pub fn status_address(&self) -> Option<SocketAddr> {
        self.status_address
    }

    pub fn kubeconfig(&self) -> &Path {
        self.kubeconfig.path()
    }

    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The API server, for callers in this process.
    pub fn server(&self) -> &Shared {
        &self.shared
    }

    pub fn view_state(&self) -> ViewState {
        self.observer.view_state(self.started.elapsed(), work(&self.status))
    }

    /// Stops the scenario, then the controllers, then the server.
    pub async fn stop(self) -> Summary {
        let Self { options, shared, started, observer, status, stop, tasks, kubeconfig, .. } = self;
        let view_state = observer.view_state(started.elapsed(), work(&status));
        let memory = Memory::of_this_process();
        // A send fails only if the receiver has stopped.
        let _ = stop.fake_controllers.send(true);
        let _ = (tasks.fake_controllers.await, tasks.observer.await);
        let _ = stop.controllers.send(());
        let _ = tasks.controllers.await;
        let _ = stop.server.send(());
        let _ = tasks.server.await;
        drop((shared, kubeconfig));
        Summary {
            scenario: options.scenario.name(),
            seed: options.seed,
            view_state,
            milestones: observer.milestones(),
            memory,
        }
    }
}

/// Limits the history that is kept for watches.
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

/// Starts the controllers in this process, as `endpointd run` does; they connect over TCP.
async fn start_controllers(
    options: &Options,
    (kubeconfig, member): (&Path, Option<&Membership>),
    buttons: PlaygroundControls,
) -> Result<Controllers, RunError> {
    let connect = ConnectOptions {
        kubeconfig: Some(kubeconfig.to_owned()),
        context: member.map(|member| member.name.to_owned()),
        user_agent: format!("endpointd/{}", options.version),
        ..ConnectOptions::default()
    };
    let mut settings = endpointd_engine::Settings {
        seed: options.seed,
        ..endpointd_engine::Settings::of_all_controllers()
    };
    if let Some(member) = member {
        member.add_to(&mut settings);
    }
    let clusters = member.map(|member| member.cluster_options(&connect.user_agent));
    let page = PageOptions {
        connect: connect.clone(),
        settings: settings.plan.clone(),
        playground: Some(buttons),
    };
    let run_options = endpointd_runtime::Options {
        connect,
        settings,
        election: None,
        status: Some((Ipv4Addr::LOCALHOST, options.page_port).into()),
        secure_serving: None,
        added_pages: Some(Box::new(|status, _| endpointd_page::router(page, status))),
        clusters,
        version: options.version.as_str().into(),
    };
    let (stop, stopped) = oneshot::channel();
    let (sender, running) = oneshot::channel();
    let task = tokio::spawn(async move {
        let started = move |running: endpointd_runtime::Running| {
            let _ = sender.send((running.status, running.address));
        };
        endpointd_runtime::run(run_options, started, wait_for_stop(stopped)).await
    });
    match running.await {
        Ok((status, status_address)) => Ok((status, status_address, stop, task)),
        // The controllers stopped before they were ready.
        Err(_) => match task.await {
            Ok(Err(error)) => Err(error),
            Ok(Ok(())) | Err(_) => panic!("the controllers ended without a reason"),
        },
    }
}

async fn wait_for_stop(stopped: oneshot::Receiver<()>) {
    // A dropped sender is a stop signal, too.
    let _ = stopped.await;
}

fn work(status: &StatusHandle) -> Work {
    let Some((report, _)) = status.snapshot().engine else { return Work::default() };
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
