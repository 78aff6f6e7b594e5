//! Ports: named and numbered, of headless Services, and changing.

use serde_json::json;

use crate::pods::{Pod, web_ips};
use crate::settle::Wanted;
use crate::stage::{Kind, Stage};

pub fn headless_with_ports(stage: &mut Stage<'_>) {
    stage.node_in("a", "zone-a");
    stage.service(
        "web",
        &json!({
            "selector": {"app": "web"}, "clusterIP": "None",
            "ports": [{"name": "http", "port": 80, "targetPort": 8080}],
        }),
    );
    stage.settle("without pods", &[Wanted::slices("web", ""), Wanted::endpoints("web", "")]);
    stage.web_pods(1..=2, &["a"]);
    stage.unready_and_back(&["web-1"]);
    let both = web_ips(1..=2);
    stage.settle("with pods", &[Wanted::slices("web", &both), Wanted::endpoints("web", &both)]);
}

pub fn headless_without_ports(stage: &mut Stage<'_>) {
    stage.node_in("a", "zone-a");
    stage.service("web", &json!({"selector": {"app": "web"}, "clusterIP": "None"}));
    stage.web_pods(1..=3, &["a"]);
    stage.unready("web-3");
    let three = "10.0.0.2 10.0.0.3 10.0.0.4!";
    stage.settle("with pods", &[Wanted::slices("web", three), Wanted::endpoints("web", three)]);
    (1..=3).for_each(|n| stage.gone(&format!("web-{n}")));
    stage.settle("without pods", &[Wanted::slices("web", ""), Wanted::endpoints("web", "")]);
}

/// Each pod may mean another number by the same name, or none.
pub fn named_ports_differ(stage: &mut Stage<'_>) {
    stage.node_in("a", "zone-a");
    stage.service(
        "web",
        &json!({"selector": {"app": "web"}, "ports": [
            {"name": "http", "port": 80, "targetPort": "http"},
            {"name": "metrics", "port": 9000, "targetPort": "metrics"},
            {"name": "fixed", "port": 443, "targetPort": 8443},
        ]}),
    );
    let named = |http: u16| json!([{"name": "http", "containerPort": http}]);
    stage.pod(&Pod::new("old", "10.0.0.1").ports(named(8080)));
    stage.pod(&Pod::new("new", "10.0.0.2").ports(named(9090)));
    stage.pod(&Pod::new("bare", "10.0.0.3").ports(json!([])));
    stage.pod(&Pod::new("full", "10.0.0.4").ports(json!([
        {"name": "http", "containerPort": 8080}, {"name": "metrics", "containerPort": 9001},
    ])));
    let in_slices = "10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.4";
    // Endpoints name an address once for each different set of ports.
    let wanted = [Wanted::slices("web", in_slices), Wanted::shows(&["endpoints web"])];
    stage.settle("with four kinds of pods", &wanted);
    stage.unready("full");
    let unready = "10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.4!";
    stage.settle(
        "with one unready",
        &[Wanted::slices("web", unready), Wanted::shows(&["notReadyAddresses", "10.0.0.4"])],
    );
    stage.gone("old");
    stage.gone("full");
    stage.settle(
        "with two gone",
        &[
            Wanted::slices("web", "10.0.0.2 10.0.0.3"),
            Wanted::lacks(&["10.0.0.4"]),
            Wanted::lacks(&["10.0.0.1"]),
        ],
    );
}

pub fn ports_changed(stage: &mut Stage<'_>) {
    stage.node_in("a", "zone-a");
    let dns = json!([
        {"name": "udp", "port": 53, "protocol": "UDP"}, {"name": "tcp", "port": 53},
    ]);
    stage.service("web", &json!({"selector": {"app": "web"}, "ports": dns}));
    stage.web_pods(1..=3, &["a"]);
    let all = web_ips(1..=3);
    stage.settle(
        "with two protocols",
        &[
            Wanted::slices("web", &all),
            Wanted::endpoints("web", &all),
            Wanted::shows(&["slices of", r#""protocol":"UDP""#]),
        ],
    );
    let ports = json!([{"name": "http", "port": 80, "targetPort": "http", "appProtocol": "http"}]);
    stage.merge(Kind::Service, "web", &json!({"spec": {"ports": ports}}));
    stage.settle(
        "with another port",
        &[
            Wanted::slices("web", &all),
            Wanted::endpoints("web", &all),
            Wanted::shows(&["slices of [3]", r#""port":8080"#]),
            Wanted::lacks(&["slices of", "UDP"]),
            Wanted::lacks(&["UDP"]),
        ],
    );
    let ports = json!([{"name": "http", "port": 80, "targetPort": "absent"}]);
    stage.merge(Kind::Service, "web", &json!({"spec": {"ports": ports}}));
    stage.settle(
        "with a port that no pod has",
        &[Wanted::lacks(&[r#""port":8080"#]), Wanted::endpoints("web", "")],
    );
}
