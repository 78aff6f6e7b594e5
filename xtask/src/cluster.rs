//! `cargo xtask cluster`: runs a temporary control plane until Ctrl-C or SIGTERM.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use endpointd_control_plane::{Cluster, Options};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::control_plane;

const POLL: Duration = Duration::from_millis(100);

#[derive(clap::Args)]
pub struct Args {
    /// Also run kube-controller-manager with exactly these controllers, for instance
    /// `endpointslice-controller,endpoints-controller`
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    controllers: Vec<String>,
}

pub fn run(args: &Args) -> Result<()> {
    let binaries = control_plane::find_or_build()?;
    let started = Instant::now();
    let cluster = Cluster::start(&binaries, Options::default())?;
    if !args.controllers.is_empty() {
        let controllers: Vec<&str> = args.controllers.iter().map(String::as_str).collect();
        cluster.start_controller_manager(&controllers, &[])?;
    }
    // Until here a signal ends this process, and the cluster with it.
    let mut signals =
        Signals::new([SIGHUP, SIGINT, SIGTERM]).context("cannot listen for signals")?;

    eprintln!("ready in {:.1} s: {}", started.elapsed().as_secs_f32(), cluster.url());
    eprintln!("logs: {}", cluster.directory().display());
    println!("export KUBECONFIG={}", cluster.kubeconfig().display());
    eprintln!("stop with Ctrl-C");

    while signals.pending().next().is_none() {
        if let Some(failed) = cluster.failed() {
            return Err(anyhow!(failed));
        }
        thread::sleep(POLL);
    }
    drop(cluster);
    eprintln!("stopped");
    Ok(())
}
