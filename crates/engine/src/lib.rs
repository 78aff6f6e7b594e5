//! All state of the controllers, without I/O and without a clock. Start at [`Engine`]: the
//! caller passes in what happened ([`Engine::handle`]) and performs what the engine asks for
//! ([`Engine::next`]).
#![doc = include_str!("../README.md")]

mod time;

mod imported;
mod input;
mod settings;
mod sources;
mod status;
mod summary;

mod engine;
mod inspect;

mod observed;
mod watch_state;

mod controllers;
mod key_stats;
mod key_table;
mod queue;

mod deferred_writes;
mod in_place;
mod moves;
mod planning;
mod write_order;
mod write_size;

mod in_flight;
mod request_queue;
mod requests;
mod syncs;

mod absence;
mod additions;
mod backoff;
mod cooldown;
mod deletion_limiter;
mod outage;
mod refused_writes;
mod repairs;
mod retry;
mod throttling;
mod try_budget;
mod write_events;

mod cache;
mod interner;

pub use cache::EncodedSlice;
pub use endpointd_plan::{
    AnnotationPolicy, ContactLimits, KubeconfigFile, OrphanPolicy, ServicesSeen, SourceState, Zones,
};
pub use engine::Engine;
pub use imported::ImportedCounts;
pub use input::{Effect, Input, RequestId, SourceInput};
pub use inspect::{
    Consumer, EndpointCounts, EndpointSource, RequestedImport, SLICES_SHOWN_MAX, ServiceDetail,
    ServiceOverview,
};
pub use requests::WRITES_MAX;
pub use settings::{
    AdditionDelay, ClusterSetSettings, ControllerSettings, InPlaceCheck, InPlaceSettings, Settings,
    WriteMode,
};
pub use sources::{SOURCE_RESOURCES, SourceStatus};
pub use status::{
    ControllerStatus, DeletionLimiterStatus, EngineStatus, KEYS_MAX, KeyState, KeyStatus, Sizes,
    WatchStatus, distribution_label,
};
pub use summary::{HintsKind, SyncResult, SyncSummary};
pub use time::MonotonicTime;
