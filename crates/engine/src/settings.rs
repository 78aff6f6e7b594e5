//! Settings, already validated.

use std::time::Duration;

use endpointd_model::{ClusterId, Controller, WatchedResource};
use endpointd_plan::MultiClusterSettings;

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
    /// Must be set if the controller for Services of several clusters runs.
    pub clusters: Option<ClusterSetSettings>,
}

/// Settings of the controller for Services of several clusters.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterSetSettings {
    /// The name of this cluster.
    pub home: ClusterId,
    pub plan: MultiClusterSettings,
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
    pub addition_delay: AdditionDelay,
    pub in_place: InPlaceSettings,
}

/// Plans of large Services in which only conditions of endpoints change. Of slices only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InPlaceSettings {
    /// A Service with fewer slices is always planned as a whole.
    pub slices_min: usize,
    pub check: InPlaceCheck,
}

/// Whether each plan in place is compared with a plan of the whole Service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InPlaceCheck {
    Off,
    /// A difference fails the key.
    Compare,
}

impl Default for InPlaceSettings {
    fn default() -> Self {
        let check = if cfg!(debug_assertions) { InPlaceCheck::Compare } else { InPlaceCheck::Off };
        Self { slices_min: 4, check }
    }
}

/// How long an addition waits after the last sync of its Service: the more endpoints are ready, the
/// less traffic a new one takes over, and every write of a slice goes to every node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdditionDelay {
    /// With so many ready endpoints nothing waits.
    pub undelayed_endpoints: usize,
    /// For each ready endpoint beyond.
    pub per_endpoint: Duration,
    pub max: Duration,
}

impl AdditionDelay {
    pub fn of(self, n_ready: usize) -> Duration {
        let beyond = n_ready.saturating_sub(self.undelayed_endpoints);
        self.per_endpoint.saturating_mul(u32::try_from(beyond).unwrap_or(u32::MAX)).min(self.max)
    }
}

impl Default for AdditionDelay {
    fn default() -> Self {
        Self {
            undelayed_endpoints: 100,
            per_endpoint: Duration::from_micros(250),
            max: Duration::from_secs(1),
        }
    }
}

impl ControllerSettings {
    pub fn new(controller: Controller) -> Self {
        Self {
            controller,
            syncs_max: 5,
            batch_period: Duration::ZERO,
            addition_delay: AdditionDelay::default(),
            in_place: InPlaceSettings::default(),
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            plan: endpointd_plan::Settings::default(),
            controllers: Controller::DEFAULT.map(ControllerSettings::new).to_vec(),
            write_mode: WriteMode::default(),
            seed: 0,
            clusters: None,
        }
    }
}

impl Settings {
    /// With the controllers that run only if they are named, too, apart from the one that needs
    /// settings of its own ([`Self::clusters`]).
    pub fn of_all_controllers() -> Self {
        let controllers =
            Controller::ALL.into_iter().filter(|one| *one != Controller::MultiCluster);
        let controllers = controllers.map(ControllerSettings::new).collect();
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
        // Nothing of other clusters: one that does not answer delays nothing.
        Controller::MultiCluster => &[
            WatchedResource::Services,
            WatchedResource::Slices,
            WatchedResource::Namespaces,
            WatchedResource::ServiceExports,
            WatchedResource::ServiceImports,
            WatchedResource::DerivedServices,
        ],
    }
}
