//! Nodes that are created late or change their zone.

use std::time::Duration;

use serde_json::json;

use crate::convergence::Expected;
use crate::pods::web_ips;
use crate::test_namespace::{Kind, TestNamespace};

/// A pod on an unknown node is in Endpoints and in no slice. Upstream retries with exponential
/// back-off, so the scenario changes a pod once the node exists.
pub fn node_appears_late(ns: &mut TestNamespace<'_>) {
    ns.node_in("a", "zone-a");
    ns.service("web", &json!({"selector": {"app": "web"}, "ports": [{"port": 80}]}));
    ns.web_pods(1..=4, &["a", "late"]);
    ns.converge(
        "before it appears",
        &[
            Expected::slices("web", "10.0.0.3 10.0.0.5"),
            Expected::endpoints("web", &web_ips(1..=4)),
        ],
    );
    ns.pause(Duration::from_secs(1));
    ns.node_in("late", "zone-b");
    ns.converge_after_sync(
        "after it appeared",
        &[
            Expected::slices("web", &web_ips(1..=4)),
            Expected::endpoints("web", &web_ips(1..=4)),
            Expected::shows(&["10.0.0.2", "zone-b"]),
        ],
        |ns| ns.unready_and_back(&["web-1"]),
    );
}

/// Upstream applies a new zone at the next sync, so the scenario changes each pod afterwards.
pub fn zone_label_changes(ns: &mut TestNamespace<'_>) {
    ns.node_in("a", "zone-a");
    ns.node("b", &json!({}));
    ns.service("web", &json!({"selector": {"app": "web"}, "ports": [{"port": 80}]}));
    ns.web_pods(1..=4, &["a", "b"]);
    ns.converge("with one zone", &[Expected::slices("web", &web_ips(1..=4))]);
    for (node, zone, checkpoint) in [
        ("b", json!("zone-b"), "after one got a zone"),
        ("a", json!("zone-c"), "after one moved"),
        ("b", json!(null), "after one lost its zone"),
    ] {
        let labels = json!({"metadata": {"labels": {"topology.kubernetes.io/zone": zone}}});
        ns.merge(Kind::Node, &ns.node_name(node), &labels);
        let mut expected = vec![Expected::slices("web", &web_ips(1..=4))];
        match zone.as_str() {
            Some(zone) => expected.push(Expected::shows(&["nodeName", zone])),
            None => expected.push(Expected::lacks(&["zone-b"])),
        }
        ns.converge_after_sync(checkpoint, &expected, |ns| {
            ns.unready_and_back(&["web-1", "web-2"]);
        });
    }
}
