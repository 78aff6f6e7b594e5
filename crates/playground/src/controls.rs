//! The buttons of the page: each does one step of a scenario, or the same to one Service.

use std::collections::BTreeMap;

use endpointd_page::{Action, ActionError, Performed};

use crate::cluster_spec::{self, ClusterSpec, NAMESPACE};
use crate::playground::Workload;
use crate::scenario::{Scenario, ScenarioAction};

const OUTAGE: &str = "api-outage";
/// Images of buttons, so that they differ from those of a scenario that runs as well.
const FIRST_VERSION: u64 = 101;

const ACTIONS: [Action; 7] = [
    Action {
        name: "rollout",
        label: "Roll out",
        undo_label: None,
        description: "A Deployment gets a new image; its pods are replaced one after the other.",
        has_service: true,
        command: Some(
            "kubectl set image deployment {service} -n shop app=playground.example/{service}:next",
        ),
    },
    Action {
        name: "scale",
        label: "Scale up",
        undo_label: Some("Scale back"),
        description: "A Deployment gets two or three times as many pods, then its own number again.",
        has_service: true,
        command: Some("kubectl scale deployment {service} -n shop --replicas=30"),
    },
    Action {
        name: "flapping",
        label: "Fail probes",
        undo_label: Some("Heal probes"),
        description: "Readiness probes of some pods fail, then pass again.",
        has_service: true,
        command: Some(
            "kubectl annotate pods -n shop -l app={service} endpointd-playground/ready=false",
        ),
    },
    Action {
        name: "zone-outage",
        label: "Zone outage",
        undo_label: Some("End zone outage"),
        description: "All nodes of a zone become unreachable, then return.",
        has_service: false,
        command: None,
    },
    Action {
        name: "node-loss",
        label: "Lose a node",
        undo_label: Some("Return the node"),
        description: "A node is deleted, then created again.",
        has_service: false,
        command: None,
    },
    Action {
        name: "consent",
        label: "Withdraw consent",
        undo_label: Some("Give consent"),
        description: "The Service web permits no other namespace to publish its endpoints, then does again.",
        has_service: false,
        command: None,
    },
    Action {
        name: OUTAGE,
        label: "API outage",
        undo_label: Some("End API outage"),
        description: "The API server answers every request with an error, and cuts all watches.",
        has_service: false,
        command: None,
    },
];

/// Without Deployments, only what needs nodes alone.
pub fn actions(workload: Workload) -> Vec<Action> {
    let is_possible = |action: &Action| match workload {
        Workload::Default => true,
        Workload::None => !action.has_service && action.name != Scenario::Consent.name(),
    };
    ACTIONS.into_iter().filter(is_possible).collect()
}

/// How often each button was pressed, by action and Service.
#[derive(Debug, Default)]
pub struct Controls {
    n_presses: BTreeMap<(String, Option<String>), u64>,
    n_rollouts: u64,
}

/// What a press of a button does.
#[derive(Debug)]
pub struct Pressed {
    pub performed: Performed,
    pub effect: Effect,
}

#[derive(Debug)]
pub enum Effect {
    Actions(Vec<ScenarioAction>),
    /// Of the API server; false ends it.
    Outage(bool),
}

impl Controls {
    pub fn press(
        &mut self,
        spec: &ClusterSpec,
        seed: u64,
        action: &str,
        service: Option<&str>,
    ) -> Result<Pressed, ActionError> {
        let known = ACTIONS.iter().find(|one| one.name == action);
        let known = known.ok_or(ActionError::UnknownAction)?;
        let service = service.filter(|_| known.has_service);
        let key = (action.to_owned(), service.map(ToOwned::to_owned));
        let n = self.n_presses.get(&key).copied().unwrap_or_default();
        let (caption, effect) = match service {
            _ if action == OUTAGE => outage(n),
            Some(service) => self.of_service(spec, action, service, n)?,
            None => {
                let scenario = Scenario::named(action).ok_or(ActionError::UnknownAction)?;
                let step = scenario.step(spec, seed, n).ok_or_else(|| {
                    ActionError::NotPossible("the cluster has no Deployments".to_owned())
                })?;
                (step.caption, Effect::Actions(step.actions))
            }
        };
        self.n_presses.insert(key, n + 1);
        let commands = match &effect {
            Effect::Actions(actions) => actions.iter().filter_map(command).collect(),
            Effect::Outage(_) => Vec::new(),
        };
        let is_undone_next = known.undo_label.is_some() && n.is_multiple_of(2);
        Ok(Pressed { performed: Performed { caption, commands, is_undone_next }, effect })
    }

    fn of_service(
        &mut self,
        spec: &ClusterSpec,
        action: &str,
        service: &str,
        n: u64,
    ) -> Result<(String, Effect), ActionError> {
        let mut deployments = spec.deployments().into_iter();
        let plan = deployments.find(|one| one.name == service).ok_or_else(|| {
            ActionError::NotPossible(format!("Service {service} has no Deployment"))
        })?;
        let deployment = plan.name.clone();
        let is_first = n.is_multiple_of(2);
        let (caption, action) = match action {
            "rollout" => {
                let version = FIRST_VERSION + self.n_rollouts;
                self.n_rollouts += 1;
                let caption = format!("rollout of {service} to v{version}");
                (caption, ScenarioAction::NewImage { deployment, version })
            }
            "scale" => {
                let n_replicas = if is_first { plan.n_replicas * 2 } else { plan.n_replicas };
                let caption = format!("{service} is scaled to {n_replicas}");
                (caption, ScenarioAction::Scale { deployment, n_replicas })
            }
            "flapping" => {
                let n_pods = if is_first { plan.n_replicas.div_ceil(3) } else { 0 };
                let caption = match is_first {
                    true => format!("probes fail on {n_pods} pods of {service}"),
                    false => format!("probes recover on all pods of {service}"),
                };
                (caption, ScenarioAction::FailProbes { deployment, n_pods })
            }
            _ => return Err(ActionError::UnknownAction),
        };
        Ok((caption, Effect::Actions(vec![action])))
    }
}

fn outage(n: u64) -> (String, Effect) {
    match n.is_multiple_of(2) {
        true => ("the API server answers with errors".to_owned(), Effect::Outage(true)),
        false => ("the API server answers again".to_owned(), Effect::Outage(false)),
    }
}

/// The command of kubectl that does the same, if there is one.
fn command(action: &ScenarioAction) -> Option<String> {
    Some(match action {
        ScenarioAction::Scale { deployment, n_replicas } => {
            format!("kubectl scale deployment {deployment} -n {NAMESPACE} --replicas={n_replicas}")
        }
        ScenarioAction::NewImage { deployment, version } => {
            let image = cluster_spec::image(deployment, *version);
            format!("kubectl set image deployment {deployment} -n {NAMESPACE} app={image}")
        }
        ScenarioAction::FailProbes { deployment, n_pods: 0 } => format!(
            "kubectl annotate pods -n {NAMESPACE} -l app={deployment} endpointd-playground/ready-"
        ),
        ScenarioAction::FailProbes { deployment, n_pods } => format!(
            "kubectl annotate -n {NAMESPACE} $(kubectl get pods -n {NAMESPACE} -l app={deployment} \
             -o name | head -{n_pods}) endpointd-playground/ready=false"
        ),
        ScenarioAction::DeleteNode { node } => format!("kubectl delete node {node}"),
        ScenarioAction::SetConsent { service, to } => format!(
            "kubectl annotate service {service} -n {NAMESPACE} --overwrite \
             endpointd/endpoints-to={to}"
        ),
        ScenarioAction::StopNode { .. }
        | ScenarioAction::SetOutage { .. }
        | ScenarioAction::StartNode { .. }
        | ScenarioAction::AddNode(_) => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster_spec::Size;

    #[test]
    fn every_button_does_something_and_undoes_it() {
        let spec = ClusterSpec::generate(Size::default(), 1);
        for action in actions(Workload::Default) {
            let mut controls = Controls::default();
            for n in 0..4 {
                let pressed = controls.press(&spec, 1, action.name, None).unwrap();
                let is_undone = action.undo_label.is_some() && n % 2 == 0;
                assert_eq!(pressed.performed.is_undone_next, is_undone, "{}", action.name);
                match pressed.effect {
                    Effect::Actions(actions) => assert!(!actions.is_empty(), "{}", action.name),
                    Effect::Outage(is_out) => assert_eq!(is_out, n % 2 == 0),
                }
            }
        }
    }

    #[test]
    fn buttons_of_a_service_change_its_deployment_only() {
        let spec = ClusterSpec::generate(Size::default(), 1);
        let mut controls = Controls::default();
        let mut press = |action, service| {
            let pressed = controls.press(&spec, 1, action, Some(service));
            pressed.map(|pressed| pressed.performed.commands)
        };
        assert_eq!(
            press("rollout", "web").unwrap(),
            ["kubectl set image deployment web -n shop app=playground.example/web:v101"]
        );
        assert!(press("scale", "web").unwrap()[0].contains("deployment web -n shop --replicas="));
        assert!(press("flapping", "web").unwrap()[0].contains("ready=false"));
        assert!(press("flapping", "web").unwrap()[0].ends_with("ready-"));
        assert!(matches!(press("scale", "legacy"), Err(ActionError::NotPossible(_))));
        assert_eq!(press("earthquake", "web"), Err(ActionError::UnknownAction));
    }

    #[test]
    fn without_deployments_only_nodes_and_the_api_server_have_buttons() {
        let names: Vec<&str> = actions(Workload::None).iter().map(|action| action.name).collect();
        assert_eq!(names, ["zone-outage", "node-loss", "api-outage"]);
    }
}
