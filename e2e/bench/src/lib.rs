//! Benchmarks against kube-controller-manager: the same objects on the same kube-apiserver, one
//! program after the other.
//!
//! Start at [`bench`], which runs the scenarios. A scenario creates a [`test_bed`] (a new control
//! plane with a copy of objects that [`load`] wrote), runs a [`subject`] on it, observes what is
//! [`published`] and which resources its [`process`] used, and appends records. [`table`] prints
//! them.

pub mod statistics;

pub mod load;

pub mod process;
pub mod server;

pub mod published;
pub mod toggle_tracker;

pub mod subject;
pub mod test_bed;

pub mod toggles;

pub mod in_memory_driver;
pub mod object_dump;
pub mod objects;

pub mod scale;
pub mod scenarios;

pub mod bench;
pub mod progress;
pub mod record;

pub mod chart;
pub mod machine;
pub mod table;
pub mod targets;

pub mod report;
