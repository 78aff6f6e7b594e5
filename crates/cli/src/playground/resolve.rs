//! Validates the flags of `playground`.

use std::time::Duration;

use endpointd_playground::cluster_spec::{NODES_MAX, PODS_MAX, PODS_PER_NODE, SERVICES_MAX, Size};
use endpointd_playground::scenario::Scenario;
use endpointd_playground::{CLUSTERS_MAX, KubeconfigTarget, Options, TimeScale, Workload};

use super::flags::Flags;
use crate::cli_error::CliError;
use crate::duration::parse_duration;
use crate::shared_flags::number;

pub fn resolve(flags: &Flags) -> Result<Options, CliError> {
    let scenario = scenario(&flags.scenario)?;
    let workload = if flags.no_workload { Workload::None } else { Workload::Default };
    if workload == Workload::None && scenario.needs_workload() {
        return Err(CliError::new(
            format!("`--scenario {scenario}` needs Deployments, which `--no-workload` excludes"),
            "zone-outage and node-loss need nodes only",
        ));
    }
    Ok(Options {
        size: size(flags, workload)?,
        workload,
        scenario,
        seed: parsed("seed", &flags.seed, "a number from 0 to 18446744073709551615", "1")?,
        time_scale: TimeScale::default(),
        port: parsed("port", &flags.port, "a number from 0 to 65535", "0, any free port")?,
        page_port: parsed(
            "page-port",
            &flags.page_port,
            "a number from 0 to 65535",
            "0, any free port",
        )?,
        kubeconfig: match &flags.kubeconfig_out {
            Some(path) => KubeconfigTarget::Path(path.clone()),
            None => KubeconfigTarget::Temporary,
        },
        version: env!("CARGO_PKG_VERSION").to_owned(),
    })
}

pub fn n_clusters(flags: &Flags, scenario: Scenario) -> Result<usize, CliError> {
    let n_clusters = number("clusters", &flags.clusters, CLUSTERS_MAX, 1)?;
    if scenario.needs_clusters() && n_clusters == 1 {
        return Err(CliError::new(
            format!("`--scenario {scenario}` needs several clusters"),
            "add `--clusters 3`",
        ));
    }
    Ok(n_clusters)
}

pub fn duration(flags: &Flags) -> Result<Option<Duration>, CliError> {
    let Some(text) = &flags.duration else { return Ok(None) };
    match parse_duration(text) {
        Some(duration) if duration > Duration::ZERO => Ok(Some(duration)),
        Some(_) | None => Err(CliError::new(
            format!("`--duration` must be a duration above 0: `{text}`"),
            "such as `30s` or `5m`; without the flag it runs until Ctrl-C",
        )),
    }
}

fn scenario(name: &str) -> Result<Scenario, CliError> {
    Scenario::named(name).ok_or_else(|| {
        let known = Scenario::ALL.map(Scenario::name).join(", ");
        CliError::new(
            format!("`--scenario` names an unknown scenario: `{name}`"),
            format!("known are {known}"),
        )
    })
}

fn size(flags: &Flags, workload: Workload) -> Result<Size, CliError> {
    let default = Size::default();
    let n_services = number("services", &flags.services, SERVICES_MAX, default.n_services)?;
    let n_pods = match workload {
        Workload::Default => number("pods", &flags.pods, PODS_MAX, default.n_pods)?,
        Workload::None => 0,
    };
    let n_nodes = match &flags.nodes {
        None => Size::nodes_for(n_pods),
        Some(text) => number("nodes", text, NODES_MAX, Size::nodes_for(n_pods))?,
    };
    let capacity = n_nodes * PODS_PER_NODE;
    if n_pods > capacity {
        return Err(CliError::new(
            format!("`--nodes {n_nodes}` have a capacity of {capacity} pods, not {n_pods}"),
            format!(
                "a node has a capacity of {PODS_PER_NODE} pods; by default there are enough nodes"
            ),
        ));
    }
    Ok(Size { n_nodes, n_services, n_pods })
}

fn parsed<T: std::str::FromStr>(
    flag: &str,
    text: &str,
    what: &str,
    default: &str,
) -> Result<T, CliError> {
    text.parse().map_err(|_| {
        CliError::new(
            format!("`--{flag}` must be {what}: `{text}`"),
            format!("without the flag it is {default}"),
        )
    })
}
