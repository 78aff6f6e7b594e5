//! The addresses where pages are served, bound before the thread that serves them starts, so that a
//! port in use is an error of the command.

use std::net::{SocketAddr, TcpListener};

use endpointd_client::{Client, ConnectOptions};
use endpointd_secure_serving::{Guard, GuardOptions, ReviewApi, ReviewFuture, Tls, TlsOptions};
use serde_json::Value;

use crate::run::RunError;

/// HTTPS for everybody whom the API server permits.
#[derive(Clone, Debug)]
pub struct SecureServing {
    pub address: SocketAddr,
    pub tls: TlsOptions,
    pub guard: GuardOptions,
}

#[derive(Default)]
pub(crate) struct Listeners {
    pub plain: Option<TcpListener>,
    pub secure: Option<SecureListener>,
}

pub(crate) struct SecureListener {
    pub listener: TcpListener,
    pub tls: Tls,
    pub guard: Guard,
    /// Its connections belong to the thread that serves, not to the event loop.
    pub client: Client,
}

impl Listeners {
    pub async fn open(
        plain: Option<SocketAddr>,
        secure: Option<SecureServing>,
        connect: ConnectOptions,
    ) -> Result<Self, RunError> {
        let plain = plain.map(bind).transpose()?;
        let Some(SecureServing { address, tls, guard }) = secure else {
            return Ok(Self { plain, secure: None });
        };
        let tls = Tls::new(tls)?;
        let listener = bind(address)?;
        let client = Client::connect(ConnectOptions { qps: None, ..connect }).await?;
        let guard = Guard::new(Reviews(client.clone()), guard);
        Ok(Self { plain, secure: Some(SecureListener { listener, tls, guard, client }) })
    }

    pub fn is_empty(&self) -> bool {
        self.plain.is_none() && self.secure.is_none()
    }

    pub fn address(&self) -> Option<SocketAddr> {
        self.plain.as_ref().and_then(|listener| listener.local_addr().ok())
    }

    pub fn secure_address(&self) -> Option<SocketAddr> {
        self.secure.as_ref().and_then(|secure| secure.listener.local_addr().ok())
    }
}

fn bind(address: SocketAddr) -> Result<TcpListener, RunError> {
    let bound = TcpListener::bind(address).and_then(|listener| {
        listener.set_nonblocking(true)?;
        Ok(listener)
    });
    bound.map_err(|reason| RunError::Bind { address, reason })
}

struct Reviews(Client);

impl ReviewApi for Reviews {
    fn create(&self, path: &'static str, review: Value) -> ReviewFuture<'_> {
        Box::pin(async move {
            self.0.post_value(path, &review).await.map_err(|error| error.to_string())
        })
    }
}
