//! A minimal JSON client for tests. Code under test uses its own client.

use std::time::Duration;

use serde_json::Value;
use ureq::Agent;
use ureq::config::ConfigBuilder;
use ureq::http::Request;
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::typestate::AgentScope;

use crate::kubeconfig::Token;

const TIMEOUT: Duration = Duration::from_secs(30);
const RESPONSE_BYTES_MAX: u64 = 64 << 20;
const MERGE_PATCH: &str = "application/merge-patch+json";

/// Requests to one API server.
#[derive(Clone)]
pub struct Api {
    agent: Agent,
    url: String,
    token: Option<Token>,
}

/// Whether connections are reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connections {
    /// One connection per request, because a reused one breaks when kube-apiserver restarts.
    Closed,
    /// For many requests to a server that is not restarted.
    Kept,
}

#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    #[error("the server returned {status}: {message}")]
    Refused { status: u16, message: String },
    #[error("no response from the server: {0}")]
    Unreachable(Box<ureq::Error>),
    #[error("the response is not JSON: {0}")]
    NotJson(#[from] serde_json::Error),
}

impl From<ureq::Error> for ApiError {
    fn from(error: ureq::Error) -> Self {
        Self::Unreachable(Box::new(error))
    }
}

impl Api {
    pub(crate) fn new(
        url: &str,
        authority: &str,
        token: Token,
        connections: Connections,
    ) -> Result<Self, ApiError> {
        let authority = Certificate::from_pem(authority.as_bytes())?;
        let tls = TlsConfig::builder().root_certs(RootCerts::new_with_certs(&[authority])).build();
        let agent = agent(connections).tls_config(tls).build().new_agent();
        Ok(Self { agent, url: url.to_owned(), token: Some(token) })
    }

    /// A plain HTTP server without authentication, at a URL without a trailing slash.
    pub fn plain(url: &str) -> Self {
        let agent = agent(Connections::Kept).build().new_agent();
        Self { agent, url: url.to_owned(), token: None }
    }

    pub fn get(&self, path: &str) -> Result<Value, ApiError> {
        self.json("GET", path, None)
    }

    pub fn create(&self, path: &str, object: &Value) -> Result<Value, ApiError> {
        self.json("POST", path, Some(object))
    }

    pub fn replace(&self, path: &str, object: &Value) -> Result<Value, ApiError> {
        self.json("PUT", path, Some(object))
    }

    /// Applies a JSON merge patch (RFC 7386): `null` removes a field.
    pub fn merge(&self, path: &str, patch: &Value) -> Result<Value, ApiError> {
        self.json("PATCH", path, Some(patch))
    }

    pub fn delete(&self, path: &str) -> Result<Value, ApiError> {
        self.json("DELETE", path, None)
    }

    /// The body as text, for health checks and metrics.
    pub fn text(&self, path: &str) -> Result<String, ApiError> {
        self.send("GET", path, None)
    }

    fn json(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value, ApiError> {
        Ok(serde_json::from_str(&self.send(method, path, body)?)?)
    }

    fn send(&self, method: &str, path: &str, body: Option<&Value>) -> Result<String, ApiError> {
        let content = if method == "PATCH" { MERGE_PATCH } else { "application/json" };
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.url))
            .header("Content-Type", content)
            .header("Accept", "*/*");
        if let Some(token) = &self.token {
            request = request.header("Authorization", format!("Bearer {}", token.text()));
        }
        let body = body.map(Value::to_string).unwrap_or_default();
        let request = request.body(body).map_err(ureq::Error::from)?;
        let mut response = self.agent.run(request)?;
        let text = response.body_mut().with_config().limit(RESPONSE_BYTES_MAX).read_to_string()?;
        if response.status().is_success() {
            return Ok(text);
        }
        Err(ApiError::Refused { status: response.status().as_u16(), message: message_of(text) })
    }
}

fn agent(connections: Connections) -> ConfigBuilder<AgentScope> {
    let builder = Agent::config_builder()
        .proxy(None)
        .http_status_as_error(false)
        .timeout_global(Some(TIMEOUT));
    match connections {
        Connections::Closed => builder.max_idle_connections(0),
        Connections::Kept => builder,
    }
}

/// The message of the `Status` object in an error response.
fn message_of(text: String) -> String {
    let status: Option<Value> = serde_json::from_str(&text).ok();
    status.and_then(|status| Some(status["message"].as_str()?.to_owned())).unwrap_or(text)
}
