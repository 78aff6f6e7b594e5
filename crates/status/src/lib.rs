//! What people and machines may see of a running endpointd: metrics, health, and the report, over
//! HTTP. It reads a finished [`Report`](endpointd_engine::Report) from a [`Board`] and never the
//! engine, so nobody who looks can slow a sync.
//!
//! Start at [`Board`], which the runtime writes, [`Metrics`], which it records to, and [`serve`].

mod board;

mod metrics;

mod health;
mod json;

mod connections;
mod http;

pub use board::{About, Board, HEARTBEAT_AGE_MAX, Leadership, View};
pub use health::{Check, live, ready};
pub use http::serve;
pub use json::render_json;
pub use metrics::{Family, FamilyKind, Metrics, Wrote};
