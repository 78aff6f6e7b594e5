//! What people may set, already checked.

use std::time::Duration;

use endpointd_model::{Controller, WatchedResource};

#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    pub plan: endpointd_plan::Settings,
    /// The controllers that run; in the order of [`Controller::ALL`].
    pub controllers: Vec<ControllerSettings>,
    /// Where the jitter of back-offs begins; the same seed gives the same engine.
    pub seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControllerSettings {
    pub controller: Controller,
    /// Keys that may be in flight at once.
    pub syncs_max: usize,
    /// How long changes are collected before they are acted upon.
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
            controllers: Controller::ALL.map(ControllerSettings::new).to_vec(),
            seed: 0,
        }
    }
}

impl Settings {
    /// The kinds of objects the controllers that run look at.
    pub fn watched_resources(&self) -> Vec<WatchedResource> {
        let needs = |controller: Controller| match controller {
            Controller::Slices => [
                WatchedResource::Services,
                WatchedResource::Pods,
                WatchedResource::Nodes,
                WatchedResource::Slices,
            ]
            .as_slice(),
            Controller::Endpoints => {
                &[WatchedResource::Services, WatchedResource::Pods, WatchedResource::Endpoints]
            }
            Controller::Mirror => {
                &[WatchedResource::Services, WatchedResource::Endpoints, WatchedResource::Slices]
            }
        };
        let is_needed = |kind: &WatchedResource| {
            self.controllers.iter().any(|one| needs(one.controller).contains(kind))
        };
        WatchedResource::ALL.into_iter().filter(is_needed).collect()
    }
}
