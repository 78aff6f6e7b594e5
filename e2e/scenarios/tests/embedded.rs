//! Every scenario, under endpointd on the embedded API server, converges to the state recorded
//! under kube-controller-manager on a real API server. Needs neither Go nor a control plane.

use std::future::pending;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use endpointd_apiserver::http::{Shared, serve};
use endpointd_apiserver::{Server, Settings, SystemClockAndIds};
use endpointd_client::ConnectOptions;
use endpointd_control_plane::Api;
use endpointd_scenarios::{SCENARIOS, Scenario, difference, recorded, run_scenario};
use libtest_mimic::{Arguments, Failed, Trial};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

/// More than there are cores, because scenarios wait most of the time.
const CONCURRENCY: usize = 12;
const READY_MAX: Duration = Duration::from_secs(10);

fn main() {
    let mut arguments = Arguments::from_args();
    arguments.test_threads = arguments.test_threads.or(Some(CONCURRENCY));
    let runtime = Runtime::new().expect("threads");
    let api = (!arguments.list).then(|| Arc::new(start(&runtime)));
    let trials = SCENARIOS.iter().map(|scenario| {
        let api = api.clone();
        Trial::test(scenario.name, move || match &api {
            Some(api) => compare(scenario, api),
            None => Ok(()),
        })
    });
    let conclusion = libtest_mimic::run(&arguments, trials.collect());
    runtime.shutdown_background();
    conclusion.exit();
}

fn compare(scenario: &'static Scenario, api: &Api) -> Result<(), Failed> {
    let theirs = recorded::load(scenario)?;
    let ours = run_scenario(scenario, api);
    match difference(("kube-controller-manager", &theirs), ("endpointd", &ours)) {
        Some(difference) => Err(difference.into()),
        None => Ok(()),
    }
}

/// Runs the server and the daemon in this process; returns when the daemon is ready.
fn start(runtime: &Runtime) -> Api {
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("it is bound"));
    let server = Server::new(Box::new(SystemClockAndIds), Settings::default());
    runtime.spawn(serve(listener, Shared::new(server), pending()));
    let options = endpointd_runtime::Options {
        connect: ConnectOptions {
            server: Some(url.clone()),
            user_agent: "endpointd-scenarios".to_owned(),
            ..ConnectOptions::default()
        },
        settings: endpointd_engine::Settings::default(),
        election: None,
        status: None,
        secure_serving: None,
        added_pages: None,
        clusters: None,
        version: "test".into(),
    };
    let (sender, receiver) = std::sync::mpsc::channel();
    runtime.spawn(async move {
        let started = move |running: endpointd_runtime::Running| {
            sender.send(running.status).expect("the test waits for it");
        };
        endpointd_runtime::run(options, started, pending()).await.expect("it runs");
    });
    let board = receiver.recv().expect("it starts");
    let started = Instant::now();
    while !board.snapshot().engine.is_some_and(|(report, _)| report.is_ready()) {
        assert!(started.elapsed() < READY_MAX, "not ready after {READY_MAX:?}");
        thread::sleep(Duration::from_millis(20));
    }
    Api::plain(&url)
}
