//! Connections with bounds. The port is open to whoever reaches the pod, and the kubelet's probes
//! come through it: idle or slow visitors must neither pile up nor keep the probes out for long.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// At once. Further ones wait to be accepted.
const CONNECTIONS_MAX: usize = 128;
/// From accepting a connection to the last byte of its only answer; then it is cut.
const CONNECTION_AGE_MAX: Duration = Duration::from_secs(30);
/// For the answers under way when the process is told to end.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);
/// After a failed accept, most likely for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Answers until `shutdown` resolves, then lets the answers under way finish.
pub(crate) async fn answer(listener: TcpListener, router: Router, shutdown: impl Future) {
    let mut answers = JoinSet::new();
    tokio::select! {
        never = accept(&listener, &router, &mut answers) => match never {},
        _ = shutdown => {}
    }
    drop(listener);
    let all = async { while answers.join_next().await.is_some() {} };
    // What is not finished by then is cut when the set is dropped.
    let _ = timeout(SHUTDOWN_GRACE, all).await;
}

async fn accept(
    listener: &TcpListener,
    router: &Router,
    answers: &mut JoinSet<()>,
) -> std::convert::Infallible {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let place = places.clone().acquire_owned().await.expect("nobody closes it");
        // Those that have finished would otherwise stay in the set.
        while answers.try_join_next().is_some() {}
        let Ok((stream, _)) = listener.accept().await else {
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let router = router.clone();
        answers.spawn(async move {
            answer_one(stream, router).await;
            drop(place);
        });
    }
}

/// One request a connection: nobody holds a place between two scrapes. What goes wrong here is the
/// visitor's affair.
async fn answer_one(stream: TcpStream, router: Router) {
    let connection = http1::Builder::new()
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    let _ = timeout(CONNECTION_AGE_MAX, connection).await;
}
