//! Scenarios: scripted changes of a cluster. Each runs once under kube-controller-manager and once
//! under endpointd, and both must converge to the same Endpoints and EndpointSlices.
//!
//! Start at [`scenarios`], which lists them. A scenario changes one [`TestNamespace`] of one API
//! server with the methods of [`endpointd_control_plane::Api`], so any server that has these can be
//! used. [`canonical`] defines which objects count as equal. [`ClusterUnderTest`] is a real control
//! plane together with one of the two controllers.

pub mod canonical;
pub mod observed_state;

pub mod convergence;
pub mod test_namespace;

pub mod pods;

pub mod recorded;
pub mod run;
pub mod scenarios;

pub mod audit;
pub mod cluster;
pub mod daemon;
pub mod harness;
pub mod kubectl;
pub mod proxied_cluster;
pub mod soak;
pub mod tcp_proxy;

pub use cluster::{ClusterUnderTest, Controllers};
pub use convergence::Expected;
pub use daemon::{Daemon, DaemonFlags};
pub use proxied_cluster::ProxiedCluster;
pub use run::{Checkpoints, difference, run_scenario};
pub use scenarios::{SCENARIOS, Scenario};
pub use test_namespace::TestNamespace;
