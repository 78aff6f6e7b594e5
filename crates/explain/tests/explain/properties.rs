//! Statements about random worlds.

use std::collections::BTreeSet;

use endpointd_explain::{Findings, Layer, Level};
use endpointd_model::{Controller, Key};
use endpointd_plan::{CarriedState, ExclusionReason, Settings};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::fixture::{World, text};

/// One random pod: its state, labels, node, and port name.
#[derive(Clone, Debug)]
struct RandomPod {
    state: usize,
    labels: usize,
    node: usize,
    port: usize,
    is_terminating: bool,
}

#[derive(Clone, Debug)]
struct RandomWorld {
    pods: Vec<RandomPod>,
    service: usize,
    named_target: bool,
    publish_not_ready: bool,
    is_published: bool,
    deleting: bool,
}

fn random_pod() -> impl Strategy<Value = RandomPod> {
    (0..10_usize, 0..7_usize, 0..4_usize, 0..3_usize, prop::bool::weighted(0.15)).prop_map(
        |(state, labels, node, port, is_terminating)| RandomPod {
            state,
            labels,
            node,
            port,
            is_terminating,
        },
    )
}

fn random_world() -> impl Strategy<Value = RandomWorld> {
    let flags =
        (any::<bool>(), prop::bool::weighted(0.2), any::<bool>(), prop::bool::weighted(0.1));
    (vec(random_pod(), 0..8), 0..5_usize, flags).prop_map(|(pods, service, flags)| {
        let (named_target, publish_not_ready, is_published, deleting) = flags;
        RandomWorld { pods, service, named_target, publish_not_ready, is_published, deleting }
    })
}

const LABELS: [&str; 7] = ["web", "web", "web", "webb", "Web", "db", "web-2"];

fn status(state: usize, n: usize) -> Value {
    let ip = format!("10.0.0.{}", n + 1);
    let not_ready = json!([{"type": "Ready", "status": "False"}]);
    let container = |state: Value| json!([{"name": "app", "ready": false, "state": state}]);
    match state {
        0..=2 => json!({}),
        3 => json!({"phase": "Failed"}),
        4 => json!({"phase": "Succeeded"}),
        5 => json!({"phase": "Pending", "podIP": null, "podIPs": null, "conditions": []}),
        6 => {
            json!({"conditions": not_ready, "containerStatuses": container(json!({"running": {}}))})
        }
        7 => json!({
            "conditions": not_ready,
            "containerStatuses": container(json!({"waiting": {"reason": "CrashLoopBackOff"}})),
        }),
        8 => json!({"podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}]}),
        _ => json!({"podIP": ip, "podIPs": [{"ip": "fd00::1"}]}),
    }
}

impl RandomWorld {
    fn build(&self) -> World {
        let mut world =
            World::parse("Node n0\nNode n1\nService other {spec: {selector: {app: db}}}");
        let target = if self.named_target { json!("http") } else { json!(8080) };
        let families = match self.service {
            0 => json!(["IPv4", "IPv6"]),
            1 => json!(["IPv6"]),
            _ => json!(["IPv4"]),
        };
        let deleted = self.deleting.then_some("2026-01-01T11:00:00Z");
        let service = json!({
            "metadata": {"deletionTimestamp": deleted},
            "spec": {
                "ports": [{"port": 80, "targetPort": target, "protocol": "TCP"}],
                "ipFamilies": families,
                "publishNotReadyAddresses": self.publish_not_ready,
            },
        });
        world.add("Service", "web", &service);
        for (n, pod) in self.pods.iter().enumerate() {
            world.add("Pod", &format!("pod-{n}"), &pod.fields(n));
        }
        world.objects.complete("Node");
        if self.is_published {
            world.publish();
        }
        world
    }
}

impl RandomPod {
    fn fields(&self, n: usize) -> Value {
        let node = ["n0", "n1", "gone", ""][self.node];
        let node = (!node.is_empty()).then_some(node);
        let port = ["http", "htttp", "metrics"][self.port];
        let deleted = self.is_terminating.then_some("2026-01-01T12:00:10Z");
        json!({
            "metadata": {"labels": {"app": LABELS[self.labels]}, "deletionTimestamp": deleted},
            "spec": {
                "nodeName": node,
                "containers": [{
                    "name": "app",
                    "ports": [{"name": port, "containerPort": 8080, "protocol": "TCP"}],
                }],
            },
            "status": status(self.state, n),
        })
    }
}

/// The pods with a finding about why the plan does not publish them as ready.
fn explained_pods(explained: &Findings) -> BTreeSet<String> {
    let about_pods = explained.findings.iter().filter(|one| {
        one.object.kind == "Pod" && one.code.layer() == Layer::Plan && !is_near_miss(one)
    });
    about_pods.map(|one| one.object.name.clone()).collect()
}

fn is_near_miss(finding: &endpointd_explain::Finding) -> bool {
    (103..=106).contains(&finding.code.number())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn every_chosen_pod_is_ready_or_has_a_finding(random in random_world()) {
        let world = random.build();
        let explained = world.explain("svc/web");
        let ready: BTreeSet<String> =
            explained.endpoints.iter().map(|one| one.pod.clone()).collect();
        let with_finding = explained_pods(&explained);
        let cluster = world.objects.cluster();
        let service = &cluster.services[&Key::new("shop", "web")];
        let chosen = cluster.pods.values().filter(|pod| service.selector.selects(&pod.labels));
        for pod in chosen {
            let (is_ready, is_explained) =
                (ready.contains(&*pod.name), with_finding.contains(&*pod.name));
            prop_assert!(is_ready != is_explained, "{}: {}", pod.name, text(&explained));
        }
        prop_assert!(ready.is_disjoint(&with_finding));
    }

    #[test]
    fn the_code_agrees_with_the_reason_of_the_plan(random in random_world()) {
        let world = random.build();
        let explained = world.explain("svc/web");
        let key = Key::new("shop", "web");
        let carried = CarriedState::default();
        let plan =
            world.objects.cluster().plan(Controller::Slices, &key, &carried, &Settings::default());
        let ready: BTreeSet<&str> = explained.endpoints.iter().map(|one| &*one.pod).collect();
        for one in plan.excluded_pods.iter().filter(|one| !ready.contains(&*one.pod)) {
            let reasons = plan.excluded_pods.iter().filter(|other| other.pod == one.pod);
            let codes: Vec<u16> =
                reasons.flat_map(|one| codes_of(one.reason)).copied().collect();
            let found = explained.findings.iter().any(|finding| {
                finding.object.name == *one.pod && codes.contains(&finding.code.number())
            });
            // Excluded in one family, published in the other.
            let is_published = explained.findings.iter().any(|finding| {
                finding.object.name == *one.pod
                    && [206, 207, 301, 303, 305, 401].contains(&finding.code.number())
            });
            prop_assert!(found || is_published, "{} {:?}: {}", one.pod, one.reason, text(&explained));
        }
    }

    #[test]
    fn near_misses_never_suggest_a_label_that_the_pod_has(random in random_world()) {
        let world = random.build();
        for finding in world.explain("svc/web").findings.iter().filter(|one| is_near_miss(one)) {
            let Some(command) = &finding.command else { continue };
            let words: Vec<&str> = command.split(' ').collect();
            let (name, label) = (words[5], words[6]);
            let pod = &world.objects.cluster().pods[&Key::new("shop", name)];
            let (key, value) = label.split_once('=').expect("a label");
            prop_assert!(!pod.labels.has(key, value), "{command}");
        }
    }

    #[test]
    fn a_published_world_has_no_difference_and_the_order_of_findings_is_by_level(random in random_world()) {
        let mut random = random;
        random.is_published = true;
        random.deleting = false;
        let explained = random.build().explain("svc/web");
        let levels: Vec<Level> = explained.findings.iter().map(|one| one.level).collect();
        prop_assert!(levels.is_sorted(), "{}", text(&explained));
        prop_assert!(
            explained.findings.iter().all(|one| one.code.number() != 802),
            "{}",
            text(&explained)
        );
    }
}

fn codes_of(reason: ExclusionReason) -> &'static [u16] {
    match reason {
        ExclusionReason::Failed => &[203],
        ExclusionReason::Succeeded => &[204],
        ExclusionReason::NoAddress => &[201, 202],
        ExclusionReason::NoAddressOfFamily(_) => &[501],
        ExclusionReason::InvalidAddress(_) => &[210],
        ExclusionReason::Terminating => &[206, 207],
        ExclusionReason::NotScheduled => &[201],
        ExclusionReason::NodeNotFound => &[205],
        ExclusionReason::NoPort => &[401, 402],
        ExclusionReason::ServiceWithoutPorts => &[405],
        ExclusionReason::TooManyPorts => &[404],
        ExclusionReason::OverCapacity => &[801],
    }
}
