//! Others touch what controllers own, and controllers leave alone what others own.

use serde_json::{Value, json};

use crate::pods::web_ips;
use crate::settle::Wanted;
use crate::stage::{Kind, Stage};

/// A Service with pods and one whose Endpoints are mirrored.
fn two_services(stage: &mut Stage<'_>) {
    stage.node_in("a", "zone-a");
    stage.service("web", &json!({"selector": {"app": "web"}, "ports": [{"port": 80}]}));
    stage.web_pods(1..=3, &["a"]);
    stage.service("db", &json!({"ports": [{"port": 5432}]}));
    stage.create(
        Kind::Endpoints,
        &json!({
            "metadata": {"name": "db"},
            "subsets": [{"addresses": [{"ip": "192.168.0.1"}], "ports": [{"port": 5432}]}],
        }),
    );
    settle(stage, "at first");
}

fn settle(stage: &mut Stage<'_>, moment: &str) {
    stage.settle(
        moment,
        &[
            Wanted::slices("web", &web_ips(1..=3)),
            Wanted::endpoints("web", &web_ips(1..=3)),
            Wanted::slices("db", "192.168.0.1"),
            Wanted::endpoints("db", "192.168.0.1"),
            Wanted::lacks(&["10.66.6.6"]),
            Wanted::lacks(&[r#""mischief""#]),
        ],
    );
}

const MISCHIEF: &str = "10.66.6.6";

pub fn edited(stage: &mut Stage<'_>) {
    two_services(stage);
    for service in ["web", "db"] {
        stage.edit(Kind::Slice, &stage.slice_name(service), |slice| {
            slice["endpoints"] = json!([{"addresses": [MISCHIEF], "conditions": {"ready": true}}]);
        });
    }
    settle(stage, "after slices lost their endpoints");
    for service in ["web", "db"] {
        stage.edit(Kind::Slice, &stage.slice_name(service), |slice| {
            slice["metadata"]["labels"]["mischief"] = json!("yes");
            slice["ports"] = json!([{"name": "", "port": 6666, "protocol": "TCP"}]);
        });
    }
    settle(stage, "after slices got other ports");
    stage.edit(Kind::Endpoints, "web", |endpoints| {
        endpoints["subsets"][0]["addresses"] = json!([{ "ip": MISCHIEF }]);
    });
    // Upstream looks at Endpoints that were edited when something else makes it sync.
    stage.unready_and_back(&["web-1"]);
    settle(stage, "after Endpoints were edited");
}

pub fn deleted(stage: &mut Stage<'_>) {
    two_services(stage);
    for service in ["web", "db"] {
        stage.delete(Kind::Slice, &stage.slice_name(service));
    }
    settle(stage, "after slices were deleted");
    stage.delete(Kind::Endpoints, "web");
    settle(stage, "after Endpoints were deleted");
    for service in ["web", "db"] {
        stage.delete(Kind::Slice, &stage.slice_name(service));
    }
    stage.delete(Kind::Endpoints, "web");
    settle(stage, "after everything was deleted");
}

/// A slice by another controller, one by nobody, and one that only claims to be ours.
pub fn slices_of_others(stage: &mut Stage<'_>) {
    two_services(stage);
    let slice = |name: &str, address: &str, managed_by: Value| {
        json!({
            "metadata": {"name": name, "labels": {
                "kubernetes.io/service-name": "web",
                "endpointslice.kubernetes.io/managed-by": managed_by,
            }},
            "addressType": "IPv4",
            "endpoints": [{"addresses": [address]}],
            "ports": [{"port": 80}],
        })
    };
    stage.create(Kind::Slice, &slice("other", "10.50.0.1", json!("example.com")));
    stage.create(Kind::Slice, &slice("nobody", "10.50.0.2", Value::Null));
    let claimed = json!("endpointslice-controller.k8s.io");
    stage.create(Kind::Slice, &slice("claimed", "10.50.0.3", claimed));
    stage.unready_and_back(&["web-1"]);
    let all = format!("{} 10.50.0.1 10.50.0.2", web_ips(1..=3));
    stage.settle("with slices of others", &[Wanted::slices("web", &all)]);
}

/// Somebody holds slices with a finalizer: one is deleted alone, one goes with its Service. What is
/// published between the deletion and the release is in `tests/beyond.rs`: upstream waits.
pub fn finalizer_on_a_slice(stage: &mut Stage<'_>) {
    two_services(stage);
    let held = stage.slice_name("web");
    let hold = |by: Value| json!({"metadata": {"finalizers": by}});
    stage.merge(Kind::Slice, &held, &hold(json!(["example.com/held"])));
    settle(stage, "while it is held");
    stage.gone("web-3");
    stage.settle(
        "after a pod went",
        &[
            Wanted::slices("web", &web_ips(1..=2)),
            Wanted::endpoints("web", &web_ips(1..=2)),
            Wanted::shows(&["slices of [2]", "example.com/held"]),
        ],
    );
    stage.delete(Kind::Slice, &held);
    stage.merge(Kind::Slice, &held, &hold(Value::Null));
    stage.settle(
        "after it was deleted and let go",
        &[Wanted::slices("web", &web_ips(1..=2)), Wanted::lacks(&["deleting"])],
    );
    let held = stage.slice_name("web");
    stage.merge(Kind::Slice, &held, &hold(json!(["example.com/held"])));
    stage.delete(Kind::Service, "web");
    stage.settle(
        "after its Service was deleted",
        &[
            Wanted::no_slices("web"),
            Wanted::no_endpoints("web"),
            Wanted::shows(&["deleting", "example.com/held"]),
        ],
    );
    stage.service("web", &json!({"selector": {"app": "web"}, "ports": [{"port": 80}]}));
    stage.settle(
        "after its Service came back",
        &[
            Wanted::slices("web", &web_ips(1..=2)),
            Wanted::endpoints("web", &web_ips(1..=2)),
            Wanted::shows(&["deleting", "example.com/held"]),
        ],
    );
    stage.merge(Kind::Slice, &held, &hold(Value::Null));
    stage.settle(
        "after it was let go too",
        &[Wanted::slices("web", &web_ips(1..=2)), Wanted::lacks(&["deleting"])],
    );
}
