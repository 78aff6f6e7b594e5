//! Maps requests to verbs and results to responses.

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::HeaderName;
use axum::http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::list::{ResponseFormat, list_body};
use super::media::{self, Form};
use super::query::Query;
use super::route::{Route, route};
use super::watch::{WatchParams, error_body, watch_body};
use super::{Shared, body, json_response, typed_response};
use crate::discovery;
use crate::kinds::{Subresource, version_of};
use crate::openapi;
use crate::status_error::StatusError;
use crate::verbs::{ListOptions, Page, Part, Patch, Target, WriteOutcome};

const BINDING: &str = "io.k8s.api.core.v1.Binding";
const SCALE: &str = "io.k8s.api.autoscaling.v1.Scale";
const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";

type HttpResult = Result<Response<Body>, StatusError>;

/// A parsed request for a resource.
struct ParsedRequest {
    shared: Shared,
    target: Target,
    subresource: Option<Subresource>,
    query: Query,
    headers: HeaderMap,
    body: bytes::Bytes,
}

pub(super) async fn handle(shared: Shared, request: Request) -> HttpResult {
    let (parts, given) = request.into_parts();
    let (target, subresource) = match route(parts.uri.path()) {
        Route::Document(path) => return static_document(&parts.method, &path, &parts.headers),
        Route::UnknownGroup => return Ok(no_such_page()),
        Route::Unknown => return Err(StatusError::no_such_path()),
        Route::Resource { target, subresource } => (target, subresource),
    };
    let max_bytes = shared.lock().settings().max_body_bytes;
    let parsed = ParsedRequest {
        shared,
        target,
        subresource,
        query: Query::parse(parts.uri.query()),
        headers: parts.headers,
        body: body::bytes(given, max_bytes).await?,
    };
    let is_collection = parsed.target.name.is_empty();
    match (&parts.method, is_collection) {
        (&Method::GET, true) if parsed.query.is_watch() => parsed.watch(),
        (&Method::GET, true) => parsed.list(),
        (&Method::GET, false) => parsed.get(),
        (&Method::POST, true) => parsed.create(),
        (&Method::POST, false) if parsed.subresource == Some(Subresource::Binding) => parsed.bind(),
        (&Method::PUT, false) => parsed.update(),
        (&Method::PATCH, false) => parsed.patch(),
        (&Method::DELETE, false) if parsed.subresource.is_none() => parsed.delete(),
        (&Method::DELETE, true) if parsed.target.kind.resource != "namespaces" => {
            parsed.delete_collection()
        }
        _ => Err(StatusError::method_not_allowed()),
    }
}

impl ParsedRequest {
    fn response_format(&self) -> Result<ResponseFormat, StatusError> {
        let form = media::form(&self.headers)?;
        let now = self.shared.lock().clock_and_ids.now();
        Ok(ResponseFormat { kind: self.target.kind, form, include: self.query.include(), now })
    }

    /// Decodes the body as this Go type.
    fn object(&self, schema: &str) -> Result<Value, StatusError> {
        body::object(media::encoding(&self.headers)?, schema, &self.body)
    }

    fn get(&self) -> HttpResult {
        let format = self.response_format()?;
        match self.subresource {
            Some(Subresource::Scale) => {
                let scale = self.shared.lock().scale(&self.target)?;
                Ok(json_response(StatusCode::OK, scale.to_string().into()))
            }
            Some(Subresource::Binding | Subresource::Finalize) => {
                Err(StatusError::method_not_allowed())
            }
            Some(Subresource::Status) | None => {
                let stored = self.shared.lock().get(&self.target)?;
                Ok(json_response(StatusCode::OK, format.one(&stored).into()))
            }
        }
    }

    fn list(&self) -> HttpResult {
        let format = self.response_format()?;
        let page = self.shared.lock().list(&self.target, &self.query.list()?)?;
        Ok(json_response(StatusCode::OK, list_body(format, page)))
    }

    fn watch(&self) -> HttpResult {
        let format = self.response_format()?;
        let options = self.query.watch()?;
        let started = self.shared.lock().watch(&self.target, &options);
        let start = match started {
            Ok(start) => start,
            // Upstream finds out after it has sent status 200: the error is the first event.
            Err(error) if error.code == 410 => {
                return Ok(json_response(StatusCode::OK, error_body(&error)));
            }
            Err(error) => return Err(error),
        };
        let timeout = self.query.timeout()?.unwrap_or(self.shared.watch_timeouts.watch_max);
        let params = WatchParams {
            ends_at: Instant::now() + timeout,
            bookmarks: options.bookmarks,
            watch_timeouts: self.shared.watch_timeouts,
        };
        let body = watch_body(self.shared.clone(), format, start, params);
        Ok(json_response(StatusCode::OK, body))
    }

    fn create(&self) -> HttpResult {
        let format = self.response_format()?;
        let given = self.object(self.target.kind.schema)?;
        if self.target.kind.is_namespaced() && self.target.namespace.is_empty() {
            return Err(StatusError::method_not_allowed());
        }
        let options = self.query.write("CreateOptions")?;
        let outcome = self.shared.with(|server| server.create(&self.target, given, &options))?;
        Ok(self.written(format, &outcome))
    }

    fn bind(&self) -> HttpResult {
        let given = self.object(BINDING)?;
        let options = self.query.write("CreateOptions")?;
        let outcome = self.shared.with(|server| server.bind(&self.target, &given, &options))?;
        let body = outcome.object.value().to_string();
        Ok(json_response(StatusCode::CREATED, body.into()))
    }

    fn update(&self) -> HttpResult {
        let format = self.response_format()?;
        let is_scale = self.subresource == Some(Subresource::Scale);
        let given = self.object(if is_scale { SCALE } else { self.target.kind.schema })?;
        let options = self.query.write("UpdateOptions")?;
        let target = &self.target;
        if self.subresource == Some(Subresource::Scale) {
            let scale = self.shared.with(|server| server.update_scale(target, given, &options))?;
            return Ok(json_response(StatusCode::OK, scale.to_string().into()));
        }
        let part = Part::of(self.subresource).ok_or_else(StatusError::method_not_allowed)?;
        let outcome = self.shared.with(|server| server.replace(target, part, given, &options))?;
        Ok(self.written(format, &outcome))
    }

    fn patch(&self) -> HttpResult {
        let format = self.response_format()?;
        let patch_type = media::patch_type(&self.headers)?;
        let given = body::json(&self.body)?;
        let options = self.query.write("PatchOptions")?;
        let target = &self.target;
        if self.subresource == Some(Subresource::Scale) {
            let patch = |server: &mut crate::Server| {
                server.patch_scale(target, patch_type, &given, &options)
            };
            let scale = self.shared.with(patch)?;
            return Ok(json_response(StatusCode::OK, scale.to_string().into()));
        }
        let part = Part::of(self.subresource).ok_or_else(StatusError::method_not_allowed)?;
        let patch = |server: &mut crate::Server| {
            server.patch_part(target, part, Patch { of: patch_type, given: &given }, &options)
        };
        let outcome = self.shared.with(patch)?;
        Ok(self.written(format, &outcome))
    }

    fn delete(&self) -> HttpResult {
        let format = self.response_format()?;
        let options = self.query.delete(&self.object(DELETE_OPTIONS)?)?;
        let target = &self.target;
        let deletion = self.shared.with(|server| server.delete(target, &options))?;
        let body = match deletion.status(target.kind) {
            Some(status) => status.to_string().into(),
            None => deletion.object().bytes(format.kind),
        };
        Ok(json_response(StatusCode::OK, body.into()))
    }

    fn delete_collection(&self) -> HttpResult {
        let format = ResponseFormat { form: Form::Object, ..self.response_format()? };
        let options = self.query.delete(&self.object(DELETE_OPTIONS)?)?;
        let selection = ListOptions { limit: 0, ..self.query.list()? };
        let target = &self.target;
        let objects =
            self.shared.with(|server| server.delete_collection(target, &selection, &options))?;
        let revision = self.shared.lock().store().revision();
        let page = Page { revision, objects, continue_token: String::new(), n_remaining: None };
        Ok(json_response(StatusCode::OK, list_body(format, page)))
    }

    fn written(&self, format: ResponseFormat, outcome: &WriteOutcome) -> Response<Body> {
        let code = if outcome.is_new { StatusCode::CREATED } else { StatusCode::OK };
        let body = match (&outcome.object, format.form) {
            (crate::ResponseObject::Stored(stored), _) => format.one(stored),
            (shown, _) => shown.bytes(format.kind),
        };
        let mut response = json_response(code, body.into());
        for warning in &outcome.warnings {
            let text = warning.replace('\\', "\\\\").replace('"', "\\\"");
            if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{text}\"")) {
                response.headers_mut().append(HeaderName::from_static("warning"), value);
            }
        }
        response
    }
}

/// Health, version, discovery, OpenAPI.
fn static_document(method: &Method, path: &[String], headers: &HeaderMap) -> HttpResult {
    const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let words: Vec<&str> = path.iter().map(String::as_str).collect();
    if matches!(words.as_slice(), ["healthz" | "livez" | "readyz", ..]) {
        return Ok(typed_response(StatusCode::OK, "text/plain; charset=utf-8", "ok".into()));
    }
    if method != Method::GET {
        return Err(StatusError::method_not_allowed());
    }
    let aggregated = media::takes_aggregated(headers);
    let found = match words.as_slice() {
        ["version"] => Some(discovery::version()),
        ["api"] | ["apis"] if aggregated => {
            let groups = if words == ["api"] { vec![""] } else { discovery::groups() };
            let body = discovery::aggregated(&groups).to_string();
            return Ok(typed_response(StatusCode::OK, AGGREGATED, body.into()));
        }
        ["api"] => Some(discovery::core_versions("127.0.0.1")),
        ["api", "v1"] => discovery::resource_list(""),
        ["apis"] => Some(discovery::group_list()),
        ["apis", group] => discovery::group(group),
        ["apis", group, version] if *version == version_of(group) => {
            discovery::resource_list(group)
        }
        ["openapi", "v2"] => Some(openapi::openapi_v2()),
        ["openapi", "v3"] => Some(openapi::index()),
        ["openapi", "v3", "api", "v1"] => openapi::document(""),
        ["openapi", "v3", "apis", group, version] if *version == version_of(group) => {
            openapi::document(group)
        }
        [] => Some(json!({"paths": ["/api", "/api/v1", "/apis", "/healthz", "/livez",
            "/openapi/v2", "/openapi/v3", "/readyz", "/version"]})),
        _ => None,
    };
    match found {
        Some(found) => Ok(json_response(StatusCode::OK, found.to_string().into())),
        None => Ok(no_such_page()),
    }
}

fn no_such_page() -> Response<Body> {
    let body = "404 page not found\n";
    typed_response(StatusCode::NOT_FOUND, "text/plain; charset=utf-8", body.into())
}
