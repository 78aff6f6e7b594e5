//! Finds the cluster: by options, then the environment, then the service account of this pod.

use std::env;
use std::error::Error;
use std::io;
use std::net::IpAddr;

use http::header::{HeaderValue, USER_AGENT};
use http::{Uri, uri};
use kube::Config;
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig, KubeconfigError};

use crate::connect::{ConnectError, ConnectOptions};
use crate::http_service::CONNECT_TIMEOUT;
use crate::kubeconfig::{self, KubeconfigText};

pub(crate) async fn load(options: &ConnectOptions) -> Result<Config, ConnectError> {
    let server = options.server.as_deref().map(parse_server).transpose()?;
    let mut config = match read_kubeconfig(options)? {
        Some(kubeconfig) => use_kubeconfig(kubeconfig, options, server.as_ref()).await?,
        None => without_kubeconfig(options, server.as_ref())?,
    };
    if let Some(server) = server {
        config.cluster_url = server;
    }
    if let Some(user) = &options.impersonate {
        config.auth_info.impersonate = Some(user.clone());
        config.auth_info.impersonate_groups = Some(options.impersonate_groups.clone());
    }
    if config.cluster_url.scheme() != Some(&uri::Scheme::HTTPS) {
        // Credentials are for encrypted connections. Upstream: `ClientConfig` in client-go's
        // clientcmd/client_config.go.
        config.auth_info = AuthInfo::default();
    }
    if config.cluster_url.host().is_some_and(is_loopback) {
        // Go never uses a proxy for a loopback address, whatever the environment says.
        config.proxy_url = None;
    }
    // It would send a request again whose response was lost; the engine decides about that.
    config.default_retry = false;
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    let user_agent = HeaderValue::from_str(&options.user_agent)
        .map_err(|error| ConnectError::Unusable { reason: error.to_string() })?;
    config.headers.push((USER_AGENT, user_agent));
    Ok(config)
}

/// `None`: there is no kubeconfig.
pub(crate) fn read_kubeconfig(
    options: &ConnectOptions,
) -> Result<Option<Kubeconfig>, ConnectError> {
    if let Some(text) = &options.kubeconfig_text {
        return parse_kubeconfig(text).map(Some);
    }
    if let Some(path) = &options.kubeconfig {
        let unreadable = |error| unreadable(error, path.clone());
        return Kubeconfig::read_from(path).map(Some).map_err(unreadable);
    }
    let is_named = env::var_os("KUBECONFIG").is_some_and(|value| !value.is_empty());
    match Kubeconfig::read() {
        Ok(kubeconfig) => Ok(Some(kubeconfig)),
        Err(KubeconfigError::FindPath) => Ok(None),
        Err(KubeconfigError::ReadConfig(error, _))
            if !is_named && error.kind() == io::ErrorKind::NotFound =>
        {
            Ok(None)
        }
        Err(KubeconfigError::ReadConfig(error, path)) => {
            Err(ConnectError::Unreadable { path, reason: error.to_string() })
        }
        Err(error) => Err(ConnectError::BadConfig { reason: error_chain(&error) }),
    }
}

/// The reason says nothing about the content, which has credentials.
fn parse_kubeconfig(text: &KubeconfigText) -> Result<Kubeconfig, ConnectError> {
    let bad = |reason: &str| ConnectError::BadConfig { reason: reason.to_owned() };
    let parsed = Kubeconfig::from_yaml(text.expose()).map_err(|_| bad("it is not a kubeconfig"))?;
    match kubeconfig::reference(&parsed) {
        None => Ok(parsed),
        Some(field) => Err(bad(&format!("`{field}` names a program or a file outside of it"))),
    }
}

/// The chosen context, which exists.
pub(crate) fn wanted_context(
    kubeconfig: &Kubeconfig,
    options: &ConnectOptions,
) -> Result<String, ConnectError> {
    let known: Vec<String> = kubeconfig.contexts.iter().map(|one| one.name.clone()).collect();
    let wanted = options.context.clone().or_else(|| kubeconfig.current_context.clone());
    match wanted.filter(|name| !name.is_empty()) {
        None => Err(ConnectError::NoCurrentContext { known }),
        Some(wanted) if known.contains(&wanted) => Ok(wanted),
        Some(wanted) => Err(ConnectError::NoContext { wanted, known }),
    }
}

fn unreadable(error: KubeconfigError, path: std::path::PathBuf) -> ConnectError {
    let reason = match error {
        KubeconfigError::ReadConfig(error, _) => error.to_string(),
        other => error_chain(&other),
    };
    ConnectError::Unreadable { path, reason }
}

async fn use_kubeconfig(
    mut kubeconfig: Kubeconfig,
    options: &ConnectOptions,
    server: Option<&Uri>,
) -> Result<Config, ConnectError> {
    let wanted = match (wanted_context(&kubeconfig, options), server) {
        (Err(ConnectError::NoCurrentContext { .. }), Some(server)) => {
            return Ok(Config::new(server.clone()));
        }
        (wanted, _) => wanted?,
    };
    if let Some(server) = server {
        // A cluster without a URL is enough then.
        for cluster in kubeconfig.clusters.iter_mut().filter_map(|one| one.cluster.as_mut()) {
            cluster.server = Some(server.to_string());
        }
    }
    let options = KubeConfigOptions { context: Some(wanted), ..Default::default() };
    Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .map_err(|error| ConnectError::BadConfig { reason: error_chain(&error) })
}

fn without_kubeconfig(
    options: &ConnectOptions,
    server: Option<&Uri>,
) -> Result<Config, ConnectError> {
    if let Some(wanted) = &options.context {
        return Err(ConnectError::ContextWithoutConfig { wanted: wanted.clone() });
    }
    let is_pod = env::var_os("KUBERNETES_SERVICE_HOST").is_some();
    match server {
        _ if is_pod => Config::incluster()
            .map_err(|error| ConnectError::BadPod { reason: error_chain(&error) }),
        Some(server) => Ok(Config::new(server.clone())),
        None => Err(ConnectError::NoCluster),
    }
}

fn parse_server(text: &str) -> Result<Uri, ConnectError> {
    let bad = || ConnectError::BadServer { server: text.to_owned() };
    let server: Uri = text.parse().map_err(|_| bad())?;
    let scheme = server.scheme().ok_or_else(bad)?;
    let is_web = *scheme == uri::Scheme::HTTPS || *scheme == uri::Scheme::HTTP;
    if is_web && server.host().is_some_and(|host| !host.is_empty()) {
        Ok(server)
    } else {
        Err(bad())
    }
}

fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare == "localhost" || bare.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

/// An error and its sources in one line, without parts that repeat earlier ones.
pub(crate) fn error_chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let part = error.to_string();
        if !text.contains(&part) {
            text.push_str(": ");
            text.push_str(&part);
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> ConnectOptions {
        ConnectOptions { user_agent: "test".to_owned(), ..Default::default() }
    }

    fn kubeconfig(current: &str) -> (tempfile::TempDir, ConnectOptions) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("config");
        let text = format!(
            r#"{{apiVersion: v1, kind: Config, current-context: "{current}",
clusters: [{{name: a, cluster: {{server: "https://10.0.0.1:6443"}}}}],
users: [{{name: a, user: {{token: secret}}}}],
contexts: [{{name: blue, context: {{cluster: a, user: a}}}},
  {{name: green, context: {{cluster: a, user: a}}}}]}}"#
        );
        std::fs::write(&path, text).unwrap();
        let options = ConnectOptions { kubeconfig: Some(path), ..options() };
        (directory, options)
    }

    async fn error_of(options: &ConnectOptions) -> String {
        load(options).await.expect_err("the options are invalid").to_string()
    }

    #[tokio::test]
    async fn unknown_context_error_lists_known_contexts() {
        let (_directory, mut options) = kubeconfig("blue");
        options.context = Some("red".to_owned());
        assert_eq!(
            error_of(&options).await,
            "no such context: `red`\nhint: pass `--context` with one of: `blue`, `green`"
        );
    }

    #[tokio::test]
    async fn kubeconfig_without_current_context_is_an_error() {
        let (_directory, options) = kubeconfig("");
        assert!(error_of(&options).await.starts_with("no context is current"));
    }

    #[tokio::test]
    async fn missing_kubeconfig_error_names_the_file() {
        let mut options = options();
        options.kubeconfig = Some("/missing/config".into());
        let error = error_of(&options).await;
        assert!(error.contains("`/missing/config`: No such file"), "{error}");
    }

    #[tokio::test]
    async fn invalid_yaml_is_an_error() {
        let (_directory, options) = kubeconfig("blue");
        std::fs::write(options.kubeconfig.as_ref().unwrap(), "a: [").unwrap();
        assert!(error_of(&options).await.starts_with("cannot read kubeconfig `"));
    }

    #[tokio::test]
    async fn plain_http_server_gets_no_credentials() {
        let (_directory, mut options) = kubeconfig("blue");
        assert!(load(&options).await.unwrap().auth_info.token.is_some());
        options.server = Some("http://127.0.0.1:8001".to_owned());
        let config = load(&options).await.unwrap();
        assert_eq!(config.cluster_url, "http://127.0.0.1:8001");
        assert!(config.auth_info.token.is_none());
    }

    #[tokio::test]
    async fn server_option_keeps_the_credentials_of_the_context() {
        let (_directory, mut options) = kubeconfig("green");
        options.server = Some("https://10.9.9.9:6443".to_owned());
        let config = load(&options).await.unwrap();
        assert_eq!(config.cluster_url, "https://10.9.9.9:6443");
        assert!(config.auth_info.token.is_some());
        assert!(!config.default_retry);
    }

    #[tokio::test]
    async fn impersonation_replaces_that_of_the_kubeconfig() {
        let (_directory, mut options) = kubeconfig("blue");
        options.impersonate = Some("jane".to_owned());
        options.impersonate_groups = vec!["viewers".to_owned()];
        let auth = load(&options).await.unwrap().auth_info;
        assert_eq!(auth.impersonate.as_deref(), Some("jane"));
        assert_eq!(auth.impersonate_groups, Some(vec!["viewers".to_owned()]));
    }

    #[tokio::test]
    async fn server_option_must_be_a_url() {
        for server in ["10.0.0.1:6443", "ftp://a", "not a url", "/path"] {
            let options = ConnectOptions { server: Some(server.to_owned()), ..options() };
            assert!(error_of(&options).await.starts_with("not the URL"), "{server}");
        }
    }
}
