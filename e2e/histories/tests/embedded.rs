//! Every history, under endpointd on the embedded API server, settles on what
//! kube-controller-manager made of it on a real one. Needs neither Go nor a control plane.

use std::future::pending;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use endpointd_apiserver::http::{Shared, serve};
use endpointd_apiserver::{Server, Settings, SystemStamps};
use endpointd_client::ConnectOptions;
use endpointd_control_plane::Api;
use endpointd_histories::{HISTORIES, History, difference, play, recorded};
use libtest_mimic::{Arguments, Failed, Trial};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

/// Histories wait most of the time.
const AT_ONCE: usize = 12;
const READY_MAX: Duration = Duration::from_secs(10);

fn main() {
    let mut arguments = Arguments::from_args();
    arguments.test_threads = arguments.test_threads.or(Some(AT_ONCE));
    let runtime = Runtime::new().expect("threads");
    let api = (!arguments.list).then(|| Arc::new(start(&runtime)));
    let trials = HISTORIES.iter().map(|history| {
        let api = api.clone();
        Trial::test(history.name, move || match &api {
            Some(api) => compare(history, api),
            None => Ok(()),
        })
    });
    let conclusion = libtest_mimic::run(&arguments, trials.collect());
    runtime.shutdown_background();
    conclusion.exit();
}

fn compare(history: &'static History, api: &Api) -> Result<(), Failed> {
    let theirs = recorded::load(history)?;
    let ours = play(history, api);
    match difference(("kube-controller-manager", &theirs), ("endpointd", &ours)) {
        Some(difference) => Err(difference.into()),
        None => Ok(()),
    }
}

/// The server and the daemon in this process; returns when the daemon is ready.
fn start(runtime: &Runtime) -> Api {
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("it is bound"));
    let server = Server::new(Box::new(SystemStamps), Settings::default());
    runtime.spawn(serve(listener, Shared::new(server), pending()));
    let options = endpointd_runtime::Options {
        connect: ConnectOptions {
            server: Some(url.clone()),
            user_agent: "endpointd-histories".to_owned(),
            ..ConnectOptions::default()
        },
        settings: endpointd_engine::Settings::default(),
        election: None,
        status: None,
        version: "test".into(),
        pace: endpointd_runtime::PollBatcher::default(),
    };
    let (sender, receiver) = std::sync::mpsc::channel();
    runtime.spawn(async move {
        let started = move |running: endpointd_runtime::Running| {
            sender.send(running.board).expect("the test waits for it");
        };
        endpointd_runtime::run(options, started, pending()).await.expect("it runs");
    });
    let board = receiver.recv().expect("it starts");
    let asked = Instant::now();
    while !board.view().report.is_some_and(|(report, _)| report.is_ready()) {
        assert!(asked.elapsed() < READY_MAX, "not ready after {READY_MAX:?}");
        thread::sleep(Duration::from_millis(20));
    }
    Api::plain(&url)
}
