//! Settings, already validated.

use std::time::Duration;

use endpointd_model::{Controller, WatchedResource};

/// Settings of an engine; the command line resolves them from its flags.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Settings of the plans, such as endpoints per slice.
    pub plan: endpointd_plan::Settings,
    /// The controllers that run; in the order of [`Controller::ALL`].
    pub controllers: Vec<ControllerSettings>,
    pub write_mode: WriteMode,
    /// Seed of the back-off jitter; the same seed and inputs give the same effects.
    pub seed: u64,
}

/// Whether planned writes are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WriteMode {
    #[default]
    Send,
    /// Nothing is sent and no Event is recorded. A sync ends as `Written` if its plan has writes, and
    /// its key is planned again later, to show whether the difference lasts.
    DryRun,
}

/// Settings of one controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControllerSettings {
    pub controller: Controller,
    /// Syncs in flight at once; Kubernetes `--concurrent-endpoint-syncs` and its relatives.
    pub syncs_max: usize,
    /// Delay between a change of a pod or a slice and its sync, so that such changes are batched;
    /// Kubernetes `--endpoint-updates-batch-period`. Other changes are synced at once.
    pub batch_period: Duration,
}

impl ControllerSettings {
    pub fn new(controller: Controller) -> Self {
        Self { controller, syncs_max: 5, batch_period: Duration::ZERO }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            plan: endpointd_plan::Settings::default(),
            controllers: Controller::DEFAULT.map(ControllerSettings::new).to_vec(),
            write_mode: WriteMode::default(),
            seed: 0,
        }
    }
}

impl Settings {
    /// With the controllers that run only if they are named, too.
    pub fn of_all_controllers() -> Self {
        let controllers = Controller::ALL.map(ControllerSettings::new).to_vec();
        Self { controllers, ..Self::default() }
    }

    /// The resources that the controllers read, in the order of [`WatchedResource::ALL`].
    pub fn watched_resources(&self) -> Vec<WatchedResource> {
        let is_needed = |resource: &WatchedResource| {
            self.controllers.iter().any(|one| needs(one.controller).contains(resource))
        };
        WatchedResource::ALL.into_iter().filter(is_needed).collect()
    }
}

/// The resources that a controller reads: it plans nothing before each of them is listed.
pub(crate) fn needs(controller: Controller) -> &'static [WatchedResource] {
    match controller {
        Controller::Slices => &[
            WatchedResource::Services,
            WatchedResource::Pods,
            WatchedResource::Nodes,
            WatchedResource::Slices,
        ],
        Controller::Endpoints => {
            &[WatchedResource::Services, WatchedResource::Pods, WatchedResource::Endpoints]
        }
        Controller::Mirror => {
            &[WatchedResource::Services, WatchedResource::Endpoints, WatchedResource::Slices]
        }
        Controller::Import => &[
            WatchedResource::Services,
            WatchedResource::Nodes,
            WatchedResource::Slices,
            WatchedResource::ReferenceGrants,
        ],
    }
}
