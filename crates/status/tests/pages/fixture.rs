//! A status of the engine with a value in every field, and a handle to publish it on.

use std::collections::BTreeMap;
use std::time::Duration;

use endpointd_engine::{
    ControllerStatus, DeletionLimiterStatus, EngineStatus, HintsKind, ImportedCounts, KeyState,
    KeyStatus, Sizes, SourceStatus, SyncResult, SyncSummary, WatchStatus,
};
use endpointd_model::{
    BadAddress, ClusterId, Controller, Key, SourceReason, TopologyMode, TrafficDistribution,
    WatchedResource,
};
use endpointd_plan::{ConflictKind, Counts, ExclusionReason, SourceState};
use endpointd_status::{KeyQueries, LeadershipStatus, ProcessInfo, StatusHandle};

pub fn engine_status() -> EngineStatus {
    let web = Key::new("shop", "web");
    EngineStatus {
        is_leading: true,
        watches: vec![
            watch(WatchedResource::Services, 2),
            watch(WatchedResource::Pods, 3),
            watch(WatchedResource::Slices, 2),
        ],
        controllers: vec![slices(), mirror()],
        keys: vec![
            KeyStatus {
                controller: Controller::Slices,
                key: web,
                state: KeyState::InFlight { since: secs(2) },
                n_failures: 1,
                last_result: Some("failed"),
                last_error: Some("quota exceeded".into()),
                is_contested: false,
                excluded_pods: BTreeMap::from([(ExclusionReason::NotScheduled, 1)]),
            },
            KeyStatus {
                controller: Controller::Mirror,
                key: Key::new("shop", "database"),
                state: KeyState::BackingOff { remaining: secs(4) },
                n_failures: 3,
                last_result: Some("failed"),
                last_error: None,
                is_contested: false,
                excluded_pods: BTreeMap::new(),
            },
        ],
        n_keys_not_shown: 7,
        n_consumers: BTreeMap::from([
            (SourceReason::Mirrored, 2),
            (SourceReason::RefNotPermitted, 1),
        ]),
        sizes: Sizes {
            n_label_sets: 2,
            n_interned_strings: 40,
            n_tombstones: 1,
            n_tracked_keys: 3,
            cache_bytes: 1200,
        },
        deletion_limiter: DeletionLimiterStatus {
            is_active: true,
            n_deletions_last_minute: 21,
            n_delayed_keys: 4,
            deletions_per_minute_max: 20,
        },
        throttled_for: Some(secs(9)),
        sources: vec![SourceStatus {
            cluster: ClusterId::parse("eu1").expect("a DNS label"),
            state: SourceState::InSync,
            last_contact: None,
            last_contact_age: Some(secs(2)),
            is_denied: false,
            watches: Vec::new(),
            n_exports: 3,
            n_slices: 5,
            endpoints: ImportedCounts { n: 8, n_ready: 6 },
        }],
        import_conflicts: vec![(ConflictKind::Port, 1), (ConflictKind::Type, 0)],
    }
}

pub fn watch(resource: WatchedResource, n_objects: usize) -> WatchStatus {
    let decode_errors = match resource {
        WatchedResource::Pods => {
            BTreeMap::from([(Key::new("shop", "odd"), "podIP: not an address".into())])
        }
        WatchedResource::Services
        | WatchedResource::Nodes
        | WatchedResource::Endpoints
        | WatchedResource::Slices
        | WatchedResource::ReferenceGrants
        | WatchedResource::Namespaces
        | WatchedResource::ServiceExports
        | WatchedResource::ServiceImports
        | WatchedResource::DerivedServices => BTreeMap::new(),
    };
    WatchStatus {
        resource,
        n_objects,
        is_synced: true,
        disconnected_reason: None,
        version: 1234.into(),
        last_event_age: secs(5),
        decode_errors,
    }
}

fn slices() -> ControllerStatus {
    ControllerStatus {
        controller: Controller::Slices,
        waits_for: Vec::new(),
        n_waiting: 4,
        n_in_flight: 1,
        n_backing_off: 0,
        n_contested: 2,
        oldest_wait: secs(3),
        oldest_in_flight: secs(2),
        n_adds: 17,
        n_retries: 2,
        n_endpoints_desired: 6,
        n_slices: 2,
        n_slices_desired: 1,
        excluded_pods: BTreeMap::from([
            (ExclusionReason::NotScheduled, 1),
            (ExclusionReason::InvalidAddress(BadAddress::Loopback), 1),
            (ExclusionReason::InvalidAddress(BadAddress::Multicast), 2),
        ]),
        n_by_traffic_distribution: BTreeMap::from([(None, 5), (Some("PreferSameZone"), 1)]),
    }
}

fn mirror() -> ControllerStatus {
    ControllerStatus {
        controller: Controller::Mirror,
        waits_for: vec![WatchedResource::Endpoints],
        n_waiting: 0,
        n_in_flight: 0,
        n_backing_off: 1,
        n_contested: 0,
        oldest_wait: Duration::ZERO,
        oldest_in_flight: Duration::ZERO,
        n_adds: 5,
        n_retries: 3,
        n_endpoints_desired: 1,
        n_slices: 1,
        n_slices_desired: 1,
        excluded_pods: BTreeMap::new(),
        n_by_traffic_distribution: BTreeMap::new(),
    }
}

/// A sync of the slice controller that updated one slice and removed a ready endpoint.
pub fn sync_summary() -> SyncSummary {
    SyncSummary {
        controller: Controller::Slices,
        key: Key::new("shop", "web"),
        result: SyncResult::Written,
        counts: Counts { n_added: 1, n_removed: 3, ..Counts::default() },
        n_creates: 0,
        n_updates: 1,
        n_deletes: 0,
        waited: Duration::from_millis(20),
        took: Duration::from_millis(10),
        is_removal: true,
        is_background: false,
        has_lasted: false,
        hints: HintsKind {
            topology: TopologyMode::Off,
            traffic_distribution: Some(TrafficDistribution::PreferSameZone),
        },
    }
}

pub fn handle() -> (StatusHandle, KeyQueries) {
    let process = ProcessInfo { version: "1.2.3".into(), identity: "pod-a".into() };
    let leadership = LeadershipStatus::Standby { lease: "endpointd".into(), holder: None };
    StatusHandle::new(process, leadership)
}

pub fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}
