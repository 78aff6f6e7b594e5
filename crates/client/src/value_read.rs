//! Reads of complete objects as JSON values, for commands that explain, check, and prune. The
//! controllers do not use them.

use std::time::{Duration, Instant};

use http::Method;
use http::header::DATE;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::client::Client;
use crate::request::{Accept, ApiRequest, Body, escape};
use crate::transport::ApiResponse;

/// Objects per page: a page of large pods has some ten megabytes.
const PAGE_OBJECTS_MAX: usize = 500;
const RESPONSE_BYTES_MAX: usize = 256 << 20;
const TIMEOUT: Duration = Duration::from_secs(30);
/// A throttled request is sent again this often, after the time that the server asks for.
const THROTTLED_MAX: usize = 4;
const RETRY_AFTER_MAX: Duration = Duration::from_secs(5);
/// A list whose pages have expired starts again this often.
const RESTARTS_MAX: usize = 1;

/// Which objects to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListOptions {
    pub label_selector: Option<String>,
    pub field_selector: Option<String>,
    /// Stops after the page that reaches it.
    pub n_objects_max: Option<usize>,
    pub content: Content,
}

/// Which part of each object the server sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Content {
    #[default]
    Complete,
    /// `metadata` only; the kind is `PartialObjectMetadata`.
    Metadata,
}

/// What an object must still be to be deleted; an empty text says nothing about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Preconditions {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
}

/// The objects of a list. They have no `apiVersion` and `kind`.
#[derive(Debug, Default, PartialEq)]
pub struct ValueList {
    /// `Pod` if the list is a `PodList`.
    pub kind: String,
    pub api_version: String,
    pub items: Vec<Value>,
    /// The server has more of them: the list ends at [`ListOptions::n_objects_max`].
    pub has_more: bool,
}

/// A successful response.
#[derive(Debug, PartialEq)]
pub struct ValueResponse {
    pub value: Value,
    /// The header `Date`: the clock of the server, to the second.
    pub date: Option<String>,
}

/// Why something could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ReadError {
    /// `None`: there was no response.
    pub code: Option<u16>,
    pub message: String,
}

impl ReadError {
    pub fn is_forbidden(&self) -> bool {
        self.code == Some(403)
    }

    /// Neither the object nor, for a list, the resource exists.
    pub fn is_not_found(&self) -> bool {
        self.code == Some(404)
    }

    /// The server cannot be reached, or does not know the user: no other read can succeed.
    pub fn is_about_connection(&self) -> bool {
        matches!(self.code, None | Some(401))
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    metadata: PageMetadata,
    #[serde(default)]
    items: Option<Vec<Value>>,
}

#[derive(Default, Deserialize)]
struct PageMetadata {
    #[serde(default, rename = "continue")]
    token: Option<String>,
}

impl Client {
    /// One object, or any other path that answers with JSON.
    pub async fn get_value(&self, path: &str) -> Result<ValueResponse, ReadError> {
        let request = request(Method::GET, path, Accept::Json);
        let (response, date) = self.read(&request).await?;
        Ok(ValueResponse { value: parse(&request, &response)?, date })
    }

    /// Deletes one object of a command, if it is the one that the command has read.
    pub async fn delete_value(
        &self,
        path: &str,
        preconditions: &Preconditions,
    ) -> Result<(), ReadError> {
        let options = json!({
            "apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions,
        });
        let bytes = options.to_string().into_bytes().into();
        let body = Some(Body { content_type: "application/json", bytes });
        let verb = "delete";
        let request = ApiRequest { body, verb, ..request(Method::DELETE, path, Accept::Json) };
        self.read(&request).await.map(|_| ())
    }

    /// A review, such as a `SelfSubjectAccessReview`, or another object to create.
    pub async fn post_value(&self, path: &str, body: &Value) -> Result<Value, ReadError> {
        let bytes = body.to_string().into_bytes().into();
        let body = Body { content_type: "application/json", bytes };
        let request = ApiRequest { body: Some(body), ..request(Method::POST, path, Accept::Json) };
        let (response, _) = self.read(&request).await?;
        parse(&request, &response)
    }

    /// Replaces an object by a changed version of what was read.
    pub async fn put_value(&self, path: &str, body: &Value) -> Result<Value, ReadError> {
        let bytes = body.to_string().into_bytes().into();
        let body = Some(Body { content_type: "application/json", bytes });
        let verb = "update";
        let request = ApiRequest { body, verb, ..request(Method::PUT, path, Accept::Json) };
        let (response, _) = self.read(&request).await?;
        parse(&request, &response)
    }

    /// The objects below a path such as `/api/v1/namespaces/shop/pods`, read in pages of one
    /// consistent list.
    pub async fn list_values(
        &self,
        path: &str,
        options: &ListOptions,
    ) -> Result<ValueList, ReadError> {
        let mut list = ValueList::default();
        let (mut token, mut n_restarts) = (String::new(), 0);
        loop {
            let request = list_request(path, options, &token);
            let page = match self.read(&request).await {
                Ok((response, _)) => parse::<Page>(&request, &response)?,
                Err(ReadError { code: Some(410), .. }) if n_restarts < RESTARTS_MAX => {
                    n_restarts += 1;
                    (list, token) = (ValueList::default(), String::new());
                    continue;
                }
                Err(error) => return Err(error),
            };
            list.kind = page.kind.strip_suffix("List").unwrap_or(&page.kind).to_owned();
            list.api_version = page.api_version;
            list.items.extend(page.items.unwrap_or_default());
            token = page.metadata.token.unwrap_or_default();
            let is_enough = options.n_objects_max.is_some_and(|max| list.items.len() >= max);
            if token.is_empty() || is_enough {
                list.has_more = !token.is_empty();
                return Ok(list);
            }
        }
    }

    /// A successful response, and its `Date`.
    async fn read(&self, request: &ApiRequest) -> Result<(ApiResponse, Option<String>), ReadError> {
        let mut n_throttled = 0;
        loop {
            let started = Instant::now();
            let unread = |error: crate::transport::TransportError| ReadError {
                code: None,
                message: error.failure.message.to_string(),
            };
            let head = self.transport.open(request, TIMEOUT).await.map_err(unread)?;
            let date = head.headers().get(DATE).and_then(|date| date.to_str().ok());
            let date = date.map(ToOwned::to_owned);
            let left = TIMEOUT.saturating_sub(started.elapsed());
            let body = self.transport.read(request, head, left, RESPONSE_BYTES_MAX).await;
            let response = body.map_err(unread)?;
            match response.code {
                200..=299 => return Ok((response, date)),
                429 if n_throttled < THROTTLED_MAX => {
                    n_throttled += 1;
                    tokio::time::sleep(retry_after(&response)).await;
                }
                code => {
                    return Err(ReadError { code: Some(code), message: response.message() });
                }
            }
        }
    }
}

fn retry_after(response: &ApiResponse) -> Duration {
    let secs = response.retry_after.as_deref().and_then(|text| text.trim().parse().ok());
    Duration::from_secs(secs.unwrap_or(1)).min(RETRY_AFTER_MAX)
}

fn request(method: Method, path: &str, accept: Accept) -> ApiRequest {
    let verb = if method == Method::POST { "create" } else { "get" };
    ApiRequest {
        path: path.to_owned(),
        name: path.split('?').next().unwrap_or_default().to_owned(),
        accept,
        ..ApiRequest::new(method, verb, "objects")
    }
}

fn list_request(path: &str, options: &ListOptions, token: &str) -> ApiRequest {
    let ListOptions { label_selector, field_selector, n_objects_max, content } = options;
    let n_objects = n_objects_max.map_or(PAGE_OBJECTS_MAX, |max| max.min(PAGE_OBJECTS_MAX));
    let mut query = format!("{path}?limit={n_objects}");
    let selectors = [("labelSelector", label_selector), ("fieldSelector", field_selector)];
    for (name, selector) in selectors {
        if let Some(selector) = selector {
            query.push_str(&format!("&{name}={}", escape(selector)));
        }
    }
    if !token.is_empty() {
        query.push_str(&format!("&continue={}", escape(token)));
    }
    let accept = match content {
        Content::Complete => Accept::Json,
        Content::Metadata => Accept::JsonMetadata,
    };
    ApiRequest { verb: "list", ..request(Method::GET, &query, accept) }
}

fn parse<T: serde::de::DeserializeOwned>(
    request: &ApiRequest,
    response: &ApiResponse,
) -> Result<T, ReadError> {
    serde_json::from_slice(&response.body).map_err(|error| ReadError {
        code: None,
        message: format!("{}: the response is not JSON: {error}", request.describe()),
    })
}

#[cfg(test)]
mod fuzz;
