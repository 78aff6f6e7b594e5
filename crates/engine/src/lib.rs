//! All state of the three controllers, without I/O and without a clock. Start at [`Engine`]: it is
//! told what happened ([`Engine::handle`]) and says what to do next ([`Engine::next`]).

mod time;

mod input;
mod report;

mod settings;

mod engine;
mod reporting;
mod responses;
mod sync;
mod watch_events;

mod backoff;
mod cache;
mod cooldown;
mod deletion_limiter;
mod in_flight;
mod interner;
mod key_stats;
mod key_table;
mod queue;
mod watch_state;
mod write_order;

pub use engine::{Engine, WRITES_MAX};
pub use input::{Effect, HintsKind, Input, RequestId, SyncResult, SyncSummary};
pub use report::{
    ControllerStatus, DeletionLimiterStatus, EngineStatus, KEYS_MAX, KeyState, KeyStatus, Sizes,
    WatchStatus, distribution_label,
};
pub use settings::{ControllerSettings, Settings};
pub use time::MonotonicTime;
