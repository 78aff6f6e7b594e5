//! The HTTP side: a handful of pages, each made from the board alone.

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::time::Duration;

use axum::Router;
use axum::extract::{Query, State};
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use endpointd_engine::EngineStatus;
use endpointd_model::Key;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::board::StatusHandle;
use crate::connections;
use crate::health::{self, Check};
use crate::json::{process_row, render_json};
use crate::metrics::Metrics;

const INDEX: &str = "\
endpointd

/metrics                 Prometheus text format
/livez, /healthz         is this process alive
/readyz                  may it be relied on; ?verbose lists each check
/report                  what it knows and does, as JSON; ?pretty, ?key=NAMESPACE/NAME
";

/// Answers requests until `shutdown` resolves, then lets those under way finish. It does not fail:
/// a listener that cannot accept for a while is tried again.
pub async fn serve(
    listener: TcpListener,
    board: StatusHandle,
    metrics: Metrics,
    shutdown: impl Future,
) -> io::Result<()> {
    connections::answer(listener, router(board, metrics), shutdown).await;
    Ok(())
}

#[derive(Clone)]
struct Shown {
    board: StatusHandle,
    metrics: Metrics,
}

type Parameters = Query<BTreeMap<String, String>>;

fn router(board: StatusHandle, metrics: Metrics) -> Router {
    Router::new()
        .route("/", get(|| async { INDEX }))
        .route("/metrics", get(metrics_page))
        .route("/livez", get(livez))
        .route("/healthz", get(livez))
        .route("/readyz", get(readyz))
        .route("/report", get(report_page))
        .fallback(not_found)
        .with_state(Shown { board, metrics })
}

async fn metrics_page(State(shown): State<Shown>) -> Response {
    let view = shown.board.view();
    let text = match &view.report {
        Some((report, age)) => shown.metrics.render(report, *age),
        // Before the first report there is only what was recorded, and the process itself.
        None => shown.metrics.render(&EngineStatus::default(), Duration::ZERO),
    };
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}

async fn livez(State(shown): State<Shown>, parameters: Parameters) -> Response {
    health_page("livez", &health::live(&shown.board.view()), &parameters)
}

async fn readyz(State(shown): State<Shown>, parameters: Parameters) -> Response {
    health_page("readyz", &health::ready(&shown.board.view()), &parameters)
}

/// The form of kube-apiserver's health pages, which people know.
fn health_page(page: &str, checks: &[Check], parameters: &Parameters) -> Response {
    let is_well = checks.iter().all(|check| check.problem.is_none());
    let is_verbose = parameters.contains_key("verbose");
    let mut text = String::new();
    for Check { name, problem } in checks {
        match problem {
            Some(problem) => text.push_str(&format!("[-]{name}: {problem}\n")),
            None if is_verbose => text.push_str(&format!("[+]{name} ok\n")),
            None => {}
        }
    }
    match (is_well, is_verbose) {
        (true, false) => text.push_str("ok"),
        (true, true) => text.push_str(&format!("{page} check passed\n")),
        (false, true) => text.push_str(&format!("{page} check failed\n")),
        (false, false) => {}
    }
    let status = if is_well { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, text).into_response()
}

async fn report_page(State(shown): State<Shown>, parameters: Parameters) -> Response {
    let only = match parameters.get("key").map(|text| parse_key(text)) {
        None => None,
        Some(Some(key)) => Some(key),
        Some(None) => {
            let error = json!({"error": "`key` must be NAMESPACE/NAME"});
            return json_page(StatusCode::BAD_REQUEST, &error, &parameters);
        }
    };
    let view = shown.board.view();
    let Some((report, age)) = &view.report else {
        let error = json!({"error": "nothing reported yet", "process": process_row(&view)});
        return json_page(StatusCode::SERVICE_UNAVAILABLE, &error, &parameters);
    };
    let mut value = render_json(report, only.as_ref());
    value["process"] = process_row(&view);
    value["reportAgeSeconds"] = json!(age.as_secs_f64());
    json_page(StatusCode::OK, &value, &parameters)
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
