//! One module per scenario. Each appends its measurements to [`Bench::records`].
//!
//! [`Bench::records`]: crate::bench::Bench::records

pub mod cold_start;
pub mod restart;

pub mod churn;
pub mod rollout;
pub mod services_per_namespace;

pub mod idle;

pub mod readers;

pub mod commands;

pub mod write_only;

pub mod imports;
pub mod scopes;

pub mod engine;
