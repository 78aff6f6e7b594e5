//! An admission webhook over TLS. A test chooses what it answers, and counts how often it is asked.

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio_rustls::TlsAcceptor;

use crate::certificates;

/// What a webhook answers to each request.
#[derive(Clone, Debug)]
pub enum Verdict {
    Allow,
    /// Allows the request after this time.
    AllowAfter(Duration),
    /// Allows the request and applies this JSON patch (RFC 6902) to the object.
    Patch(Value),
    /// Denies the request with this `Status`, which has at least `code` and `message`.
    Deny(Value),
    /// Answers with this HTTP status code instead of a review.
    Fail(u16),
}

/// Serves until it is dropped.
pub struct AdmissionWebhook {
    address: SocketAddr,
    shared: Arc<Shared>,
    /// `None` only while it is dropped.
    runtime: Option<Runtime>,
}

struct Shared {
    verdict: Verdict,
    acceptor: TlsAcceptor,
    n_asked: AtomicUsize,
}

impl AdmissionWebhook {
    /// With the serving certificate in the directory of a cluster.
    pub fn start(directory: &Path, verdict: Verdict) -> io::Result<Self> {
        Self::start_at(Ipv4Addr::LOCALHOST, directory, verdict)
    }

    /// At an address other than loopback, which an EndpointSlice can have.
    pub fn start_at(ip: Ipv4Addr, directory: &Path, verdict: Verdict) -> io::Result<Self> {
        let acceptor = certificates::acceptor(directory)?;
        let shared = Arc::new(Shared { verdict, acceptor, n_asked: AtomicUsize::new(0) });
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let listener = runtime.block_on(TcpListener::bind((ip, 0)))?;
        let address = listener.local_addr()?;
        let accepting = Arc::clone(&shared);
        runtime.spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(Arc::clone(&accepting).serve(socket));
            }
        });
        Ok(Self { address, shared, runtime: Some(runtime) })
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// How often it was asked.
    pub fn n_asked(&self) -> usize {
        self.shared.n_asked.load(Ordering::SeqCst)
    }

    /// The `clientConfig` of a webhook configuration, with the authority in the cluster's
    /// directory.
    pub fn client_config(&self, authority: &str) -> Value {
        let url = format!("https://{}/", self.address);
        json!({"url": url, "caBundle": STANDARD.encode(authority)})
    }
}

impl Drop for AdmissionWebhook {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Shared {
    async fn serve(self: Arc<Self>, socket: TcpStream) {
        // Fails only if the API server has closed the connection.
        let Ok(stream) = self.acceptor.accept(socket).await else { return };
        let service = service_fn(|request| Arc::clone(&self).answer(request));
        // An error is the end of the connection.
        let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
    }

    async fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
    ) -> Result<Response<Full<Bytes>>, Infallible> {
        self.n_asked.fetch_add(1, Ordering::SeqCst);
        let body = request.into_body().collect().await.map(|body| body.to_bytes());
        let review: Value =
            body.ok().and_then(|body| serde_json::from_slice(&body).ok()).unwrap_or_default();
        if let Verdict::AllowAfter(delay) = &self.verdict {
            tokio::time::sleep(*delay).await;
        }
        let answer = response_of(&self.verdict, &review["request"]["uid"]);
        let mut response = Response::new(Full::new(Bytes::from(answer.to_string())));
        if let Verdict::Fail(code) = self.verdict {
            *response.status_mut() = StatusCode::from_u16(code).expect("a status code");
        }
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Ok(response)
    }
}

fn response_of(verdict: &Verdict, uid: &Value) -> Value {
    let mut response = json!({"uid": uid, "allowed": !matches!(verdict, Verdict::Deny(_))});
    match verdict {
        Verdict::Allow | Verdict::AllowAfter(_) | Verdict::Fail(_) => {}
        Verdict::Patch(patch) => {
            response["patchType"] = json!("JSONPatch");
            response["patch"] = json!(STANDARD.encode(patch.to_string()));
        }
        Verdict::Deny(status) => response["status"] = status.clone(),
    }
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn denial_has_the_uid_of_the_request_and_the_status() {
        let status = json!({"code": 429, "message": "too many"});
        let review = response_of(&Verdict::Deny(status.clone()), &json!("u-1"));
        let expected = json!({"uid": "u-1", "allowed": false, "status": status});
        assert_eq!(review["response"], expected);
    }

    #[test]
    fn patch_is_encoded() {
        let review = response_of(&Verdict::Patch(json!([])), &json!("u-1"));
        assert_eq!(review["response"]["allowed"], true);
        assert_eq!(review["response"]["patch"], "W10=");
    }
}
