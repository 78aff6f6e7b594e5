//! All state of the three controllers, without I/O and without a clock. Start at [`Engine`]: it is
//! told what happened ([`Engine::handle`]) and says what to do next ([`Engine::next`]).

mod moment;

mod input;
mod report;

mod settings;

mod answers;
mod engine;
mod news;
mod reporting;
mod sync;

mod backoff;
mod cache;
mod courtesy;
mod deletion_limiter;
mod flights;
mod keys;
mod pool;
mod queue;
mod rest;
mod stream;
mod tally;

pub use engine::{Engine, WRITES_MAX};
pub use input::{Effect, HintsKind, Input, RequestId, SyncResult, SyncSummary};
pub use moment::MonotonicTime;
pub use report::{
    ControllerStatus, DeletionLimiterStatus, EngineStatus, KEYS_MAX, KeyState, KeyStatus, Sizes,
    WatchStatus, distribution_label,
};
pub use settings::{ControllerSettings, Settings};
