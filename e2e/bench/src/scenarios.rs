//! The scenarios, a file each. Each puts what it measured into [`Bench::records`].
//!
//! [`Bench::records`]: crate::bench::Bench::records

pub mod cold_start;
pub mod restart;

pub mod churn;
pub mod crowded;
pub mod rollout;

pub mod idle;

pub mod floor;

pub mod engine;
