//! Sends requests with encoded bodies over a few connections.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, bail};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{Method, Request};
use http_body_util::BodyExt;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use prost::bytes::Bytes;
use tokio::task::JoinSet;

pub const JSON: &str = "application/json";
pub const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// Concurrent requests of the load generator, each on its own connection.
pub const IN_FLIGHT: usize = 16;

/// Clones share their connections.
#[derive(Clone)]
pub struct Sender {
    client: kube::Client,
}

/// An encoded body with its content type.
#[derive(Clone, Debug)]
pub struct Encoded {
    pub content_type: &'static str,
    pub bytes: Bytes,
}

impl Encoded {
    pub fn json(value: &serde_json::Value) -> Self {
        Self { content_type: JSON, bytes: value.to_string().into() }
    }
}

impl Sender {
    pub async fn connect(kubeconfig: &Path) -> Result<Self> {
        let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
        let options = KubeConfigOptions::default();
        let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await?;
        config.default_retry = false;
        config.proxy_url = None;
        Ok(Self { client: kube::Client::try_from(config)? })
    }

    pub async fn create(&self, path: &str, body: Encoded) -> Result<Bytes> {
        self.request(Method::POST, path, Some(body)).await
    }

    pub async fn replace(&self, path: &str, body: Encoded) -> Result<Bytes> {
        self.request(Method::PUT, path, Some(body)).await
    }

    pub async fn delete(&self, path: &str) -> Result<Bytes> {
        self.request(Method::DELETE, path, None).await
    }

    pub async fn get(&self, path: &str, accept: &'static str) -> Result<Bytes> {
        let request = Request::get(path).header(ACCEPT, accept).body(Body::empty())?;
        self.send(request).await
    }

    async fn request(&self, method: Method, path: &str, body: Option<Encoded>) -> Result<Bytes> {
        // The response is not used; protobuf is cheaper for the server to encode.
        let mut request = Request::builder().method(method).uri(path).header(ACCEPT, PROTOBUF);
        let body = match body {
            Some(body) => {
                request = request.header(CONTENT_TYPE, body.content_type);
                Body::from(body.bytes.to_vec())
            }
            None => Body::empty(),
        };
        self.send(request.body(body)?).await
    }

    async fn send(&self, request: Request<Body>) -> Result<Bytes> {
        let what = format!("{} {}", request.method(), request.uri());
        let response = self.client.send(request).await.with_context(|| what.clone())?;
        let status = response.status();
        let body = response.into_body().collect().await.with_context(|| what.clone())?.to_bytes();
        if !status.is_success() {
            bail!("{what}: {status}: {}", String::from_utf8_lossy(&body));
        }
        Ok(body)
    }
}

/// Runs `work` for each number below `n`, `n_at_once` concurrently, until the first error. Calls
/// `done` with the number of finished ones.
pub async fn for_each<F>(
    (n, n_at_once): (usize, usize),
    done: impl Fn(usize),
    work: impl Fn(usize) -> F + Send + Sync + 'static,
) -> Result<()>
where
    F: Future<Output = Result<()>> + Send,
{
    let (next, work) = (Arc::new(AtomicUsize::new(0)), Arc::new(work));
    let mut workers: JoinSet<Result<()>> = JoinSet::new();
    let (sender, mut receiver) = tokio::sync::mpsc::channel(n_at_once);
    for _ in 0..n_at_once.min(n) {
        let (next, work, sender) = (next.clone(), work.clone(), sender.clone());
        workers.spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= n {
                    return Ok(());
                }
                work(number).await?;
                // The receiver is dropped only if another worker failed.
                let _ = sender.send(()).await;
            }
        });
    }
    drop(sender);
    let mut n_done = 0;
    while receiver.recv().await.is_some() {
        n_done += 1;
        done(n_done);
    }
    while let Some(worker) = workers.join_next().await {
        worker??;
    }
    Ok(())
}
