//! Services whose selector or type changes.

use serde_json::json;

use crate::convergence::Expected;
use crate::pods::{Pod, web_ips};
use crate::test_namespace::{Kind, TestNamespace};

/// Without a selector the published objects stay, and Endpoints are mirrored.
pub fn selector_removed_and_added(ns: &mut TestNamespace<'_>) {
    ns.node_in("a", "zone-a");
    ns.service("web", &json!({"selector": {"app": "web"}, "ports": [{"port": 80}]}));
    ns.web_pods(1..=2, &["a"]);
    ns.converge(
        "with a selector",
        &[Expected::slices("web", &web_ips(1..=2)), Expected::endpoints("web", &web_ips(1..=2))],
    );
    ns.merge(Kind::Service, "web", &json!({"spec": {"selector": null}}));
    ns.converge(
        "without",
        &[
            Expected::shows(&["endpointslicemirroring-controller.k8s.io"]),
            Expected::endpoints("web", &web_ips(1..=2)),
        ],
    );
    ns.web_pods(3..=3, &["a"]);
    ns.gone("web-1");
    ns.converge("while pods come and go", &[Expected::endpoints("web", &web_ips(1..=2))]);
    ns.merge(Kind::Service, "web", &json!({"spec": {"selector": {"app": "web"}}}));
    ns.converge(
        "with a selector again",
        &[
            Expected::slices("web", &web_ips(2..=3)),
            Expected::endpoints("web", &web_ips(2..=3)),
            Expected::lacks(&["endpointslicemirroring-controller.k8s.io"]),
        ],
    );
}

pub fn selector_changed(ns: &mut TestNamespace<'_>) {
    ns.node_in("a", "zone-a");
    ns.service("web", &json!({"selector": {"app": "web"}, "ports": [{"port": 80}]}));
    ns.web_pods(1..=2, &["a"]);
    ns.pod(&Pod::new("green", "10.0.5.1").labelled(json!({"app": "green"})));
    ns.converge(
        "before",
        &[Expected::slices("web", &web_ips(1..=2)), Expected::endpoints("web", &web_ips(1..=2))],
    );
    ns.merge(Kind::Service, "web", &json!({"spec": {"selector": {"app": "green"}}}));
    ns.converge(
        "after",
        &[Expected::slices("web", "10.0.5.1"), Expected::endpoints("web", "10.0.5.1")],
    );
}

/// Published objects stay while the Service is of type ExternalName.
pub fn external_name_back_and_forth(ns: &mut TestNamespace<'_>) {
    ns.node_in("a", "zone-a");
    ns.service("web", &json!({"selector": {"app": "web"}, "ports": [{"port": 80}]}));
    ns.service("alias", &json!({"type": "ExternalName", "externalName": "example.com"}));
    ns.web_pods(1..=2, &["a"]);
    ns.converge(
        "at first",
        &[
            Expected::slices("web", &web_ips(1..=2)),
            Expected::endpoints("web", &web_ips(1..=2)),
            Expected::no_slices("alias"),
            Expected::no_endpoints("alias"),
        ],
    );
    let away = json!({"type": "ExternalName", "externalName": "example.com", "clusterIP": null,
        "clusterIPs": null, "ipFamilies": null, "ipFamilyPolicy": null});
    ns.merge(Kind::Service, "web", &json!({ "spec": away }));
    let back = json!({"type": "ClusterIP", "externalName": null, "ports": [{"port": 80}],
        "selector": {"app": "web"}});
    ns.merge(Kind::Service, "alias", &json!({ "spec": back }));
    ns.converge(
        "exchanged",
        &[
            Expected::slices("alias", &web_ips(1..=2)),
            Expected::endpoints("alias", &web_ips(1..=2)),
        ],
    );
    ns.gone("web-2");
    ns.converge(
        "with one pod less",
        &[
            Expected::slices("alias", &web_ips(1..=1)),
            Expected::endpoints("alias", &web_ips(1..=1)),
        ],
    );
    ns.merge(Kind::Service, "web", &json!({ "spec": back }));
    ns.converge(
        "back",
        &[Expected::slices("web", &web_ips(1..=1)), Expected::endpoints("web", &web_ips(1..=1))],
    );
}
