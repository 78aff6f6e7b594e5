//! One small, made-up report with something in every corner, and a board to pin it on.

use std::collections::BTreeMap;
use std::time::Duration;

use endpointd_engine::{
    BrakeReport, ControllerReport, HintsKind, KeyReport, KeyState, KindReport, Report, Sizes,
    SyncEnd, Synced,
};
use endpointd_model::{BadAddress, Controller, Key, Kind, TopologyMode, TrafficDistribution};
use endpointd_plan::{Counts, Reason};
use endpointd_status::{About, Board, Leadership};

pub fn report() -> Report {
    let web = Key::new("shop", "web");
    Report {
        is_leading: true,
        kinds: vec![kind(Kind::Services, 2), kind(Kind::Pods, 3), kind(Kind::Slices, 2)],
        controllers: vec![slices(), mirror()],
        keys: vec![
            KeyReport {
                controller: Controller::Slices,
                key: web,
                state: KeyState::InFlight { since: secs(2) },
                n_failures: 1,
                last_end: Some("failed"),
                last_error: Some("quota exceeded".into()),
                left_out: BTreeMap::from([(Reason::NotScheduled, 1)]),
            },
            KeyReport {
                controller: Controller::Mirror,
                key: Key::new("shop", "database"),
                state: KeyState::BackingOff { remaining: secs(4) },
                n_failures: 3,
                last_end: Some("failed"),
                last_error: None,
                left_out: BTreeMap::new(),
            },
        ],
        n_keys_not_shown: 7,
        sizes: Sizes {
            n_label_sets: 2,
            n_texts: 40,
            n_tombstones: 1,
            n_remembered_keys: 3,
            cache_bytes: 1200,
        },
        brake: BrakeReport { is_on: true, n_last_minute: 21, n_held: 4, max_a_minute: 20 },
        throttled_for: Some(secs(9)),
    }
}

pub fn kind(kind: Kind, n_objects: usize) -> KindReport {
    let unreadable = match kind {
        Kind::Pods => BTreeMap::from([(Key::new("shop", "odd"), "podIP: not an address".into())]),
        Kind::Services | Kind::Nodes | Kind::Endpoints | Kind::Slices => BTreeMap::new(),
    };
    KindReport {
        kind,
        n_objects,
        is_listed: true,
        lost: None,
        version: 1234.into(),
        age: secs(5),
        unreadable,
    }
}

fn slices() -> ControllerReport {
    ControllerReport {
        controller: Controller::Slices,
        n_waiting: 4,
        n_in_flight: 1,
        n_backing_off: 0,
        oldest_wait: secs(3),
        oldest_flight: secs(2),
        n_adds: 17,
        n_retries: 2,
        n_endpoints_desired: 6,
        n_slices: 2,
        n_slices_desired: 1,
        left_out: BTreeMap::from([
            (Reason::NotScheduled, 1),
            (Reason::InvalidAddress(BadAddress::Loopback), 1),
            (Reason::InvalidAddress(BadAddress::Multicast), 2),
        ]),
        n_by_traffic_distribution: BTreeMap::from([(None, 5), (Some("PreferSameZone"), 1)]),
    }
}

fn mirror() -> ControllerReport {
    ControllerReport {
        controller: Controller::Mirror,
        n_waiting: 0,
        n_in_flight: 0,
        n_backing_off: 1,
        oldest_wait: Duration::ZERO,
        oldest_flight: Duration::ZERO,
        n_adds: 5,
        n_retries: 3,
        n_endpoints_desired: 1,
        n_slices: 1,
        n_slices_desired: 1,
        left_out: BTreeMap::new(),
        n_by_traffic_distribution: BTreeMap::new(),
    }
}

/// A sync of the slice controller that wrote one slice and took a ready endpoint out.
pub fn synced() -> Synced {
    Synced {
        controller: Controller::Slices,
        key: Key::new("shop", "web"),
        end: SyncEnd::Written,
        counts: Counts { n_added: 1, n_removed: 3, ..Counts::default() },
        n_creates: 0,
        n_updates: 1,
        n_deletes: 0,
        waited: Duration::from_millis(20),
        took: Duration::from_millis(10),
        is_removal: true,
        hints: HintsKind {
            topology: TopologyMode::Off,
            traffic_distribution: Some(TrafficDistribution::PreferSameZone),
        },
    }
}

pub fn board() -> Board {
    let about = About { version: "1.2.3".into(), identity: "pod-a".into() };
    Board::new(about, Leadership::Standby { lease: "endpointd".into(), holder: None })
}

pub fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}
