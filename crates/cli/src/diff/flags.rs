//! The flags of `diff`.

use clap::{Args, ValueEnum};

use crate::cluster::{ConnectFlags, FileFlags, NamespaceFlags};
use crate::shared_flags::{ControllersFlag, LimitFlags};

/// Compare what the controllers would write with what is published
#[derive(Args)]
#[command(
    long_about = "Compare what the controllers would write with what is published.\n\n\
        Reads a namespace or the whole of a cluster, plans, and prints what differs, in words. \
        Writes nothing and needs read access only, to nodes as well. If something differs, the \
        cluster is read again after --settle-time, and what differs only once is left out: the \
        controllers of the cluster were about to write it.\n\n\
        Exit code: 0 without differences; 1 with differences; 2 after an error.",
    after_long_help = "Examples:\n  \
        endpointd diff -A                       # the whole cluster\n  \
        endpointd diff svc/web -n shop -o unified\n  \
        endpointd diff -A -o json | jq '.differences[].key'\n  \
        endpointd diff -f dump.yaml"
)]
pub struct Flags {
    /// `svc/NAME`, `endpoints/NAME`, or the name of a Service; by default all of the namespace
    #[arg(value_name = "OBJECT", num_args = 0..=2)]
    pub object: Vec<String>,

    #[command(flatten)]
    pub namespace: NamespaceFlags,

    /// Words for people, unified differences of YAML, or JSON for programs
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    pub output: Format,

    /// How long a difference must last
    #[arg(long, value_name = "TIME", default_value = "3s", allow_hyphen_values = true)]
    pub settle_time: String,

    #[command(flatten)]
    pub files: FileFlags,

    #[command(flatten)]
    pub connect: ConnectFlags,

    #[command(flatten)]
    pub controllers: ControllersFlag,

    #[command(flatten)]
    pub limits: LimitFlags,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    #[default]
    Text,
    Unified,
    Json,
}
