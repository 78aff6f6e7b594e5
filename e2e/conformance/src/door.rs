//! A way to an API server: ours or the real one, asked in the same words.

use std::fs;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use endpointd_apiserver::http::{Shared, serve};
use endpointd_apiserver::{Server, Settings, Sweeping, SystemStamps};
use tokio::net::TcpListener;
use ureq::Agent;
use ureq::http::Request;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

const TIMEOUT: Duration = Duration::from_secs(60);

pub struct Door {
    agent: Agent,
    url: String,
    token: String,
}

/// Why there is no answer at all.
#[derive(Debug)]
pub struct DoorError(pub String);

fn cannot(error: impl std::fmt::Display) -> DoorError {
    DoorError(error.to_string())
}

impl Door {
    pub fn plain(url: &str) -> Self {
        let config = Agent::config_builder().http_status_as_error(false).proxy(None);
        let agent = config.timeout_global(Some(TIMEOUT)).build().new_agent();
        Self { agent, url: url.to_owned(), token: String::new() }
    }

    /// The cluster that a kubeconfig file of `endpointd-control-plane` leads to.
    pub fn from_kubeconfig(path: &Path) -> Result<Self, DoorError> {
        let text = fs::read_to_string(path).map_err(cannot)?;
        let field = |name: &str| {
            let start = format!("{name}:");
            let found = text.lines().find_map(|line| line.trim().strip_prefix(&start));
            let found = found.map(|value| value.trim().trim_matches('"').to_owned());
            found.ok_or_else(|| DoorError(format!("`{}` lacks {name}", path.display())))
        };
        let authority = fs::read(field("certificate-authority")?).map_err(cannot)?;
        let authority = Certificate::from_pem(&authority).map_err(cannot)?;
        let roots = RootCerts::new_with_certs(&[authority]);
        let tls = TlsConfig::builder().root_certs(roots).build();
        let config = Agent::config_builder().http_status_as_error(false).proxy(None);
        let agent = config.tls_config(tls).timeout_global(Some(TIMEOUT)).build().new_agent();
        Ok(Self { agent, url: field("server")?, token: field("token")? })
    }

    /// `method` may carry a variant: `PATCH:merge`, `GET:table`.
    pub fn ask(&self, method: &str, path: &str, body: &str) -> Result<(u16, String), DoorError> {
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
        let request = request.body(body.to_owned()).map_err(cannot)?;
        let mut response = self.agent.run(request).map_err(cannot)?;
        let text = response.body_mut().read_to_string().map_err(cannot)?;
        Ok((response.status().as_u16(), text))
    }
}

/// Our server on a port of its own, for as long as the process lives. Nothing is swept, because
/// beside the real one no kube-controller-manager runs either.
pub fn ours(sweeping: Sweeping) -> Result<(Door, String), DoorError> {
    let (told, hear) = mpsc::channel();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime starts");
        runtime.block_on(async move {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
            told.send(listener.local_addr().expect("it is bound")).expect("someone listens");
            let settings = Settings { sweeping, ..Settings::default() };
            let server = Server::new(Box::new(SystemStamps), settings);
            serve(listener, Shared::new(server), std::future::pending()).await
        })
    });
    let address = hear.recv().map_err(cannot)?;
    let url = format!("http://{address}");
    Ok((Door::plain(&url), url))
}
