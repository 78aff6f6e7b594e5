//! Tests of the binary as a process.

mod daemon;
mod explain;
mod plan;
mod playground;
mod run;
mod test_cluster;
