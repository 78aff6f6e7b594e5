//! The least client that can drive a cluster: JSON in, JSON out. Code under test brings its own.

use std::time::Duration;

use serde_json::Value;
use ureq::Agent;
use ureq::http::Request;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

use crate::kubeconfig::Token;

const TIMEOUT: Duration = Duration::from_secs(30);
const ANSWER_BYTES_MAX: u64 = 64 << 20;

/// Requests to one cluster, as its administrator.
pub struct Api {
    agent: Agent,
    url: String,
    token: Token,
}

#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    #[error("the server refused with {status}: {message}")]
    Refused { status: u16, message: String },
    #[error("no answer from the server: {0}")]
    Unreachable(Box<ureq::Error>),
    #[error("the answer is not JSON: {0}")]
    NotJson(#[from] serde_json::Error),
}

impl From<ureq::Error> for ApiError {
    fn from(error: ureq::Error) -> Self {
        Self::Unreachable(Box::new(error))
    }
}

impl Api {
    pub(crate) fn new(url: &str, authority: &str, token: Token) -> Result<Self, ApiError> {
        let authority = Certificate::from_pem(authority.as_bytes())?;
        let tls = TlsConfig::builder().root_certs(RootCerts::new_with_certs(&[authority])).build();
        let agent = Agent::config_builder()
            .tls_config(tls)
            .proxy(None)
            .http_status_as_error(false)
            .timeout_global(Some(TIMEOUT))
            // A kept connection would be a dead one after a restart of kube-apiserver.
            .max_idle_connections(0)
            .build()
            .new_agent();
        Ok(Self { agent, url: url.to_owned(), token })
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

    pub fn delete(&self, path: &str) -> Result<Value, ApiError> {
        self.json("DELETE", path, None)
    }

    /// The answer as it is, for what is not JSON: health checks, metrics.
    pub fn text(&self, path: &str) -> Result<String, ApiError> {
        self.send("GET", path, None)
    }

    fn json(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value, ApiError> {
        Ok(serde_json::from_str(&self.send(method, path, body)?)?)
    }

    fn send(&self, method: &str, path: &str, body: Option<&Value>) -> Result<String, ApiError> {
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.url))
            .header("Authorization", format!("Bearer {}", self.token.text()))
            .header("Content-Type", "application/json")
            .header("Accept", "*/*");
        let body = body.map(Value::to_string).unwrap_or_default();
        let request = request.body(body).map_err(ureq::Error::from)?;
        let mut response = self.agent.run(request)?;
        let text = response.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_string()?;
        if response.status().is_success() {
            return Ok(text);
        }
        Err(ApiError::Refused { status: response.status().as_u16(), message: message_of(text) })
    }
}

/// Kubernetes answers a refusal with a `Status` object; its message is the part for people.
fn message_of(text: String) -> String {
    let status: Option<Value> = serde_json::from_str(&text).ok();
    status.and_then(|status| Some(status["message"].as_str()?.to_owned())).unwrap_or(text)
}
