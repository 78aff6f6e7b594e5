//! Nodes that come late and move.

use std::time::Duration;

use serde_json::json;

use crate::pods::web_ips;
use crate::settle::Wanted;
use crate::stage::{Kind, Stage};

/// Until its node is known a pod is in Endpoints and in no slice. Upstream tries again after a time that
/// doubles with each failure, so a pod is touched once the node is there.
pub fn node_appears_late(stage: &mut Stage<'_>) {
    stage.node_in("a", "zone-a");
    stage.service("web", &json!({"selector": {"app": "web"}, "ports": [{"port": 80}]}));
    stage.web_pods(1..=4, &["a", "late"]);
    stage.settle(
        "before it appears",
        &[Wanted::slices("web", "10.0.0.3 10.0.0.5"), Wanted::endpoints("web", &web_ips(1..=4))],
    );
    stage.pause(Duration::from_secs(1));
    stage.node_in("late", "zone-b");
    stage.pause(Duration::from_secs(2));
    stage.unready_and_back(&["web-1"]);
    stage.settle(
        "after it appeared",
        &[
            Wanted::slices("web", &web_ips(1..=4)),
            Wanted::endpoints("web", &web_ips(1..=4)),
            Wanted::shows(&["10.0.0.2", "zone-b"]),
        ],
    );
}

/// Upstream looks at zones when something else makes it sync, so each pod is touched afterwards.
pub fn zone_label_changes(stage: &mut Stage<'_>) {
    stage.node_in("a", "zone-a");
    stage.node("b", &json!({}));
    stage.service("web", &json!({"selector": {"app": "web"}, "ports": [{"port": 80}]}));
    stage.web_pods(1..=4, &["a", "b"]);
    stage.settle("with one zone", &[Wanted::slices("web", &web_ips(1..=4))]);
    for (node, zone, moment) in [
        ("b", json!("zone-b"), "after one got a zone"),
        ("a", json!("zone-c"), "after one moved"),
        ("b", json!(null), "after one lost its zone"),
    ] {
        let labels = json!({"metadata": {"labels": {"topology.kubernetes.io/zone": zone}}});
        stage.merge(Kind::Node, &stage.node_name(node), &labels);
        // Controllers watch nodes and pods apart: the node must be known before the pods change.
        stage.pause(Duration::from_secs(2));
        stage.unready_and_back(&["web-1", "web-2"]);
        let mut wanted = vec![Wanted::slices("web", &web_ips(1..=4))];
        match zone.as_str() {
            Some(zone) => wanted.push(Wanted::shows(&["nodeName", zone])),
            None => wanted.push(Wanted::lacks(&["zone-b"])),
        }
        stage.settle(moment, &wanted);
    }
}
