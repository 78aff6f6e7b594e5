//! A bounded HTTP server. The port may be reachable from anywhere in the cluster, and the kubelet's
//! probes use it: idle, slow, or many clients must neither pile up nor keep the probes waiting.

use std::convert::Infallible;
use std::future::{Future, ready};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderValue, Request, Response, StatusCode, header};
use endpointd_secure_serving::{ClientCertificate, Tls};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, oneshot, watch};
use tokio::task::{JoinSet, yield_now};
use tokio::time::{sleep, timeout};

use crate::places::{Places, is_stream};

/// From accepting a connection to the end of its request header; then it is closed.
const HEADER_MAX: Duration = Duration::from_secs(3);
/// From the request header to the last byte of the only response, unless that is a stream.
const RESPONSE_MAX: Duration = Duration::from_secs(30);
/// For responses in flight when the process shuts down.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);
/// After a failed accept; most likely no file descriptors are left.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);
/// Connections accepted before those that were accepted get their turn.
const ACCEPTS_PER_TURN: u64 = 16;

/// Where connections come from, and whether they are encrypted.
pub(crate) struct Listener {
    pub tcp: TcpListener,
    pub tls: Option<Tls>,
}

/// Serves until `shutdown` resolves, then lets the responses in flight finish.
pub(crate) async fn serve(listener: Listener, router: Router, shutdown: impl Future) {
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

async fn accept(listener: &Listener, router: &Router, connections: &mut JoinSet<()>) -> Infallible {
    let places = Arc::new(Places::default());
    let mut id = 0;
    loop {
        // Finished tasks would otherwise stay in the set.
        while connections.try_join_next().is_some() {}
        let Ok((stream, _)) = listener.tcp.accept().await else {
            sleep(ACCEPT_RETRY).await;
            continue;
        };
        id += 1;
        let evicted = places.wait(id);
        let connection = Connection::new(id, router.clone(), places.clone());
        match &listener.tls {
            None => connections.spawn(connection.serve(ready(Ok((stream, None))), evicted)),
            Some(tls) => {
                let tls = tls.clone();
                let handshake = async move { tls.accept(stream).await };
                connections.spawn(connection.serve(handshake, evicted))
            }
        };
        if id % ACCEPTS_PER_TURN == 0 {
            yield_now().await;
        }
    }
}

/// How far a connection is; each phase has a time limit.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Header,
    Response,
    Stream,
}

/// One request per connection, so that no client holds a place between two scrapes.
struct Connection {
    id: u64,
    router: Router,
    places: Arc<Places>,
    phase: watch::Sender<Phase>,
    /// Kept until the connection ends.
    place: Mutex<Option<OwnedSemaphorePermit>>,
}

impl Connection {
    fn new(id: u64, router: Router, places: Arc<Places>) -> Self {
        let phase = watch::Sender::new(Phase::Header);
        Self { id, router, places, phase, place: Mutex::default() }
    }

    /// The handshake belongs to the time for the header. Errors concern only the client and are
    /// ignored.
    async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
        self,
        handshake: impl Future<Output = io::Result<(S, Option<ClientCertificate>)>>,
        evicted: oneshot::Receiver<()>,
    ) {
        let mut phase = self.phase.subscribe();
        let served = async {
            let Ok((stream, certificate)) = handshake.await else { return };
            let service = service_fn(|mut request: Request<Incoming>| {
                if let Some(certificate) = certificate.clone() {
                    request.extensions_mut().insert(certificate);
                }
                self.respond(request)
            });
            let _ = http1::Builder::new()
                .keep_alive(false)
                .serve_connection(TokioIo::new(stream), service)
                .await;
        };
        tokio::select! {
            () = served => {}
            () = over(&mut phase, evicted) => {}
        }
        self.places.leave(self.id);
    }

    async fn respond(&self, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
        self.phase.send_replace(Phase::Response);
        self.places.leave(self.id);
        let Some(place) = self.places.enter(request.uri().path()) else {
            return Ok(too_many());
        };
        self.keep(place);
        let response = TowerToHyperService::new(self.router.clone()).call(request).await?;
        if is_stream(response.headers()) {
            let Some(place) = self.places.enter_stream() else { return Ok(too_many()) };
            self.keep(place);
            self.phase.send_replace(Phase::Stream);
        }
        Ok(response)
    }

    /// Replaces the place that the connection has.
    fn keep(&self, place: OwnedSemaphorePermit) {
        *self.place.lock().unwrap_or_else(PoisonError::into_inner) = Some(place);
    }
}

/// Completes when the connection has had its time, or has to make room.
async fn over(phase: &mut watch::Receiver<Phase>, mut evicted: oneshot::Receiver<()>) {
    loop {
        let now = *phase.borrow_and_update();
        let limit = match now {
            Phase::Header => HEADER_MAX,
            Phase::Response => RESPONSE_MAX,
            Phase::Stream => Duration::MAX,
        };
        tokio::select! {
            // With the header the connection leaves the waiting ones, which drops the sender.
            _ = &mut evicted, if now == Phase::Header => {
                if *phase.borrow() == Phase::Header {
                    return;
                }
            }
            changed = phase.changed() => {
                if changed.is_err() {
                    return;
                }
            }
            () = sleep(limit) => return,
        }
    }
}

fn too_many() -> Response<Body> {
    let mut response = Response::new(Body::from("too many requests in progress\n"));
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    response
}
