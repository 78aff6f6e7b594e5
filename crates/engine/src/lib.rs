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
mod brake;
mod cache;
mod courtesy;
mod flights;
mod keys;
mod pool;
mod queue;
mod rest;
mod stream;
mod tally;

pub use engine::{Engine, WRITES_MAX};
pub use input::{Effect, HintsKind, Input, SyncEnd, Synced, Ticket};
pub use moment::Moment;
pub use report::{
    BrakeReport, ControllerReport, KEYS_MAX, KeyReport, KeyState, KindReport, Report, Sizes,
    distribution_label,
};
pub use settings::{ControllerSettings, Settings};
