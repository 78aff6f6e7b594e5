//! The daemon around the engine: watches deliver signals, one event loop drives the engine, the
//! dispatcher sends its requests, and leadership decides whether writes may leave. Start at
//! [`run`](run()).
//!
//! Nothing here decides what to write. All I/O and all clocks of the daemon are here and in the
//! client.

mod run;

mod event_loop;

mod change_recorder;
mod client_authorities;
mod clusters;
mod dispatcher;
mod leadership;
mod listeners;
mod shadow;
mod state_log;
mod status_publisher;
mod status_server;
mod supervisor;
mod watches;

pub use clusters::ClusterOptions;
pub use endpointd_secure_serving::{CertificateSource, GuardOptions, TlsOptions, TlsVersion};
pub use listeners::SecureServing;
pub use run::{Options, RunError, Running, run};
pub use supervisor::TaskEnd;
