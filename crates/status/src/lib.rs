//! What people and machines may see of a running endpointd: metrics, health, and the report, over
//! HTTP. It reads a finished [`EngineStatus`](endpointd_engine::EngineStatus) from a [`StatusHandle`] and never the
//! engine, so nobody who looks can slow a sync.
//!
//! Start at [`StatusHandle`], which the runtime writes, [`Metrics`], which it records to, and [`serve`].

mod board;

mod metrics;

mod health;
mod json;

mod connections;
mod http;

pub use board::{HEARTBEAT_AGE_MAX, LeadershipStatus, ProcessInfo, StatusHandle, StatusSnapshot};
pub use health::{Check, live, ready};
pub use http::serve;
pub use json::render_json;
pub use metrics::{CompletedWrite, Family, FamilyKind, Metrics};
