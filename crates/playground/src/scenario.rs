//! Scenarios, which run in a loop. A step is a function of the cluster, the seed, and the number of
//! the step.

use std::fmt;
use std::time::Duration;

use crate::cluster_spec::{CONSUMER_NAMESPACE, ClusterSpec, NodeSpec, ServiceSpec, ZONES};
use crate::seeded::pick;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scenario {
    /// Deployments get new images, one after the other.
    Rollout,
    /// Deployments are scaled up and down.
    Scale,
    /// All nodes of a zone become unreachable, then return.
    ZoneOutage,
    /// Readiness probes fail, then recover.
    Flapping,
    /// A node is deleted, then created again.
    NodeLoss,
    /// A Service does not permit another namespace to publish its endpoints any more, then does again.
    Consent,
    /// The API server of a cluster answers nothing for a minute, then does again.
    ClusterOutage,
    /// No actions.
    #[default]
    Idle,
}

/// One step of a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Delay after the previous step.
    pub wait: Duration,
    /// A line for the log.
    pub caption: String,
    pub actions: Vec<ScenarioAction>,
}

/// An action on the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScenarioAction {
    Scale {
        deployment: String,
        n_replicas: usize,
    },
    NewImage {
        deployment: String,
        version: u64,
    },
    /// The readiness probes of this many pods fail; the others pass.
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
    AddNode(NodeSpec),
    /// Of the API server.
    SetOutage {
        is_out: bool,
    },
    /// The namespaces that may publish the endpoints of this Service.
    SetConsent {
        service: String,
        to: &'static str,
    },
}

/// Leaves time for the initial pods to start.
const FIRST_WAIT: Duration = Duration::from_secs(5);

/// Leaves time for the clusters to import from each other.
const CLUSTERS_WAIT: Duration = Duration::from_secs(15);

impl Scenario {
    pub const ALL: [Self; 8] = [
        Self::Rollout,
        Self::Scale,
        Self::ZoneOutage,
        Self::Flapping,
        Self::NodeLoss,
        Self::Consent,
        Self::ClusterOutage,
        Self::Idle,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Rollout => "rollout",
            Self::Scale => "scale",
            Self::ZoneOutage => "zone-outage",
            Self::Flapping => "flapping",
            Self::NodeLoss => "node-loss",
            Self::Consent => "consent",
            Self::ClusterOutage => "cluster-outage",
            Self::Idle => "idle",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }

    /// Whether it needs Deployments.
    pub fn needs_workload(self) -> bool {
        match self {
            Self::Rollout | Self::Scale | Self::Flapping | Self::Consent => true,
            Self::ZoneOutage | Self::NodeLoss | Self::ClusterOutage | Self::Idle => false,
        }
    }

    /// Whether other clusters must see what happens.
    pub fn needs_clusters(self) -> bool {
        self == Self::ClusterOutage
    }

    /// The delay between two steps.
    fn interval(self) -> Duration {
        match self {
            Self::Rollout => Duration::from_secs(12),
            Self::Scale => Duration::from_secs(6),
            Self::ZoneOutage | Self::NodeLoss | Self::Consent => Duration::from_secs(8),
            Self::Flapping => Duration::from_millis(1500),
            Self::ClusterOutage => Duration::from_secs(60),
            Self::Idle => Duration::MAX,
        }
    }

    /// Step `n`, from zero. `None`: there are no steps, or the cluster lacks the objects for them.
    pub fn step(self, spec: &ClusterSpec, seed: u64, n: u64) -> Option<Step> {
        let (caption, actions) = match self {
            Self::Rollout => rollout(spec, seed, n)?,
            Self::Scale => scale(spec, seed, n)?,
            Self::ZoneOutage => zone_outage(spec, seed, n)?,
            Self::Flapping => flapping(spec, seed, n)?,
            Self::NodeLoss => node_loss(spec, seed, n)?,
            Self::Consent => consent(spec, n)?,
            Self::ClusterOutage => cluster_outage(n),
            Self::Idle => return None,
        };
        let wait = match (self, n) {
            (Self::ClusterOutage, 0) => CLUSTERS_WAIT,
            (_, 0) => FIRST_WAIT,
            (_, _) => self.interval(),
        };
        Some(Step { wait, caption, actions })
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

type CaptionedActions = (String, Vec<ScenarioAction>);

fn rollout(spec: &ClusterSpec, seed: u64, n: u64) -> Option<CaptionedActions> {
    let ServiceSpec { name, .. } = some_deployment(spec, seed, "rollout", n)?;
    let version = n + 2; // The initial image is v1.
    let actions = vec![ScenarioAction::NewImage { deployment: name.clone(), version }];
    Some((format!("rollout of {name} to v{version}"), actions))
}

/// Scales up in even steps and back in odd steps.
fn scale(spec: &ClusterSpec, seed: u64, n: u64) -> Option<CaptionedActions> {
    let ServiceSpec { name, n_replicas, .. } = some_deployment(spec, seed, "scale", n / 2)?;
    let factor = 2 + pick(seed, &["factor"], n / 2, 2);
    let wanted = if n.is_multiple_of(2) { n_replicas * factor } else { *n_replicas };
    let actions = vec![ScenarioAction::Scale { deployment: name.clone(), n_replicas: wanted }];
    Some((format!("{name} is scaled to {wanted}"), actions))
}

fn zone_outage(spec: &ClusterSpec, seed: u64, n: u64) -> Option<CaptionedActions> {
    let first = pick(seed, &["zone"], 0, ZONES.len());
    let index = usize::try_from(n / 2 % 3).expect("less than three");
    let zone = ZONES[(first + index) % ZONES.len()];
    let nodes = || spec.nodes.iter().filter(|node| node.zone == zone);
    let n_nodes = nodes().count();
    if n_nodes == 0 {
        return Some((format!("{zone} has no nodes"), Vec::new()));
    }
    let names = nodes().map(|node| node.name.clone());
    if n.is_multiple_of(2) {
        let actions = names.map(|node| ScenarioAction::StopNode { node }).collect();
        return Some((format!("{zone} fails: {n_nodes} nodes are unreachable"), actions));
    }
    let actions = names.map(|node| ScenarioAction::StartNode { node }).collect();
    Some((format!("{zone} recovers"), actions))
}

/// Probes fail in even steps and recover in odd steps.
fn flapping(spec: &ClusterSpec, seed: u64, n: u64) -> Option<CaptionedActions> {
    let plan = some_deployment(spec, seed, "flapping", n / 2)?;
    let deployment = plan.name.clone();
    if !n.is_multiple_of(2) {
        let caption = format!("probes recover on all pods of {deployment}");
        return Some((caption, vec![ScenarioAction::FailProbes { deployment, n_pods: 0 }]));
    }
    let n_pods = 1 + pick(seed, &["failing"], n, plan.n_replicas.div_ceil(3));
    let caption = format!("probes fail on {n_pods} pods of {deployment}");
    Some((caption, vec![ScenarioAction::FailProbes { deployment, n_pods }]))
}

/// The node is deleted in even steps and created again in odd steps.
fn node_loss(spec: &ClusterSpec, seed: u64, n: u64) -> Option<CaptionedActions> {
    let node = spec.nodes.get(pick(seed, &["node"], n / 2, spec.nodes.len().max(1)))?;
    let name = node.name.clone();
    if n.is_multiple_of(2) {
        return Some((
            format!("{name} is deleted"),
            vec![ScenarioAction::DeleteNode { node: name }],
        ));
    }
    Some((format!("{name} is created again"), vec![ScenarioAction::AddNode(node.clone())]))
}

/// Consent is withdrawn in even steps and given again in odd steps.
fn consent(spec: &ClusterSpec, n: u64) -> Option<CaptionedActions> {
    let service = spec.source()?.name.clone();
    let (caption, to) = match n.is_multiple_of(2) {
        true => (format!("{service} permits no other namespace"), ""),
        false => (format!("{service} permits {CONSUMER_NAMESPACE} again"), CONSUMER_NAMESPACE),
    };
    Some((caption, vec![ScenarioAction::SetConsent { service, to }]))
}

/// An outage begins in even steps and ends in odd steps.
fn cluster_outage(n: u64) -> CaptionedActions {
    let is_out = n.is_multiple_of(2);
    let caption = match is_out {
        true => "the API server answers with errors",
        false => "the API server answers again",
    };
    (caption.to_owned(), vec![ScenarioAction::SetOutage { is_out }])
}

fn some_deployment<'a>(
    spec: &'a ClusterSpec,
    seed: u64,
    word: &str,
    n: u64,
) -> Option<&'a ServiceSpec> {
    let all = spec.deployments();
    if all.is_empty() {
        return None;
    }
    Some(all[pick(seed, &[word], n, all.len())])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster_spec::Size;

    const N_STEPS: u64 = 40;

    fn steps_of(scenario: Scenario, seed: u64) -> Vec<Step> {
        let spec = ClusterSpec::generate(Size::default(), seed);
        (0..N_STEPS).map_while(|n| scenario.step(&spec, seed, n)).collect()
    }

    #[test]
    fn a_seed_determines_the_steps() {
        for scenario in Scenario::ALL {
            assert_eq!(steps_of(scenario, 3), steps_of(scenario, 3), "{scenario}");
            let differs = (4..40).any(|seed| steps_of(scenario, 3) != steps_of(scenario, seed));
            let is_random =
                ![Scenario::Idle, Scenario::Consent, Scenario::ClusterOutage].contains(&scenario);
            assert_eq!(differs, is_random, "{scenario}");
        }
    }

    #[test]
    fn all_scenarios_but_idle_have_unlimited_steps() {
        for scenario in Scenario::ALL {
            let n_steps = if scenario == Scenario::Idle { 0 } else { 40 };
            assert_eq!(steps_of(scenario, 1).len(), n_steps, "{scenario}");
            assert_eq!(Scenario::named(scenario.name()), Some(scenario));
        }
        assert_eq!(Scenario::named("earthquake"), None);
    }

    #[test]
    fn every_outage_step_is_followed_by_its_recovery() {
        for steps in steps_of(Scenario::ZoneOutage, 2).chunks(2) {
            let [down, up] = steps else { panic!("steps come in pairs") };
            let stopped = down.actions.iter().map(|one| match one {
                ScenarioAction::StopNode { node } => node,
                other => panic!("{other:?}"),
            });
            let started = up.actions.iter().map(|one| match one {
                ScenarioAction::StartNode { node } => node,
                other => panic!("{other:?}"),
            });
            assert!(stopped.eq(started));
            assert_eq!(down.actions.len(), 4);
        }
        for steps in steps_of(Scenario::NodeLoss, 2).chunks(2) {
            let [ScenarioAction::DeleteNode { node }] = &steps[0].actions[..] else {
                panic!("{steps:?}")
            };
            let [ScenarioAction::AddNode(plan)] = &steps[1].actions[..] else {
                panic!("{steps:?}")
            };
            assert_eq!(node, &plan.name);
        }
    }

    /// It is longer than the limits after which a cluster is demoted.
    #[test]
    fn an_outage_of_a_cluster_is_long_enough_to_demote_it() {
        let steps = steps_of(Scenario::ClusterOutage, 1);
        for (n, step) in steps.iter().enumerate() {
            let is_out = n % 2 == 0;
            assert_eq!(step.actions, [ScenarioAction::SetOutage { is_out }]);
        }
        // A silent cluster may have answered 20 s ago.
        let demoted = crate::cluster_set::LIMITS.demote_after + 10;
        assert!(steps[1].wait.as_secs() > u64::try_from(demoted).expect("positive"));
    }

    #[test]
    fn scaling_returns_to_the_initial_size() {
        let spec = ClusterSpec::generate(Size::default(), 2);
        for step in steps_of(Scenario::Scale, 2).iter().skip(1).step_by(2) {
            let [ScenarioAction::Scale { deployment, n_replicas }] = &step.actions[..] else {
                panic!("{step:?}")
            };
            let plan = spec.services.iter().find(|one| one.name == *deployment);
            assert_eq!(plan.map(|plan| plan.n_replicas), Some(*n_replicas));
        }
    }

    #[test]
    fn a_cluster_without_deployments_has_no_steps_about_them() {
        let spec = ClusterSpec::empty(Size::default(), 1);
        for scenario in Scenario::ALL {
            let has_step = scenario.step(&spec, 1, 0).is_some();
            let expects = !scenario.needs_workload() && scenario != Scenario::Idle;
            assert_eq!(has_step, expects, "{scenario}");
        }
    }
}
