//! Compares our plans with upstream's decisions on the same cluster states.
//!
//! A [`Case`] is a cluster state and upstream's answer, recorded or computed by the oracle.
//! [`judge`] plans the same cluster state and lists the differences in canonical form, each with
//! the deliberate difference (`B9`, `B18`, …) that explains it, or none.

mod answer;
mod canonical;
mod case;
mod coverage;
mod deliberate;
mod fuzz_run;
mod generate;
mod judge;
mod oracle;
pub mod report;
mod shrink;

pub use answer::Answer;
pub use case::{Case, CaseSettings, ClusterObjects, Expected, Then, add};
pub use deliberate::{DeliberateDifference, Sync, SyncStep};
pub use fuzz_run::{DifferingCase, RunSpec, RunSummary, run, shrink};
pub use generate::{Scope, generated_case};
pub use judge::{Aspect, Difference, judge, judge_and_observe};
pub use oracle::Oracle;
