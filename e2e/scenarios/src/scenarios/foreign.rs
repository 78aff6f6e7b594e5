//! Other clients edit objects that controllers manage; controllers do not edit objects of others.

use serde_json::{Value, json};

use crate::convergence::Expected;
use crate::pods::web_ips;
use crate::test_namespace::{Kind, TestNamespace};

/// A Service with pods and one whose Endpoints are mirrored.
fn two_services(ns: &mut TestNamespace<'_>) {
    ns.node_in("a", "zone-a");
    ns.service("web", &json!({"selector": {"app": "web"}, "ports": [{"port": 80}]}));
    ns.web_pods(1..=3, &["a"]);
    ns.service("db", &json!({"ports": [{"port": 5432}]}));
    ns.create(
        Kind::Endpoints,
        &json!({
            "metadata": {"name": "db"},
            "subsets": [{"addresses": [{"ip": "192.168.0.1"}], "ports": [{"port": 5432}]}],
        }),
    );
    converge(ns, "at first");
}

fn converge(ns: &mut TestNamespace<'_>, checkpoint: &str) {
    ns.converge(
        checkpoint,
        &[
            Expected::slices("web", &web_ips(1..=3)),
            Expected::endpoints("web", &web_ips(1..=3)),
            Expected::slices("db", "192.168.0.1"),
            Expected::endpoints("db", "192.168.0.1"),
            Expected::lacks(&["10.66.6.6"]),
            Expected::lacks(&[r#""foreign""#]),
        ],
    );
}

const FOREIGN_IP: &str = "10.66.6.6";

pub fn edited(ns: &mut TestNamespace<'_>) {
    two_services(ns);
    for service in ["web", "db"] {
        ns.edit(Kind::Slice, &ns.slice_name(service), |slice| {
            slice["endpoints"] =
                json!([{"addresses": [FOREIGN_IP], "conditions": {"ready": true}}]);
        });
    }
    converge(ns, "after slices lost their endpoints");
    for service in ["web", "db"] {
        ns.edit(Kind::Slice, &ns.slice_name(service), |slice| {
            slice["metadata"]["labels"]["foreign"] = json!("yes");
            slice["ports"] = json!([{"name": "", "port": 6666, "protocol": "TCP"}]);
        });
    }
    converge(ns, "after slices got other ports");
    ns.edit(Kind::Endpoints, "web", |endpoints| {
        endpoints["subsets"][0]["addresses"] = json!([{ "ip": FOREIGN_IP }]);
    });
    // Upstream repairs edited Endpoints only when another change causes a sync.
    ns.unready_and_back(&["web-1"]);
    converge(ns, "after Endpoints were edited");
}

pub fn deleted(ns: &mut TestNamespace<'_>) {
    two_services(ns);
    for service in ["web", "db"] {
        ns.delete(Kind::Slice, &ns.slice_name(service));
    }
    converge(ns, "after slices were deleted");
    ns.delete(Kind::Endpoints, "web");
    converge(ns, "after Endpoints were deleted");
    for service in ["web", "db"] {
        ns.delete(Kind::Slice, &ns.slice_name(service));
    }
    ns.delete(Kind::Endpoints, "web");
    converge(ns, "after everything was deleted");
}

/// Slices whose managed-by label names another controller, none, and, falsely, ours.
pub fn slices_of_others(ns: &mut TestNamespace<'_>) {
    two_services(ns);
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
    ns.create(Kind::Slice, &slice("other", "10.50.0.1", json!("example.com")));
    ns.create(Kind::Slice, &slice("nobody", "10.50.0.2", Value::Null));
    let claimed = json!("endpointslice-controller.k8s.io");
    ns.create(Kind::Slice, &slice("claimed", "10.50.0.3", claimed));
    ns.unready_and_back(&["web-1"]);
    let all = format!("{} 10.50.0.1 10.50.0.2", web_ips(1..=3));
    ns.converge("with slices of others", &[Expected::slices("web", &all)]);
}

/// Two slices have a finalizer: one is deleted directly, one with its Service. The state before the
/// finalizer is removed differs from upstream: see B19 in `tests/improvements.rs`.
pub fn finalizer_on_a_slice(ns: &mut TestNamespace<'_>) {
    two_services(ns);
    let held = ns.slice_name("web");
    let hold = |by: Value| json!({"metadata": {"finalizers": by}});
    ns.merge(Kind::Slice, &held, &hold(json!(["example.com/held"])));
    converge(ns, "while it is held");
    ns.gone("web-3");
    ns.converge(
        "after a pod went",
        &[
            Expected::slices("web", &web_ips(1..=2)),
            Expected::endpoints("web", &web_ips(1..=2)),
            Expected::shows(&["slices of [2]", "example.com/held"]),
        ],
    );
    ns.delete(Kind::Slice, &held);
    ns.merge(Kind::Slice, &held, &hold(Value::Null));
    ns.converge(
        "after it was deleted and let go",
        &[Expected::slices("web", &web_ips(1..=2)), Expected::lacks(&["deleting"])],
    );
    let held = ns.slice_name("web");
    ns.merge(Kind::Slice, &held, &hold(json!(["example.com/held"])));
    ns.delete(Kind::Service, "web");
    ns.converge(
        "after its Service was deleted",
        &[
            Expected::no_slices("web"),
            Expected::no_endpoints("web"),
            Expected::shows(&["deleting", "example.com/held"]),
        ],
    );
    ns.service("web", &json!({"selector": {"app": "web"}, "ports": [{"port": 80}]}));
    ns.converge(
        "after its Service came back",
        &[
            Expected::slices("web", &web_ips(1..=2)),
            Expected::endpoints("web", &web_ips(1..=2)),
            Expected::shows(&["deleting", "example.com/held"]),
        ],
    );
    ns.merge(Kind::Slice, &held, &hold(Value::Null));
    ns.converge(
        "after it was let go too",
        &[Expected::slices("web", &web_ips(1..=2)), Expected::lacks(&["deleting"])],
    );
}
