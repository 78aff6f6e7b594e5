//! The client of a real API server. Start at [`Client::connect`]; then [`Client::watch`] lists and
//! watches one resource, [`Client::send`] performs a write, and [`Client::live_read`] reads one
//! object without a cache.
//!
//! `kube` loads kubeconfigs and credentials; requests and responses are our own code, in protobuf
//! where the server supports it. No request is retried here that could be applied twice: every
//! response, and every missing one, becomes a result that says what the caller should do next.

mod now;

mod config;
mod connect;
mod http_service;
mod kubeconfig;

mod rate_limiter;
mod request;
mod rollback;
mod scope_query;
mod sent_objects;
mod stats;
mod transport;

mod client;
mod port_forward;
mod response;
mod value_read;

mod watcher;

pub mod election;
pub mod recorder;

pub use client::Client;
pub use connect::{ConnectError, ConnectOptions};
pub use kubeconfig::{
    Credentials, EXTENSION as KUBECONFIG_EXTENSION, KubeconfigSummary, KubeconfigText,
    credentials_of, extension as kubeconfig_extension, summary as kubeconfig_summary,
};
pub use now::Now;
pub use port_forward::{PodConnection, PortForwarder};
pub use stats::{RequestDuration, RequestKind, RequestStats};
pub use value_read::{Content, ListOptions, Preconditions, ReadError, ValueList, ValueResponse};
