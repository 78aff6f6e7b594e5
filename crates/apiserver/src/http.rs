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

use crate::refusal::Refusal;
use crate::server::Server;

/// A server that requests share. Whoever writes to it another way than over HTTP uses
/// [`Shared::with`], so that watchers wake up.
#[derive(Clone)]
pub struct Shared {
    server: Arc<Mutex<Server>>,
    written: Arc<signal::Sender<u64>>,
    pub(crate) pace: Pace,
}

/// How often a quiet watch says that it lives, and how long one lasts.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    pub bookmark_every: Duration,
    pub watch_max: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self { bookmark_every: Duration::from_secs(60), watch_max: Duration::from_secs(3600) }
    }
}

impl Shared {
    pub fn new(server: Server) -> Self {
        Self::with_pace(server, Pace::default())
    }

    pub fn with_pace(server: Server, pace: Pace) -> Self {
        let written = Arc::new(signal::Sender::new(server.store().revision()));
        Self { server: Arc::new(Mutex::new(server)), written, pace }
    }

    /// Runs `act` on the server alone; watchers see what it wrote.
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

    /// Changes with every write; holds its revision.
    pub fn written(&self) -> signal::Receiver<u64> {
        self.written.subscribe()
    }
}

/// The server as a service.
pub fn router(shared: Shared) -> Router {
    Router::new().fallback(answer).with_state(shared)
}

/// Serves until `shutdown` completes. Watches that are open then end with their connections.
pub async fn serve(
    listener: TcpListener,
    shared: Shared,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    // Small pieces of a watch would wait for the client's delayed acknowledgement, 40 ms each.
    let listener = listener.tap_io(|connection| {
        // A connection that cannot be told is slow, not wrong.
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
            // Open watches would keep a graceful shutdown waiting for an hour.
            let _ = stop.wait_for(|stopped| *stopped).await;
            tokio::time::sleep(CLOSING_MAX).await;
        } => { drop(closing); Ok(()) }
    }
}

/// How long requests under way may take to end.
const CLOSING_MAX: Duration = Duration::from_millis(250);

async fn answer(State(shared): State<Shared>, request: Request) -> Response<Body> {
    match verbs::answer(shared, request).await {
        Ok(response) => response,
        Err(refusal) => refused(&refusal),
    }
}

pub(crate) fn refused(refusal: &Refusal) -> Response<Body> {
    let code = StatusCode::from_u16(refusal.code).expect("refusals have codes of HTTP");
    let mut response = json_response(code, refusal.to_status().to_string().into());
    if refusal.details.retry_after_secs > 0 {
        let value = HeaderValue::from(refusal.details.retry_after_secs);
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
