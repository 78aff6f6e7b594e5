//! The flags of `run`: kube-controller-manager's names and defaults where it has one.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Run the controllers against a cluster
#[derive(Args)]
#[command(
    long_about = "Run the controllers against a cluster.\n\n\
        Watches Services, pods, nodes, Endpoints, and EndpointSlices, and keeps the published \
        objects as they should be. The cluster is found by --kubeconfig, else `KUBECONFIG`, else \
        ~/.kube/config, else the pod's own service account. An API server that does not answer is \
        tried for ever.\n\n\
        Turn the same controllers off in kube-controller-manager:\n  \
        --controllers=*,-endpoints-controller,-endpointslice-controller,\
        -endpointslice-mirroring-controller\n\n\
        Logs go to standard error. Exit code: 0 after SIGTERM or SIGINT; 2 when it could not \
        start.",
    after_long_help = "Examples:\n  \
        endpointd run --kubeconfig ~/.kube/config --leader-elect=false\n  \
        kubectl proxy & endpointd run --server http://127.0.0.1:8001\n  \
        curl -s http://127.0.0.1:10257/report?pretty"
)]
pub struct Flags {
    /// Where to find the cluster and our credentials
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// Which context of the kubeconfig to use
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,

    /// URL of the API server, instead of the kubeconfig's; over plain http no credentials are sent
    #[arg(long, visible_alias = "master", value_name = "URL")]
    pub server: Option<String>,

    /// Controllers to run: `*` for all, `name`, `-name` to leave one out, separated by commas
    ///
    /// Known are `endpointslice-controller` (`endpointslice`), `endpoints-controller`
    /// (`endpoint`), and `endpointslice-mirroring-controller` (`endpointslicemirroring`).
    #[arg(
        long,
        value_name = "LIST",
        default_value = "*",
        value_delimiter = ',',
        allow_hyphen_values = true
    )]
    pub controllers: Vec<String>,

    #[command(flatten)]
    pub work: WorkFlags,

    #[command(flatten)]
    pub election: ElectionFlags,

    /// Writes and live reads a second at most; without the flag only the API server sets a limit
    #[arg(long, value_name = "QPS", allow_hyphen_values = true)]
    pub kube_api_qps: Option<String>,

    /// Writes and live reads that may go at once before --kube-api-qps counts
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub kube_api_burst: Option<String>,

    /// Where /metrics, /livez, /readyz, and /report are served; `0` for nowhere
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:10257")]
    pub metrics_bind_address: String,

    /// Lines for people, or JSON for programs
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub log_format: LogFormat,

    /// How much is logged
    #[arg(long, value_name = "LEVEL", value_enum, default_value_t)]
    pub log_level: LogLevel,
}

/// How much at once, and how soon.
#[derive(Args)]
pub struct WorkFlags {
    /// Services whose Endpoints are synced at once
    #[arg(long, value_name = "N", default_value = "5", allow_hyphen_values = true)]
    pub concurrent_endpoint_syncs: String,

    /// Services whose EndpointSlices are synced at once, from 1 to 50
    #[arg(long, value_name = "N", default_value = "5", allow_hyphen_values = true)]
    pub concurrent_service_endpoint_syncs: String,

    /// Endpoints that are mirrored at once, from 1 to 50
    #[arg(long, value_name = "N", default_value = "5", allow_hyphen_values = true)]
    pub mirroring_concurrent_service_endpoint_syncs: String,

    /// How long changes are collected before Endpoints are written, as in `500ms`
    #[arg(long, value_name = "TIME", default_value = "0s", allow_hyphen_values = true)]
    pub endpoint_updates_batch_period: String,

    /// How long changes are collected before EndpointSlices are written
    #[arg(long, value_name = "TIME", default_value = "0s", allow_hyphen_values = true)]
    pub endpointslice_updates_batch_period: String,

    /// How long changes are collected before mirrored EndpointSlices are written
    #[arg(long, value_name = "TIME", default_value = "0s", allow_hyphen_values = true)]
    pub mirroring_endpointslice_updates_batch_period: String,

    /// The most endpoints a slice may hold, from 1 to 1000
    #[arg(long, value_name = "N", default_value = "100", allow_hyphen_values = true)]
    pub max_endpoints_per_slice: String,

    /// The most addresses mirrored of one subset of Endpoints, from 1 to 1000
    #[arg(long, value_name = "N", default_value = "1000", allow_hyphen_values = true)]
    pub mirroring_max_endpoints_per_subset: String,
}

/// Who may write.
#[derive(Args)]
pub struct ElectionFlags {
    /// Whether to hold a lease before writing
    #[arg(
        long,
        value_name = "BOOL",
        default_value = "true",
        default_missing_value = "true",
        num_args = 0..=1,
        require_equals = true,
        action = clap::ArgAction::Set
    )]
    pub leader_elect: bool,

    /// How long others wait after the last renewal they saw before they take the lease
    #[arg(long, value_name = "TIME", default_value = "15s", allow_hyphen_values = true)]
    pub leader_elect_lease_duration: String,

    /// How long the leader goes on after its last renewal
    #[arg(long, value_name = "TIME", default_value = "10s", allow_hyphen_values = true)]
    pub leader_elect_renew_deadline: String,

    /// Time between two tries to get or renew the lease
    #[arg(long, value_name = "TIME", default_value = "2s", allow_hyphen_values = true)]
    pub leader_elect_retry_period: String,

    /// Name of the lease
    #[arg(long, value_name = "NAME", default_value = "endpointd")]
    pub leader_elect_resource_name: String,

    /// Namespace of the lease; by default that of the pod we run in, else kube-system
    #[arg(long, value_name = "NAMESPACE")]
    pub leader_elect_resource_namespace: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    #[default]
    Text,
    Json,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogLevel {
    Error,
    Warn,
    #[default]
    Info,
    Debug,
    Trace,
}
