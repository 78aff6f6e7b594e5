//! The flags of `dashboard`.

use clap::Args;

use crate::cluster::ConnectFlags;

/// Open the live page of a running endpointd
#[derive(Args)]
#[command(
    long_about = "Open the live page of a running endpointd.\n\n\
        Forwards a port of 127.0.0.1 through the API server to the pod that leads, as `kubectl \
        port-forward` does, and opens the page in a browser. When another pod leads, it forwards \
        to that one, and the page continues there. Needs the permissions to list pods and \
        Leases of the namespace and to create `pods/portforward`. Runs until Ctrl-C.\n\n\
        Exit code: 0 after Ctrl-C; 2 if the page cannot be reached.",
    after_long_help = "Examples:\n  \
        endpointd dashboard\n  \
        endpointd dashboard -n kube-system --port 8080 --no-open\n  \
        endpointd dashboard pod/endpointd-7c9d8b6f5-x2x4k"
)]
pub struct Flags {
    /// `pod/NAME`; by default the pod that leads, else one that is ready
    #[arg(value_name = "POD", num_args = 0..=2)]
    pub pod: Vec<String>,

    /// Namespace of endpointd
    #[arg(short, long, value_name = "NAMESPACE", default_value = "endpointd")]
    pub namespace: String,

    /// Labels of the pods of endpointd
    #[arg(
        short = 'l',
        long,
        value_name = "LABELS",
        default_value = "app.kubernetes.io/name=endpointd"
    )]
    pub selector: String,

    /// Port on 127.0.0.1; 0 for any free port
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub port: u16,

    /// Port of the page in the pod: that of its `--metrics-bind-address`
    #[arg(long, value_name = "PORT", default_value_t = 10271)]
    pub pod_port: u16,

    /// Print the address only
    #[arg(long)]
    pub no_open: bool,

    #[command(flatten)]
    pub connect: ConnectFlags,
}
