//! From flags as typed to options that are known to be good.

use std::time::Duration;

use endpointd_playground::story::Scenario;
use endpointd_playground::world::{NODES_MAX, PODS_MAX, PODS_PER_NODE, SERVICES_MAX, Size};
use endpointd_playground::{Options, Place, Tempo, Workload};

use super::flags::Flags;
use crate::choices::number;
use crate::duration::parse_duration;
use crate::refusal::Refusal;

pub fn resolve(flags: &Flags) -> Result<Options, Refusal> {
    let scenario = scenario(&flags.scenario)?;
    let workload = if flags.no_workload { Workload::None } else { Workload::World };
    if workload == Workload::None && scenario.needs_workload() {
        return Err(Refusal::new(
            format!("`--scenario {scenario}` has nothing to play with under `--no-workload`"),
            "zone-outage and node-loss need nodes only",
        ));
    }
    Ok(Options {
        size: size(flags, workload)?,
        workload,
        scenario,
        seed: parsed("seed", &flags.seed, "a number from 0 to 18446744073709551615", "1")?,
        tempo: Tempo::default(),
        port: parsed("port", &flags.port, "a number from 0 to 65535", "0, any that is free")?,
        kubeconfig: match &flags.kubeconfig_out {
            Some(path) => Place::Chosen(path.clone()),
            None => Place::Temporary,
        },
        version: env!("CARGO_PKG_VERSION").to_owned(),
    })
}

pub fn duration(flags: &Flags) -> Result<Option<Duration>, Refusal> {
    let Some(text) = &flags.duration else { return Ok(None) };
    match parse_duration(text) {
        Some(duration) if duration > Duration::ZERO => Ok(Some(duration)),
        Some(_) | None => Err(Refusal::new(
            format!("`--duration` must be a time above 0: `{text}`"),
            "such as `30s` or `5m`; without the flag it runs until Ctrl-C",
        )),
    }
}

fn scenario(name: &str) -> Result<Scenario, Refusal> {
    Scenario::named(name).ok_or_else(|| {
        let known = Scenario::ALL.map(Scenario::name).join(", ");
        Refusal::new(
            format!("`--scenario` names an unknown story: `{name}`"),
            format!("known are {known}"),
        )
    })
}

fn size(flags: &Flags, workload: Workload) -> Result<Size, Refusal> {
    let default = Size::default();
    let n_services = number("services", &flags.services, SERVICES_MAX, default.n_services)?;
    let n_pods = match workload {
        Workload::World => number("pods", &flags.pods, PODS_MAX, default.n_pods)?,
        Workload::None => 0,
    };
    let n_nodes = match &flags.nodes {
        None => Size::nodes_for(n_pods),
        Some(text) => number("nodes", text, NODES_MAX, Size::nodes_for(n_pods))?,
    };
    let n_room = n_nodes * PODS_PER_NODE;
    if n_pods > n_room {
        return Err(Refusal::new(
            format!("`--nodes {n_nodes}` have room for {n_room} pods, not for {n_pods}"),
            format!("a node takes {PODS_PER_NODE}; without the flag there are enough"),
        ));
    }
    Ok(Size { n_nodes, n_services, n_pods })
}

fn parsed<T: std::str::FromStr>(
    flag: &str,
    text: &str,
    what: &str,
    default: &str,
) -> Result<T, Refusal> {
    text.parse().map_err(|_| {
        Refusal::new(
            format!("`--{flag}` must be {what}: `{text}`"),
            format!("without the flag it is {default}"),
        )
    })
}
