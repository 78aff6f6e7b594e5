//! A real API server. Start at [`Client::connect`]; then [`Client::feed`] tells what is there and
//! what changes, [`Client::send`] writes, [`Client::look`] reads one object as it is now.
//!
//! `kube` finds the cluster and proves who we are; requests and answers are ours, in protobuf where
//! the server speaks it. Nothing is retried here that could happen twice: every answer, and every
//! missing one, is sorted into what the caller should do next.

mod moment;

mod config;
mod connect;
mod stack;

mod ask;
mod budget;
mod stats;
mod transport;

mod answer;
mod client;
mod known;

mod feed;

pub mod election;
pub mod recorder;

pub use client::Client;
pub use connect::{ConnectError, ConnectOptions};
pub use known::InFlightWrite;
pub use moment::Now;
pub use stats::{RequestCount, RequestKind, RequestStats};
