//! A cluster in one process, for looking at the controllers at work: the embedded API server, a
//! small world that lives, and the three controllers through the real client. Start at
//! [`Playground::start`].
//!
//! The world ([`world`]), the stories ([`story`]), and the stand-ins for scheduler, kubelet, and
//! workload controllers (`cluster`) are data and decisions without I/O; `perform` writes what they
//! decide into the API server, `observer` looks on, `view` lays out what people see.

pub mod picture;
pub mod story;
pub mod view;
pub mod world;

mod chance;
mod cluster;
mod kubeconfig;
mod observer;
mod perform;
mod playground;
mod reader;
mod standin;
mod summary;

pub use kubeconfig::Place;
pub use observer::Milestones;
pub use playground::{Options, Playground, StartError, Workload};
pub use standin::Tempo;
pub use summary::{Memory, Summary};
