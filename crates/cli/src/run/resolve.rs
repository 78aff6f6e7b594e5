//! Validates the flags of `run`.

use std::fs;
use std::time::Duration;

use endpointd_client::ConnectOptions;
use endpointd_client::election::ElectionOptions;
use endpointd_engine::{ControllerSettings, Settings, WriteMode};
use endpointd_model::{Controller, Key, Scope};
use endpointd_plan::ServicesSeen;
use endpointd_runtime::Options;

use super::flags::{ElectionFlags, Flags, WorkFlags};
use super::{clusters, scope, serving};
use crate::cli_error::CliError;
use crate::duration::parse_duration;
use crate::shared_flags::number;

/// The limit of kube-controller-manager for the two slice controllers.
const SYNCS_MAX: usize = 50;
/// kube-controller-manager has no limit for this controller.
const ENDPOINT_SYNCS_MAX: usize = 1000;
const SYNCS_DEFAULT: usize = 5;
const LEASE_NAME: &str = "endpointd";
/// The namespace of the pod.
const POD_NAMESPACE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

pub fn resolve(flags: &Flags, seed: u64) -> Result<Options, CliError> {
    let version = env!("CARGO_PKG_VERSION");
    let scope = scope::resolve(&flags.scope)?;
    let user_agent = format!("endpointd/{version}");
    let own_namespace = own_namespace(&flags.election);
    Ok(Options {
        connect: ConnectOptions {
            kubeconfig: flags.kubeconfig.clone(),
            context: flags.context.clone(),
            server: flags.server.clone(),
            qps: flags.kube_api_qps.as_deref().map(qps).transpose()?,
            burst: flags.kube_api_burst.as_deref().map(burst).transpose()?,
            user_agent: user_agent.clone(),
            scope: scope.clone(),
            controller_name: flags.work.limits.instance.controller_name.clone(),
            ..ConnectOptions::default()
        },
        settings: settings(flags, seed)?,
        election: match flags.dry_run {
            // A Lease is a write.
            true => None,
            false => election(flags, &scope, seed)?,
        },
        status: serving::plain(&flags.serving)?,
        secure_serving: serving::secure(&flags.serving)?,
        added_pages: None,
        clusters: clusters::others(&flags.clusters, &own_namespace, &user_agent)?,
        version: version.into(),
    })
}

fn settings(flags: &Flags, seed: u64) -> Result<Settings, CliError> {
    let chosen = flags.controllers.selected()?;
    if chosen.is_empty() {
        return Err(CliError::new(
            format!(
                "`--controllers` selects no controller: `{}`",
                flags.controllers.controllers.join(",")
            ),
            "by default the three of Kubernetes run",
        ));
    }
    let needs_everything = [Controller::Import, Controller::MultiCluster];
    let needs_everything = needs_everything.into_iter().find(|one| chosen.contains(one));
    if let Some(controller) = needs_everything
        && !scope::resolve(&flags.scope)?.is_everything()
    {
        return Err(CliError::new(
            format!("`{}` needs all Services of all namespaces", controller.name()),
            "run it in an instance without `--namespaces`, `--service-selector`, and `--shard`",
        ));
    }
    let work = &flags.work;
    let controllers = Controller::ALL.into_iter().filter(|one| chosen.contains(one));
    let controllers = controllers.map(|one| controller_settings(one, work));
    Ok(Settings {
        plan: endpointd_plan::Settings {
            services_seen: match flags.scope.service_selector {
                None => ServicesSeen::All,
                Some(_) => ServicesSeen::Selected,
            },
            ..work.limits.settings()?
        },
        controllers: controllers.collect::<Result<_, _>>()?,
        write_mode: match flags.dry_run {
            true => WriteMode::DryRun,
            false => WriteMode::Send,
        },
        seed,
        clusters: clusters::settings(flags, &chosen)?,
    })
}

fn controller_settings(
    controller: Controller,
    work: &WorkFlags,
) -> Result<ControllerSettings, CliError> {
    let (syncs_flag, syncs, most, period_flag, period) = match controller {
        Controller::Slices => (
            "concurrent-service-endpoint-syncs",
            &work.concurrent_service_endpoint_syncs,
            SYNCS_MAX,
            "endpointslice-updates-batch-period",
            &work.endpointslice_updates_batch_period,
        ),
        Controller::Endpoints => (
            "concurrent-endpoint-syncs",
            &work.concurrent_endpoint_syncs,
            ENDPOINT_SYNCS_MAX,
            "endpoint-updates-batch-period",
            &work.endpoint_updates_batch_period,
        ),
        Controller::Mirror => (
            "mirroring-concurrent-service-endpoint-syncs",
            &work.mirroring_concurrent_service_endpoint_syncs,
            SYNCS_MAX,
            "mirroring-endpointslice-updates-batch-period",
            &work.mirroring_endpointslice_updates_batch_period,
        ),
        // Their changes were batched when the slices of the source were written.
        Controller::Import | Controller::MultiCluster => {
            return Ok(ControllerSettings::new(controller));
        }
    };
    Ok(ControllerSettings {
        syncs_max: number(syncs_flag, syncs, most, SYNCS_DEFAULT)?,
        batch_period: time(period_flag, period)?,
        ..ControllerSettings::new(controller)
    })
}

fn election(flags: &Flags, scope: &Scope, seed: u64) -> Result<Option<ElectionOptions>, CliError> {
    let instance = flags.work.limits.instance.controller_name.as_ref();
    let flags = &flags.election;
    if !flags.leader_elect {
        return Ok(None);
    }
    let namespace = own_namespace(flags);
    // Two instances with different names never stand by for each other.
    let of_instance = || instance.map(|name| format!("-name-{name}")).unwrap_or_default();
    let default_name = || format!("{LEASE_NAME}{}{}", scope.lease_suffix(), of_instance());
    let name = flags.leader_elect_resource_name.clone().unwrap_or_else(default_name);
    let options = ElectionOptions {
        lease: Key::new(namespace, name),
        identity: identity(seed),
        lease_duration: time("leader-elect-lease-duration", &flags.leader_elect_lease_duration)?,
        renew_deadline: time("leader-elect-renew-deadline", &flags.leader_elect_renew_deadline)?,
        retry_period: time("leader-elect-retry-period", &flags.leader_elect_retry_period)?,
        release_on_exit: true,
    };
    options.check().map_err(|bad| {
        CliError::new(
            bad.to_string(),
            "the defaults are 15s, 10s, and 2s, as in kube-controller-manager",
        )
    })?;
    Ok(Some(options))
}

/// The namespace of our Leases.
fn own_namespace(flags: &ElectionFlags) -> String {
    let of_pod = || fs::read_to_string(POD_NAMESPACE).ok().map(|text| text.trim().to_owned());
    let namespace = flags.leader_elect_resource_namespace.clone().or_else(of_pod);
    namespace.unwrap_or_else(|| "kube-system".to_owned())
}

/// Host name and a random number, as upstream, because one host can run two candidates.
fn identity(seed: u64) -> String {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = host.trim();
    let host = if host.is_empty() { "endpointd" } else { host };
    format!("{host}_{seed:016x}")
}

pub(super) fn time(flag: &str, text: &str) -> Result<Duration, CliError> {
    parse_duration(text).ok_or_else(|| {
        CliError::new(
            format!("`--{flag}` must be a duration: `{text}`"),
            "a number with `ms`, `s`, `m`, or `h`, as in `500ms` or `1m30s`",
        )
    })
}

fn qps(text: &str) -> Result<f32, CliError> {
    match text.parse() {
        Ok(qps) if f32::is_finite(qps) && qps > 0.0 => Ok(qps),
        Ok(_) | Err(_) => Err(CliError::new(
            format!("`--kube-api-qps` must be a number above 0: `{text}`"),
            "without the flag only the API server sets a limit",
        )),
    }
}

fn burst(text: &str) -> Result<u32, CliError> {
    text.parse().ok().filter(|burst| *burst > 0).ok_or_else(|| {
        CliError::new(
            format!("`--kube-api-burst` must be a number above 0: `{text}`"),
            "it counts only together with `--kube-api-qps`",
        )
    })
}
