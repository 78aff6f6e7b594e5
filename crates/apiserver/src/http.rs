//! The server over HTTP. Start at [`router`] for a `tower` service, at [`serve`] for a socket.

mod body;
mod list;
mod media;
mod query;
mod route;
mod verbs;
mod watch;

use std::future::Future;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderName, HeaderValue, Response, StatusCode};
use axum::serve::ListenerExt;
use tokio::net::TcpListener;
use tokio::sync::watch as signal;

use crate::server::Server;
use crate::status_error::StatusError;

/// The server shared by all requests. Writes that do not come over HTTP must go through
/// [`Shared::with`], which wakes the watchers.
#[derive(Clone)]
pub struct Shared {
    server: Arc<Mutex<Server>>,
    written: Arc<signal::Sender<u64>>,
    /// All requests over HTTP fail, and watches are cut.
    outage: Arc<signal::Sender<bool>>,
    pub(crate) watch_timeouts: WatchTimeouts,
}

/// How often an idle watch sends a bookmark, and how long a watch lasts.
#[derive(Clone, Copy, Debug)]
pub struct WatchTimeouts {
    pub bookmark_every: Duration,
    pub watch_max: Duration,
}

impl Default for WatchTimeouts {
    fn default() -> Self {
        Self { bookmark_every: Duration::from_secs(60), watch_max: Duration::from_secs(3600) }
    }
}

impl Shared {
    pub fn new(server: Server) -> Self {
        Self::with_watch_timeouts(server, WatchTimeouts::default())
    }

    pub fn with_watch_timeouts(server: Server, watch_timeouts: WatchTimeouts) -> Self {
        let written = Arc::new(signal::Sender::new(server.store().revision()));
        let outage = Arc::new(signal::Sender::new(false));
        Self { server: Arc::new(Mutex::new(server)), written, outage, watch_timeouts }
    }

    /// Starts or ends an outage: all requests over HTTP fail with 503, and open watches are cut.
    /// [`Shared::with`] goes on.
    pub fn set_outage(&self, is_out: bool) {
        self.outage.send_replace(is_out);
    }

    pub(crate) fn outage(&self) -> signal::Receiver<bool> {
        self.outage.subscribe()
    }

    /// Runs `act` with exclusive access to the server, then wakes the watchers.
    pub fn with<T>(&self, act: impl FnOnce(&mut Server) -> T) -> T {
        let mut server = self.lock();
        let answer = act(&mut server);
        let revision = server.store().revision();
        drop(server);
        self.written.send_if_modified(|known| std::mem::replace(known, revision) != revision);
        answer
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Server> {
        // A request that panicked left the store as it was: every write is one step.
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The revision of the last write; changes with every write.
    pub fn written(&self) -> signal::Receiver<u64> {
        self.written.subscribe()
    }
}

/// The server as a `tower` service.
pub fn router(shared: Shared) -> Router {
    Router::new().fallback(handle).with_state(shared)
}

/// Serves until `shutdown` completes. Watches that are open then end with their connections.
pub async fn serve(
    listener: TcpListener,
    shared: Shared,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    // Without it, small chunks of a watch wait 40 ms for the client's delayed acknowledgement.
    let listener = listener.tap_io(|connection| {
        // If it fails, the connection is slower but correct.
        let _ = connection.set_nodelay(true);
    });
    let closing = shared.clone();
    let (stopped, stop) = signal::channel(false);
    let serving = axum::serve(listener, router(shared)).with_graceful_shutdown(async move {
        shutdown.await;
        let _ = stopped.send(true);
    });
    let mut stop = stop;
    tokio::select! {
        served = async { serving.await } => served,
        () = async {
            // Open watches would delay a graceful shutdown by up to an hour.
            let _ = stop.wait_for(|stopped| *stopped).await;
            tokio::time::sleep(CLOSING_MAX).await;
        } => { drop(closing); Ok(()) }
    }
}

/// How long running requests may take after the shutdown signal.
const CLOSING_MAX: Duration = Duration::from_millis(250);

async fn handle(State(shared): State<Shared>, request: Request) -> Response<Body> {
    if *shared.outage.borrow() {
        return error_response(&StatusError::unavailable());
    }
    match verbs::handle(shared, request).await {
        Ok(response) => response,
        Err(error) => error_response(&error),
    }
}

pub(crate) fn error_response(error: &StatusError) -> Response<Body> {
    let code = StatusCode::from_u16(error.code).expect("errors have HTTP status codes");
    let mut response = json_response(code, error.to_status().to_string().into());
    if error.details.retry_after_secs > 0 {
        let value = HeaderValue::from(error.details.retry_after_secs);
        response.headers_mut().insert(HeaderName::from_static("retry-after"), value);
    }
    response
}

pub(crate) fn json_response(code: StatusCode, body: Body) -> Response<Body> {
    typed_response(code, "application/json", body)
}

pub(crate) fn typed_response(code: StatusCode, of: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(of));
    let cache = HeaderName::from_static("cache-control");
    response.headers_mut().insert(cache, HeaderValue::from_static("no-cache, private"));
    response
}
