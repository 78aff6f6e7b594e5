//! Tests of the binary as a process.

mod check;
mod daemon;
mod diff;
mod endpoints;
mod explain;
mod imports;
mod multicluster;
mod plan;
mod playground;
mod plugin;
mod run;
mod source_cluster;
mod test_cluster;
