//! Connection options and the errors for invalid ones.

use std::path::PathBuf;

use endpointd_model::Scope;

use crate::kubeconfig::KubeconfigText;

/// `None` means the default. The order is `kubeconfig`, `$KUBECONFIG`, `~/.kube/config`, the
/// service account of this pod.
#[derive(Clone, Debug, Default)]
pub struct ConnectOptions {
    pub kubeconfig: Option<PathBuf>,
    /// Instead of files. It may name neither programs nor files.
    pub kubeconfig_text: Option<KubeconfigText>,
    pub context: Option<String>,
    /// Replaces the URL of the cluster. Over plain `http` no credentials are sent.
    pub server: Option<String>,
    /// Another user to act as, with the groups; the server checks whether that is allowed.
    pub impersonate: Option<String>,
    pub impersonate_groups: Vec<String>,
    /// Writes and live reads per second; `None`: no limit.
    pub qps: Option<f32>,
    /// Requests that may exceed `qps` for a moment.
    pub burst: Option<u32>,
    pub user_agent: String,
    /// What the process looks at.
    pub scope: Scope,
    /// `--controller-name`, for the Lease.
    pub controller_name: Option<String>,
}

/// An error message, and a hint how to solve it.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("cannot read kubeconfig `{}`: {reason}\nhint: check `--kubeconfig`", path.display())]
    Unreadable { path: PathBuf, reason: String },
    #[error("cannot use the kubeconfig: {reason}\nhint: `kubectl config view` shows what is set")]
    BadConfig { reason: String },
    #[error("no such context: `{wanted}`\nhint: {}", contexts_hint(known))]
    NoContext { wanted: String, known: Vec<String> },
    #[error("no context is current\nhint: {}", contexts_hint(known))]
    NoCurrentContext { known: Vec<String> },
    #[error(
        "a context is given, but there is no kubeconfig: `{wanted}`\nhint: pass `--kubeconfig`"
    )]
    ContextWithoutConfig { wanted: String },
    #[error("not the URL of a server: `{server}`\nhint: as in `https://10.0.0.1:6443`")]
    BadServer { server: String },
    #[error(
        "no cluster to connect to: there is no kubeconfig and this is not a pod\n\
         hint: pass `--kubeconfig` or `--server`, or set `KUBECONFIG`"
    )]
    NoCluster,
    #[error(
        "cannot use this pod's service account: {reason}\nhint: check that its token is mounted"
    )]
    BadPod { reason: String },
    #[error("cannot prepare connections: {reason}\nhint: check certificates and credentials")]
    Unusable { reason: String },
}

fn contexts_hint(known: &[String]) -> String {
    match known {
        [] => "the kubeconfig has no contexts".to_owned(),
        known => format!("pass `--context` with one of: `{}`", known.join("`, `")),
    }
}
