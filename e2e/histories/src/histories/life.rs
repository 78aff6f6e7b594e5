//! Services come, grow, shrink, and go.

use serde_json::json;

use crate::pods::{web_ip, web_ips, web_pod};
use crate::settle::Wanted;
use crate::stage::{Kind, Stage};

pub fn created(stage: &mut Stage<'_>) {
    stage.node_in("a", "zone-a");
    stage.service("before", &json!({"selector": {"app": "web"}, "ports": [{"port": 80}]}));
    stage.service("lonely", &json!({"selector": {"app": "nobody"}, "ports": [{"port": 80}]}));
    stage.web_pods(1..=2, &["a"]);
    stage.service("after", &json!({
        "selector": {"app": "web"},
        "ports": [{"name": "http", "port": 80, "targetPort": "http", "appProtocol": "example.com/x"}],
    }));
    let both = web_ips(1..=2);
    stage.settle(
        "after creation",
        &[
            Wanted::slices("before", &both),
            Wanted::endpoints("before", &both),
            Wanted::slices("after", &both),
            Wanted::endpoints("after", &both),
            Wanted::slices("lonely", ""),
            Wanted::endpoints("lonely", ""),
        ],
    );
}

pub fn scaled_up_and_down(stage: &mut Stage<'_>) {
    stage.node_in("a", "zone-a");
    stage.node_in("b", "zone-b");
    stage.service("web", &json!({"selector": {"app": "web"}, "ports": [{"port": 80}]}));
    let nodes = ["a", "b"];
    stage.web_pods(1..=3, &nodes);
    settle_on(stage, "at three", web_ips(1..=3));
    stage.web_pods(4..=20, &nodes);
    settle_on(stage, "at twenty", web_ips(1..=20));
    (3..=20).for_each(|n| stage.terminating(&format!("web-{n}")));
    (3..=20).for_each(|n| stage.gone(&format!("web-{n}")));
    settle_on(stage, "at two", web_ips(1..=2));
    (1..=2).for_each(|n| stage.gone(&format!("web-{n}")));
    settle_on(stage, "at none", String::new());
    stage.web_pods(1..=1, &nodes);
    settle_on(stage, "at one", web_ip(1));
}

/// Six old pods make place for six new ones, one at a time, and nobody waits for anybody.
pub fn rolled(stage: &mut Stage<'_>) {
    stage.node_in("a", "zone-a");
    stage.service(
        "web",
        &json!({
            "selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": "http"}],
        }),
    );
    stage.web_pods(1..=6, &["a"]);
    settle_on(stage, "before the roll", web_ips(1..=6));
    for n in 1..=6 {
        let new = web_pod(n + 6, &["a"]).labelled(json!({"app": "web", "version": "2"}));
        stage.pod(&new.unready());
        stage.ready(&format!("web-{}", n + 6));
        stage.terminating(&format!("web-{n}"));
        stage.unready(&format!("web-{n}"));
        stage.gone(&format!("web-{n}"));
    }
    settle_on(stage, "after the roll", web_ips(7..=12));
}

pub fn deleted(stage: &mut Stage<'_>) {
    stage.node_in("a", "zone-a");
    stage.service("web", &json!({"selector": {"app": "web"}, "ports": [{"port": 80}]}));
    stage.service("other", &json!({"selector": {"app": "web"}, "ports": [{"port": 81}]}));
    stage.web_pods(1..=2, &["a"]);
    settle_on(stage, "before the deletion", web_ips(1..=2));
    stage.delete(Kind::Service, "web");
    stage.settle(
        "after the deletion",
        &[
            Wanted::no_slices("web"),
            Wanted::no_endpoints("web"),
            Wanted::slices("other", &web_ips(1..=2)),
        ],
    );
}

/// The slices of the old Service go with it, those of the new one stay.
pub fn recreated_at_once(stage: &mut Stage<'_>) {
    stage.node_in("a", "zone-a");
    let spec = json!({"selector": {"app": "web"}, "ports": [{"port": 80}]});
    stage.service("web", &spec);
    stage.web_pods(1..=3, &["a"]);
    settle_on(stage, "before", web_ips(1..=3));
    for round in ["after one time", "after another time"] {
        stage.delete(Kind::Service, "web");
        stage.service("web", &spec);
        stage.settle(
            round,
            &[
                Wanted::slices("web", &web_ips(1..=3)),
                Wanted::endpoints("web", &web_ips(1..=3)),
                Wanted::lacks(&[r#""kind":"Service""#, r#""uid":"stale""#]),
            ],
        );
    }
    stage.delete(Kind::Service, "web");
    stage.service("web", &json!({"selector": {"app": "web"}, "ports": [{"port": 90}]}));
    stage.settle(
        "with another port",
        &[
            Wanted::slices("web", &web_ips(1..=3)),
            Wanted::lacks(&[r#""kind":"Service""#, r#""uid":"stale""#]),
            Wanted::lacks(&["slices of", r#""port":80"#]),
            Wanted::shows(&["addresses", r#""port":90"#]),
        ],
    );
}

/// Labels of a Service are copied, its annotations are not; reserved labels keep their values.
pub fn relabelled(stage: &mut Stage<'_>) {
    stage.node_in("a", "zone-a");
    stage.service("web", &json!({"selector": {"app": "web"}, "ports": [{"port": 80}]}));
    stage.web_pods(1..=2, &["a"]);
    settle_on(stage, "without labels", web_ips(1..=2));
    stage.merge(
        Kind::Service,
        "web",
        &json!({"metadata": {
            "labels": {"team": "shop", "tier": "front"}, "annotations": {"example.com/note": "x"},
        }}),
    );
    stage.settle(
        "with labels",
        &[
            Wanted::shows(&["endpoints web", r#""team":"shop""#]),
            Wanted::shows(&["slices of", r#""team":"shop""#]),
        ],
    );
    stage.merge(Kind::Service, "web", &json!({"metadata": {"labels": {"tier": null}}}));
    stage.settle(
        "with one less",
        &[
            Wanted::lacks(&["endpoints web", r#""tier""#]),
            Wanted::lacks(&["slices of", r#""tier""#]),
        ],
    );
}

fn settle_on(stage: &mut Stage<'_>, moment: &str, published: String) {
    stage
        .settle(moment, &[Wanted::slices("web", &published), Wanted::endpoints("web", &published)]);
}
