//! Hints, and a Service with 1,500 endpoints.

use std::time::Duration;

use serde_json::json;

use crate::convergence::Expected;
use crate::pods::{web_ip, web_ips};
use crate::test_namespace::{Kind, TestNamespace};

pub fn prefer_close(ns: &mut TestNamespace<'_>) {
    distributed(ns, "PreferClose");
}

pub fn prefer_same_zone(ns: &mut TestNamespace<'_>) {
    distributed(ns, "PreferSameZone");
}

pub fn prefer_same_node(ns: &mut TestNamespace<'_>) {
    distributed(ns, "PreferSameNode");
}

/// Hints appear, follow readiness, and are removed with the field.
fn distributed(ns: &mut TestNamespace<'_>, distribution: &str) {
    ns.node_in("a", "zone-a");
    ns.node_in("b", "zone-b");
    ns.node("zoneless", &json!({}));
    ns.service("web", &json!({
        "selector": {"app": "web"}, "ports": [{"port": 80}], "trafficDistribution": distribution,
    }));
    ns.web_pods(1..=6, &["a", "b", "zoneless"]);
    ns.unready("web-6");
    let all = format!("{} {}!", web_ips(1..=5), web_ip(6));
    let hinted = Expected::shows(&[r#""hints""#]);
    ns.converge("with hints", &[Expected::slices("web", &all), hinted.clone()]);
    ns.ready("web-6");
    ns.converge("with one more", &[Expected::slices("web", &web_ips(1..=6)), hinted.clone()]);
    ns.merge(Kind::Service, "web", &json!({"spec": {"trafficDistribution": null}}));
    ns.converge("without", &[Expected::lacks(&[r#""hints""#])]);
    ns.merge(Kind::Service, "web", &json!({"spec": {"trafficDistribution": distribution}}));
    ns.converge("with hints again", &[Expected::slices("web", &web_ips(1..=6)), hinted]);
}

/// The only scenario with ready nodes, because topology counts all ready nodes of a cluster. The
/// zones are balanced: otherwise upstream chooses at random which endpoints move to another zone.
pub fn topology_annotation(ns: &mut TestNamespace<'_>) {
    ns.node_in("a", "zone-a");
    ns.node_in("b", "zone-b");
    ["a", "b"].iter().for_each(|node| ns.ready_node(node, "4"));
    ns.pause(Duration::from_secs(1));
    ns.create(
        Kind::Service,
        &json!({
            "metadata": {
                "name": "web", "annotations": {"service.kubernetes.io/topology-mode": "Auto"},
            },
            "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
        }),
    );
    let nodes = ["a", "b"];
    let hinted = |ip: usize, zone: &str| {
        Expected::shows(&[&web_ip(ip), r#""hints""#, &format!(r#"{{"name":"{zone}"}}"#)])
    };
    ns.web_pods(1..=1, &nodes);
    let too_few = [Expected::slices("web", &web_ip(1)), Expected::lacks(&[r#""hints""#])];
    ns.converge("with too few endpoints", &too_few);
    ns.web_pods(2..=6, &nodes);
    ns.converge(
        "with enough",
        &[
            Expected::slices("web", &web_ips(1..=6)),
            hinted(1, "zone-b"),
            hinted(2, "zone-a"),
            hinted(6, "zone-a"),
        ],
    );
    // Without ready nodes in a zone all hints are removed at the next sync.
    ns.merge_status(Kind::Node, &ns.node_name("b"), &json!({"conditions": []}));
    ns.converge_after_sync(
        "with one zone",
        &[Expected::slices("web", &web_ips(1..=6)), Expected::lacks(&[r#""hints""#])],
        |ns| ns.unready_and_back(&["web-1"]),
    );
    ns.ready_node("b", "4");
    ns.converge_after_sync(
        "with two zones again",
        &[Expected::slices("web", &web_ips(1..=6)), hinted(1, "zone-b"), hinted(2, "zone-a")],
        |ns| ns.unready_and_back(&["web-1"]),
    );
    let off = json!({"metadata": {"annotations": {"service.kubernetes.io/topology-mode": null}}});
    ns.merge(Kind::Service, "web", &off);
    ns.converge("with the annotation removed", &[Expected::lacks(&[r#""hints""#])]);
}

/// Fifteen full slices, and Endpoints truncated to 1,000 addresses. The Service is created last, so
/// that one sync packs all endpoints; otherwise the packing depends on timing.
pub fn fifteen_hundred_endpoints(ns: &mut TestNamespace<'_>) {
    let nodes = ["a", "b", "c"];
    nodes.iter().for_each(|node| ns.node_in(node, &format!("zone-{node}")));
    let numbers: Vec<usize> = (1..=1500).collect();
    ns.many_web_pods(&numbers, &nodes);
    ns.wait_until_pods_are_known();
    ns.service("web", &json!({"selector": {"app": "web"}, "ports": [{"port": 80}]}));
    let cut = Expected::shows(&["endpoints web", "over-capacity"]);
    ns.converge("at fifteen hundred", &[Expected::slices("web", &web_ips(1..=1500)), cut.clone()]);
    ns.unready("web-700");
    let others = web_ips((1..=1500).filter(|n| *n != 700));
    let expected = format!("{others} {}!", web_ip(700));
    ns.converge("with one unready", &[Expected::slices("web", &expected), cut]);
}

impl TestNamespace<'_> {
    /// Makes a node ready, so that topology counts it.
    fn ready_node(&self, name: &str, cpu: &str) {
        self.merge_status(
            Kind::Node,
            &self.node_name(name),
            &json!({
                "allocatable": {"cpu": cpu},
                "conditions": [{"type": "Ready", "status": "True"}],
            }),
        );
    }

    /// Causes a sync of the Services of these pods in every controller.
    pub fn unready_and_back(&self, pods: &[&str]) {
        pods.iter().for_each(|pod| self.unready(pod));
        self.pause(Duration::from_millis(500));
        pods.iter().for_each(|pod| self.ready(pod));
    }
}
