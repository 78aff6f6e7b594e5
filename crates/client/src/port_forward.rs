//! Connections to ports of pods, through the API server, as `kubectl port-forward` makes them.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::Portforwarder;
use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional};
use tokio::time::timeout;

use crate::config::{self, error_chain};
use crate::connect::{ConnectError, ConnectOptions};
use crate::value_read::ReadError;

/// For the last message of the server, after both ends are closed.
const CLOSE_MAX: Duration = Duration::from_secs(5);

/// Opens connections to ports of pods.
#[derive(Clone)]
pub struct PortForwarder(kube::Client);

/// A connection to one port of a pod.
pub struct PodConnection {
    forwarder: Portforwarder,
    port: u16,
}

impl PortForwarder {
    pub async fn connect(options: &ConnectOptions) -> Result<Self, ConnectError> {
        let config = config::load(options).await?;
        // Blocks: it may run a credential plugin.
        let built = tokio::task::spawn_blocking(move || kube::Client::try_from(config)).await;
        let built = built.map_err(|error| ConnectError::Unusable { reason: error.to_string() })?;
        built.map(Self).map_err(|error| ConnectError::Unusable { reason: error_chain(&error) })
    }

    /// The API server accepts; whether the pod listens shows when the connection is used.
    pub async fn open(
        &self,
        namespace: &str,
        pod: &str,
        port: u16,
    ) -> Result<PodConnection, ReadError> {
        let pods: Api<Pod> = Api::namespaced(self.0.clone(), namespace);
        let forwarder = pods.portforward(pod, &[port]).await.map_err(|error| read_error(&error))?;
        Ok(PodConnection { forwarder, port })
    }
}

impl PodConnection {
    /// Copies in both directions until both ends are closed. The error is that of the kubelet, such
    /// as a port on which nobody listens.
    pub async fn copy<S>(mut self, mut local: S) -> Result<(), String>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let Some(mut remote) = self.forwarder.take_stream(self.port) else { return Ok(()) };
        let error = self.forwarder.take_error(self.port);
        // That one of the two ends is closed early is the business of both ends.
        let _ = copy_bidirectional(&mut local, &mut remote).await;
        drop(remote);
        let Some(error) = error else { return Ok(()) };
        match timeout(CLOSE_MAX, error).await {
            Ok(Some(error)) => Err(error.trim().to_owned()),
            // Closed without an error, or not closed at all.
            Ok(None) | Err(_) => Ok(()),
        }
    }
}

fn read_error(error: &kube::Error) -> ReadError {
    match error {
        kube::Error::Api(status) => {
            ReadError { code: Some(status.code), message: status.message.clone() }
        }
        other => ReadError { code: None, message: error_chain(other) },
    }
}
