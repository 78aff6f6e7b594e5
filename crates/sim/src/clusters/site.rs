//! One cluster: its API server, and the link from the home cluster to it.

use std::collections::BTreeMap;

use endpointd_engine::{ContactLimits, SOURCE_RESOURCES};
use endpointd_memory_api::{MemoryApi, NamespaceState};
use endpointd_model::{ClusterId, Timestamp, WatchedResource};

use crate::clock::Time;

/// The index of the home cluster.
pub const HOME: usize = 0;
pub const NAMESPACE: &str = "shop";

/// What the process reads at home.
const HOME_RESOURCES: [WatchedResource; 6] = [
    WatchedResource::Services,
    WatchedResource::Slices,
    WatchedResource::Namespaces,
    WatchedResource::ServiceExports,
    WatchedResource::ServiceImports,
    WatchedResource::DerivedServices,
];

pub struct Site {
    pub number: usize,
    pub api: MemoryApi,
    pub backup: Option<MemoryApi>,
    /// API servers that had the name before, and what was lost by a restore.
    pub former: Vec<MemoryApi>,
    /// Counts the clusters that had the name, and which of them the process knows.
    pub identity: u32,
    pub known_identity: Option<u32>,
    pub has_kubeconfig: bool,
    /// Since when, and how often it was looked for.
    pub kubeconfig_missing: Option<(Time, u32)>,
    pub cut_until: Time,
    pub denied_until: Time,
    /// Events of an earlier connection are dropped.
    pub link: u32,
    pub is_connected: bool,
    /// Watches that go on deliver what they have missed, each at its own pace.
    pub connected: Time,
    pub watches: BTreeMap<WatchedResource, Watch>,
    /// The process has heard of it for the last time.
    pub heard: Time,
    /// All lists are complete since then, for this process and this cluster.
    pub complete_since: Option<Time>,
    /// All lists were known to be current for the last time, and the Lease that says so.
    pub current_until: Option<Time>,
    pub lease: Option<Timestamp>,
    pub lease_renewed: Time,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Watch {
    pub state: WatchState,
    /// All events up to this revision were delivered.
    pub delivered: u64,
    /// The next delivery is scheduled.
    pub is_scheduled: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WatchState {
    #[default]
    Down,
    Listing(u64),
    Live,
}

impl Site {
    pub fn new(number: usize) -> Self {
        Self {
            number,
            api: empty_api(),
            backup: None,
            former: Vec::new(),
            identity: 1,
            known_identity: None,
            has_kubeconfig: true,
            kubeconfig_missing: None,
            cut_until: Time::START,
            denied_until: Time::START,
            link: 0,
            is_connected: false,
            connected: Time::START,
            watches: resources(number).iter().map(|one| (*one, Watch::default())).collect(),
            heard: Time::START,
            complete_since: None,
            current_until: None,
            lease: None,
            lease_renewed: Time::START,
        }
    }

    pub fn id(number: usize) -> ClusterId {
        let name = if number == HOME { "home".to_owned() } else { format!("c{number}") };
        ClusterId::parse(&name).expect("a DNS label")
    }

    /// All watches begin again. What is known of the cluster stays.
    pub fn restart_watches(&mut self) {
        self.link += 1;
        self.is_connected = false;
        self.watches.values_mut().for_each(|watch| *watch = Watch::default());
    }

    /// A new process, or one that has forgotten the cluster.
    pub fn forget(&mut self) {
        self.restart_watches();
        self.complete_since = None;
        self.known_identity = None;
    }

    pub fn is_live(&self) -> bool {
        self.is_connected && self.watches.values().all(|watch| watch.state == WatchState::Live)
    }

    /// The link works.
    pub fn is_reachable(&self, now: Time) -> bool {
        self.has_kubeconfig && now >= self.cut_until && now >= self.denied_until
    }

    /// All API servers that ever had the name.
    pub fn apis(&self) -> impl Iterator<Item = &MemoryApi> {
        self.former.iter().chain([&self.api])
    }
}

pub fn empty_api() -> MemoryApi {
    let mut api = MemoryApi::default();
    api.put_namespace(NAMESPACE, NamespaceState::Active);
    api
}

pub fn resources(number: usize) -> &'static [WatchedResource] {
    if number == HOME { &HOME_RESOURCES } else { &SOURCE_RESOURCES }
}

/// Shorter than the defaults, so that a run sees all states.
pub fn limits() -> ContactLimits {
    ContactLimits { lost_after: 30, demote_after: 300, expire_after: Some(3600) }
}
