//! The flags of `playground`.

use std::path::PathBuf;

use clap::Args;

/// Watch the controllers at work without a cluster
#[derive(Args)]
#[command(
    long_about = "Watch the controllers at work without a cluster.\n\n\
        Starts an API server on 127.0.0.1, simulated nodes, Services, and Deployments with their \
        pods, and the three controllers. Shows the resulting EndpointSlices, here and on a page in \
        the browser, and writes a kubeconfig for kubectl. All state is in memory and lost at the end.\n\n\
        On a terminal the view is redrawn in place; otherwise it is plain lines. Exit code: 0 \
        after Ctrl-C, SIGTERM, or --duration; 2 if it could not start.",
    after_long_help = "Examples:\n  \
        endpointd playground\n  \
        endpointd playground --scenario zone-outage\n  \
        endpointd playground --pods 50000 --services 1000\n  \
        endpointd playground --clusters 3 --scenario cluster-outage\n  \
        endpointd playground --scenario rollout --seed 7 --duration 30s --json"
)]
pub struct Flags {
    /// Scenario to run in a loop: rollout, scale, zone-outage, flapping, node-loss, consent,
    /// cluster-outage (with `--clusters`), idle
    #[arg(long, value_name = "NAME", default_value = "idle")]
    pub scenario: String,

    /// Number of clusters, at most 4, that export Services to each other; each has its own API server
    #[arg(long, value_name = "N", default_value = "1", allow_hyphen_values = true)]
    pub clusters: String,

    /// Number of pods, at most 50000
    #[arg(long, value_name = "N", default_value = "60", allow_hyphen_values = true)]
    pub pods: String,

    /// Number of Services, at most 10000; of eight kinds in turn
    #[arg(long, value_name = "N", default_value = "8", allow_hyphen_values = true)]
    pub services: String,

    /// Number of nodes, at most 1000; without the flag 12, or as many as the pods need
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub nodes: Option<String>,

    /// The same seed gives the same objects and the same scenario
    #[arg(long, value_name = "N", default_value = "1", allow_hyphen_values = true)]
    pub seed: String,

    /// Nodes only, without Services and Deployments; for your own manifests
    #[arg(long, conflicts_with_all = ["pods", "services"])]
    pub no_workload: bool,

    /// Stop after this time, such as 30s or 5m
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub duration: Option<String>,

    /// Print a summary at the end, as one JSON object; everything else goes to standard error
    #[arg(long)]
    pub json: bool,

    /// Port of the API server on 127.0.0.1; 0 for any free port
    #[arg(long, value_name = "PORT", default_value = "0", allow_hyphen_values = true)]
    pub port: String,

    /// Port of the live page on 127.0.0.1; 0 for any free port
    #[arg(long, value_name = "PORT", default_value = "0", allow_hyphen_values = true)]
    pub page_port: String,

    /// Do not open the live page in a browser; without the flag it opens if there is a desktop and the
    /// output is a terminal
    #[arg(long)]
    pub no_open: bool,

    /// Write the kubeconfig to this file and keep it; without the flag it is a temporary file
    #[arg(long, value_name = "FILE")]
    pub kubeconfig_out: Option<PathBuf>,
}
