//! A fault-injection simulator for the engine: an API server, watches, processes, leases, faults,
//! and time on one thread, all decided by a seed. Start at [`run_script`].

mod client_bug;
mod clock;
mod rng;

mod script;

mod workload;

mod oracle;

mod coverage;
mod process;
mod scheduled;
mod simulation;

mod monitor;
mod quiescence;

mod clusters;
mod fault_schedules;
mod generate;
mod hunt;
mod instances;
mod run;
mod search;
mod shrink;

pub use client_bug::ClientBug;
pub use coverage::{Coverage, FAULTS, Rule, Violation};
pub use fault_schedules::{Schedule, fault_schedules};
pub use generate::script_of;
pub use hunt::{Detection, hunt};
pub use run::{RunOptions, RunResult, run_script, run_with};
pub use script::{Action, Script, Setup, Step};
pub use search::{Search, searches};
pub use shrink::shrink;
pub use simulation::{FaultPoint, PointFault};
