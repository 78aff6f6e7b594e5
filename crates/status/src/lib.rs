//! Metrics, health checks, and the status report of a running endpointd, over HTTP. The pages read
//! a finished [`EngineStatus`](endpointd_engine::EngineStatus) from a [`StatusHandle`]; no request
//! can slow a sync. Only `/report?key=` and added pages ask the event loop, through a bounded channel.
//!
//! Start at [`StatusHandle`], which the runtime writes, [`Metrics`], which it records to, and
//! [`serve`].

mod changes;
mod endpoint_diff;
mod handle;
mod key_query;

mod metrics;

mod shadow_status;

mod health;
mod json;

mod connections;
mod http;
mod places;

pub use changes::{CHANGES_MAX, Change, ChangeLog, Notice, WriteRecord};
pub use endpoint_diff::{
    EndpointChange, EndpointChanges, EndpointCondition, EndpointDiff, WrittenSlice, slice_of,
};
pub use handle::{HEARTBEAT_AGE_MAX, LeadershipStatus, ProcessInfo, StatusHandle, StatusSnapshot};
pub use health::{Check, live, ready};
pub use http::{AddedPages, Site, serve};
pub use json::{key_row, process_row, render_json};
pub use key_query::{KeyQueries, KeyQuery, LoopQuery, LoopState, Question};
pub use metrics::{CompletedWrite, Family, FamilyKind, Metrics};
pub use shadow_status::{ShadowDifference, ShadowStatus};
