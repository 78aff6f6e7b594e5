//! HTTP clients for the embedded API server and for kube-apiserver.

use std::fs;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use endpointd_apiserver::http::{Shared, serve};
use endpointd_apiserver::{GcMode, Server, Settings, SystemClockAndIds};
use tokio::net::TcpListener;
use ureq::Agent;
use ureq::http::Request;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

const TIMEOUT: Duration = Duration::from_secs(60);

pub struct HttpClient {
    agent: Agent,
    url: String,
    token: String,
}

/// There was no response.
#[derive(Debug)]
pub struct RequestError(pub String);

fn request_error(error: impl std::fmt::Display) -> RequestError {
    RequestError(error.to_string())
}

impl HttpClient {
    pub fn plain(url: &str) -> Self {
        let config = Agent::config_builder().http_status_as_error(false).proxy(None);
        let agent = config.timeout_global(Some(TIMEOUT)).build().new_agent();
        Self { agent, url: url.to_owned(), token: String::new() }
    }

    /// A client for the cluster of a kubeconfig written by `endpointd-control-plane`.
    pub fn from_kubeconfig(path: &Path) -> Result<Self, RequestError> {
        let text = fs::read_to_string(path).map_err(request_error)?;
        let field = |name: &str| {
            let start = format!("{name}:");
            let found = text.lines().find_map(|line| line.trim().strip_prefix(&start));
            let found = found.map(|value| value.trim().trim_matches('"').to_owned());
            found.ok_or_else(|| RequestError(format!("`{}` lacks {name}", path.display())))
        };
        let authority = fs::read(field("certificate-authority")?).map_err(request_error)?;
        let authority = Certificate::from_pem(&authority).map_err(request_error)?;
        let roots = RootCerts::new_with_certs(&[authority]);
        let tls = TlsConfig::builder().root_certs(roots).build();
        let config = Agent::config_builder().http_status_as_error(false).proxy(None);
        let agent = config.tls_config(tls).timeout_global(Some(TIMEOUT)).build().new_agent();
        Ok(Self { agent, url: field("server")?, token: field("token")? })
    }

    /// `method` may have a variant: `PATCH:merge`, `GET:table`.
    pub fn send(
        &self,
        method: &str,
        path: &str,
        body: &str,
    ) -> Result<(u16, String), RequestError> {
        let (method, variant) = method.split_once(':').unwrap_or((method, ""));
        let content = match variant {
            "json" => "application/json-patch+json",
            "merge" => "application/merge-patch+json",
            "strategic" => "application/strategic-merge-patch+json",
            "text" => "text/plain",
            _ => "application/json",
        };
        let accept = match variant {
            "table" => "application/json;as=Table;v=v1;g=meta.k8s.io",
            "partial" => "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
            "partials" => "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
            "image" => "image/png",
            _ => "application/json",
        };
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.url))
            .header("Content-Type", content)
            .header("Accept", accept);
        if !self.token.is_empty() {
            request = request.header("Authorization", format!("Bearer {}", self.token));
        }
        let request = request.body(body.to_owned()).map_err(request_error)?;
        let mut response = self.agent.run(request).map_err(request_error)?;
        let text = response.body_mut().read_to_string().map_err(request_error)?;
        Ok((response.status().as_u16(), text))
    }
}

/// Starts the embedded server on a free port, until the process ends. `GcMode::OnDemand` matches a
/// kube-apiserver without kube-controller-manager.
pub fn start_embedded(gc_mode: GcMode) -> Result<(HttpClient, String), RequestError> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime starts");
        runtime.block_on(async move {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
            sender.send(listener.local_addr().expect("it is bound")).expect("someone listens");
            let settings = Settings { gc_mode, ..Settings::default() };
            let server = Server::new(Box::new(SystemClockAndIds), settings);
            serve(listener, Shared::new(server), std::future::pending()).await
        })
    });
    let address = receiver.recv().map_err(request_error)?;
    let url = format!("http://{address}");
    Ok((HttpClient::plain(&url), url))
}
