//! A simulator that tries to break the engine: API server, watches, processes, leases, faults, and
//! time on one thread, all decided by a seed. Start at [`play`].

mod clock;
mod dice;

mod script;

mod api;
mod workload;

mod oracle;

mod census;
mod process;
mod world;

mod calm;
mod monitor;

mod generate;
#[cfg(feature = "mutants")]
mod mutants;
mod plans;
mod play;
mod search;
mod shrink;

pub use api::{Answer, Api, NamespaceState};
pub use census::{Census, FAULTS, Rule, Violation};
pub use dice::Dice;
pub use generate::script_of;
#[cfg(feature = "mutants")]
pub use mutants::{Kill, hunt};
pub use plans::{Plan, plans};
pub use play::{Manner, Verdict, play, play_with};
pub use script::{Act, Script, Setup, Step};
pub use search::{Search, searches};
pub use shrink::shrink;
pub use world::{Snare, Trap};
