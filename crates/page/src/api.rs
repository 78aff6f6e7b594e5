//! The API of the page, `/api/v1/…`, as JSON and as server-sent events.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use endpointd_engine::{EngineStatus, KeyState, KeyStatus, SourceStatus};
use endpointd_explain::{ControllerState, SourceReport};
use endpointd_model::{Key, Object};
use endpointd_status::StatusHandle;
use serde_json::{Value, json};

use crate::details::{Details, NoDetail};
use crate::findings::{Finder, NoFindings};
use crate::hub::Hub;
use crate::messages::Position;
use crate::playground_api::{ActionError, PlaygroundControls};
use crate::{API_VERSION, PageOptions, change_json, guard, stream};

/// Changes that `/api/v1/changes` returns.
const CHANGES_MAX: usize = 500;
const BODY_BYTES_MAX: usize = 4096;

pub struct ApiState {
    status: StatusHandle,
    hub: Hub,
    details: Details,
    finder: Finder,
    playground: Option<PlaygroundControls>,
}

type Shared = State<Arc<ApiState>>;
type Parameters = Query<BTreeMap<String, String>>;

impl ApiState {
    pub fn new(options: PageOptions, status: StatusHandle) -> Self {
        let PageOptions { connect, settings, playground } = options;
        Self {
            hub: Hub::new(status.clone()),
            status,
            details: Details::default(),
            finder: Finder::new(connect, settings),
            playground,
        }
    }
}

pub fn router(state: Arc<ApiState>) -> Router {
    Router::new()
        .route("/api/v1", get(index))
        .route("/api/v1/services", get(services))
        .route("/api/v1/services/{namespace}/{name}", get(service))
        .route("/api/v1/services/{namespace}/{name}/findings", get(findings))
        .route("/api/v1/slices/{namespace}/{name}", get(slice))
        .route("/api/v1/imports", get(imports))
        .route("/api/v1/changes", get(changes))
        .route("/api/v1/stream", get(events))
        .route("/api/v1/playground", get(actions).post(act))
        .with_state(state)
}

async fn index(State(state): Shared) -> Response {
    let snapshot = state.status.snapshot();
    let mode = if state.playground.is_some() { "playground" } else { "run" };
    json_page(&json!({
        "apiVersion": API_VERSION,
        "mode": mode,
        "version": &*snapshot.process.version,
        "paths": [
            "/api/v1/services", "/api/v1/services/NAMESPACE/NAME",
            "/api/v1/services/NAMESPACE/NAME/findings", "/api/v1/slices/NAMESPACE/NAME",
            "/api/v1/imports", "/api/v1/changes", "/api/v1/stream", "/api/v1/playground",
        ],
    }))
}

async fn services(State(state): Shared) -> Response {
    match state.hub.reader().rows().await {
        Some((rows, position)) => {
            let text = format!(
                "{{\"apiVersion\":\"{API_VERSION}\",\"position\":\"{position}\",\"services\":{rows}}}\n"
            );
            ([(header::CONTENT_TYPE, "application/json")], text).into_response()
        }
        None => no_answer(),
    }
}

async fn service(
    State(state): Shared,
    Path((namespace, name)): Path<(String, String)>,
) -> Response {
    let key = Key::new(namespace, name);
    match state.details.get(&state.status, &key).await {
        Ok(text) => {
            ([(header::CONTENT_TYPE, "application/json")], text.to_string()).into_response()
        }
        Err(NoDetail::NotFound) => not_found(&format!("there is no Service {key}")),
        Err(NoDetail::NoAnswer) => no_answer(),
    }
}

async fn findings(
    State(state): Shared,
    Path((namespace, name)): Path<(String, String)>,
) -> Response {
    let key = Key::new(namespace, name);
    let asked = key.clone();
    let rows = state.status.ask(move |it| it.engine.report_key(&asked, it.now)).await;
    let snapshot = state.status.snapshot();
    let engine = snapshot.engine.map(|(status, _)| status);
    let controller = controller_state(&rows.unwrap_or_default(), engine.as_deref());
    match state.finder.find(&key, controller).await {
        Ok(text) => {
            ([(header::CONTENT_TYPE, "application/json")], text.to_string()).into_response()
        }
        Err(NoFindings(why)) => error(StatusCode::SERVICE_UNAVAILABLE, &why),
    }
}

/// Of the rows of a key, the one with an error counts, else the first that is not idle.
fn controller_state(rows: &[KeyStatus], engine: Option<&EngineStatus>) -> ControllerState {
    let failing = rows.iter().find(|row| row.last_error.is_some());
    let row = failing.or_else(|| rows.iter().find(|row| row.state != KeyState::Idle));
    let key_state = row.map_or("", |row| match row.state {
        KeyState::InFlight { .. } => "in_flight",
        KeyState::Waiting { .. } => "waiting",
        KeyState::BackingOff { .. } => "backing_off",
        KeyState::Idle => "idle",
    });
    ControllerState {
        key_state: key_state.to_owned(),
        last_error: row.and_then(|row| Some(row.last_error.as_ref()?.to_string())),
        is_deletion_limiter_active: engine.is_some_and(|one| one.deletion_limiter.is_active),
        clusters: engine.into_iter().flat_map(|one| &one.sources).map(source_report).collect(),
    }
}

fn source_report(source: &SourceStatus) -> SourceReport {
    SourceReport {
        cluster: source.cluster.to_string(),
        state: source.state.as_str().to_owned(),
        last_contact: source.last_contact,
        is_denied: source.is_denied,
    }
}

async fn slice(State(state): Shared, Path((namespace, name)): Path<(String, String)>) -> Response {
    let key = Key::new(namespace, name);
    let asked = key.clone();
    match state.status.ask(move |it| it.engine.slice(&asked)).await {
        Some(Some(slice)) => json_page(&endpointd_wire::to_json_value(&Object::Slice(slice))),
        Some(None) => not_found(&format!("there is no EndpointSlice {key}")),
        None => no_answer(),
    }
}

async fn imports(State(state): Shared) -> Response {
    match state.details.consumers(&state.status).await {
        Some(text) => {
            ([(header::CONTENT_TYPE, "application/json")], text.to_string()).into_response()
        }
        None => no_answer(),
    }
}

async fn changes(State(state): Shared) -> Response {
    let recent = state
        .status
        .ask(|it| it.changes.recent().rev().take(CHANGES_MAX).cloned().collect::<Vec<_>>());
    let Some(recent) = recent.await else { return no_answer() };
    json_page(&json!({
        "apiVersion": API_VERSION,
        "changes": recent.iter().map(|one| change_json::change(one)).collect::<Vec<_>>(),
    }))
}

/// After the id of the header, which a browser sends when it connects again, else of `?after=`.
async fn events(State(state): Shared, headers: HeaderMap, parameters: Parameters) -> Response {
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let after = last.or_else(|| parameters.get("after").map(String::as_str));
    stream::response(state.hub.reader(), after.and_then(Position::parse))
}

async fn actions(State(state): Shared) -> Response {
    match &state.playground {
        Some(playground) => json_page(&playground.to_json()),
        None => not_found("this is no playground"),
    }
}

async fn act(State(state): Shared, headers: HeaderMap, body: axum::body::Bytes) -> Response {
    let Some(playground) = &state.playground else { return not_found("this is no playground") };
    if !guard::is_from_this_page(&headers) {
        return error(StatusCode::FORBIDDEN, "actions need the header `x-endpointd`");
    }
    let body: Option<Value> =
        (body.len() <= BODY_BYTES_MAX).then(|| serde_json::from_slice(&body).ok()).flatten();
    let text = |field: &str| Some(body.as_ref()?.get(field)?.as_str()?.to_owned());
    let Some(action) = text("action") else {
        return error(StatusCode::BAD_REQUEST, "`action` must be the name of an action");
    };
    match playground.perform(action, text("service")).await {
        Some(Ok(performed)) => json_page(&performed.to_json()),
        Some(Err(ActionError::UnknownAction)) => not_found("there is no such action"),
        Some(Err(ActionError::NotPossible(why))) => error(StatusCode::CONFLICT, &why),
        None => error(StatusCode::SERVICE_UNAVAILABLE, "the playground has ended"),
    }
}

fn json_page(value: &Value) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], format!("{value}\n")).into_response()
}

fn error(status: StatusCode, message: &str) -> Response {
    (status, json_page(&json!({"apiVersion": API_VERSION, "error": message}))).into_response()
}

fn not_found(message: &str) -> Response {
    error(StatusCode::NOT_FOUND, message)
}

fn no_answer() -> Response {
    error(StatusCode::SERVICE_UNAVAILABLE, "the event loop did not answer")
}
