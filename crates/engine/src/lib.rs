//! All state of the three controllers, without I/O and without a clock. Start at [`Engine`]: it is
//! told what happened ([`Engine::handle`]) and says what to do next ([`Engine::next`]).

mod moment;

mod input;
mod report;

pub use input::{Effect, HintsKind, Input, SyncEnd, Synced, Ticket};
pub use moment::Moment;
pub use report::{
    BrakeReport, ControllerReport, KEYS_MAX, KeyReport, KeyState, KindReport, Report, Sizes,
    distribution_label,
};
