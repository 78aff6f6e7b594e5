//! Validates the flags of `run` about Services of several clusters.

use std::collections::BTreeSet;

use endpointd_engine::{ClusterSetSettings, ContactLimits};
use endpointd_model::{ClusterId, Controller};
use endpointd_plan::{Adoption, MultiClusterSettings};
use endpointd_runtime::ClusterOptions;

use super::flags::{ClusterFlags, Flags};
use super::resolve::time;
use crate::cli_error::CliError;
use crate::duration::parse_duration;

/// None if the controller does not run.
pub fn settings(
    run: &Flags,
    chosen: &BTreeSet<Controller>,
) -> Result<Option<ClusterSetSettings>, CliError> {
    let (flags, name) = (&run.clusters, Controller::MultiCluster.name());
    if !chosen.contains(&Controller::MultiCluster) {
        return match flags.cluster_id {
            None => Ok(None),
            Some(_) => Err(CliError::new(
                format!("`--cluster-id` needs `{name}`, which does not run"),
                format!("add it to `--controllers`, as in `--controllers=*,{name}`"),
            )),
        };
    }
    if run.work.limits.instance.controller_name.is_some() {
        return Err(CliError::new(
            format!("`{name}` cannot have another name in `--controller-name`"),
            "run it in an instance without that flag",
        ));
    }
    let Some(id) = &flags.cluster_id else {
        return Err(CliError::new(
            format!("`{name}` needs the name of this cluster"),
            "pass `--cluster-id`; every cluster of the set has another name",
        ));
    };
    let home = ClusterId::parse(id).map_err(|error| {
        CliError::new(error.to_string(), "`--cluster-id` is the value of a label")
    })?;
    let plan = MultiClusterSettings {
        fresh_percent_min: percent(&flags.lost_min_fresh)?,
        adoption: match flags.adopt_imports {
            true => Adoption::Adopt,
            false => Adoption::LeaveForeign,
        },
        ..MultiClusterSettings::default()
    };
    Ok(Some(ClusterSetSettings { home, plan }))
}

/// The other clusters; none without `--clusters`.
pub fn others(
    flags: &ClusterFlags,
    lease_namespace: &str,
    user_agent: &str,
) -> Result<Option<ClusterOptions>, CliError> {
    let Some(directory) = flags.clusters.clone() else { return Ok(None) };
    if !directory.is_dir() {
        return Err(CliError::new(
            format!("`--clusters` is no directory: `{}`", directory.display()),
            "it has a kubeconfig for each other cluster, named like the cluster",
        ));
    }
    let secs = |flag, text: &str| {
        let duration = time(flag, text)?;
        Ok::<_, CliError>(i64::try_from(duration.as_secs()).unwrap_or(i64::MAX))
    };
    let expire_after = secs("lost-expire-after", &flags.lost_expire_after)?;
    let limits = ContactLimits {
        demote_after: secs("lost-demote-after", &flags.lost_demote_after)?,
        expire_after: (expire_after > 0).then_some(expire_after),
        ..ContactLimits::default()
    };
    Ok(Some(ClusterOptions {
        directory,
        limits,
        parse_duration,
        lease_namespace: lease_namespace.into(),
        user_agent: user_agent.to_owned(),
    }))
}

fn percent(text: &str) -> Result<usize, CliError> {
    text.parse().ok().filter(|percent| *percent <= 100).ok_or_else(|| {
        CliError::new(
            format!("`--lost-min-fresh` must be a number from 0 to 100: `{text}`"),
            "the default is 50",
        )
    })
}
