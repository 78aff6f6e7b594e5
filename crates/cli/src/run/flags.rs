//! The flags of `run`, with the names and defaults of kube-controller-manager where it has the
//! flag.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::shared_flags::{ControllersFlag, LimitFlags};

/// Run the controllers against a cluster
#[derive(Args)]
#[command(
    long_about = "Run the controllers against a cluster.\n\n\
        Watches Services, pods, nodes, Endpoints, and EndpointSlices, and writes \
        Endpoints and EndpointSlices. The cluster is found by --kubeconfig, else `KUBECONFIG`, else \
        ~/.kube/config, else the pod's own service account. Connections to \
        an unreachable API server are retried indefinitely.\n\n\
        Disable the same controllers in kube-controller-manager first; never run both:\n  \
        --controllers=*,-endpoints-controller,-endpointslice-controller,\
        -endpointslice-mirroring-controller\n\n\
        Logs go to standard error. Exit code: 0 after SIGTERM or SIGINT; 2 if it could not \
        start.",
    after_long_help = "Examples:\n  \
        endpointd run --kubeconfig ~/.kube/config --leader-elect=false\n  \
        kubectl proxy & endpointd run --server http://127.0.0.1:8001\n  \
        curl -s http://127.0.0.1:10271/report?pretty"
)]
pub struct Flags {
    /// Kubeconfig with the cluster and the credentials
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,

    /// URL of the API server, instead of the kubeconfig's; over plain http no credentials are sent
    #[arg(long, visible_alias = "master", value_name = "URL")]
    pub server: Option<String>,

    /// Write nothing and take no lease: compare with what kube-controller-manager publishes
    ///
    /// Needs read permissions only. Differences are in the log, in /report, and in the metrics
    /// `endpointd_shadow_*`.
    #[arg(long)]
    pub dry_run: bool,

    #[command(flatten)]
    pub controllers: ControllersFlag,

    #[command(flatten)]
    pub scope: ScopeFlags,

    #[command(flatten)]
    pub clusters: ClusterFlags,

    #[command(flatten)]
    pub work: WorkFlags,

    #[command(flatten)]
    pub election: ElectionFlags,

    /// Limit of writes and live reads per second; by default only the API server limits them
    #[arg(long, value_name = "QPS", allow_hyphen_values = true)]
    pub kube_api_qps: Option<String>,

    /// Writes and live reads that may exceed --kube-api-qps in a burst
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub kube_api_burst: Option<String>,

    #[command(flatten)]
    pub serving: ServingFlags,

    /// Lines for people, or JSON for programs
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub log_format: LogFormat,

    /// Log level
    #[arg(long, value_name = "LEVEL", value_enum, default_value_t)]
    pub log_level: LogLevel,
}

/// What this instance looks at, beside others.
#[derive(Args)]
pub struct ScopeFlags {
    /// Only these namespaces, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with = "shard")]
    pub namespaces: Vec<String>,

    /// Only Services with these labels: `team=a,tier!=back,canary`
    #[arg(long, value_name = "LABELS")]
    pub service_selector: Option<String>,

    /// Only the namespaces of one of N parts, by the hash of the name: `2/4`
    #[arg(long, value_name = "I/N")]
    pub shard: Option<String>,
}

/// Services of several clusters.
#[derive(Args)]
pub struct ClusterFlags {
    /// With multicluster-controller: the name of this cluster in its clusterset, a DNS label
    #[arg(long, value_name = "NAME")]
    pub cluster_id: Option<String>,

    /// Directory with a kubeconfig for each other cluster of the set, named like the cluster
    ///
    /// Files may come, change, and go at any time. The clusters are only read.
    #[arg(long, value_name = "DIRECTORY", requires = "cluster_id")]
    pub clusters: Option<PathBuf>,

    /// How long a cluster must be lost before its endpoints become not ready where others have enough
    #[arg(long, value_name = "TIME", default_value = "5m", allow_hyphen_values = true)]
    pub lost_demote_after: String,

    /// How long a cluster must be lost before its endpoints are deleted; 0: never
    #[arg(long, value_name = "TIME", default_value = "24h", allow_hyphen_values = true)]
    pub lost_expire_after: String,

    /// Take over ServiceImports that another implementation manages; they keep their addresses
    #[arg(long, requires = "cluster_id")]
    pub adopt_imports: bool,

    /// Endpoints of a lost cluster become not ready if so many percent of all ready endpoints are in
    /// clusters that answer
    #[arg(long, value_name = "PERCENT", default_value = "50", allow_hyphen_values = true)]
    pub lost_min_fresh: String,
}

/// Concurrency and batching.
#[derive(Args)]
pub struct WorkFlags {
    /// Services whose Endpoints are synced concurrently
    #[arg(long, value_name = "N", default_value = "5", allow_hyphen_values = true)]
    pub concurrent_endpoint_syncs: String,

    /// Services whose EndpointSlices are synced concurrently, from 1 to 50
    #[arg(long, value_name = "N", default_value = "5", allow_hyphen_values = true)]
    pub concurrent_service_endpoint_syncs: String,

    /// Endpoints that are mirrored concurrently, from 1 to 50
    #[arg(long, value_name = "N", default_value = "5", allow_hyphen_values = true)]
    pub mirroring_concurrent_service_endpoint_syncs: String,

    /// How long changes are batched before Endpoints are written, as in `500ms`
    #[arg(long, value_name = "TIME", default_value = "0s", allow_hyphen_values = true)]
    pub endpoint_updates_batch_period: String,

    /// How long changes are batched before EndpointSlices are written
    #[arg(long, value_name = "TIME", default_value = "0s", allow_hyphen_values = true)]
    pub endpointslice_updates_batch_period: String,

    /// How long changes are batched before mirrored EndpointSlices are written
    #[arg(long, value_name = "TIME", default_value = "0s", allow_hyphen_values = true)]
    pub mirroring_endpointslice_updates_batch_period: String,

    #[command(flatten)]
    pub limits: LimitFlags,
}

/// Where pages are served, and to whom.
#[derive(Args)]
pub struct ServingFlags {
    /// Loopback address for pages over plain HTTP, for users of the same host or pod; `0` for none
    ///
    /// There also /statusz, /flagz, and /debug/flags/v: a PUT of `debug` changes the log level.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:10271")]
    pub metrics_bind_address: String,

    /// Port for pages over HTTPS, to users that the API server permits; 0 for none
    #[arg(long, value_name = "PORT", default_value = "10270", allow_hyphen_values = true)]
    pub secure_port: String,

    /// Address of --secure-port
    #[arg(long, value_name = "IP", default_value = "0.0.0.0")]
    pub bind_address: String,

    /// Certificate of the HTTPS server, PEM; made in memory if there is none; read again if changed
    #[arg(long, value_name = "FILE", requires = "tls_private_key_file")]
    pub tls_cert_file: Option<PathBuf>,

    /// Key of --tls-cert-file
    #[arg(long, value_name = "FILE", requires = "tls_cert_file")]
    pub tls_private_key_file: Option<PathBuf>,

    /// Directory with `tls.crt` and `tls.key`; not used with --tls-cert-file
    #[arg(long, value_name = "DIRECTORY")]
    pub cert_dir: Option<PathBuf>,

    /// The oldest TLS version: VersionTLS12 or VersionTLS13
    #[arg(long, value_name = "VERSION", default_value = "VersionTLS12")]
    pub tls_min_version: String,

    /// Cipher suites, separated by commas, with the names of Go; by default all that are safe
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub tls_cipher_suites: Vec<String>,

    /// Paths that everybody may see over HTTPS, separated by commas
    #[arg(
        long,
        value_name = "PATHS",
        default_value = "/healthz,/readyz,/livez",
        value_delimiter = ','
    )]
    pub authorization_always_allow_paths: Vec<String>,

    /// How long the API server's answer about a token is kept
    #[arg(long, value_name = "TIME", default_value = "10s", allow_hyphen_values = true)]
    pub authentication_token_webhook_cache_ttl: String,

    /// How long the API server's permission is kept
    #[arg(long, value_name = "TIME", default_value = "10s", allow_hyphen_values = true)]
    pub authorization_webhook_cache_authorized_ttl: String,

    /// How long the API server's refusal is kept
    #[arg(long, value_name = "TIME", default_value = "10s", allow_hyphen_values = true)]
    pub authorization_webhook_cache_unauthorized_ttl: String,
}

/// Leader election.
#[derive(Args)]
pub struct ElectionFlags {
    /// Acquire a lease before writing
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

    /// How long other candidates wait after the last renewal before they acquire the lease
    #[arg(long, value_name = "TIME", default_value = "15s", allow_hyphen_values = true)]
    pub leader_elect_lease_duration: String,

    /// How long the leader retries a renewal before it gives up leadership
    #[arg(long, value_name = "TIME", default_value = "10s", allow_hyphen_values = true)]
    pub leader_elect_renew_deadline: String,

    /// Time between attempts to acquire or renew the lease
    #[arg(long, value_name = "TIME", default_value = "2s", allow_hyphen_values = true)]
    pub leader_elect_retry_period: String,

    /// Name of the lease; by default `endpointd`, with an ending of its own for each scope and name
    #[arg(long, value_name = "NAME")]
    pub leader_elect_resource_name: Option<String>,

    /// Namespace of the lease; by default that of the pod, else kube-system
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
