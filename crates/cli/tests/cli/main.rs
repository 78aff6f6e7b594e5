//! The binary as people run it.

mod daemon;
mod plan;
mod run;
