//! The world a playground begins with, as data: zones, nodes, and Services of eight kinds with what
//! stands behind them. The same size and seed give the same world.

mod manifests;

pub(crate) use manifests::image;
pub use manifests::{deployment, manual_endpoints, namespace, node, service};

use std::fmt;

use crate::chance::pick;

pub const NAMESPACE: &str = "shop";
pub const ZONES: [&str; 3] = ["zone-a", "zone-b", "zone-c"];

pub const PODS_MAX: usize = 50_000;
pub const SERVICES_MAX: usize = 5_000;
pub const NODES_MAX: usize = 1_000;
/// A kubelet's usual limit.
pub const PODS_PER_NODE: usize = 110;

pub const SERVICES_DEFAULT: usize = 8;
pub const PODS_DEFAULT: usize = 60;
pub const NODES_MIN: usize = 12;

/// How much there is of everything.
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
    /// Nodes enough for the pods, with a tenth to spare for rollouts and lost nodes.
    pub fn nodes_for(n_pods: usize) -> usize {
        (n_pods + n_pods / 10).div_ceil(PODS_PER_NODE).max(NODES_MIN)
    }
}

/// Everything there is at the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct World {
    pub nodes: Vec<NodePlan>,
    pub services: Vec<ServicePlan>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodePlan {
    pub name: String,
    pub zone: &'static str,
    pub cpus: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServicePlan {
    pub name: String,
    pub flavour: Flavour,
    /// Of the Deployment with the same name; zero: there is none.
    pub n_replicas: usize,
}

/// The kinds of Service worth looking at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Flavour {
    Plain,
    Headless,
    DualStack,
    NamedPorts,
    TopologyAware,
    SameZone,
    /// No selector: somebody writes the Endpoints by hand, and they are mirrored.
    Manual,
    ExternalName,
}

impl Flavour {
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

    /// What a Service of this kind is called in the default world.
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

impl fmt::Display for Flavour {
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

impl World {
    pub fn generate(size: Size, seed: u64) -> Self {
        let nodes = (0..size.n_nodes).map(|n| node_plan(n, seed)).collect();
        let mut services: Vec<ServicePlan> = (0..size.n_services).map(service_plan).collect();
        share_pods(&mut services, size.n_pods, seed);
        Self { nodes, services }
    }

    /// Nodes and nothing else: for people's own manifests.
    pub fn empty(size: Size, seed: u64) -> Self {
        Self::generate(Size { n_services: 0, n_pods: 0, ..size }, seed)
    }

    pub fn n_pods(&self) -> usize {
        self.services.iter().map(|service| service.n_replicas).sum()
    }

    /// Services with a Deployment behind them.
    pub fn deployments(&self) -> Vec<&ServicePlan> {
        self.services.iter().filter(|service| service.n_replicas > 0).collect()
    }
}

/// Zones take turns. Machines differ a little, so that the topology hints have something to weigh.
fn node_plan(n: usize, seed: u64) -> NodePlan {
    let zone = ZONES[n % ZONES.len()];
    let name = format!("node-{:02}", n + 1);
    let cpus = [4, 4, 8][pick(seed, &["cpus", &name], 0, 3)];
    NodePlan { name, zone, cpus }
}

fn service_plan(n: usize) -> ServicePlan {
    let flavour = Flavour::ALL[n % Flavour::ALL.len()];
    let round = n / Flavour::ALL.len();
    let name = match round {
        0 => flavour.name().to_owned(),
        _ => format!("{}-{}", flavour.name(), round + 1),
    };
    ServicePlan { name, flavour, n_replicas: 0 }
}

/// Every Deployment gets a pod while there are any; the rest fall by chance, within a factor of
/// about three of each other.
fn share_pods(services: &mut [ServicePlan], n_pods: usize, seed: u64) {
    let mut takers: Vec<&mut ServicePlan> =
        services.iter_mut().filter(|service| service.flavour.has_pods()).collect();
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
    // What rounding left goes to those that have least.
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
    fn the_default_world_has_three_zones_twelve_nodes_and_every_flavour() {
        let world = World::generate(Size::default(), 1);
        let mut n_by_zone: BTreeMap<&str, usize> = BTreeMap::new();
        world.nodes.iter().for_each(|node| *n_by_zone.entry(node.zone).or_default() += 1);
        assert_eq!(n_by_zone.into_iter().collect::<Vec<_>>(), ZONES.map(|zone| (zone, 4)));
        let flavours: BTreeSet<Flavour> = world.services.iter().map(|one| one.flavour).collect();
        assert_eq!(flavours, BTreeSet::from(Flavour::ALL));
        assert_eq!(world.n_pods(), PODS_DEFAULT);
        assert!(world.services.iter().all(|one| one.flavour.has_pods() == (one.n_replicas > 0)));
    }

    #[test]
    fn a_seed_gives_the_same_world_and_another_a_different_one() {
        let size = Size::default();
        assert_eq!(World::generate(size, 5), World::generate(size, 5));
        assert_ne!(World::generate(size, 5), World::generate(size, 6));
    }

    #[test]
    fn every_pod_has_an_owner_at_every_size() {
        for (n_services, n_pods) in [(1, 1), (1, 0), (2, 7), (8, 3), (1000, 50_000), (7, 50_000)] {
            let size = Size { n_nodes: Size::nodes_for(n_pods), n_services, n_pods };
            let world = World::generate(size, 9);
            assert_eq!(world.n_pods(), n_pods, "{size:?}");
            let names: BTreeSet<&str> = world.services.iter().map(|one| &*one.name).collect();
            assert_eq!(names.len(), n_services, "names are unique");
            assert!(n_pods <= size.n_nodes * PODS_PER_NODE, "{size:?}");
        }
    }

    #[test]
    fn an_empty_world_still_has_its_nodes() {
        let world = World::empty(Size::default(), 1);
        assert_eq!((world.nodes.len(), world.services.len()), (NODES_MIN, 0));
    }
}
