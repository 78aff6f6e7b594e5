//! An embedded Kubernetes-compatible API server: plain JSON objects, no etcd, no controllers.
//!
//! Three ways to use it: [`Server`], synchronous, without HTTP; [`http::router`], a `tower`
//! service; [`http::serve`], on a socket.
//!
//! Every write takes the next revision of one counter ([`store`]); watches read the history of that
//! counter. Time and uids come from [`ClockAndIds`]; the server itself has no clock and no
//! randomness.

pub mod kinds;
mod schema;
mod selectors;

pub mod store;

mod defaults;
mod patch;
mod validation;

mod clock_and_ids;
mod server;
mod status_error;
mod verbs;

mod discovery;
mod openapi;
mod table;

pub mod http;

pub use clock_and_ids::{ClockAndIds, CountedClockAndIds, SystemClockAndIds};
pub use kinds::{Kind, Scope};
pub use server::{GcMode, Server, Settings};
pub use status_error::{Cause, Details, StatusError};
pub use verbs::{
    DeleteOptions, Deletion, FieldValidation, ListOptions, Page, PatchType, Propagation,
    ResponseObject, Target, VersionMatch, WatchOptions, WatchStart, WriteOptions, WriteOutcome,
};
