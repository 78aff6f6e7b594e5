//! The binary as people run it.

mod daemon;
mod plan;
mod playground;
mod run;
