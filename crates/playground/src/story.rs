//! Stories that are played in a loop. A story is a function from a number to a step: the same world,
//! seed, and number give the same step.

use std::fmt;
use std::time::Duration;

use crate::chance::pick;
use crate::world::{NodePlan, ServicePlan, World, ZONES};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scenario {
    /// One Deployment after another gets a new image.
    Rollout,
    /// Deployments grow and shrink.
    Scale,
    /// All nodes of a zone stop answering, and come back.
    ZoneOutage,
    /// Readiness probes fail and recover.
    Flapping,
    /// A node disappears with its pods, and a new one comes.
    NodeLoss,
    /// Nothing happens unless you do it.
    #[default]
    Idle,
}

/// What happens next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// After the step before it.
    pub wait: Duration,
    /// What people are told.
    pub caption: String,
    pub moves: Vec<Move>,
}

/// One thing somebody does to the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Move {
    Scale {
        deployment: String,
        n_replicas: usize,
    },
    NewImage {
        deployment: String,
        version: u64,
    },
    /// The readiness probes of this many of its pods fail; those of the others do not.
    FailProbes {
        deployment: String,
        n_pods: usize,
    },
    StopNode {
        node: String,
    },
    StartNode {
        node: String,
    },
    DeleteNode {
        node: String,
    },
    AddNode(NodePlan),
}

/// Until the world has come up.
const FIRST_WAIT: Duration = Duration::from_secs(5);

impl Scenario {
    pub const ALL: [Self; 6] =
        [Self::Rollout, Self::Scale, Self::ZoneOutage, Self::Flapping, Self::NodeLoss, Self::Idle];

    pub fn name(self) -> &'static str {
        match self {
            Self::Rollout => "rollout",
            Self::Scale => "scale",
            Self::ZoneOutage => "zone-outage",
            Self::Flapping => "flapping",
            Self::NodeLoss => "node-loss",
            Self::Idle => "idle",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }

    /// Whether it is about Deployments of the world's own.
    pub fn needs_workload(self) -> bool {
        match self {
            Self::Rollout | Self::Scale | Self::Flapping => true,
            Self::ZoneOutage | Self::NodeLoss | Self::Idle => false,
        }
    }

    /// The pause between two steps.
    fn pace(self) -> Duration {
        match self {
            Self::Rollout => Duration::from_secs(12),
            Self::Scale => Duration::from_secs(6),
            Self::ZoneOutage | Self::NodeLoss => Duration::from_secs(8),
            Self::Flapping => Duration::from_millis(1500),
            Self::Idle => Duration::MAX,
        }
    }

    /// The `n`th step, from zero. `None`: the story is over, or the world has nothing to play with.
    pub fn step(self, world: &World, seed: u64, n: u64) -> Option<Step> {
        let (caption, moves) = match self {
            Self::Rollout => rollout(world, seed, n)?,
            Self::Scale => scale(world, seed, n)?,
            Self::ZoneOutage => zone_outage(world, seed, n)?,
            Self::Flapping => flapping(world, seed, n)?,
            Self::NodeLoss => node_loss(world, seed, n)?,
            Self::Idle => return None,
        };
        let wait = if n == 0 { FIRST_WAIT } else { self.pace() };
        Some(Step { wait, caption, moves })
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

type Told = (String, Vec<Move>);

fn rollout(world: &World, seed: u64, n: u64) -> Option<Told> {
    let ServicePlan { name, .. } = some_deployment(world, seed, "rollout", n)?;
    let version = n + 2; // The world begins with the first.
    let moves = vec![Move::NewImage { deployment: name.clone(), version }];
    Some((format!("rollout of {name} to v{version}"), moves))
}

/// Up with an even step, back with the odd one after it.
fn scale(world: &World, seed: u64, n: u64) -> Option<Told> {
    let ServicePlan { name, n_replicas, .. } = some_deployment(world, seed, "scale", n / 2)?;
    let factor = 2 + pick(seed, &["factor"], n / 2, 2);
    let wanted = if n.is_multiple_of(2) { n_replicas * factor } else { *n_replicas };
    let moves = vec![Move::Scale { deployment: name.clone(), n_replicas: wanted }];
    Some((format!("{name} is scaled to {wanted}"), moves))
}

fn zone_outage(world: &World, seed: u64, n: u64) -> Option<Told> {
    let first = pick(seed, &["zone"], 0, ZONES.len());
    let turn = usize::try_from(n / 2 % 3).expect("less than three");
    let zone = ZONES[(first + turn) % ZONES.len()];
    let nodes = || world.nodes.iter().filter(|node| node.zone == zone);
    let n_nodes = nodes().count();
    if n_nodes == 0 {
        return Some((format!("{zone} has no nodes"), Vec::new()));
    }
    let names = nodes().map(|node| node.name.clone());
    if n.is_multiple_of(2) {
        let moves = names.map(|node| Move::StopNode { node }).collect();
        return Some((format!("{zone} is cut off: {n_nodes} nodes stop answering"), moves));
    }
    let moves = names.map(|node| Move::StartNode { node }).collect();
    Some((format!("{zone} is back"), moves))
}

/// Probes fail with an even step, and recover with the odd one after it.
fn flapping(world: &World, seed: u64, n: u64) -> Option<Told> {
    let plan = some_deployment(world, seed, "flapping", n / 2)?;
    let deployment = plan.name.clone();
    if !n.is_multiple_of(2) {
        let caption = format!("probes of {deployment} recover");
        return Some((caption, vec![Move::FailProbes { deployment, n_pods: 0 }]));
    }
    let n_pods = 1 + pick(seed, &["failing"], n, plan.n_replicas.div_ceil(3));
    let caption = format!("probes of {deployment} fail on {n_pods} of its pods");
    Some((caption, vec![Move::FailProbes { deployment, n_pods }]))
}

/// Lost with an even step, replaced with the odd one after it.
fn node_loss(world: &World, seed: u64, n: u64) -> Option<Told> {
    let node = world.nodes.get(pick(seed, &["node"], n / 2, world.nodes.len().max(1)))?;
    let name = node.name.clone();
    if n.is_multiple_of(2) {
        return Some((format!("{name} is lost"), vec![Move::DeleteNode { node: name }]));
    }
    Some((format!("{name} is replaced"), vec![Move::AddNode(node.clone())]))
}

fn some_deployment<'a>(world: &'a World, seed: u64, word: &str, n: u64) -> Option<&'a ServicePlan> {
    let all = world.deployments();
    if all.is_empty() {
        return None;
    }
    Some(all[pick(seed, &[word], n, all.len())])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::Size;

    const N_STEPS: u64 = 40;

    fn told(scenario: Scenario, seed: u64) -> Vec<Step> {
        let world = World::generate(Size::default(), seed);
        (0..N_STEPS).map_while(|n| scenario.step(&world, seed, n)).collect()
    }

    #[test]
    fn a_seed_tells_the_same_story_and_another_a_different_one() {
        for scenario in Scenario::ALL {
            assert_eq!(told(scenario, 3), told(scenario, 3), "{scenario}");
            let differs = (4..40).any(|seed| told(scenario, 3) != told(scenario, seed));
            assert_eq!(differs, scenario != Scenario::Idle, "{scenario}");
        }
    }

    #[test]
    fn stories_go_on_for_ever_but_for_the_idle_one() {
        for scenario in Scenario::ALL {
            let n_steps = if scenario == Scenario::Idle { 0 } else { 40 };
            assert_eq!(told(scenario, 1).len(), n_steps, "{scenario}");
            assert_eq!(Scenario::named(scenario.name()), Some(scenario));
        }
        assert_eq!(Scenario::named("earthquake"), None);
    }

    #[test]
    fn what_goes_down_comes_up_again() {
        for steps in told(Scenario::ZoneOutage, 2).chunks(2) {
            let [down, up] = steps else { panic!("steps come in pairs") };
            let stopped = down.moves.iter().map(|one| match one {
                Move::StopNode { node } => node,
                other => panic!("{other:?}"),
            });
            let started = up.moves.iter().map(|one| match one {
                Move::StartNode { node } => node,
                other => panic!("{other:?}"),
            });
            assert!(stopped.eq(started));
            assert_eq!(down.moves.len(), 4);
        }
        for steps in told(Scenario::NodeLoss, 2).chunks(2) {
            let [Move::DeleteNode { node }] = &steps[0].moves[..] else { panic!("{steps:?}") };
            let [Move::AddNode(plan)] = &steps[1].moves[..] else { panic!("{steps:?}") };
            assert_eq!(node, &plan.name);
        }
    }

    #[test]
    fn scaling_returns_to_where_it_began() {
        let world = World::generate(Size::default(), 2);
        for step in told(Scenario::Scale, 2).iter().skip(1).step_by(2) {
            let [Move::Scale { deployment, n_replicas }] = &step.moves[..] else {
                panic!("{step:?}")
            };
            let plan = world.services.iter().find(|one| one.name == *deployment);
            assert_eq!(plan.map(|plan| plan.n_replicas), Some(*n_replicas));
        }
    }

    #[test]
    fn a_world_without_deployments_has_no_story_about_them() {
        let world = World::empty(Size::default(), 1);
        for scenario in Scenario::ALL {
            let tells = scenario.step(&world, 1, 0).is_some();
            let expects = !scenario.needs_workload() && scenario != Scenario::Idle;
            assert_eq!(tells, expects, "{scenario}");
        }
    }
}
