//! A namespace is deleted with all objects in it.

use serde_json::json;

use crate::convergence::Expected;
use crate::pods::{web_ips, web_pod};
use crate::test_namespace::{Kind, TestNamespace};

/// In a terminating namespace nothing can be created, and nothing is created again.
pub fn deleted_with_all_in_it(ns: &mut TestNamespace<'_>) {
    let namespace = ns.namespace().to_owned();
    ns.node_in("a", "zone-a");
    ns.service("web", &json!({"selector": {"app": "web"}, "ports": [{"port": 80}]}));
    ns.service("db", &json!({"ports": [{"port": 5432}]}));
    ns.create(
        Kind::Endpoints,
        &json!({
            "metadata": {"name": "db"},
            "subsets": [{"addresses": [{"ip": "192.168.0.1"}], "ports": [{"port": 5432}]}],
        }),
    );
    for n in 1..=3 {
        // A short grace period: the namespace controller retries after half of it.
        let brief = json!({"terminationGracePeriodSeconds": 2});
        ns.pod(&web_pod(n, &["a"]).spec(brief));
    }
    ns.converge(
        "before",
        &[
            Expected::slices("web", &web_ips(1..=3)),
            Expected::endpoints("web", &web_ips(1..=3)),
            Expected::slices("db", "192.168.0.1"),
        ],
    );
    ns.delete(Kind::Namespace, &namespace);
    // The namespace controller deletes other objects only when no pod is left.
    ns.converge(
        "while pods terminate",
        &[
            Expected::slices("web", "10.0.0.2!st 10.0.0.3!st 10.0.0.4!st"),
            Expected::endpoints("web", ""),
        ],
    );
    (1..=3).for_each(|n| ns.gone(&format!("web-{n}")));
    let nothing = [
        Expected::no_slices("web"),
        Expected::no_endpoints("web"),
        Expected::no_slices("db"),
        Expected::no_endpoints("db"),
    ];
    ns.converge("after the last pod", &nothing);
    ns.wait_until_gone(Kind::Namespace, &namespace);
    ns.create(Kind::Namespace, &json!({"metadata": {"name": namespace}}));
    ns.service("web", &json!({"selector": {"app": "web"}, "ports": [{"port": 80}]}));
    ns.pod(&web_pod(7, &["a"]));
    ns.converge(
        "in its successor",
        &[Expected::slices("web", &web_ips(7..=7)), Expected::endpoints("web", &web_ips(7..=7))],
    );
}
