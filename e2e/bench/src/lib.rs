//! Side by side with kube-controller-manager: the same objects on the same kube-apiserver, peer and
//! we in turn.
//!
//! Start at [`bench`], which runs the scenarios. A scenario takes a [`stage`] (a fresh control plane
//! with a copy of a world that [`load`] wrote), lets a [`contender`] work on it, looks at what is
//! [`published`] and what its [`process`] used, and leaves records. [`table`] shows them.

pub mod statistics;

pub mod load;

pub mod process;
pub mod server;

pub mod flips;
pub mod published;

pub mod contender;
pub mod stage;

pub mod churn;

pub mod objects;
pub mod past;
pub mod puppet;

pub mod scale;
pub mod scenarios;

pub mod bench;
pub mod progress;
pub mod record;

pub mod machine;
pub mod picture;
pub mod table;
pub mod targets;

pub mod report;
