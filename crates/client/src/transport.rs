//! Carries requests: adds what all of them need, waits no longer than it should, counts, and says
//! of a request without answer whether it may have arrived.

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use endpointd_model::{Failure, FailureKind};
use endpointd_wire::{Bytes, Encoding, Status, decode_status};
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, RETRY_AFTER};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use kube::client::Body;
use tokio::sync::Mutex;
use tower::ServiceExt;

use crate::ask::ApiRequest;
use crate::config;
use crate::connect::{ConnectError, ConnectOptions};
use crate::stack::{self, HttpService, is_about_credentials, is_unsent};
use crate::stats::RequestStats;

/// Credentials that were refused are read again at most this often.
const RENEWAL_MIN: Duration = Duration::from_secs(10);
/// A credential plugin that takes longer holds up everyone who was refused.
const RENEWAL_MAX: Duration = Duration::from_secs(20);

/// A complete answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ApiResponse {
    pub(crate) code: u16,
    /// `None` when it is neither JSON nor protobuf.
    pub(crate) encoding: Option<Encoding>,
    pub(crate) retry_after: Option<String>,
    pub(crate) body: Bytes,
}

/// There is no answer, or not all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TransportError {
    /// Whether the server may have seen the request, and done it.
    pub(crate) may_have_arrived: bool,
    pub(crate) failure: Failure,
}

pub(crate) struct Transport {
    options: ConnectOptions,
    line: Mutex<Session>,
    pub(crate) stats: Arc<RequestStats>,
    pub(crate) url: String,
}

/// The connections that belong to one set of credentials.
#[derive(Clone)]
struct Session {
    stack: HttpService,
    /// How often credentials have been read.
    generation: u64,
    renewed: Instant,
}

impl Transport {
    pub(crate) async fn connect(options: ConnectOptions) -> Result<Self, ConnectError> {
        let (stack, url) = prepare(&options).await?;
        let line = Mutex::new(Session { stack, generation: 0, renewed: Instant::now() });
        Ok(Self { options, line, stats: Arc::default(), url })
    }

    /// Asks and reads all of the answer, up to a number of bytes.
    pub(crate) async fn ask(
        &self,
        ask: &ApiRequest,
        timeout: Duration,
        n_bytes_max: usize,
    ) -> Result<ApiResponse, TransportError> {
        let started = Instant::now();
        let response = self.open(ask, timeout).await?;
        let left = timeout.saturating_sub(started.elapsed());
        self.read(ask, response, left, n_bytes_max).await
    }

    /// Asks and gives back the head of the answer, as soon as it is there.
    pub(crate) async fn open(
        &self,
        ask: &ApiRequest,
        timeout: Duration,
    ) -> Result<Response<Incoming>, TransportError> {
        let line = self.line.lock().await.clone();
        let response = self.open_on(line.stack, ask, timeout).await?;
        if response.status() != StatusCode::UNAUTHORIZED {
            return Ok(response);
        }
        // Refused credentials were not used for anything, so asking again is safe.
        match self.renew(line.generation).await {
            Some(stack) => self.open_on(stack, ask, timeout).await,
            None => Ok(response),
        }
    }

    async fn open_on(
        &self,
        stack: HttpService,
        ask: &ApiRequest,
        timeout: Duration,
    ) -> Result<Response<Incoming>, TransportError> {
        let started = Instant::now();
        let sent = tokio::time::timeout(timeout, stack.oneshot(request_of(ask))).await;
        let waited = started.elapsed();
        match sent {
            Ok(Ok(response)) => {
                self.stats.count(ask, Some(response.status().as_u16()), waited);
                Ok(response)
            }
            Ok(Err(error)) => {
                self.stats.count(ask, None, waited);
                Err(silence(ask, &*error))
            }
            Err(_) => {
                self.stats.count(ask, None, waited);
                Err(no_answer(ask, "no answer in time"))
            }
        }
    }

    pub(crate) async fn read(
        &self,
        ask: &ApiRequest,
        response: Response<Incoming>,
        timeout: Duration,
        n_bytes_max: usize,
    ) -> Result<ApiResponse, TransportError> {
        let code = response.status().as_u16();
        let encoding = encoding_of(&response);
        let retry_after = response.headers().get(RETRY_AFTER);
        let retry_after = retry_after.map(|value| String::from_utf8_lossy(value.as_bytes()).into());
        let collected = Limited::new(response.into_body(), n_bytes_max).collect();
        let body = match tokio::time::timeout(timeout, collected).await {
            Ok(Ok(body)) => body.to_bytes(),
            Ok(Err(error)) => {
                let reason = format!("the answer broke off: {}", config::chain(&*error));
                return Err(no_answer(ask, &reason));
            }
            Err(_) => return Err(no_answer(ask, "the answer did not end in time")),
        };
        self.stats.received(ask, code, body.len());
        Ok(ApiResponse { code, encoding, retry_after, body })
    }

    /// Reads the credentials again, unless someone else has just done so.
    async fn renew(&self, refused: u64) -> Option<HttpService> {
        let mut line = self.line.lock().await;
        if line.generation > refused {
            return Some(line.stack.clone());
        }
        if line.renewed.elapsed() < RENEWAL_MIN && line.generation > 0 {
            return None;
        }
        line.renewed = Instant::now();
        let prepared = tokio::time::timeout(RENEWAL_MAX, prepare(&self.options)).await;
        let prepared = prepared.unwrap_or_else(|_| {
            Err(ConnectError::Unusable { reason: "the credentials take too long".to_owned() })
        });
        match prepared {
            Ok((stack, _)) => {
                line.generation += 1;
                line.stack = stack.clone();
                tracing::debug!("credentials were refused: read again");
                Some(stack)
            }
            Err(error) => {
                tracing::debug!(%error, "credentials were refused, and cannot be read again");
                None
            }
        }
    }
}

async fn prepare(options: &ConnectOptions) -> Result<(HttpService, String), ConnectError> {
    let config = config::load(options).await?;
    let url = config.cluster_url.to_string().trim_end_matches('/').to_owned();
    let built = tokio::task::spawn_blocking(move || stack::build(config)).await;
    let built = built.map_err(|error| ConnectError::Unusable { reason: error.to_string() })?;
    Ok((built?, url))
}

fn request_of(ask: &ApiRequest) -> Request<Body> {
    let mut request = Request::builder()
        .method(ask.method.clone())
        .uri(&ask.path)
        .header(ACCEPT, ask.accept.header())
        // Some servers compress a watch one event at a time, which decoders cut off after the first.
        .header(ACCEPT_ENCODING, "identity");
    if let Some(body) = &ask.body {
        request = request.header(CONTENT_TYPE, body.content_type);
    }
    let body = ask.body.as_ref().map_or_else(Body::empty, |body| body.bytes.clone().into());
    request.body(body).expect("paths are escaped and headers are our own")
}

pub(crate) fn encoding_of<B>(response: &Response<B>) -> Option<Encoding> {
    let media_type = response.headers().get(CONTENT_TYPE)?.to_str().ok()?;
    Encoding::of_media_type(media_type)
}

fn silence(ask: &ApiRequest, error: &(dyn Error + 'static)) -> TransportError {
    let message = format!("{}: {}", ask.words(), config::chain(error)).into();
    if is_about_credentials(error) {
        let failure = Failure { kind: FailureKind::Unauthorized, message };
        return TransportError { may_have_arrived: false, failure };
    }
    let failure = Failure { kind: FailureKind::Unreachable, message };
    TransportError { may_have_arrived: !is_unsent(error), failure }
}

fn no_answer(ask: &ApiRequest, reason: &str) -> TransportError {
    let message = format!("{}: {reason}", ask.words()).into();
    let failure = Failure { kind: FailureKind::Unreachable, message };
    TransportError { may_have_arrived: true, failure }
}

impl ApiResponse {
    /// What the server says about a refusal; empty when it says nothing we can read.
    pub(crate) fn status(&self) -> Status {
        let encoding = self.encoding.unwrap_or(Encoding::Json);
        decode_status(encoding, &self.body).unwrap_or_default()
    }

    /// The server's own words, or the beginning of whatever it sent.
    pub(crate) fn message(&self) -> String {
        let status = self.status();
        if !status.message.is_empty() {
            return status.message;
        }
        let text = String::from_utf8_lossy(&self.body);
        let text = text.trim();
        let short: String = text.chars().take(MESSAGE_CHARS_MAX).collect();
        if short.is_empty() {
            format!("HTTP {}", self.code)
        } else {
            format!("HTTP {}: {short}", self.code)
        }
    }
}

const MESSAGE_CHARS_MAX: usize = 200;
