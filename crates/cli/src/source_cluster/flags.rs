//! The flags of `cluster add`, `cluster list`, and `cluster remove`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use endpointd_client::ConnectOptions;

use crate::cluster::{ConnectFlags, connect_options};

/// Add, list, and remove the clusters whose exported Services are imported here
#[derive(Args)]
pub struct Flags {
    #[command(subcommand)]
    pub command: Subcommand,
}

#[derive(clap::Subcommand)]
pub enum Subcommand {
    Add(AddFlags),
    List(ListFlags),
    Remove(RemoveFlags),
}

/// Make another cluster known: an account there that may only read, and a kubeconfig for it here
#[derive(Args)]
#[command(
    long_about = "Make another cluster known, so that the Services which it exports are imported here.\n\n\
        With your own permissions in the other cluster (`--context`) it creates the objects of \
        deploy/multicluster/source: a ServiceAccount that may only read Services, EndpointSlices, and \
        ServiceExports. It writes a kubeconfig with a token of that account into the Secret \
        endpointd-clusters of this cluster, or into a directory (`--clusters`), from where a running \
        endpointd takes it without a restart. By default the token has no end and is valid until the \
        account is deleted; with `--token-lifetime` it ends, and somebody has to run \
        `cluster add --replace` before.\n\n\
        Exit code: 0; 2 after an error, and then nothing is written here.",
    after_long_help = "Examples:\n  \
        endpointd cluster add eu1 --context eu1 --dry-run\n  \
        endpointd cluster add eu1 --context eu1\n  \
        endpointd cluster add eu1 --context eu1 --clusters /etc/endpointd/clusters\n  \
        endpointd cluster add eu1 --context eu1 --token-lifetime 720h --replace"
)]
pub struct AddFlags {
    /// Name of the other cluster: the value of its `--cluster-id`
    #[arg(value_name = "NAME")]
    pub name: String,

    /// Context of the other cluster
    #[arg(long, value_name = "NAME")]
    pub context: String,

    /// Address for the kubeconfig, if endpointd does not reach the API server under that of the context
    #[arg(long, value_name = "URL")]
    pub server_address: Option<String>,

    /// A token that ends after this time, by the TokenRequest API; at least `10m`
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub token_lifetime: Option<String>,

    /// Write the kubeconfig of a cluster again that is known under this name
    #[arg(long)]
    pub replace: bool,

    /// Write nothing, and print what would be written
    #[arg(long)]
    pub dry_run: bool,

    #[command(flatten)]
    pub place: PlaceFlags,
}

/// Show the other clusters, and whether endpointd can read them
#[derive(Args)]
#[command(
    long_about = "Show the other clusters, and whether endpointd can read them.\n\n\
        Asks each of them with the kubeconfig that endpointd uses: which cluster it is, whether the \
        account has all permissions, and how long its token is valid.\n\n\
        Exit code: 0 if all can be read, 1 if not, 2 after an error.",
    after_long_help = "Examples:\n  \
        endpointd cluster list\n  \
        endpointd cluster list --clusters /etc/endpointd/clusters -o json"
)]
pub struct ListFlags {
    #[command(flatten)]
    pub place: PlaceFlags,

    /// Lines for people, or JSON for programs
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    pub output: Format,
}

/// Forget another cluster; endpointd removes what it has imported from there
#[derive(Args)]
#[command(
    long_about = "Forget another cluster.\n\n\
        Deletes its kubeconfig. A running endpointd then removes what it has imported from there. With \
        `--purge` it also deletes the account in the other cluster with your own permissions there: \
        every cluster that reads that one with this account loses its access.\n\n\
        Exit code: 0; 2 after an error.",
    after_long_help = "Examples:\n  \
        endpointd cluster remove eu1\n  \
        endpointd cluster remove eu1 --purge --context eu1"
)]
pub struct RemoveFlags {
    /// Name of the other cluster
    #[arg(value_name = "NAME")]
    pub name: String,

    /// Delete the account in the other cluster, too
    #[arg(long, requires = "context")]
    pub purge: bool,

    /// With `--purge`: context of the other cluster
    #[arg(long, value_name = "NAME", requires = "purge")]
    pub context: Option<String>,

    #[command(flatten)]
    pub place: PlaceFlags,
}

/// Where the kubeconfigs of the other clusters are.
#[derive(Args, Clone, Debug, Default)]
pub struct PlaceFlags {
    /// Directory with the kubeconfigs (`--clusters` of `endpointd run`), instead of a Secret
    #[arg(long, value_name = "DIR", conflicts_with_all = ["namespace", "secret"])]
    pub clusters: Option<PathBuf>,

    /// Namespace of the Secret
    #[arg(short, long, value_name = "NAMESPACE", default_value = "endpointd")]
    pub namespace: String,

    /// Secret with the kubeconfigs
    #[arg(long, value_name = "NAME", default_value = "endpointd-clusters")]
    pub secret: String,

    /// Context of this cluster, which imports; by default the current one. With `--clusters` this
    /// cluster is not asked without it
    #[arg(long, value_name = "NAME", help_heading = "Cluster")]
    pub home_context: Option<String>,

    /// Kubeconfig with the contexts
    #[arg(long, value_name = "FILE", help_heading = "Cluster")]
    pub kubeconfig: Option<PathBuf>,
}

impl PlaceFlags {
    /// A context of the user's kubeconfig; the current one without a name.
    pub fn options(&self, context: Option<&String>) -> ConnectOptions {
        connect_options(&ConnectFlags {
            kubeconfig: self.kubeconfig.clone(),
            context: context.cloned(),
            ..ConnectFlags::default()
        })
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    #[default]
    Text,
    Json,
}
