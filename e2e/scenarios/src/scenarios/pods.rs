//! Changes of pods.

use serde_json::json;

use crate::convergence::Expected;
use crate::pods::{Pod, web_ips, web_pod};
use crate::test_namespace::{Kind, TestNamespace};

fn web(ns: &TestNamespace<'_>) {
    ns.node_in("a", "zone-a");
    ns.service("web", &json!({
        "selector": {"app": "web"}, "ports": [{"name": "http", "port": 80, "targetPort": "http"}],
    }));
}

fn converge(ns: &mut TestNamespace<'_>, checkpoint: &str, slices: &str, endpoints: &str) {
    ns.converge(
        checkpoint,
        &[Expected::slices("web", slices), Expected::endpoints("web", endpoints)],
    );
}

pub fn ready_and_unready(ns: &mut TestNamespace<'_>) {
    web(ns);
    ns.web_pods(1..=3, &["a"]);
    ns.pod(&web_pod(4, &["a"]).unready());
    let first = "10.0.0.2 10.0.0.3 10.0.0.4 10.0.0.5!";
    converge(ns, "at first", first, first);
    ns.unready("web-1");
    ns.ready("web-4");
    let swapped = "10.0.0.2! 10.0.0.3 10.0.0.4 10.0.0.5";
    converge(ns, "after two changed", swapped, swapped);
    for _ in 0..5 {
        ns.ready("web-1");
        ns.unready("web-1");
    }
    ns.unready("web-2");
    ns.unready("web-3");
    ns.unready("web-4");
    let none = "10.0.0.2! 10.0.0.3! 10.0.0.4! 10.0.0.5!";
    converge(ns, "with none ready", none, none);
    (1..=4).for_each(|n| ns.ready(&format!("web-{n}")));
    converge(ns, "with all ready", &web_ips(1..=4), &web_ips(1..=4));
}

pub fn not_ready_published(ns: &mut TestNamespace<'_>) {
    web(ns);
    ns.merge(Kind::Service, "web", &json!({"spec": {"publishNotReadyAddresses": true}}));
    ns.web_pods(1..=2, &["a"]);
    ns.pod(&web_pod(3, &["a"]).unready());
    // Published although its node does not exist.
    ns.pod(&web_pod(4, &["nowhere"]));
    let slices = "10.0.0.2 10.0.0.3 10.0.0.4s 10.0.0.5";
    converge(ns, "published", slices, &web_ips(1..=4));
    ns.terminating("web-1");
    converge(ns, "with one terminating", "10.0.0.2t 10.0.0.3 10.0.0.4s 10.0.0.5", &web_ips(1..=4));
    ns.gone("web-1");
    ns.gone("web-4");
    ns.merge(Kind::Service, "web", &json!({"spec": {"publishNotReadyAddresses": false}}));
    converge(ns, "no longer", "10.0.0.3 10.0.0.4!", "10.0.0.3 10.0.0.4!");
    ns.merge(Kind::Service, "web", &json!({"spec": {"publishNotReadyAddresses": true}}));
    converge(ns, "again", "10.0.0.3 10.0.0.4s", "10.0.0.3 10.0.0.4");
}

pub fn terminating(ns: &mut TestNamespace<'_>) {
    web(ns);
    ns.web_pods(1..=3, &["a"]);
    converge(ns, "at first", &web_ips(1..=3), &web_ips(1..=3));
    ns.terminating("web-1");
    converge(ns, "with one terminating", "10.0.0.2!st 10.0.0.3 10.0.0.4", "10.0.0.3 10.0.0.4");
    ns.unready("web-1");
    converge(ns, "and failing its probe", "10.0.0.2!t 10.0.0.3 10.0.0.4", "10.0.0.3 10.0.0.4");
    ns.terminating("web-2");
    ns.terminating("web-3");
    converge(ns, "with all terminating", "10.0.0.2!t 10.0.0.3!st 10.0.0.4!st", "");
    ns.gone("web-1");
    ns.gone("web-2");
    converge(ns, "with one left", "10.0.0.4!st", "");
    ns.gone("web-3");
    converge(ns, "with none left", "", "");
}

pub fn ended(ns: &mut TestNamespace<'_>) {
    web(ns);
    ns.web_pods(1..=4, &["a"]);
    converge(ns, "at first", &web_ips(1..=4), &web_ips(1..=4));
    ns.ended("web-1", "Failed");
    ns.ended("web-2", "Succeeded");
    converge(ns, "with two ended", &web_ips(3..=4), &web_ips(3..=4));
    ns.gone("web-1");
    ns.gone("web-2");
    ns.terminating("web-3");
    ns.ended("web-3", "Failed");
    converge(ns, "with one ended while terminating", &web_ips(4..=4), &web_ips(4..=4));
}

/// New pods get the addresses of a completed and of a terminating pod.
pub fn address_reused(ns: &mut TestNamespace<'_>) {
    web(ns);
    ns.web_pods(1..=2, &["a"]);
    converge(ns, "at first", &web_ips(1..=2), &web_ips(1..=2));
    ns.ended("web-1", "Failed");
    ns.pod(&Pod::new("heir", "10.0.0.2"));
    converge(ns, "after one ended", &web_ips(1..=2), &web_ips(1..=2));
    ns.terminating("web-2");
    ns.pod(&Pod::new("early-heir", "10.0.0.3"));
    let both = "10.0.0.2 10.0.0.3 10.0.0.3!st";
    converge(ns, "while one is terminating", both, &web_ips(1..=2));
    ns.gone("web-2");
    ns.gone("web-1");
    converge(ns, "after both are gone", &web_ips(1..=2), &web_ips(1..=2));
    ns.unready("heir");
    ns.pod(&Pod::new("twin", "10.0.0.2"));
    let twins = "10.0.0.2 10.0.0.2! 10.0.0.3";
    converge(ns, "with two at one address", twins, twins);
}

/// As a StatefulSet does: the same name with a new uid.
pub fn replaced_under_the_same_name(ns: &mut TestNamespace<'_>) {
    web(ns);
    ns.web_pods(1..=2, &["a"]);
    converge(ns, "at first", &web_ips(1..=2), &web_ips(1..=2));
    ns.gone("web-1");
    ns.pod(&Pod::new("web-1", "10.0.9.1"));
    converge(ns, "at another address", "10.0.9.1 10.0.0.3", "10.0.9.1 10.0.0.3");
    ns.gone("web-1");
    converge(ns, "while it is away", "10.0.0.3", "10.0.0.3");
    ns.pod(&Pod::new("web-1", "10.0.9.1"));
    converge(ns, "back at its address", "10.0.9.1 10.0.0.3", "10.0.9.1 10.0.0.3");
}

pub fn selected_by_changing_labels(ns: &mut TestNamespace<'_>) {
    web(ns);
    ns.service(
        "canary",
        &json!({
            "selector": {"app": "web", "track": "canary"}, "ports": [{"port": 80}],
        }),
    );
    ns.web_pods(1..=3, &["a"]);
    ns.converge(
        "at first",
        &[
            Expected::slices("web", &web_ips(1..=3)),
            Expected::slices("canary", ""),
            Expected::endpoints("web", &web_ips(1..=3)),
            Expected::endpoints("canary", ""),
        ],
    );
    ns.merge(Kind::Pod, "web-1", &json!({"metadata": {"labels": {"track": "canary"}}}));
    ns.merge(Kind::Pod, "web-2", &json!({"metadata": {"labels": {"app": "quarantined"}}}));
    let rest = "10.0.0.2 10.0.0.4";
    ns.converge(
        "after two were relabelled",
        &[
            Expected::slices("web", rest),
            Expected::slices("canary", "10.0.0.2"),
            Expected::endpoints("web", rest),
            Expected::endpoints("canary", "10.0.0.2"),
        ],
    );
    ns.merge(Kind::Pod, "web-1", &json!({"metadata": {"labels": {"track": null}}}));
    ns.merge(Kind::Pod, "web-2", &json!({"metadata": {"labels": {"app": "web"}}}));
    ns.converge(
        "after both were relabelled back",
        &[
            Expected::slices("web", &web_ips(1..=3)),
            Expected::slices("canary", ""),
            Expected::endpoints("web", &web_ips(1..=3)),
            Expected::endpoints("canary", ""),
        ],
    );
}

/// The Service that the subdomain names publishes the hostname.
pub fn hostnames(ns: &mut TestNamespace<'_>) {
    ns.node_in("a", "zone-a");
    for name in ["web", "other"] {
        ns.service(
            name,
            &json!({
                "selector": {"app": "web"}, "clusterIP": "None", "ports": [{"port": 80}],
            }),
        );
    }
    for n in 1..=2 {
        let named = json!({"hostname": format!("host-{n}"), "subdomain": "web"});
        ns.pod(&web_pod(n, &["a"]).spec(named));
    }
    ns.pod(&web_pod(3, &["a"]));
    ns.converge(
        "with hostnames",
        &[
            Expected::slices("web", &web_ips(1..=3)),
            Expected::slices("other", &web_ips(1..=3)),
            Expected::endpoints("web", &web_ips(1..=3)),
            Expected::endpoints("other", &web_ips(1..=3)),
            Expected::shows(&[r#""hostname":"host-2""#]),
        ],
    );
}

pub fn pending_until_it_has_an_address(ns: &mut TestNamespace<'_>) {
    web(ns);
    ns.web_pods(1..=1, &["a"]);
    ns.pending_pod(&web_pod(2, &["a"]));
    converge(ns, "while one is pending", "10.0.0.2", "10.0.0.2");
    let address = |ip: &str| json!({"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}]});
    ns.merge_status(Kind::Pod, "web-2", &address("10.0.0.3"));
    converge(ns, "with an address", "10.0.0.2 10.0.0.3!", "10.0.0.2 10.0.0.3!");
    ns.ready("web-2");
    converge(ns, "and ready", "10.0.0.2 10.0.0.3", "10.0.0.2 10.0.0.3");
    ns.merge_status(Kind::Pod, "web-2", &address("10.0.7.7"));
    converge(ns, "at another address", "10.0.0.2 10.0.7.7", "10.0.0.2 10.0.7.7");
}
