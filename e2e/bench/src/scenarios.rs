//! The scenarios, a file each. Each puts what it measured into [`Bench::records`].
//!
//! [`Bench::records`]: crate::bench::Bench::records

pub mod cold_start;
