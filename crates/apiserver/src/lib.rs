//! An embedded Kubernetes-compatible API server: plain JSON objects, no etcd, no controllers.
//!
//! Three ways to use it, from the inside out: [`Server`] alone, synchronous, for a simulator on one
//! thread; [`http::router`], the same server as a `tower` service; [`http::serve`], on a socket.
//!
//! Every write takes the next revision of one counter ([`store`]); watches read the history of that
//! counter. Time and uids come from [`Stamps`]: the server itself has neither clock nor chance.

pub mod kinds;
mod schema;
mod selectors;

pub mod store;

mod defaults;
mod patch;
mod validation;

mod refusal;
mod server;
mod stamps;
mod verbs;

mod discovery;
mod openapi;
mod table;

pub mod http;

pub use kinds::{Kind, Scope};
pub use refusal::{Cause, Details, Refusal};
pub use server::{Server, Settings, Sweeping};
pub use stamps::{CountedStamps, Stamps, SystemStamps};
pub use verbs::{
    DeleteOptions, Deletion, FieldValidation, ListOptions, Outcome, Page, PatchType, Propagation,
    Shown, Target, VersionMatch, WatchOptions, WatchStart, WriteOptions,
};
