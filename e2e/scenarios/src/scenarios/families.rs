//! Single-stack and dual-stack Services.

use serde_json::json;

use crate::convergence::Expected;
use crate::pods::Pod;
use crate::test_namespace::{Kind, TestNamespace};

/// Two dual-stack pods, one IPv4 pod, one IPv6 pod.
fn pods(ns: &TestNamespace<'_>) {
    ns.node_in("a", "zone-a");
    ns.pod(&Pod::new("both-1", "10.0.0.1,fd00::1"));
    ns.pod(&Pod::new("both-2", "10.0.0.2,fd00::2"));
    ns.pod(&Pod::new("four", "10.0.0.3"));
    ns.pod(&Pod::new("six", "fd00::4"));
}

const FOUR: &str = "10.0.0.1 10.0.0.2 10.0.0.3";
const SIX: &str = "fd00::1 fd00::2 fd00::4";

pub fn dual_stack(ns: &mut TestNamespace<'_>) {
    pods(ns);
    let spec = |first: &str, second: &str| {
        json!({
            "selector": {"app": "web"}, "ports": [{"port": 80}],
            "ipFamilyPolicy": "RequireDualStack", "ipFamilies": [first, second],
        })
    };
    ns.service("web", &spec("IPv4", "IPv6"));
    ns.service("six-first", &spec("IPv6", "IPv4"));
    ns.service(
        "headless",
        &json!({
            "selector": {"app": "web"}, "clusterIP": "None", "ipFamilyPolicy": "PreferDualStack",
        }),
    );
    let all = format!("{FOUR} {SIX}");
    ns.converge(
        "with both families",
        &[
            Expected::slices("web", &all),
            Expected::endpoints("web", FOUR),
            Expected::slices("six-first", &all),
            Expected::endpoints("six-first", SIX),
            Expected::slices("headless", &all),
            Expected::endpoints("headless", FOUR),
        ],
    );
    ns.unready("both-1");
    ns.gone("six");
    ns.converge(
        "after one is unready and one gone",
        &[
            Expected::slices("web", "10.0.0.1! 10.0.0.2 10.0.0.3 fd00::1! fd00::2"),
            Expected::endpoints("web", "10.0.0.1! 10.0.0.2 10.0.0.3"),
            Expected::endpoints("six-first", "fd00::1! fd00::2"),
            Expected::slices("headless", "10.0.0.1! 10.0.0.2 10.0.0.3 fd00::1! fd00::2"),
        ],
    );
}

pub fn ipv6_alone(ns: &mut TestNamespace<'_>) {
    pods(ns);
    ns.service(
        "web",
        &json!({
            "selector": {"app": "web"}, "ports": [{"port": 80}], "ipFamilies": ["IPv6"],
        }),
    );
    ns.converge(
        "with one family",
        &[Expected::slices("web", SIX), Expected::endpoints("web", SIX)],
    );
    ["both-1", "both-2", "six"].iter().for_each(|pod| ns.gone(pod));
    ns.converge(
        "without a pod of the family",
        &[Expected::slices("web", ""), Expected::endpoints("web", "")],
    );
}

pub fn families_changed(ns: &mut TestNamespace<'_>) {
    pods(ns);
    ns.service("web", &json!({"selector": {"app": "web"}, "ports": [{"port": 80}]}));
    ns.converge("with one", &[Expected::slices("web", FOUR), Expected::endpoints("web", FOUR)]);
    let both = json!({"ipFamilyPolicy": "RequireDualStack"});
    ns.merge(Kind::Service, "web", &json!({ "spec": both }));
    let all = format!("{FOUR} {SIX}");
    ns.converge("with both", &[Expected::slices("web", &all), Expected::endpoints("web", FOUR)]);
    let one = json!({"ipFamilyPolicy": "SingleStack"});
    ns.merge(Kind::Service, "web", &json!({ "spec": one }));
    ns.converge(
        "with one again",
        &[Expected::slices("web", FOUR), Expected::endpoints("web", FOUR)],
    );
}
