//! The flags of `playground`.

use std::path::PathBuf;

use clap::Args;

/// Watch the controllers at work without a cluster
#[derive(Args)]
#[command(
    long_about = "Watch the controllers at work without a cluster.\n\n\
        Starts an API server on this machine, a small world of nodes, Services, and Deployments \
        whose pods come and go, and the three controllers. Shows what they do, and writes a \
        kubeconfig so that kubectl can join in. Nothing is kept: when it ends, all is gone.\n\n\
        On a terminal the view is redrawn in place; elsewhere it is plain lines. Exit code: 0 \
        after Ctrl-C, SIGTERM, or --duration; 2 when it could not start.",
    after_long_help = "Examples:\n  \
        endpointd playground\n  \
        endpointd playground --scenario zone-outage\n  \
        endpointd playground --pods 50000 --services 1000\n  \
        endpointd playground --scenario rollout --seed 7 --duration 30s --json"
)]
pub struct Flags {
    /// Story to play in a loop: rollout, scale, zone-outage, flapping, node-loss, idle
    #[arg(long, value_name = "NAME", default_value = "idle")]
    pub scenario: String,

    /// Pods of the world, at most 50000
    #[arg(long, value_name = "N", default_value = "60", allow_hyphen_values = true)]
    pub pods: String,

    /// Services of the world, at most 5000; eight kinds take turns
    #[arg(long, value_name = "N", default_value = "8", allow_hyphen_values = true)]
    pub services: String,

    /// Nodes of the world, at most 1000; without the flag 12, or as many as the pods need
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub nodes: Option<String>,

    /// The same number gives the same world and the same story
    #[arg(long, value_name = "N", default_value = "1", allow_hyphen_values = true)]
    pub seed: String,

    /// Nodes only: no Services, no Deployments; for your own manifests
    #[arg(long, conflicts_with_all = ["pods", "services"])]
    pub no_workload: bool,

    /// End after this time, such as 30s or 5m
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub duration: Option<String>,

    /// Print a summary at the end, one JSON object; everything else goes to standard error
    #[arg(long)]
    pub json: bool,

    /// Port of the API server on 127.0.0.1; 0 for any that is free
    #[arg(long, value_name = "PORT", default_value = "0", allow_hyphen_values = true)]
    pub port: String,

    /// Where the kubeconfig is written, to stay; without the flag a temporary file
    #[arg(long, value_name = "FILE")]
    pub kubeconfig_out: Option<PathBuf>,
}
