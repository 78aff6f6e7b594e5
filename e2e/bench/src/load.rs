//! The load generator: realistic objects, written with little CPU. Start at [`create_objects`].
//!
//! The API server encodes one sample pod; every other pod is a copy of these bytes with its own
//! names and address in place of the sample's.

pub mod layout;
mod objects;
mod pod;
mod sender;
mod template;

pub use layout::{Layout, PodNumber, grouped, number_of_pod, number_of_service};
pub use objects::{create_objects, pod_path, report_pod, service_ports, write_pod};
pub use sender::{Encoded, IN_FLIGHT, Sender, for_each};
pub use template::{Readiness, Sizes, Templates};
