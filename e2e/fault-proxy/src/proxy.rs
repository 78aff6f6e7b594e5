//! The proxy: accepts TLS connections, applies faults, forwards HTTP/1.1 requests. Start at
//! [`FaultProxy::start`].

use std::future::pending;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, HOST, TRANSFER_ENCODING};
use http::uri::{Parts, PathAndQuery};
use http::{HeaderMap, Request, Response, Uri};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use crate::body::ForwardedBody;
use crate::certificates;
use crate::exchanges::{Exchange, Exchanges};
use crate::fault::{Answer, Fault, Stage};
use crate::request_info::RequestInfo;
use crate::requests::Requests;
use crate::rules::{Injected, Rules};

/// Forwards requests until it is dropped.
pub struct FaultProxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    /// `None` only while it is dropped.
    runtime: Option<Runtime>,
}

struct Shared {
    server: Uri,
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    acceptor: Mutex<TlsAcceptor>,
    rules: Arc<Rules>,
    exchanges: Exchanges,
    /// A new value closes all connections.
    closes: watch::Sender<u64>,
    resets_connections: AtomicBool,
    n_reset: AtomicUsize,
}

/// Until this is dropped, new connections are reset before a byte is exchanged.
#[must_use = "connections are accepted again when this is dropped"]
pub struct ConnectionResets<'a> {
    proxy: &'a FaultProxy,
}

impl FaultProxy {
    /// In front of the API server at `server`, a URL, with the certificates in the directory of its
    /// cluster: a kubeconfig of the cluster needs no change except the port.
    pub fn start(server: &str, directory: &Path) -> io::Result<Self> {
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(certificates::client_config(directory)?)
            .https_or_http()
            .enable_http1()
            .build();
        let shared = Arc::new(Shared {
            server: server.parse().map_err(io::Error::other)?,
            client: Client::builder(TokioExecutor::new()).build(connector),
            acceptor: Mutex::new(certificates::acceptor(directory)?),
            rules: Arc::default(),
            exchanges: Exchanges::default(),
            closes: watch::Sender::new(0),
            resets_connections: AtomicBool::new(false),
            n_reset: AtomicUsize::new(0),
        });
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?;
        let address = listener.local_addr()?;
        runtime.spawn(Arc::clone(&shared).accept(listener));
        Ok(Self { address, shared, runtime: Some(runtime) })
    }

    /// Without a trailing slash.
    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// Makes the API server misbehave until the returned value is dropped.
    pub fn inject(&self, requests: Requests, fault: Fault) -> Injected {
        self.shared.rules.inject(requests, fault)
    }

    /// Closes all current connections.
    pub fn close_connections(&self) {
        self.shared.closes.send_modify(|generation| *generation += 1);
    }

    /// Closes all current connections and resets new ones until the returned value is dropped.
    pub fn reset_connections(&self) -> ConnectionResets<'_> {
        self.shared.n_reset.store(0, Ordering::SeqCst);
        self.shared.resets_connections.store(true, Ordering::SeqCst);
        self.close_connections();
        ConnectionResets { proxy: self }
    }

    /// Serves new connections with the serving certificate in `directory`.
    pub fn use_serving_certificate(&self, directory: &Path) -> io::Result<()> {
        let acceptor = certificates::acceptor(directory)?;
        *self.shared.acceptor.lock().unwrap_or_else(PoisonError::into_inner) = acceptor;
        Ok(())
    }

    /// The requests seen so far, in the order of their arrival.
    pub fn exchanges(&self) -> Vec<Exchange> {
        self.shared.exchanges.all()
    }

    /// Those of the requests seen so far that `requests` contains.
    pub fn exchanges_of(&self, requests: &Requests) -> Vec<Exchange> {
        let mut exchanges = self.exchanges();
        exchanges.retain(|exchange| requests.contains(&exchange.request));
        exchanges
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl ConnectionResets<'_> {
    /// How many connections have been reset.
    pub fn n_reset(&self) -> usize {
        self.proxy.shared.n_reset.load(Ordering::SeqCst)
    }
}

impl Drop for ConnectionResets<'_> {
    fn drop(&mut self) {
        self.proxy.shared.resets_connections.store(false, Ordering::SeqCst);
        if !std::thread::panicking() {
            assert!(self.n_reset() > 0, "no connection was attempted");
        }
    }
}

impl Shared {
    async fn accept(self: Arc<Self>, listener: TcpListener) {
        loop {
            let Ok((socket, _)) = listener.accept().await else {
                // Too many open files: some will be closed.
                tokio::time::sleep(Duration::from_millis(20)).await;
                continue;
            };
            if self.resets_connections.load(Ordering::SeqCst) {
                self.n_reset.fetch_add(1, Ordering::SeqCst);
                // On failure the connection is closed instead of reset.
                drop(socket.set_zero_linger());
                continue;
            }
            tokio::spawn(Arc::clone(&self).serve(socket));
        }
    }

    /// Serves one connection until the client, a fault, or the owner of the proxy closes it.
    async fn serve(self: Arc<Self>, socket: TcpStream) {
        let mut closes = self.closes.subscribe();
        let acceptor = self.acceptor.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // Both fail only if the client has closed the connection or does not trust us.
        let (Ok(()), Ok(stream)) = (socket.set_nodelay(true), acceptor.accept(socket).await) else {
            return;
        };
        let service = service_fn(|request| Arc::clone(&self).exchange(request));
        let serving = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        tokio::select! {
            // An error is a fault of ours or of the client.
            _ = serving => {}
            _ = closes.changed() => {}
        }
    }

    async fn exchange(
        self: Arc<Self>,
        request: Request<Incoming>,
    ) -> io::Result<Response<ForwardedBody>> {
        let info = RequestInfo::new(request.method(), request.uri());
        let ends = EndOfExchange::begin(&self, &info);
        let response = self.respond(request, &info).await;
        ends.with(response.as_ref().ok().map(|response| response.status().as_u16()));
        response
    }

    async fn respond(
        &self,
        request: Request<Incoming>,
        info: &RequestInfo,
    ) -> io::Result<Response<ForwardedBody>> {
        let (head, body) = request.into_parts();
        let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
        let request = Request::from_parts(head, Full::new(body));
        let closed = || io::Error::other("closed by a fault");
        match self.rules.hit(Stage::Request, info) {
            None => self.forward(request, info).await,
            Some(Fault::Answer(answer)) => Ok(self.answer(&answer, info)),
            Some(Fault::ApplyAndAnswer(answer)) => {
                self.apply(request, info).await?;
                Ok(self.answer(&answer, info))
            }
            Some(Fault::DelayRequest(delay)) => {
                tokio::time::sleep(delay).await;
                self.forward(request, info).await
            }
            Some(Fault::DelayResponse(delay)) => {
                let response = self.forward(request, info).await;
                tokio::time::sleep(delay).await;
                response
            }
            Some(Fault::LoseRequest) => Err(closed()),
            Some(Fault::LoseResponse) => {
                self.apply(request, info).await?;
                Err(closed())
            }
            Some(Fault::Silence) => pending().await,
            Some(Fault::CutBody | Fault::SilenceBody | Fault::StallBody) => {
                unreachable!("these faults do not apply to requests")
            }
        }
    }

    async fn forward(
        &self,
        mut request: Request<Full<Bytes>>,
        info: &RequestInfo,
    ) -> io::Result<Response<ForwardedBody>> {
        *request.uri_mut() = self.uri_at_server(request.uri());
        request.headers_mut().remove(HOST);
        remove_hop_by_hop(request.headers_mut());
        let mut response = self.client.request(request).await.map_err(io::Error::other)?;
        remove_hop_by_hop(response.headers_mut());
        let rules = Arc::clone(&self.rules);
        Ok(response.map(|body| ForwardedBody::of_server(body, info.clone(), rules)))
    }

    /// Returns when the server has answered the whole request.
    async fn apply(&self, request: Request<Full<Bytes>>, info: &RequestInfo) -> io::Result<()> {
        self.forward(request, info).await?.into_body().collect().await.map(drop)
    }

    fn answer(&self, answer: &Answer, info: &RequestInfo) -> Response<ForwardedBody> {
        let rules = Arc::clone(&self.rules);
        answer.response().map(|body| ForwardedBody::of_proxy(body, info.clone(), rules))
    }

    fn uri_at_server(&self, uri: &Uri) -> Uri {
        let mut parts = Parts::default();
        parts.scheme = self.server.scheme().cloned();
        parts.authority = self.server.authority().cloned();
        let target = uri.path_and_query().cloned();
        parts.path_and_query = target.or_else(|| Some(PathAndQuery::from_static("/")));
        Uri::from_parts(parts).expect("the server has a scheme and an address")
    }
}

/// Both connections have their own.
fn remove_hop_by_hop(headers: &mut HeaderMap) {
    headers.remove(CONNECTION);
    headers.remove(TRANSFER_ENCODING);
}

/// Records the end of an exchange, even if the client goes away and hyper drops the future.
struct EndOfExchange<'a> {
    shared: &'a Shared,
    number: usize,
    code: Option<u16>,
}

impl<'a> EndOfExchange<'a> {
    fn begin(shared: &'a Shared, info: &RequestInfo) -> Self {
        Self { shared, number: shared.exchanges.begin(info.clone()), code: None }
    }

    fn with(mut self, code: Option<u16>) {
        self.code = code;
    }
}

impl Drop for EndOfExchange<'_> {
    fn drop(&mut self) {
        self.shared.exchanges.end(self.number, self.code);
    }
}

#[cfg(test)]
mod tests;
