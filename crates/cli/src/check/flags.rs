//! The flags of `check`.

use clap::{Args, ValueEnum};

use crate::cluster::ConnectFlags;

/// Check a cluster before or after the installation
#[derive(Args)]
#[command(
    long_about = "Check a cluster before (--pre) or after the installation.\n\n\
        Reads only, apart from access reviews, which store nothing: the version, the permissions \
        of the user, who writes EndpointSlices, webhooks that can stop writes, the priority level, \
        zones of nodes, and the clock.\n\n\
        Exit code: 0 if nothing failed, warnings included; 1 if a check failed; 2 if the cluster \
        cannot be reached.",
    after_long_help = "Examples:\n  \
        endpointd check --pre\n  \
        endpointd check --as system:serviceaccount:endpointd:endpointd\n  \
        endpointd check -o json | jq '.checks[] | select(.result != \"ok\")'"
)]
pub struct Flags {
    /// Before the installation: endpointd need not run yet
    #[arg(long)]
    pub pre: bool,

    /// Namespace of endpointd
    #[arg(short, long, value_name = "NAMESPACE", default_value = "endpointd")]
    pub namespace: String,

    /// Lease of endpointd, as its --leader-elect-resource-name
    #[arg(long, value_name = "NAME", default_value = "endpointd")]
    pub lease: String,

    /// Lines for people, or JSON for programs
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    pub output: Format,

    #[command(flatten)]
    pub connect: ConnectFlags,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    #[default]
    Text,
    Json,
}
