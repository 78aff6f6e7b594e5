//! A bounded HTTP server. The port is reachable from anywhere in the cluster, and the kubelet's
//! probes use it: idle or slow clients must neither pile up nor keep the probes waiting for long.

use std::convert::Infallible;
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

/// Connections served at once. Further ones wait to be accepted.
const CONNECTIONS_MAX: usize = 128;
/// From accepting a connection to the last byte of its only response; then it is closed.
const CONNECTION_AGE_MAX: Duration = Duration::from_secs(30);
/// For responses in flight when the process shuts down.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);
/// After a failed accept; most likely no file descriptors are left.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// Serves until `shutdown` resolves, then lets the responses in flight finish.
pub(crate) async fn serve(listener: TcpListener, router: Router, shutdown: impl Future) {
    let mut connections = JoinSet::new();
    tokio::select! {
        never = accept(&listener, &router, &mut connections) => match never {},
        _ = shutdown => {}
    }
    drop(listener);
    let finish = async { while connections.join_next().await.is_some() {} };
    // Connections that are still open after that are closed when the set is dropped.
    let _ = timeout(SHUTDOWN_GRACE, finish).await;
}

async fn accept(
    listener: &TcpListener,
    router: &Router,
    connections: &mut JoinSet<()>,
) -> Infallible {
    let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let slot = slots.clone().acquire_owned().await.expect("the semaphore is never closed");
        // Finished tasks would otherwise stay in the set.
        while connections.try_join_next().is_some() {}
        let Ok((stream, _)) = listener.accept().await else {
            sleep(ACCEPT_RETRY).await;
            continue;
        };
        let router = router.clone();
        connections.spawn(async move {
            serve_connection(stream, router).await;
            drop(slot);
        });
    }
}

/// One request per connection, so that no client holds a slot between two scrapes. Errors concern
/// only the client and are ignored.
async fn serve_connection(stream: TcpStream, router: Router) {
    let connection = http1::Builder::new()
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    let _ = timeout(CONNECTION_AGE_MAX, connection).await;
}
