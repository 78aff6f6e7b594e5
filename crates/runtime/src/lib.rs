//! The daemon around the engine: feeds bring news, one loop drives the engine, errands carry its
//! requests, and a term in office decides whether they may leave. Start at [`run`].
//!
//! Nothing here decides what to write. What is decided elsewhere is done here, and only here.

mod run;

mod drive;
mod errands;
mod feeds;
mod journal;
mod office;
mod pace;

pub use pace::PollBatcher;
pub use run::{Options, RunError, Running, run};
