//! Flags that several commands share.

use std::collections::BTreeSet;

use clap::Args;
use endpointd_model::{Controller, InvalidControllerName, SliceManagers};
use endpointd_plan::{AnnotationPolicy, OrphanPolicy, Settings};

use crate::cli_error::CliError;

const ENDPOINTS_MAX: usize = 1000; // The API server rejects larger slices.

/// Which controllers run or are planned for.
#[derive(Args)]
pub struct ControllersFlag {
    /// Controllers: `*` for the three of Kubernetes, `name`, `-name` to exclude, comma-separated
    ///
    /// Known are `endpointslice-controller` (`endpointslice`), `endpoints-controller`
    /// (`endpoint`), and `endpointslice-mirroring-controller` (`endpointslicemirroring`). Only if it
    /// is named: `endpointslice-import-controller` (`endpointsliceimport`), which publishes endpoints
    /// of Services in other namespaces.
    #[arg(
        long,
        value_name = "LIST",
        default_value = "*",
        value_delimiter = ',',
        allow_hyphen_values = true
    )]
    pub controllers: Vec<String>,
}

/// What decides about the published objects.
#[derive(Args)]
pub struct LimitFlags {
    /// The most endpoints in a slice, from 1 to 1000
    #[arg(long, value_name = "N", default_value = "100", allow_hyphen_values = true)]
    pub max_endpoints_per_slice: String,

    /// The most addresses mirrored from one subset of Endpoints, from 1 to 1000
    #[arg(long, value_name = "N", default_value = "1000", allow_hyphen_values = true)]
    pub mirroring_max_endpoints_per_subset: String,

    #[command(flatten)]
    pub annotations: AnnotationFlags,

    #[command(flatten)]
    pub instance: InstanceFlags,

    /// What to do with Endpoints and slices of Services that had a selector before: keep, delete
    #[arg(long, value_name = "POLICY", default_value = "keep")]
    pub orphan_policy: String,
}

/// Whose slices are this instance's own.
#[derive(Args)]
pub struct InstanceFlags {
    /// Name of this instance: its slices get `managed-by` labels of their own, others are foreign
    ///
    /// As in `endpointslice-controller.NAME` instead of `endpointslice-controller.k8s.io`.
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    pub controller_name: Option<String>,
}

impl InstanceFlags {
    pub fn managers(&self) -> Result<SliceManagers, CliError> {
        let Some(name) = &self.controller_name else { return Ok(SliceManagers::default()) };
        SliceManagers::named(name).map_err(|InvalidControllerName| {
            let most = SliceManagers::NAME_BYTES_MAX;
            CliError::new(
                format!("`--controller-name` cannot be part of a label value: `{name}`"),
                format!(
                    "1 to {most} lower-case letters, digits, and `-` between them, as in \
                     `--controller-name blue`"
                ),
            )
        })
    }
}

/// Annotations that Kubernetes ignores.
#[derive(Args)]
pub struct AnnotationFlags {
    /// Honour `service.alpha.kubernetes.io/tolerate-unready-endpoints` of Services
    ///
    /// It counts as `publishNotReadyAddresses`, as before Kubernetes removed it.
    #[arg(long)]
    pub honor_tolerate_unready_annotation: bool,
}

impl AnnotationFlags {
    pub fn policy(&self) -> AnnotationPolicy {
        match self.honor_tolerate_unready_annotation {
            true => AnnotationPolicy::Honor,
            false => AnnotationPolicy::Ignore,
        }
    }
}

impl LimitFlags {
    pub fn settings(&self) -> Result<Settings, CliError> {
        let defaults = Settings::default();
        Ok(Settings {
            endpoints_per_slice_max: number(
                "max-endpoints-per-slice",
                &self.max_endpoints_per_slice,
                ENDPOINTS_MAX,
                defaults.endpoints_per_slice_max,
            )?,
            mirrored_per_subset_max: number(
                "mirroring-max-endpoints-per-subset",
                &self.mirroring_max_endpoints_per_subset,
                ENDPOINTS_MAX,
                defaults.mirrored_per_subset_max,
            )?,
            tolerate_unready_annotation: self.annotations.policy(),
            orphan_policy: orphan_policy(&self.orphan_policy)?,
            services_seen: defaults.services_seen,
            managers: self.instance.managers()?,
        })
    }
}

impl ControllersFlag {
    /// The controllers whose plans need the objects of one cluster only.
    pub fn selected_of_one_cluster(&self) -> Result<BTreeSet<Controller>, CliError> {
        let selected = self.selected()?;
        if selected.contains(&Controller::MultiCluster) {
            return Err(CliError::new(
                format!("`{}` needs objects of several clusters", Controller::MultiCluster.name()),
                "`endpointd plan --cluster` plans it",
            ));
        }
        Ok(selected)
    }

    /// The first entry that names a controller decides; `*` stands for those of Kubernetes without an
    /// entry.
    /// Upstream: `IsControllerEnabled` in k8s.io/controller-manager.
    pub fn selected(&self) -> Result<BTreeSet<Controller>, CliError> {
        let mut has_star = false;
        let mut entries: Vec<(Controller, Switch)> = Vec::new();
        for entry in
            self.controllers.iter().map(|entry| entry.trim()).filter(|entry| !entry.is_empty())
        {
            if entry == "*" {
                has_star = true;
                continue;
            }
            let (name, switch) = match entry.strip_prefix('-') {
                Some(name) => (name, Switch::Off),
                None => (entry, Switch::On),
            };
            entries.push((controller_named(name)?, switch));
        }
        let is_on = |controller: &Controller| {
            let switch = entries.iter().find(|(one, _)| one == controller);
            let by_star = || has_star && Controller::DEFAULT.contains(controller);
            switch.map_or_else(by_star, |(_, switch)| *switch == Switch::On)
        };
        Ok(Controller::ALL.into_iter().filter(is_on).collect())
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Switch {
    On,
    Off,
}

fn controller_named(name: &str) -> Result<Controller, CliError> {
    let is_named = |one: &Controller| one.name() == name || one.alias() == name;
    Controller::ALL.into_iter().find(is_named).ok_or_else(|| {
        let names = Controller::ALL.map(|one| format!("`{}` (`{}`)", one.name(), one.alias()));
        CliError::new(
            format!("`--controllers` names an unknown controller: `{name}`"),
            format!("known are `*`, {}; a `-` before a name excludes it", names.join(", ")),
        )
    })
}

fn orphan_policy(text: &str) -> Result<OrphanPolicy, CliError> {
    match text {
        "keep" => Ok(OrphanPolicy::Keep),
        "delete" => Ok(OrphanPolicy::Delete),
        _ => Err(CliError::new(
            format!("`--orphan-policy` must be `keep` or `delete`: `{text}`"),
            "without the flag they are kept, as by kube-controller-manager",
        )),
    }
}

/// A number from 1 to `most`, or an error that names the flag.
pub fn number(flag: &str, text: &str, most: usize, default: usize) -> Result<usize, CliError> {
    match text.parse() {
        Ok(number) if (1..=most).contains(&number) => Ok(number),
        Ok(_) | Err(_) => Err(CliError::new(
            format!("`--{flag}` must be a number from 1 to {most}: `{text}`"),
            format!("without the flag it is {default}"),
        )),
    }
}
