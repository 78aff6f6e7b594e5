//! Tests of the binary as a process.

mod daemon;
mod plan;
mod playground;
mod run;
