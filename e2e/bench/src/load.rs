//! The load generator: realistic objects, written with as little work of ours as possible. Start
//! at [`write_world`].
//!
//! A pod is encoded once, by the API server itself; each further one is a copy of those bytes with
//! its own name, place, and address written over the first one's.

pub mod layout;
mod pod;
mod sender;
mod template;
mod world;

pub use layout::{Layout, PodNumber, grouped, number_of_pod, number_of_service};
pub use sender::{Encoded, IN_FLIGHT, Sender, for_each};
pub use template::{Readiness, Sizes, Templates};
pub use world::{pod_path, report_pod, write_pod, write_world};
