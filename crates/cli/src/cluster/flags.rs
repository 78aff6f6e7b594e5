//! Flags that say which cluster and which objects to read, with kubectl's names.

use std::path::PathBuf;

use clap::Args;
use endpointd_client::Client;

use super::live::Scope;

/// Which cluster, and as whom.
#[derive(Args, Clone, Debug, Default)]
pub struct ConnectFlags {
    /// Kubeconfig with the cluster and the credentials
    #[arg(long, value_name = "FILE", help_heading = "Cluster")]
    pub kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig
    #[arg(long, value_name = "NAME", help_heading = "Cluster")]
    pub context: Option<String>,

    /// URL of the API server, instead of the kubeconfig's; over plain http no credentials are sent
    #[arg(long, short = 's', value_name = "URL", help_heading = "Cluster")]
    pub server: Option<String>,

    /// User to impersonate
    #[arg(long = "as", value_name = "USER", help_heading = "Cluster")]
    pub impersonate: Option<String>,

    /// Group to impersonate; repeatable
    #[arg(
        long = "as-group",
        value_name = "GROUP",
        requires = "impersonate",
        help_heading = "Cluster"
    )]
    pub impersonate_groups: Vec<String>,
}

/// Which namespaces.
#[derive(Args, Clone, Debug, Default)]
pub struct NamespaceFlags {
    /// Namespace; by default that of the context
    #[arg(short, long, value_name = "NAMESPACE")]
    pub namespace: Option<String>,

    /// All namespaces
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    pub all_namespaces: bool,
}

/// Objects from files instead of a cluster.
#[derive(Args, Clone, Debug, Default)]
pub struct FileFlags {
    /// Read objects from files instead of a cluster, YAML or JSON; a directory stands for the files
    /// in it, `-` for standard input; repeatable
    #[arg(short, long = "filename", value_name = "FILE")]
    pub files: Vec<PathBuf>,
}

impl NamespaceFlags {
    pub fn scope(&self, client: Option<&Client>) -> Scope {
        if self.all_namespaces {
            return Scope::AllNamespaces;
        }
        let of_context = || client.map_or("default", Client::default_namespace).to_owned();
        Scope::Namespace(self.namespace.clone().unwrap_or_else(of_context))
    }
}
