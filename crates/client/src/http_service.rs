//! The HTTP service for a config: TLS and credentials by `kube`, connections by `hyper`.
//!
//! HTTP/1.1, so that each watch has its own connection and no slow response blocks another. Not a
//! `kube::Client`, because that logs every failed request as an error, even during an outage, and
//! passes every request and response through a task of its own.

use std::error::Error;
use std::io;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::client::legacy::connect::{Connect, HttpConnector};
use hyper_util::client::legacy::{self};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::Config;
use kube::client::{Body, ConfigExt};
use tower::util::BoxCloneSyncService;
use tower::{BoxError, Service, ServiceBuilder};

use crate::config::error_chain;
use crate::connect::ConnectError;

/// For the TCP connection; the time limit of the request includes TLS.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// A connection without answers is closed after some seconds, whether it is idle or has sent data: a
/// load balancer may have failed over silently.
const KEEPALIVE: Duration = Duration::from_secs(5);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(1);
#[cfg(target_os = "linux")]
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(5);
/// Shorter than the idle time-outs of load balancers, so that we close first.
const IDLE_MAX: Duration = Duration::from_secs(50);
/// As many as the engine has writes in flight: a busy process opens no new ones.
const IDLE_CONNECTIONS_MAX: usize = 64;

/// Clones share connections.
pub(crate) type HttpService = BoxCloneSyncService<Request<Body>, Response<Incoming>, BoxError>;

/// Blocks: it may run a credential plugin.
pub(crate) fn build(config: Config) -> Result<HttpService, ConnectError> {
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    http.set_nodelay(true);
    http.set_keepalive(Some(KEEPALIVE));
    http.set_keepalive_interval(Some(KEEPALIVE_INTERVAL));
    #[cfg(target_os = "linux")]
    http.set_tcp_user_timeout(Some(UNACKNOWLEDGED_MAX));
    http.set_connect_timeout(Some(CONNECT_TIMEOUT));
    let unusable = |error: kube::Error| ConnectError::Unusable { reason: error_chain(&error) };
    let Some(proxy) = config.proxy_url.clone() else {
        let https = config.rustls_https_connector_with_connector(http).map_err(unusable)?;
        return assemble(config, https).map_err(unusable);
    };
    match proxy.scheme_str() {
        Some("http") => {
            let tunnel = Tunnel::new(proxy, http);
            let https = config.rustls_https_connector_with_connector(tunnel).map_err(unusable)?;
            assemble(config, https).map_err(unusable)
        }
        Some("socks5") => {
            let socks = SocksV5::new(proxy, http);
            let https = config.rustls_https_connector_with_connector(socks).map_err(unusable)?;
            assemble(config, https).map_err(unusable)
        }
        _ => {
            let reason = format!("the proxy is neither `http` nor `socks5`: `{proxy}`");
            Err(ConnectError::Unusable { reason })
        }
    }
}

fn assemble<C>(config: Config, connector: C) -> Result<HttpService, kube::Error>
where
    C: Connect + Clone + Send + Sync + 'static,
{
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(Pools::new(connector));
    Ok(BoxCloneSyncService::new(service))
}

/// Which connections a request uses; an extension of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pool {
    Shared,
    /// A connection of its own, so that the lease is renewed whatever the other requests do.
    Leases,
}

#[derive(Clone)]
struct Pools<C> {
    shared: legacy::Client<C, Body>,
    leases: legacy::Client<C, Body>,
}

impl<C: Connect + Clone + Send + Sync + 'static> Pools<C> {
    fn new(connector: C) -> Self {
        let pool = |n_idle_max| {
            legacy::Client::builder(TokioExecutor::new())
                .pool_timer(TokioTimer::new())
                .pool_idle_timeout(IDLE_MAX)
                .pool_max_idle_per_host(n_idle_max)
                .build(connector.clone())
        };
        Self { shared: pool(IDLE_CONNECTIONS_MAX), leases: pool(1) }
    }
}

impl<C: Connect + Clone + Send + Sync + 'static> Service<Request<Body>> for Pools<C> {
    type Response = Response<Incoming>;
    type Error = legacy::Error;
    type Future = legacy::ResponseFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), legacy::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> legacy::ResponseFuture {
        match request.extensions().get().copied().unwrap_or(Pool::Shared) {
            Pool::Shared => self.shared.request(request),
            Pool::Leases => self.leases.request(request),
        }
    }
}

/// Whether the request was certainly not sent, because there was no connection.
pub(crate) fn is_unsent(error: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error.downcast_ref::<legacy::Error>().is_some_and(legacy::Error::is_connect) {
            return true;
        }
        cause = error.source();
    }
    false
}

/// Whether the TLS handshake failed, for instance because the authority is not known. tokio-rustls
/// reports all errors of rustls as invalid data.
pub(crate) fn is_untrusted(error: &(dyn Error + 'static)) -> bool {
    let mut cause = is_unsent(error).then_some(error);
    while let Some(error) = cause {
        if error.downcast_ref::<io::Error>().is_some_and(is_invalid_data) {
            return true;
        }
        cause = error.source();
    }
    false
}

/// hyper-rustls wraps the error in another one, whose source is not the error but the error's source.
fn is_invalid_data(error: &io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<io::Error>());
    error.kind() == io::ErrorKind::InvalidData || inner.is_some_and(is_invalid_data)
}

/// Whether there are no credentials: a plugin failed, or a token file is missing.
pub(crate) fn is_about_credentials(error: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error.is::<kube::client::AuthError>() {
            return true;
        }
        cause = error.source();
    }
    false
}
