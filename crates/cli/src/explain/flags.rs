//! The flags of `explain`.

use clap::{Args, ValueEnum};

use crate::cluster::{ConnectFlags, FileFlags, NamespaceFlags};
use crate::shared_flags::{AnnotationFlags, InstanceFlags};

/// Say why pods are or are not behind a Service
#[derive(Args)]
#[command(
    long_about = "Say why pods are or are not behind a Service.\n\n\
        Reads one namespace of a cluster, or files, and compares what should be published with what \
        is: the answer first, then one line for each cause, worst first, with a code that \
        docs/explain.md documents. Works on every cluster, installs nothing, writes nothing, and \
        needs read access to the namespace only; what it may not read, it says.\n\n\
        Exit code: 0 if all is well; 1 with findings; 2 if it could not find out.",
    after_long_help = "Examples:\n  \
        endpointd explain svc/web -n shop             # why has web no endpoints\n  \
        endpointd explain pod/web-4 -n shop           # which Services choose it, or nearly do\n  \
        endpointd explain -A --only-problems          # every Service with a problem\n  \
        endpointd explain svc/web -n shop -o wide     # with the evidence\n  \
        kubectl get all,ep,endpointslices,nodes -o yaml -n shop | endpointd explain web -n shop -f -\n  \
        endpointd explain svc/web -f new.yaml --live  # what would be, if this were applied"
)]
pub struct Flags {
    /// `svc/NAME`, `pod/NAME`, `endpoints/NAME`, `endpointslice/NAME`, or the name of a Service; by
    /// default all Services of the namespace
    #[arg(value_name = "OBJECT", num_args = 0..=2)]
    pub object: Vec<String>,

    #[command(flatten)]
    pub namespace: NamespaceFlags,

    /// Explain only Services with these labels: `app=web,tier!=back,canary`
    #[arg(short = 'l', long, value_name = "LABELS", conflicts_with = "object")]
    pub selector: Option<String>,

    /// Show only Services with errors or warnings
    #[arg(long)]
    pub only_problems: bool,

    /// Text for people, `wide` with evidence and without limits, or JSON or YAML for programs
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    pub output: Format,

    #[command(flatten)]
    pub files: FileFlags,

    /// Explain the cluster as it would be if the files were applied
    #[arg(long, requires = "files")]
    pub live: bool,

    /// URL of a running endpointd, such as `http://127.0.0.1:10271`: its errors about the Service
    /// are findings, too; if the cluster cannot be read from here, it explains the Service
    #[arg(long, value_name = "URL")]
    pub endpointd: Option<String>,

    #[command(flatten)]
    pub annotations: AnnotationFlags,

    #[command(flatten)]
    pub instance: InstanceFlags,

    #[command(flatten)]
    pub connect: ConnectFlags,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    #[default]
    Text,
    Wide,
    Json,
    Yaml,
}
