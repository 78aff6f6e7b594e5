//! From a config to something that carries requests: TLS and credentials by `kube`, connections by
//! `hyper`.
//!
//! HTTP/1.1, so that each watch has a connection of its own and no slow answer holds up another; an
//! API server that vanishes costs each connection one timeout. Our own stack, because the one that
//! comes with `kube` logs every failed request as an error, and an outage is not news each time; and
//! not as a `kube::Client`, which hands every request to a task of its own and its answer back.

use std::error::Error;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::client::legacy::connect::{Connect, HttpConnector};
use hyper_util::client::legacy::{self};
use hyper_util::rt::TokioExecutor;
use kube::Config;
use kube::client::{Body, ConfigExt};
use tower::util::BoxCloneSyncService;
use tower::{BoxError, ServiceBuilder};

use crate::config::chain;
use crate::connect::ConnectError;

/// For the connection itself; TLS included, the time of the request counts as well.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const KEEPALIVE: Duration = Duration::from_secs(30);
/// Shorter than what load balancers allow, so that we are the ones who close.
const IDLE_MAX: Duration = Duration::from_secs(50);

/// Clones share connections.
pub(crate) type HttpService = BoxCloneSyncService<Request<Body>, Response<Incoming>, BoxError>;

/// Runs credential plugins, which may take a while: not for an async thread.
pub(crate) fn build(config: Config) -> Result<HttpService, ConnectError> {
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    http.set_nodelay(true);
    http.set_keepalive(Some(KEEPALIVE));
    http.set_connect_timeout(Some(CONNECT_TIMEOUT));
    let unusable = |error: kube::Error| ConnectError::Unusable { reason: chain(&error) };
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
    let http: legacy::Client<C, Body> =
        legacy::Client::builder(TokioExecutor::new()).pool_idle_timeout(IDLE_MAX).build(connector);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(http);
    Ok(BoxCloneSyncService::new(service))
}

/// Whether the request cannot have left, because there was no connection to send it on.
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

/// Whether credentials could not be had: a plugin failed, a token file is gone.
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
