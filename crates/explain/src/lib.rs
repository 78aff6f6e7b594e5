//! Why a pod is or is not behind a Service: a pure function from complete objects and the plans of
//! `endpointd-plan` to [`Findings`]. Start at [`explain::service`].
//!
//! A finding has a stable [`Code`], one sentence, and what was probably meant. The plan decides
//! whether a pod is published; the rules here only find out why. Nothing here does I/O or reads a
//! clock.

mod code;
mod finding;
mod objects;

pub mod explain;

mod facts;

mod choosing;
mod cluster_set;
mod families;
mod imports;
mod mirroring;
mod near_miss;
mod nearly_chosen;
mod owners;
mod pods;
mod ports;
mod published;
mod readiness;
mod zones;

mod fields;

pub use cluster_set::LEASE_PREFIX;
pub use code::{Code, Layer, Level};
pub use facts::{Context, ControllerState, Mode, SourceReport};
pub use finding::{Finding, Findings, ObjectName, ReadyEndpoint};
pub use near_miss::nearest;
pub use objects::Objects;

/// The version of the JSON form of [`Findings`].
pub const FORMAT_VERSION: &str = "1.0";

/// Compiles and runs the example in the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
