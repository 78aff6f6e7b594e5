//! A proxy between endpointd and a real API server. It terminates TLS, so it sees requests and
//! responses, and makes some of them fail: an error instead of a response, a delay, a response that
//! is lost after the request was applied, a watch event of which half arrives.
//!
//! Start at [`FaultProxy::start`] and [`FaultProxy::inject`]. [`Requests`] says which requests a
//! [`Fault`] hits; the returned [`Injected`] ends the fault when it is dropped, and panics then if
//! the fault never fired. [`FaultProxy::exchanges`] lists the requests that were seen. Bearer
//! tokens pass through; client certificates do not. [`AdmissionWebhook`] is the other side: the API
//! server asks it before it stores an object.

mod request_info;

mod fault;
mod requests;
mod rules;

mod exchanges;

mod body;
mod certificates;
mod proxy;
mod webhook;

pub use exchanges::{Exchange, in_flight_max};
pub use fault::{Answer, Fault};
pub use proxy::FaultProxy;
pub use request_info::{RequestInfo, Verb};
pub use requests::Requests;
pub use rules::Injected;
pub use webhook::{AdmissionWebhook, Verdict};
