//! The initial objects of a playground, as data: zones, nodes, and Services of eight kinds with
//! their Deployments. The same size and seed give the same objects.

mod manifests;

pub(crate) use manifests::image;
pub use manifests::{
    consumer, consumer_namespace, deployment, manual_endpoints, namespace, node, service,
};

use std::fmt;

use crate::seeded::pick;

pub const NAMESPACE: &str = "shop";
/// Its Service [`CONSUMER`] publishes the endpoints of [`SOURCE`] in [`NAMESPACE`], which permits it.
pub const CONSUMER_NAMESPACE: &str = "partner";
pub const CONSUMER: &str = "storefront";
pub const SOURCE: &str = "web";
pub const ZONES: [&str; 3] = ["zone-a", "zone-b", "zone-c"];

pub const PODS_MAX: usize = 50_000;
pub const SERVICES_MAX: usize = 10_000;
pub const NODES_MAX: usize = 1_000;
/// The default of a kubelet.
pub const PODS_PER_NODE: usize = 110;

pub const SERVICES_DEFAULT: usize = 8;
pub const PODS_DEFAULT: usize = 60;
pub const NODES_MIN: usize = 12;

/// The number of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    pub n_nodes: usize,
    pub n_services: usize,
    pub n_pods: usize,
}

impl Default for Size {
    fn default() -> Self {
        Self { n_nodes: NODES_MIN, n_services: SERVICES_DEFAULT, n_pods: PODS_DEFAULT }
    }
}

impl Size {
    /// Enough nodes for the pods, with 10 % spare capacity for rollouts and lost nodes.
    pub fn nodes_for(n_pods: usize) -> usize {
        (n_pods + n_pods / 10).div_ceil(PODS_PER_NODE).max(NODES_MIN)
    }
}

/// The initial nodes and Services.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterSpec {
    pub nodes: Vec<NodeSpec>,
    pub services: Vec<ServiceSpec>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSpec {
    pub name: String,
    pub zone: &'static str,
    pub cpus: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceSpec {
    pub name: String,
    pub kind: ServiceKind,
    /// Replicas of the Deployment with the same name; zero: there is no Deployment.
    pub n_replicas: usize,
}

/// The kinds of Services that behave differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ServiceKind {
    Plain,
    Headless,
    DualStack,
    NamedPorts,
    TopologyAware,
    SameZone,
    /// No selector: its Endpoints are written by hand and mirrored.
    Manual,
    ExternalName,
}

impl ServiceKind {
    pub const ALL: [Self; 8] = [
        Self::Plain,
        Self::Headless,
        Self::DualStack,
        Self::NamedPorts,
        Self::TopologyAware,
        Self::SameZone,
        Self::Manual,
        Self::ExternalName,
    ];

    /// The name of the first Service of this kind.
    fn name(self) -> &'static str {
        match self {
            Self::Plain => "web",
            Self::Headless => "db",
            Self::DualStack => "api",
            Self::NamedPorts => "checkout",
            Self::TopologyAware => "search",
            Self::SameZone => "cart",
            Self::Manual => "legacy",
            Self::ExternalName => "payments",
        }
    }

    pub fn has_pods(self) -> bool {
        match self {
            Self::Plain
            | Self::Headless
            | Self::DualStack
            | Self::NamedPorts
            | Self::TopologyAware
            | Self::SameZone => true,
            Self::Manual | Self::ExternalName => false,
        }
    }
}

impl fmt::Display for ServiceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plain => "plain",
            Self::Headless => "headless",
            Self::DualStack => "dual stack",
            Self::NamedPorts => "named ports",
            Self::TopologyAware => "topology aware",
            Self::SameZone => "same zone",
            Self::Manual => "manual endpoints",
            Self::ExternalName => "external name",
        })
    }
}

impl ClusterSpec {
    pub fn generate(size: Size, seed: u64) -> Self {
        let nodes = (0..size.n_nodes).map(|n| node_spec(n, seed)).collect();
        let mut services: Vec<ServiceSpec> = (0..size.n_services).map(service_spec).collect();
        share_pods(&mut services, size.n_pods, seed);
        Self { nodes, services }
    }

    /// Nodes only, for manifests of the user.
    pub fn empty(size: Size, seed: u64) -> Self {
        Self::generate(Size { n_services: 0, n_pods: 0, ..size }, seed)
    }

    pub fn n_pods(&self) -> usize {
        self.services.iter().map(|service| service.n_replicas).sum()
    }

    /// The Service whose endpoints another namespace publishes.
    pub fn source(&self) -> Option<&ServiceSpec> {
        self.services.iter().find(|service| service.name == SOURCE)
    }

    /// Services with a Deployment.
    pub fn deployments(&self) -> Vec<&ServiceSpec> {
        self.services.iter().filter(|service| service.n_replicas > 0).collect()
    }
}

/// Zones alternate. The numbers of CPUs differ, because topology hints are proportional to them.
fn node_spec(n: usize, seed: u64) -> NodeSpec {
    let zone = ZONES[n % ZONES.len()];
    let name = format!("node-{:02}", n + 1);
    let cpus = [4, 4, 8][pick(seed, &["cpus", &name], 0, 3)];
    NodeSpec { name, zone, cpus }
}

fn service_spec(n: usize) -> ServiceSpec {
    let kind = ServiceKind::ALL[n % ServiceKind::ALL.len()];
    let round = n / ServiceKind::ALL.len();
    let name = match round {
        0 => kind.name().to_owned(),
        _ => format!("{}-{}", kind.name(), round + 1),
    };
    ServiceSpec { name, kind, n_replicas: 0 }
}

/// Every Deployment gets a pod if there are enough; the rest is distributed at random, within a
/// factor of about three.
fn share_pods(services: &mut [ServiceSpec], n_pods: usize, seed: u64) {
    let mut takers: Vec<&mut ServiceSpec> =
        services.iter_mut().filter(|service| service.kind.has_pods()).collect();
    let weights: Vec<usize> =
        takers.iter().map(|one| 2 + pick(seed, &["weight", &one.name], 0, 5)).collect();
    let total: usize = weights.iter().sum();
    if total == 0 {
        return;
    }
    let mut n_left = n_pods;
    for (taker, weight) in takers.iter_mut().zip(&weights) {
        taker.n_replicas = n_pods * weight / total;
        n_left -= taker.n_replicas;
    }
    // The remainder of the division goes to the smallest Deployments.
    takers.sort_by_key(|taker| taker.n_replicas);
    let n_takers = takers.len();
    for n in 0..n_left {
        takers[n % n_takers].n_replicas += 1;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    #[test]
    fn the_default_has_three_zones_twelve_nodes_and_every_service_kind() {
        let spec = ClusterSpec::generate(Size::default(), 1);
        let mut n_by_zone: BTreeMap<&str, usize> = BTreeMap::new();
        spec.nodes.iter().for_each(|node| *n_by_zone.entry(node.zone).or_default() += 1);
        assert_eq!(n_by_zone.into_iter().collect::<Vec<_>>(), ZONES.map(|zone| (zone, 4)));
        let kinds: BTreeSet<ServiceKind> = spec.services.iter().map(|one| one.kind).collect();
        assert_eq!(kinds, BTreeSet::from(ServiceKind::ALL));
        assert_eq!(spec.n_pods(), PODS_DEFAULT);
        assert!(spec.services.iter().all(|one| one.kind.has_pods() == (one.n_replicas > 0)));
    }

    #[test]
    fn a_seed_determines_the_cluster() {
        let size = Size::default();
        assert_eq!(ClusterSpec::generate(size, 5), ClusterSpec::generate(size, 5));
        assert_ne!(ClusterSpec::generate(size, 5), ClusterSpec::generate(size, 6));
    }

    #[test]
    fn all_pods_are_distributed_and_names_are_unique_at_every_size() {
        for (n_services, n_pods) in [(1, 1), (1, 0), (2, 7), (8, 3), (1000, 50_000), (7, 50_000)] {
            let size = Size { n_nodes: Size::nodes_for(n_pods), n_services, n_pods };
            let spec = ClusterSpec::generate(size, 9);
            assert_eq!(spec.n_pods(), n_pods, "{size:?}");
            let names: BTreeSet<&str> = spec.services.iter().map(|one| &*one.name).collect();
            assert_eq!(names.len(), n_services, "names are unique");
            assert!(n_pods <= size.n_nodes * PODS_PER_NODE, "{size:?}");
        }
    }

    #[test]
    fn an_empty_cluster_has_nodes() {
        let spec = ClusterSpec::empty(Size::default(), 1);
        assert_eq!((spec.nodes.len(), spec.services.len()), (NODES_MIN, 0));
    }
}
