//! The flags of `endpoints report` and `endpoints prune`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::cluster::{ConnectFlags, NamespaceFlags};

/// Say what still uses the Endpoints API, and delete what a controller left in it
#[derive(Args)]
pub struct Flags {
    #[command(subcommand)]
    pub command: Subcommand,
}

#[derive(clap::Subcommand)]
pub enum Subcommand {
    Report(ReportFlags),
    Prune(PruneFlags),
}

/// Say who writes and reads Endpoints, which are stale, and what deleting them would save
#[derive(Args)]
#[command(
    long_about = "Say who writes and reads Endpoints, which are stale or truncated, and what deleting \
        them would save.\n\n\
        Reads Endpoints and Services only. Who writes is in `managedFields`; who reads is only in an \
        audit log of the API server, one JSON event per line.\n\n\
        Exit code: 0; 2 after an error.",
    after_long_help = "Examples:\n  \
        endpointd endpoints report -A\n  \
        endpointd endpoints report -A --audit-log /var/log/kubernetes/audit.log -o json"
)]
pub struct ReportFlags {
    #[command(flatten)]
    pub namespace: NamespaceFlags,

    /// Audit log of the API server, with who reads Endpoints
    #[arg(long, value_name = "FILE")]
    pub audit_log: Option<PathBuf>,

    /// Lines for people, or JSON for programs
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    pub output: Format,

    #[command(flatten)]
    pub connect: ConnectFlags,
}

/// Delete the Endpoints that an endpoints controller wrote and no longer updates
#[derive(Args)]
#[command(
    long_about = "Delete the Endpoints that an endpoints controller wrote and no longer updates.\n\n\
        These are the Endpoints with the label `endpoints.kubernetes.io/managed-by: \
        endpoint-controller` whose Service has a selector; all others stay. Without --confirm \
        nothing is deleted and the names are printed. With it, the command first finds out that no \
        endpoints controller is running: it looks for writes in the last 30 seconds, creates Services \
        with a selector that no pod has, in the namespaces and with the labels of those that would \
        be deleted, waits whether Endpoints appear for them, and deletes them again. If a controller runs, nothing is deleted. Each delete names the version that was \
        read.\n\n\
        Exit code: 0; 2 after an error, or if an endpoints controller is running.",
    after_long_help = "Examples:\n  \
        endpointd endpoints prune -A                # what would be deleted\n  \
        endpointd endpoints prune -n shop --confirm"
)]
pub struct PruneFlags {
    #[command(flatten)]
    pub namespace: NamespaceFlags,

    /// Delete; without it, only print what would be deleted
    #[arg(long)]
    pub confirm: bool,

    /// How long an endpoints controller has to write Endpoints for the probe
    #[arg(long, value_name = "TIME", default_value = "10s", allow_hyphen_values = true)]
    pub probe_time: String,

    #[command(flatten)]
    pub connect: ConnectFlags,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    #[default]
    Text,
    Json,
}
