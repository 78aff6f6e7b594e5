//! Our plans against upstream's decisions, on the same worlds.
//!
//! A [`Case`] is a world and what upstream did with it, recorded or just asked for. [`judge`] plans
//! the same world and lists the differences in canonical form, each with the chosen difference
//! (`B9`, `B18`, …) that explains it, or none.

mod answer;
mod campaign;
mod canonical;
mod case;
mod choice;
mod coverage;
mod generate;
mod judge;
mod oracle;
pub mod report;
mod shrink;

pub use answer::Answer;
pub use campaign::{Found, Order, Tally, run, shrink};
pub use case::{Case, CaseSettings, Expected, Then, WorldText, add};
pub use choice::{Choice, Sync, Turn};
pub use generate::{Scope, world};
pub use judge::{Aspect, Difference, judge, judge_and_tell};
pub use oracle::Oracle;
