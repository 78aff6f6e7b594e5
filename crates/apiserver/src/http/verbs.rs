//! Requests into verbs, and what became of them into answers.

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::HeaderName;
use axum::http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::list::{Look, list_body};
use super::media::{self, Form};
use super::query::Query;
use super::route::{Route, route};
use super::watch::{Terms, refused_body, watch_body};
use super::{Shared, body, json_response, typed_response};
use crate::discovery;
use crate::kinds::Subresource;
use crate::openapi;
use crate::refusal::Refusal;
use crate::verbs::{ListOptions, Outcome, Page, Part, Patch, Target};

const BINDING: &str = "io.k8s.api.core.v1.Binding";
const SCALE: &str = "io.k8s.api.autoscaling.v1.Scale";
const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";

type Answer = Result<Response<Body>, Refusal>;

/// One request about a resource, taken apart.
struct Asked {
    shared: Shared,
    target: Target,
    subresource: Option<Subresource>,
    query: Query,
    headers: HeaderMap,
    body: bytes::Bytes,
}

pub(super) async fn answer(shared: Shared, request: Request) -> Answer {
    let (parts, given) = request.into_parts();
    let (target, subresource) = match route(parts.uri.path()) {
        Route::Document(path) => return document(&parts.method, &path, &parts.headers),
        Route::UnknownGroup => return Ok(no_such_page()),
        Route::Unknown => return Err(Refusal::no_such_path()),
        Route::Resource { target, subresource } => (target, subresource),
    };
    let max_bytes = shared.lock().settings().max_body_bytes;
    let asked = Asked {
        shared,
        target,
        subresource,
        query: Query::parse(parts.uri.query()),
        headers: parts.headers,
        body: body::bytes(given, max_bytes).await?,
    };
    let is_collection = asked.target.name.is_empty();
    match (&parts.method, is_collection) {
        (&Method::GET, true) if asked.query.is_watch() => asked.watch(),
        (&Method::GET, true) => asked.list(),
        (&Method::GET, false) => asked.get(),
        (&Method::POST, true) => asked.create(),
        (&Method::POST, false) if asked.subresource == Some(Subresource::Binding) => asked.bind(),
        (&Method::PUT, false) => asked.update(),
        (&Method::PATCH, false) => asked.patch(),
        (&Method::DELETE, false) if asked.subresource.is_none() => asked.delete(),
        (&Method::DELETE, true) if asked.target.kind.resource != "namespaces" => {
            asked.delete_collection()
        }
        _ => Err(Refusal::method_not_allowed()),
    }
}

impl Asked {
    fn look(&self) -> Result<Look, Refusal> {
        let form = media::form(&self.headers)?;
        let now = self.shared.lock().stamps.now();
        Ok(Look { kind: self.target.kind, form, include: self.query.include(), now })
    }

    /// The body as an object of this Go type.
    fn object(&self, schema: &str) -> Result<Value, Refusal> {
        body::object(media::encoding(&self.headers)?, schema, &self.body)
    }

    fn get(&self) -> Answer {
        let look = self.look()?;
        match self.subresource {
            Some(Subresource::Scale) => {
                let scale = self.shared.lock().scale(&self.target)?;
                Ok(json_response(StatusCode::OK, scale.to_string().into()))
            }
            Some(Subresource::Binding | Subresource::Finalize) => {
                Err(Refusal::method_not_allowed())
            }
            Some(Subresource::Status) | None => {
                let stored = self.shared.lock().get(&self.target)?;
                Ok(json_response(StatusCode::OK, look.one(&stored).into()))
            }
        }
    }

    fn list(&self) -> Answer {
        let look = self.look()?;
        let page = self.shared.lock().list(&self.target, &self.query.list()?)?;
        Ok(json_response(StatusCode::OK, list_body(look, page)))
    }

    fn watch(&self) -> Answer {
        let look = self.look()?;
        let options = self.query.watch()?;
        let started = self.shared.lock().watch(&self.target, &options);
        let start = match started {
            Ok(start) => start,
            // Upstream has begun to answer when it finds that the past is gone.
            Err(refusal) if refusal.code == 410 => {
                return Ok(json_response(StatusCode::OK, refused_body(&refusal)));
            }
            Err(refusal) => return Err(refusal),
        };
        let lasts = self.query.timeout()?.unwrap_or(self.shared.pace.watch_max);
        let terms = Terms {
            ends_at: Instant::now() + lasts,
            bookmarks: options.bookmarks,
            pace: self.shared.pace,
        };
        let body = watch_body(self.shared.clone(), look, start, terms);
        Ok(json_response(StatusCode::OK, body))
    }

    fn create(&self) -> Answer {
        let look = self.look()?;
        let given = self.object(self.target.kind.schema)?;
        if self.target.kind.is_namespaced() && self.target.namespace.is_empty() {
            return Err(Refusal::method_not_allowed());
        }
        let options = self.query.write("CreateOptions")?;
        let outcome = self.shared.with(|server| server.create(&self.target, given, &options))?;
        Ok(self.written(look, &outcome))
    }

    fn bind(&self) -> Answer {
        let given = self.object(BINDING)?;
        let options = self.query.write("CreateOptions")?;
        let outcome = self.shared.with(|server| server.bind(&self.target, &given, &options))?;
        let body = outcome.shown.value().to_string();
        Ok(json_response(StatusCode::CREATED, body.into()))
    }

    fn update(&self) -> Answer {
        let look = self.look()?;
        let scales = self.subresource == Some(Subresource::Scale);
        let given = self.object(if scales { SCALE } else { self.target.kind.schema })?;
        let options = self.query.write("UpdateOptions")?;
        let target = &self.target;
        if self.subresource == Some(Subresource::Scale) {
            let scale = self.shared.with(|server| server.update_scale(target, given, &options))?;
            return Ok(json_response(StatusCode::OK, scale.to_string().into()));
        }
        let part = Part::of(self.subresource).ok_or_else(Refusal::method_not_allowed)?;
        let outcome = self.shared.with(|server| server.replace(target, part, given, &options))?;
        Ok(self.written(look, &outcome))
    }

    fn patch(&self) -> Answer {
        let look = self.look()?;
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
        let part = Part::of(self.subresource).ok_or_else(Refusal::method_not_allowed)?;
        let patch = |server: &mut crate::Server| {
            server.patch_part(target, part, Patch { of: patch_type, given: &given }, &options)
        };
        let outcome = self.shared.with(patch)?;
        Ok(self.written(look, &outcome))
    }

    fn delete(&self) -> Answer {
        let look = self.look()?;
        let options = self.query.delete(&self.object(DELETE_OPTIONS)?)?;
        let target = &self.target;
        let deletion = self.shared.with(|server| server.delete(target, &options))?;
        let body = match deletion.status(target.kind) {
            Some(status) => status.to_string().into(),
            None => deletion.shown().bytes(look.kind),
        };
        Ok(json_response(StatusCode::OK, body.into()))
    }

    fn delete_collection(&self) -> Answer {
        let look = Look { form: Form::Object, ..self.look()? };
        let options = self.query.delete(&self.object(DELETE_OPTIONS)?)?;
        let selection = ListOptions { limit: 0, ..self.query.list()? };
        let target = &self.target;
        let objects =
            self.shared.with(|server| server.delete_collection(target, &selection, &options))?;
        let revision = self.shared.lock().store().revision();
        let page = Page { revision, objects, continue_token: String::new(), n_remaining: None };
        Ok(json_response(StatusCode::OK, list_body(look, page)))
    }

    fn written(&self, look: Look, outcome: &Outcome) -> Response<Body> {
        let code = if outcome.is_new { StatusCode::CREATED } else { StatusCode::OK };
        let body = match (&outcome.shown, look.form) {
            (crate::Shown::Stored(stored), _) => look.one(stored),
            (shown, _) => shown.bytes(look.kind),
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

/// What does not change: health, version, discovery, OpenAPI.
fn document(method: &Method, path: &[String], headers: &HeaderMap) -> Answer {
    const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let words: Vec<&str> = path.iter().map(String::as_str).collect();
    if matches!(words.as_slice(), ["healthz" | "livez" | "readyz", ..]) {
        return Ok(typed_response(StatusCode::OK, "text/plain; charset=utf-8", "ok".into()));
    }
    if method != Method::GET {
        return Err(Refusal::method_not_allowed());
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
        ["apis", group, "v1"] => discovery::resource_list(group),
        ["openapi", "v2"] => Some(openapi::version_two()),
        ["openapi", "v3"] => Some(openapi::index()),
        ["openapi", "v3", "api", "v1"] => openapi::document(""),
        ["openapi", "v3", "apis", group, "v1"] => openapi::document(group),
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
