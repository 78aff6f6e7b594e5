//! Services are created, scaled, rolled out, and deleted.

use serde_json::json;

use crate::convergence::Expected;
use crate::pods::{web_ip, web_ips, web_pod};
use crate::test_namespace::{Kind, TestNamespace};

pub fn created(ns: &mut TestNamespace<'_>) {
    ns.node_in("a", "zone-a");
    ns.service("before", &json!({"selector": {"app": "web"}, "ports": [{"port": 80}]}));
    ns.service("lonely", &json!({"selector": {"app": "nobody"}, "ports": [{"port": 80}]}));
    ns.web_pods(1..=2, &["a"]);
    ns.service("after", &json!({
        "selector": {"app": "web"},
        "ports": [{"name": "http", "port": 80, "targetPort": "http", "appProtocol": "example.com/x"}],
    }));
    let both = web_ips(1..=2);
    ns.converge(
        "after creation",
        &[
            Expected::slices("before", &both),
            Expected::endpoints("before", &both),
            Expected::slices("after", &both),
            Expected::endpoints("after", &both),
            Expected::slices("lonely", ""),
            Expected::endpoints("lonely", ""),
        ],
    );
}

pub fn scaled_up_and_down(ns: &mut TestNamespace<'_>) {
    ns.node_in("a", "zone-a");
    ns.node_in("b", "zone-b");
    ns.service("web", &json!({"selector": {"app": "web"}, "ports": [{"port": 80}]}));
    let nodes = ["a", "b"];
    ns.web_pods(1..=3, &nodes);
    converge_to(ns, "at three", web_ips(1..=3));
    ns.web_pods(4..=20, &nodes);
    converge_to(ns, "at twenty", web_ips(1..=20));
    (3..=20).for_each(|n| ns.terminating(&format!("web-{n}")));
    (3..=20).for_each(|n| ns.gone(&format!("web-{n}")));
    converge_to(ns, "at two", web_ips(1..=2));
    (1..=2).for_each(|n| ns.gone(&format!("web-{n}")));
    converge_to(ns, "at none", String::new());
    ns.web_pods(1..=1, &nodes);
    converge_to(ns, "at one", web_ip(1));
}

/// Six pods are replaced one by one, without waiting for the controllers.
pub fn rolled(ns: &mut TestNamespace<'_>) {
    ns.node_in("a", "zone-a");
    ns.service(
        "web",
        &json!({
            "selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": "http"}],
        }),
    );
    ns.web_pods(1..=6, &["a"]);
    converge_to(ns, "before the roll", web_ips(1..=6));
    for n in 1..=6 {
        let new = web_pod(n + 6, &["a"]).labelled(json!({"app": "web", "version": "2"}));
        ns.pod(&new.unready());
        ns.ready(&format!("web-{}", n + 6));
        ns.terminating(&format!("web-{n}"));
        ns.unready(&format!("web-{n}"));
        ns.gone(&format!("web-{n}"));
    }
    converge_to(ns, "after the roll", web_ips(7..=12));
}

pub fn deleted(ns: &mut TestNamespace<'_>) {
    ns.node_in("a", "zone-a");
    ns.service("web", &json!({"selector": {"app": "web"}, "ports": [{"port": 80}]}));
    ns.service("other", &json!({"selector": {"app": "web"}, "ports": [{"port": 81}]}));
    ns.web_pods(1..=2, &["a"]);
    converge_to(ns, "before the deletion", web_ips(1..=2));
    ns.delete(Kind::Service, "web");
    ns.converge(
        "after the deletion",
        &[
            Expected::no_slices("web"),
            Expected::no_endpoints("web"),
            Expected::slices("other", &web_ips(1..=2)),
        ],
    );
}

/// The slices of the deleted Service are removed, those of the new one are kept.
pub fn recreated_at_once(ns: &mut TestNamespace<'_>) {
    ns.node_in("a", "zone-a");
    let spec = json!({"selector": {"app": "web"}, "ports": [{"port": 80}]});
    ns.service("web", &spec);
    ns.web_pods(1..=3, &["a"]);
    converge_to(ns, "before", web_ips(1..=3));
    for round in ["after one time", "after another time"] {
        ns.delete(Kind::Service, "web");
        ns.service("web", &spec);
        ns.converge(
            round,
            &[
                Expected::slices("web", &web_ips(1..=3)),
                Expected::endpoints("web", &web_ips(1..=3)),
                Expected::lacks(&[r#""kind":"Service""#, r#""uid":"stale""#]),
            ],
        );
    }
    ns.delete(Kind::Service, "web");
    ns.service("web", &json!({"selector": {"app": "web"}, "ports": [{"port": 90}]}));
    ns.converge(
        "with another port",
        &[
            Expected::slices("web", &web_ips(1..=3)),
            Expected::lacks(&[r#""kind":"Service""#, r#""uid":"stale""#]),
            Expected::lacks(&["slices of", r#""port":80"#]),
            Expected::shows(&["addresses", r#""port":90"#]),
        ],
    );
}

/// Labels of a Service are copied, annotations are not; reserved labels keep their values.
pub fn relabelled(ns: &mut TestNamespace<'_>) {
    ns.node_in("a", "zone-a");
    ns.service("web", &json!({"selector": {"app": "web"}, "ports": [{"port": 80}]}));
    ns.web_pods(1..=2, &["a"]);
    converge_to(ns, "without labels", web_ips(1..=2));
    ns.merge(
        Kind::Service,
        "web",
        &json!({"metadata": {
            "labels": {"team": "shop", "tier": "front"}, "annotations": {"example.com/note": "x"},
        }}),
    );
    ns.converge(
        "with labels",
        &[
            Expected::shows(&["endpoints web", r#""team":"shop""#]),
            Expected::shows(&["slices of", r#""team":"shop""#]),
        ],
    );
    ns.merge(Kind::Service, "web", &json!({"metadata": {"labels": {"tier": null}}}));
    ns.converge(
        "with one less",
        &[
            Expected::lacks(&["endpoints web", r#""tier""#]),
            Expected::lacks(&["slices of", r#""tier""#]),
        ],
    );
}

fn converge_to(ns: &mut TestNamespace<'_>, checkpoint: &str, published: String) {
    ns.converge(
        checkpoint,
        &[Expected::slices("web", &published), Expected::endpoints("web", &published)],
    );
}
