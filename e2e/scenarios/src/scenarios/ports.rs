//! Ports: named, numbered, of headless Services, and changed ports.

use serde_json::json;

use crate::convergence::Expected;
use crate::pods::{Pod, web_ips};
use crate::test_namespace::{Kind, TestNamespace};

pub fn headless_with_ports(ns: &mut TestNamespace<'_>) {
    ns.node_in("a", "zone-a");
    ns.service(
        "web",
        &json!({
            "selector": {"app": "web"}, "clusterIP": "None",
            "ports": [{"name": "http", "port": 80, "targetPort": 8080}],
        }),
    );
    ns.converge("without pods", &[Expected::slices("web", ""), Expected::endpoints("web", "")]);
    ns.web_pods(1..=2, &["a"]);
    ns.unready_and_back(&["web-1"]);
    let both = web_ips(1..=2);
    ns.converge("with pods", &[Expected::slices("web", &both), Expected::endpoints("web", &both)]);
}

pub fn headless_without_ports(ns: &mut TestNamespace<'_>) {
    ns.node_in("a", "zone-a");
    ns.service("web", &json!({"selector": {"app": "web"}, "clusterIP": "None"}));
    ns.web_pods(1..=3, &["a"]);
    ns.unready("web-3");
    let three = "10.0.0.2 10.0.0.3 10.0.0.4!";
    ns.converge("with pods", &[Expected::slices("web", three), Expected::endpoints("web", three)]);
    (1..=3).for_each(|n| ns.gone(&format!("web-{n}")));
    ns.converge("without pods", &[Expected::slices("web", ""), Expected::endpoints("web", "")]);
}

/// A port name can have a different number in each pod, or none.
pub fn named_ports_differ(ns: &mut TestNamespace<'_>) {
    ns.node_in("a", "zone-a");
    ns.service(
        "web",
        &json!({"selector": {"app": "web"}, "ports": [
            {"name": "http", "port": 80, "targetPort": "http"},
            {"name": "metrics", "port": 9000, "targetPort": "metrics"},
            {"name": "fixed", "port": 443, "targetPort": 8443},
        ]}),
    );
    let named = |http: u16| json!([{"name": "http", "containerPort": http}]);
    ns.pod(&Pod::new("old", "10.0.0.1").ports(named(8080)));
    ns.pod(&Pod::new("new", "10.0.0.2").ports(named(9090)));
    ns.pod(&Pod::new("bare", "10.0.0.3").ports(json!([])));
    ns.pod(&Pod::new("full", "10.0.0.4").ports(json!([
        {"name": "http", "containerPort": 8080}, {"name": "metrics", "containerPort": 9001},
    ])));
    let in_slices = "10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.4";
    // Endpoints contain an address once for each port set.
    let expected = [Expected::slices("web", in_slices), Expected::shows(&["endpoints web"])];
    ns.converge("with four kinds of pods", &expected);
    ns.unready("full");
    let unready = "10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.4!";
    ns.converge(
        "with one unready",
        &[Expected::slices("web", unready), Expected::shows(&["notReadyAddresses", "10.0.0.4"])],
    );
    ns.gone("old");
    ns.gone("full");
    ns.converge(
        "with two gone",
        &[
            Expected::slices("web", "10.0.0.2 10.0.0.3"),
            Expected::lacks(&["10.0.0.4"]),
            Expected::lacks(&["10.0.0.1"]),
        ],
    );
}

pub fn ports_changed(ns: &mut TestNamespace<'_>) {
    ns.node_in("a", "zone-a");
    let dns = json!([
        {"name": "udp", "port": 53, "protocol": "UDP"}, {"name": "tcp", "port": 53},
    ]);
    ns.service("web", &json!({"selector": {"app": "web"}, "ports": dns}));
    ns.web_pods(1..=3, &["a"]);
    let all = web_ips(1..=3);
    ns.converge(
        "with two protocols",
        &[
            Expected::slices("web", &all),
            Expected::endpoints("web", &all),
            Expected::shows(&["slices of", r#""protocol":"UDP""#]),
        ],
    );
    let ports = json!([{"name": "http", "port": 80, "targetPort": "http", "appProtocol": "http"}]);
    ns.merge(Kind::Service, "web", &json!({"spec": {"ports": ports}}));
    ns.converge(
        "with another port",
        &[
            Expected::slices("web", &all),
            Expected::endpoints("web", &all),
            Expected::shows(&["slices of [3]", r#""port":8080"#]),
            Expected::lacks(&["slices of", "UDP"]),
            Expected::lacks(&["UDP"]),
        ],
    );
    let ports = json!([{"name": "http", "port": 80, "targetPort": "absent"}]);
    ns.merge(Kind::Service, "web", &json!({"spec": {"ports": ports}}));
    ns.converge(
        "with a port that no pod has",
        &[Expected::lacks(&[r#""port":8080"#]), Expected::endpoints("web", "")],
    );
}
