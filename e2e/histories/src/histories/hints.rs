//! Hints, and what is published when there is much of it.

use std::time::Duration;

use serde_json::json;

use crate::pods::{web_ip, web_ips};
use crate::settle::Wanted;
use crate::stage::{Kind, Stage};

pub fn prefer_close(stage: &mut Stage<'_>) {
    distributed(stage, "PreferClose");
}

pub fn prefer_same_zone(stage: &mut Stage<'_>) {
    distributed(stage, "PreferSameZone");
}

pub fn prefer_same_node(stage: &mut Stage<'_>) {
    distributed(stage, "PreferSameNode");
}

/// Hints appear, follow readiness, and go when nobody wants them any more.
fn distributed(stage: &mut Stage<'_>, distribution: &str) {
    stage.node_in("a", "zone-a");
    stage.node_in("b", "zone-b");
    stage.node("zoneless", &json!({}));
    stage.service("web", &json!({
        "selector": {"app": "web"}, "ports": [{"port": 80}], "trafficDistribution": distribution,
    }));
    stage.web_pods(1..=6, &["a", "b", "zoneless"]);
    stage.unready("web-6");
    let all = format!("{} {}!", web_ips(1..=5), web_ip(6));
    let hinted = Wanted::shows(&[r#""hints""#]);
    stage.settle("with hints", &[Wanted::slices("web", &all), hinted.clone()]);
    stage.ready("web-6");
    stage.settle("with one more", &[Wanted::slices("web", &web_ips(1..=6)), hinted.clone()]);
    stage.merge(Kind::Service, "web", &json!({"spec": {"trafficDistribution": null}}));
    stage.settle("without", &[Wanted::lacks(&[r#""hints""#])]);
    stage.merge(Kind::Service, "web", &json!({"spec": {"trafficDistribution": distribution}}));
    stage.settle("with hints again", &[Wanted::slices("web", &web_ips(1..=6)), hinted]);
}

/// The only history whose nodes are ready: topology counts every ready node of a cluster. Its zones
/// are balanced, because upstream picks by chance which endpoints move from a zone with too many.
pub fn topology_annotation(stage: &mut Stage<'_>) {
    stage.node_in("a", "zone-a");
    stage.node_in("b", "zone-b");
    ["a", "b"].iter().for_each(|node| stage.ready_node(node, "4"));
    stage.pause(Duration::from_secs(1));
    stage.create(
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
        Wanted::shows(&[&web_ip(ip), r#""hints""#, &format!(r#"{{"name":"{zone}"}}"#)])
    };
    stage.web_pods(1..=1, &nodes);
    let too_few = [Wanted::slices("web", &web_ip(1)), Wanted::lacks(&[r#""hints""#])];
    stage.settle("with too few endpoints", &too_few);
    stage.web_pods(2..=6, &nodes);
    stage.settle(
        "with enough",
        &[
            Wanted::slices("web", &web_ips(1..=6)),
            hinted(1, "zone-b"),
            hinted(2, "zone-a"),
            hinted(6, "zone-a"),
        ],
    );
    // A zone that no longer counts takes all hints with it, once something makes both look.
    stage.merge_status(Kind::Node, &stage.node_name("b"), &json!({"conditions": []}));
    stage.pause(Duration::from_secs(2));
    stage.unready_and_back(&["web-1"]);
    stage.settle(
        "with one zone",
        &[Wanted::slices("web", &web_ips(1..=6)), Wanted::lacks(&[r#""hints""#])],
    );
    stage.ready_node("b", "4");
    stage.pause(Duration::from_secs(2));
    stage.unready_and_back(&["web-1"]);
    stage.settle(
        "with two zones again",
        &[Wanted::slices("web", &web_ips(1..=6)), hinted(1, "zone-b"), hinted(2, "zone-a")],
    );
    let off = json!({"metadata": {"annotations": {"service.kubernetes.io/topology-mode": null}}});
    stage.merge(Kind::Service, "web", &off);
    stage.settle("with the annotation removed", &[Wanted::lacks(&[r#""hints""#])]);
}

/// Fifteen full slices, and Endpoints cut at a thousand addresses. The Service comes last, so that all
/// are placed at once: how they are placed otherwise is a matter of pace.
pub fn fifteen_hundred_endpoints(stage: &mut Stage<'_>) {
    let nodes = ["a", "b", "c"];
    nodes.iter().for_each(|node| stage.node_in(node, &format!("zone-{node}")));
    let numbers: Vec<usize> = (1..=1500).collect();
    stage.many_web_pods(&numbers, &nodes);
    stage.pause(Duration::from_secs(3));
    stage.service("web", &json!({"selector": {"app": "web"}, "ports": [{"port": 80}]}));
    let cut = Wanted::shows(&["endpoints web", "over-capacity"]);
    stage.settle("at fifteen hundred", &[Wanted::slices("web", &web_ips(1..=1500)), cut.clone()]);
    stage.unready("web-700");
    let others = web_ips((1..=1500).filter(|n| *n != 700));
    let wanted = format!("{others} {}!", web_ip(700));
    stage.settle("with one unready", &[Wanted::slices("web", &wanted), cut]);
}

impl Stage<'_> {
    /// A node that topology counts.
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

    /// Something that makes every controller look at the Services of these pods.
    pub fn unready_and_back(&self, pods: &[&str]) {
        pods.iter().for_each(|pod| self.unready(pod));
        self.pause(Duration::from_millis(500));
        pods.iter().for_each(|pod| self.ready(pod));
    }
}
