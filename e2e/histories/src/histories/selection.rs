//! Services that change what they select.

use serde_json::json;

use crate::pods::{Pod, web_ips};
use crate::settle::Wanted;
use crate::stage::{Kind, Stage};

/// Without a selector nobody touches what was published, and Endpoints are mirrored.
pub fn selector_removed_and_added(stage: &mut Stage<'_>) {
    stage.node_in("a", "zone-a");
    stage.service("web", &json!({"selector": {"app": "web"}, "ports": [{"port": 80}]}));
    stage.web_pods(1..=2, &["a"]);
    stage.settle(
        "with a selector",
        &[Wanted::slices("web", &web_ips(1..=2)), Wanted::endpoints("web", &web_ips(1..=2))],
    );
    stage.merge(Kind::Service, "web", &json!({"spec": {"selector": null}}));
    stage.settle(
        "without",
        &[
            Wanted::shows(&["endpointslicemirroring-controller.k8s.io"]),
            Wanted::endpoints("web", &web_ips(1..=2)),
        ],
    );
    stage.web_pods(3..=3, &["a"]);
    stage.gone("web-1");
    stage.settle("while pods come and go", &[Wanted::endpoints("web", &web_ips(1..=2))]);
    stage.merge(Kind::Service, "web", &json!({"spec": {"selector": {"app": "web"}}}));
    stage.settle(
        "with a selector again",
        &[
            Wanted::slices("web", &web_ips(2..=3)),
            Wanted::endpoints("web", &web_ips(2..=3)),
            Wanted::lacks(&["endpointslicemirroring-controller.k8s.io"]),
        ],
    );
}

pub fn selector_changed(stage: &mut Stage<'_>) {
    stage.node_in("a", "zone-a");
    stage.service("web", &json!({"selector": {"app": "web"}, "ports": [{"port": 80}]}));
    stage.web_pods(1..=2, &["a"]);
    stage.pod(&Pod::new("green", "10.0.5.1").labelled(json!({"app": "green"})));
    stage.settle(
        "before",
        &[Wanted::slices("web", &web_ips(1..=2)), Wanted::endpoints("web", &web_ips(1..=2))],
    );
    stage.merge(Kind::Service, "web", &json!({"spec": {"selector": {"app": "green"}}}));
    stage.settle(
        "after",
        &[Wanted::slices("web", "10.0.5.1"), Wanted::endpoints("web", "10.0.5.1")],
    );
}

/// What was published stays while the Service is an alias.
pub fn external_name_back_and_forth(stage: &mut Stage<'_>) {
    stage.node_in("a", "zone-a");
    stage.service("web", &json!({"selector": {"app": "web"}, "ports": [{"port": 80}]}));
    stage.service("alias", &json!({"type": "ExternalName", "externalName": "example.com"}));
    stage.web_pods(1..=2, &["a"]);
    stage.settle(
        "at first",
        &[
            Wanted::slices("web", &web_ips(1..=2)),
            Wanted::endpoints("web", &web_ips(1..=2)),
            Wanted::no_slices("alias"),
            Wanted::no_endpoints("alias"),
        ],
    );
    let away = json!({"type": "ExternalName", "externalName": "example.com", "clusterIP": null,
        "clusterIPs": null, "ipFamilies": null, "ipFamilyPolicy": null});
    stage.merge(Kind::Service, "web", &json!({ "spec": away }));
    let back = json!({"type": "ClusterIP", "externalName": null, "ports": [{"port": 80}],
        "selector": {"app": "web"}});
    stage.merge(Kind::Service, "alias", &json!({ "spec": back }));
    stage.settle(
        "exchanged",
        &[Wanted::slices("alias", &web_ips(1..=2)), Wanted::endpoints("alias", &web_ips(1..=2))],
    );
    stage.gone("web-2");
    stage.settle(
        "with one pod less",
        &[Wanted::slices("alias", &web_ips(1..=1)), Wanted::endpoints("alias", &web_ips(1..=1))],
    );
    stage.merge(Kind::Service, "web", &json!({ "spec": back }));
    stage.settle(
        "back",
        &[Wanted::slices("web", &web_ips(1..=1)), Wanted::endpoints("web", &web_ips(1..=1))],
    );
}
