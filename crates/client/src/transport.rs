//! Sends requests: adds common headers, applies time limits, reloads credentials, counts. Of a
//! request without a response it reports whether the server may have received it.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use endpointd_model::{Failure, FailureKind};
use endpointd_wire::{Bytes, Encoding, Status, decode_status};
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, RETRY_AFTER};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Body as _, Incoming};
use kube::client::Body;
use tokio::sync::{Mutex, watch};
use tower::ServiceExt;

use crate::config;
use crate::connect::{ConnectError, ConnectOptions};
use crate::http_service::{self, HttpService, is_about_credentials, is_unsent, is_untrusted};
use crate::request::ApiRequest;
use crate::stats::RequestStats;

/// Rejected credentials are reloaded at most this often.
const RELOAD_INTERVAL_MIN: Duration = Duration::from_secs(10);
/// For reading credentials; a plugin may hang, and all rejected requests wait for it.
const RELOAD_MAX: Duration = Duration::from_secs(20);

/// A complete response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ApiResponse {
    pub(crate) code: u16,
    /// `None` when it is neither JSON nor protobuf.
    pub(crate) encoding: Option<Encoding>,
    pub(crate) retry_after: Option<String>,
    pub(crate) body: Bytes,
}

/// There is no response, or only part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TransportError {
    /// Whether the server may have received the request and applied it.
    pub(crate) may_have_arrived: bool,
    pub(crate) failure: Failure,
}

pub(crate) struct Transport {
    options: ConnectOptions,
    session: Mutex<Session>,
    /// Generation whose first response shows that connections of earlier ones are dead; 0: none.
    suspected_before: AtomicU64,
    /// Connections of earlier generations are given up.
    given_up_before: watch::Sender<u64>,
    pub(crate) stats: Arc<RequestStats>,
    pub(crate) url: String,
    pub(crate) default_namespace: String,
}

/// Why a request has no response head.
enum NotOpened {
    /// The TLS handshake failed: the certificate authorities may have been replaced.
    Untrusted(TransportError),
    Other(TransportError),
}

impl NotOpened {
    fn into_error(self) -> TransportError {
        match self {
            Self::Untrusted(error) | Self::Other(error) => error,
        }
    }
}

/// The connections of one set of credentials and certificate authorities.
#[derive(Clone)]
struct Session {
    service: HttpService,
    /// How often credentials have been reloaded.
    generation: u64,
    reloaded: Instant,
}

impl Transport {
    pub(crate) async fn connect(options: ConnectOptions) -> Result<Self, ConnectError> {
        let Prepared { service, url, default_namespace } = prepare(&options).await?;
        let session = Mutex::new(Session { service, generation: 0, reloaded: Instant::now() });
        Ok(Self {
            options,
            session,
            suspected_before: AtomicU64::new(0),
            given_up_before: watch::Sender::new(0),
            stats: Arc::default(),
            url,
            default_namespace,
        })
    }

    /// Sends a request and reads the whole response, at most `n_bytes_max`.
    pub(crate) async fn request(
        &self,
        request: &ApiRequest,
        timeout: Duration,
        n_bytes_max: usize,
    ) -> Result<ApiResponse, TransportError> {
        let started = Instant::now();
        let response = self.open(request, timeout).await?;
        let left = timeout.saturating_sub(started.elapsed());
        self.read(request, response, left, n_bytes_max).await
    }

    /// Sends a request and returns the response head as soon as it has arrived.
    pub(crate) async fn open(
        &self,
        request: &ApiRequest,
        timeout: Duration,
    ) -> Result<Response<Incoming>, TransportError> {
        let session = self.session.lock().await.clone();
        // In both cases the request was not applied, so it can be sent again.
        let opened = self.open_on(session.service, request, timeout);
        let opened = tokio::select! {
            opened = opened => opened,
            () = self.given_up(session.generation) => {
                return Err(no_response(request, GIVEN_UP));
            }
        };
        let opened =
            opened.inspect(|_| self.on_response(session.generation)).map(|mut response| {
                response.extensions_mut().insert(Generation(session.generation));
                response
            });
        let rejected = match opened {
            Ok(response) if response.status() == StatusCode::UNAUTHORIZED => Ok(response),
            Err(NotOpened::Untrusted(error)) => Err(error),
            other => return other.map_err(NotOpened::into_error),
        };
        match self.reload_credentials(session.generation).await {
            Some(service) => {
                self.open_on(service, request, timeout).await.map_err(NotOpened::into_error)
            }
            None => rejected,
        }
    }

    async fn open_on(
        &self,
        service: HttpService,
        request: &ApiRequest,
        timeout: Duration,
    ) -> Result<Response<Incoming>, NotOpened> {
        let started = Instant::now();
        let sent = tokio::time::timeout(timeout, service.oneshot(http_request(request))).await;
        let code = match &sent {
            Ok(Ok(response)) => Some(response.status().as_u16()),
            Ok(Err(_)) | Err(_) => None,
        };
        self.stats.count(request, code, started.elapsed());
        match sent {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => {
                let is_untrusted = is_untrusted(&*error);
                let error = transport_error(request, &*error);
                Err(if is_untrusted {
                    NotOpened::Untrusted(error)
                } else {
                    NotOpened::Other(error)
                })
            }
            Err(_) => Err(NotOpened::Other(no_response(request, "no response in time"))),
        }
    }

    pub(crate) async fn read(
        &self,
        request: &ApiRequest,
        response: Response<Incoming>,
        timeout: Duration,
        n_bytes_max: usize,
    ) -> Result<ApiResponse, TransportError> {
        let code = response.status().as_u16();
        let encoding = encoding_of(&response);
        let generation = generation_of(&response);
        let retry_after = response.headers().get(RETRY_AFTER);
        let retry_after = retry_after.map(|value| String::from_utf8_lossy(value.as_bytes()).into());
        if usize::try_from(response.body().size_hint().lower()).unwrap_or(usize::MAX) > n_bytes_max
        {
            return Err(too_long(request, n_bytes_max));
        }
        let collected = Limited::new(response.into_body(), n_bytes_max).collect();
        let collected = tokio::time::timeout(timeout, collected);
        let collected = tokio::select! {
            collected = collected => collected,
            () = self.given_up(generation) => return Err(no_response(request, GIVEN_UP)),
        };
        let body = match collected {
            Ok(Ok(body)) => body.to_bytes(),
            Ok(Err(error)) if error.is::<LengthLimitError>() => {
                return Err(too_long(request, n_bytes_max));
            }
            Ok(Err(error)) => {
                let reason = format!("the response broke off: {}", config::error_chain(&*error));
                return Err(no_response(request, &reason));
            }
            Err(_) => return Err(no_response(request, "the response did not end in time")),
        };
        Ok(ApiResponse { code, encoding, retry_after, body })
    }

    /// A request that the server answers at once was not answered: connections may be dead without a
    /// sign, as after a silent fail-over of a load balancer. Further requests get new connections;
    /// after the first response on one of them, all older connections are given up.
    /// Returns false if there are no new connections, because older ones were replaced just now.
    pub(crate) async fn suspect_connections(&self) -> bool {
        let generation = self.session.lock().await.generation;
        let is_replaced = self.reload_credentials(generation).await.is_some();
        if is_replaced {
            self.suspected_before.store(generation + 1, Ordering::Relaxed);
        }
        is_replaced
    }

    fn on_response(&self, generation: u64) {
        let suspected_before = self.suspected_before.load(Ordering::Relaxed);
        if suspected_before != 0 && generation >= suspected_before {
            self.suspected_before.store(0, Ordering::Relaxed);
            tracing::warn!("connections are dead, requests and watches use new ones");
            self.given_up_before.send_replace(suspected_before);
        }
    }

    /// Completes when the connections of this generation are given up.
    pub(crate) async fn given_up(&self, generation: u64) {
        let mut before = self.given_up_before.subscribe();
        // The sender lives as long as `self`.
        let _ = before.wait_for(|before| generation < *before).await;
    }

    /// Reloads credentials and certificate authorities, unless another request has just done so.
    async fn reload_credentials(&self, rejected_generation: u64) -> Option<HttpService> {
        let mut session = self.session.lock().await;
        if session.generation > rejected_generation {
            return Some(session.service.clone());
        }
        if session.reloaded.elapsed() < RELOAD_INTERVAL_MIN && session.generation > 0 {
            return None;
        }
        session.reloaded = Instant::now();
        let prepared = tokio::time::timeout(RELOAD_MAX, prepare(&self.options)).await;
        let prepared = prepared.unwrap_or_else(|_| {
            Err(ConnectError::Unusable {
                reason: "reading the credentials takes too long".to_owned(),
            })
        });
        match prepared {
            Ok(Prepared { service, .. }) => {
                session.generation += 1;
                session.service = service.clone();
                tracing::debug!("credentials rejected: reloaded");
                Some(service)
            }
            Err(error) => {
                tracing::debug!(%error, "credentials rejected, cannot reload them");
                None
            }
        }
    }
}

const GIVEN_UP: &str = "the connection was given up";

/// Which connections a response came from; an extension of it.
#[derive(Clone, Copy)]
struct Generation(u64);

pub(crate) fn generation_of<B>(response: &Response<B>) -> u64 {
    response.extensions().get().map_or(u64::MAX, |Generation(generation)| *generation)
}

/// Connections, and what the configuration says about the cluster.
struct Prepared {
    service: HttpService,
    url: String,
    default_namespace: String,
}

async fn prepare(options: &ConnectOptions) -> Result<Prepared, ConnectError> {
    let config = config::load(options).await?;
    let url = config.cluster_url.to_string().trim_end_matches('/').to_owned();
    let default_namespace = config.default_namespace.clone();
    let built = tokio::task::spawn_blocking(move || http_service::build(config)).await;
    let built = built.map_err(|error| ConnectError::Unusable { reason: error.to_string() })?;
    Ok(Prepared { service: built?, url, default_namespace })
}

fn http_request(request: &ApiRequest) -> Request<Body> {
    let mut builder = Request::builder()
        .method(request.method.clone())
        .uri(&request.path)
        .extension(request.pool)
        .header(ACCEPT, request.accept.header())
        // Some servers compress each event of a watch on its own; decoders stop after the first.
        .header(ACCEPT_ENCODING, "identity");
    if let Some(body) = &request.body {
        builder = builder.header(CONTENT_TYPE, body.content_type);
    }
    let body = request.body.as_ref().map_or_else(Body::empty, |body| body.bytes.clone().into());
    builder.body(body).expect("paths are escaped and headers are constants")
}

pub(crate) fn encoding_of<B>(response: &Response<B>) -> Option<Encoding> {
    let media_type = response.headers().get(CONTENT_TYPE)?.to_str().ok()?;
    Encoding::of_media_type(media_type)
}

fn transport_error(request: &ApiRequest, error: &(dyn Error + 'static)) -> TransportError {
    let message = format!("{}: {}", request.describe(), config::error_chain(error)).into();
    if is_about_credentials(error) {
        let failure = Failure { kind: FailureKind::Unauthorized, message };
        return TransportError { may_have_arrived: false, failure };
    }
    let failure = Failure { kind: FailureKind::Unreachable, message };
    TransportError { may_have_arrived: !is_unsent(error), failure }
}

fn no_response(request: &ApiRequest, reason: &str) -> TransportError {
    let message = format!("{}: {reason}", request.describe()).into();
    let failure = Failure { kind: FailureKind::Unreachable, message };
    TransportError { may_have_arrived: true, failure }
}

fn too_long(request: &ApiRequest, n_bytes_max: usize) -> TransportError {
    let mut error = no_response(request, &format!("a response of more than {n_bytes_max} bytes"));
    error.failure.kind = FailureKind::Unreadable;
    error
}

impl ApiResponse {
    /// The `Status` of an error response; empty when it has none that can be decoded.
    pub(crate) fn status(&self) -> Status {
        let encoding = self.encoding.unwrap_or(Encoding::Json);
        decode_status(encoding, &self.body).unwrap_or_default()
    }

    /// The message of the server, or the beginning of the body.
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
