//! The pages. All but `/report?key=` are rendered from a [`StatusSnapshot`] alone.

use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;

use axum::Router;
use axum::extract::{Query, State};
use axum::http::{StatusCode, Uri, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use endpointd_engine::EngineStatus;
use endpointd_model::Key;
use endpointd_secure_serving::{Guard, Tls};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::connections::{self, Listener};
use crate::handle::{StatusHandle, StatusSnapshot};
use crate::health::{self, Check};
use crate::json::{process_row, render_json, render_key_json};
use crate::metrics::Metrics;

const INDEX: &str = "\
endpointd

/metrics                 Prometheus text format
/livez, /healthz         liveness; ?verbose lists each check
/readyz                  readiness; ?verbose lists each check
/report                  watches, queues, keys that wait or failed, as JSON; ?pretty
/report?key=NS/NAME      one key, as JSON
";

/// Pages of another crate, for the loopback server: called once, when the server starts. The
/// router has no fallback and none of the paths of [`Site::new`]; both would be a panic.
///
/// A response with the content type `text/event-stream` may stay open for as long as it likes and
/// has a place of its own (at most 128); every other response must end within 30 seconds. The
/// handlers run on the thread of the status server, never on that of the event loop: a handler that
/// computes for long delays other pages, but no sync. They get what the event loop published
/// ([`StatusHandle::snapshot`]) and can ask it through bounded channels, as `/report?key=` does.
pub type AddedPages = Box<dyn FnOnce(&StatusHandle, &Metrics) -> Router + Send>;

/// The pages of one server.
pub struct Site(Router);

impl Site {
    pub fn new(status: &StatusHandle, metrics: &Metrics) -> Self {
        Self(router(status.clone(), metrics.clone()))
    }

    /// With a guard that decides who may see which page.
    pub fn guarded_by(self, guard: Guard) -> Self {
        let check = |State(guard): State<Guard>, request, next| guard.check(request, next);
        Self(self.0.layer(from_fn_with_state(guard, check)))
    }

    /// For the loopback server, which only processes of the same host or pod reach.
    pub fn with_added(self, added: Router) -> Self {
        Self(self.0.merge(added))
    }
}

/// Serves until `shutdown` resolves, then lets the responses in flight finish. A listener that
/// cannot accept is tried again. Without `tls` the connections are not encrypted.
pub async fn serve(listener: TcpListener, tls: Option<Tls>, site: Site, shutdown: impl Future) {
    connections::serve(Listener { tcp: listener, tls }, site.0, shutdown).await;
}

#[derive(Clone)]
struct Pages {
    status: StatusHandle,
    metrics: Metrics,
}

type Parameters = Query<BTreeMap<String, String>>;

fn router(status: StatusHandle, metrics: Metrics) -> Router {
    Router::new()
        .route("/", get(|| async { INDEX }))
        .route("/metrics", get(metrics_page))
        .route("/livez", get(livez))
        .route("/healthz", get(livez))
        .route("/readyz", get(readyz))
        .route("/report", get(report_page))
        .fallback(not_found)
        .with_state(Pages { status, metrics })
}

async fn metrics_page(State(pages): State<Pages>) -> Response {
    let text = match &pages.status.snapshot().engine {
        Some((status, age)) => pages.metrics.render(status, *age),
        // Before the first status there are only counters and the metrics of the process.
        None => pages.metrics.render(&EngineStatus::default(), Duration::ZERO),
    };
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}

async fn livez(State(pages): State<Pages>, parameters: Parameters) -> Response {
    health_page("livez", &health::live(&pages.status.snapshot()), &parameters)
}

async fn readyz(State(pages): State<Pages>, parameters: Parameters) -> Response {
    health_page("readyz", &health::ready(&pages.status.snapshot()), &parameters)
}

/// The text format of kube-apiserver's health pages.
fn health_page(page: &str, checks: &[Check], parameters: &Parameters) -> Response {
    let is_healthy = checks.iter().all(|check| check.problem.is_none());
    let is_verbose = parameters.contains_key("verbose");
    let mut text = String::new();
    for Check { name, problem } in checks {
        match problem {
            Some(problem) => text.push_str(&format!("[-]{name}: {problem}\n")),
            None if is_verbose => text.push_str(&format!("[+]{name} ok\n")),
            None => {}
        }
    }
    match (is_healthy, is_verbose) {
        (true, false) => text.push_str("ok"),
        (true, true) => text.push_str(&format!("{page} check passed\n")),
        (false, true) => text.push_str(&format!("{page} check failed\n")),
        (false, false) => {}
    }
    let status = if is_healthy { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, text).into_response()
}

async fn report_page(State(pages): State<Pages>, parameters: Parameters) -> Response {
    let snapshot = pages.status.snapshot();
    match parameters.get("key").map(|text| parse_key(text)) {
        None => full_report(&snapshot, &parameters),
        Some(None) => {
            let error = json!({"error": "`key` must be NAMESPACE/NAME"});
            json_page(StatusCode::BAD_REQUEST, &error, &parameters)
        }
        Some(Some(key)) => match pages.status.key_status(key.clone()).await {
            Some(rows) => {
                let mut value = render_key_json(&key, &rows);
                value["process"] = process_row(&snapshot);
                json_page(StatusCode::OK, &value, &parameters)
            }
            None => unavailable("the event loop did not answer", &snapshot, &parameters),
        },
    }
}

fn full_report(snapshot: &StatusSnapshot, parameters: &Parameters) -> Response {
    let Some((status, age)) = &snapshot.engine else {
        return unavailable("no status published yet", snapshot, parameters);
    };
    let mut value = render_json(status);
    value["process"] = process_row(snapshot);
    if let Some(shadow) = &snapshot.shadow {
        value["shadow"] = shadow.to_json();
    }
    value["snapshotAgeSeconds"] = json!(age.as_secs_f64());
    json_page(StatusCode::OK, &value, parameters)
}

fn unavailable(error: &str, snapshot: &StatusSnapshot, parameters: &Parameters) -> Response {
    let value = json!({"error": error, "process": process_row(snapshot)});
    json_page(StatusCode::SERVICE_UNAVAILABLE, &value, parameters)
}

fn parse_key(text: &str) -> Option<Key> {
    let (namespace, name) = text.split_once('/')?;
    let is_key = !namespace.is_empty() && !name.is_empty() && !name.contains('/');
    is_key.then(|| Key::new(namespace, name))
}

async fn not_found(uri: Uri) -> Response {
    let error = json!({"error": format!("no such page: {}", uri.path())});
    json_page(StatusCode::NOT_FOUND, &error, &Query(BTreeMap::new()))
}

fn json_page(status: StatusCode, value: &Value, parameters: &Parameters) -> Response {
    let text = match parameters.contains_key("pretty") {
        true => format!("{value:#}\n"),
        false => format!("{value}\n"),
    };
    (status, [(header::CONTENT_TYPE, "application/json")], text).into_response()
}

#[cfg(test)]
mod fuzz;
