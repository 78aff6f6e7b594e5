//! What pods go through.

use serde_json::json;

use crate::pods::{Pod, web_ips, web_pod};
use crate::settle::Wanted;
use crate::stage::{Kind, Stage};

fn web(stage: &Stage<'_>) {
    stage.node_in("a", "zone-a");
    stage.service("web", &json!({
        "selector": {"app": "web"}, "ports": [{"name": "http", "port": 80, "targetPort": "http"}],
    }));
}

fn settle(stage: &mut Stage<'_>, moment: &str, slices: &str, endpoints: &str) {
    stage.settle(moment, &[Wanted::slices("web", slices), Wanted::endpoints("web", endpoints)]);
}

pub fn ready_and_unready(stage: &mut Stage<'_>) {
    web(stage);
    stage.web_pods(1..=3, &["a"]);
    stage.pod(&web_pod(4, &["a"]).unready());
    let first = "10.0.0.2 10.0.0.3 10.0.0.4 10.0.0.5!";
    settle(stage, "at first", first, first);
    stage.unready("web-1");
    stage.ready("web-4");
    let swapped = "10.0.0.2! 10.0.0.3 10.0.0.4 10.0.0.5";
    settle(stage, "after two changed", swapped, swapped);
    for _ in 0..5 {
        stage.ready("web-1");
        stage.unready("web-1");
    }
    stage.unready("web-2");
    stage.unready("web-3");
    stage.unready("web-4");
    let none = "10.0.0.2! 10.0.0.3! 10.0.0.4! 10.0.0.5!";
    settle(stage, "with none ready", none, none);
    (1..=4).for_each(|n| stage.ready(&format!("web-{n}")));
    settle(stage, "with all ready", &web_ips(1..=4), &web_ips(1..=4));
}

pub fn not_ready_published(stage: &mut Stage<'_>) {
    web(stage);
    stage.merge(Kind::Service, "web", &json!({"spec": {"publishNotReadyAddresses": true}}));
    stage.web_pods(1..=2, &["a"]);
    stage.pod(&web_pod(3, &["a"]).unready());
    // On a node that nobody knows: published all the same.
    stage.pod(&web_pod(4, &["nowhere"]));
    let slices = "10.0.0.2 10.0.0.3 10.0.0.4s 10.0.0.5";
    settle(stage, "published", slices, &web_ips(1..=4));
    stage.terminating("web-1");
    settle(stage, "with one terminating", "10.0.0.2t 10.0.0.3 10.0.0.4s 10.0.0.5", &web_ips(1..=4));
    stage.gone("web-1");
    stage.gone("web-4");
    stage.merge(Kind::Service, "web", &json!({"spec": {"publishNotReadyAddresses": false}}));
    settle(stage, "no longer", "10.0.0.3 10.0.0.4!", "10.0.0.3 10.0.0.4!");
    stage.merge(Kind::Service, "web", &json!({"spec": {"publishNotReadyAddresses": true}}));
    settle(stage, "again", "10.0.0.3 10.0.0.4s", "10.0.0.3 10.0.0.4");
}

pub fn terminating(stage: &mut Stage<'_>) {
    web(stage);
    stage.web_pods(1..=3, &["a"]);
    settle(stage, "at first", &web_ips(1..=3), &web_ips(1..=3));
    stage.terminating("web-1");
    settle(stage, "with one terminating", "10.0.0.2!st 10.0.0.3 10.0.0.4", "10.0.0.3 10.0.0.4");
    stage.unready("web-1");
    settle(stage, "and failing its probe", "10.0.0.2!t 10.0.0.3 10.0.0.4", "10.0.0.3 10.0.0.4");
    stage.terminating("web-2");
    stage.terminating("web-3");
    settle(stage, "with all terminating", "10.0.0.2!t 10.0.0.3!st 10.0.0.4!st", "");
    stage.gone("web-1");
    stage.gone("web-2");
    settle(stage, "with one left", "10.0.0.4!st", "");
    stage.gone("web-3");
    settle(stage, "with none left", "", "");
}

pub fn ended(stage: &mut Stage<'_>) {
    web(stage);
    stage.web_pods(1..=4, &["a"]);
    settle(stage, "at first", &web_ips(1..=4), &web_ips(1..=4));
    stage.ended("web-1", "Failed");
    stage.ended("web-2", "Succeeded");
    settle(stage, "with two ended", &web_ips(3..=4), &web_ips(3..=4));
    stage.gone("web-1");
    stage.gone("web-2");
    stage.terminating("web-3");
    stage.ended("web-3", "Failed");
    settle(stage, "with one ended while terminating", &web_ips(4..=4), &web_ips(4..=4));
}

/// An address moves from a pod that ended, and from one that is still terminating, to another.
pub fn address_reused(stage: &mut Stage<'_>) {
    web(stage);
    stage.web_pods(1..=2, &["a"]);
    settle(stage, "at first", &web_ips(1..=2), &web_ips(1..=2));
    stage.ended("web-1", "Failed");
    stage.pod(&Pod::new("heir", "10.0.0.2"));
    settle(stage, "after one ended", &web_ips(1..=2), &web_ips(1..=2));
    stage.terminating("web-2");
    stage.pod(&Pod::new("early-heir", "10.0.0.3"));
    let both = "10.0.0.2 10.0.0.3 10.0.0.3!st";
    settle(stage, "while one is terminating", both, &web_ips(1..=2));
    stage.gone("web-2");
    stage.gone("web-1");
    settle(stage, "after both are gone", &web_ips(1..=2), &web_ips(1..=2));
    stage.unready("heir");
    stage.pod(&Pod::new("twin", "10.0.0.2"));
    let twins = "10.0.0.2 10.0.0.2! 10.0.0.3";
    settle(stage, "with two at one address", twins, twins);
}

/// As a StatefulSet does: the name stays, the uid does not.
pub fn replaced_under_the_same_name(stage: &mut Stage<'_>) {
    web(stage);
    stage.web_pods(1..=2, &["a"]);
    settle(stage, "at first", &web_ips(1..=2), &web_ips(1..=2));
    stage.gone("web-1");
    stage.pod(&Pod::new("web-1", "10.0.9.1"));
    settle(stage, "at another address", "10.0.9.1 10.0.0.3", "10.0.9.1 10.0.0.3");
    stage.gone("web-1");
    settle(stage, "while it is away", "10.0.0.3", "10.0.0.3");
    stage.pod(&Pod::new("web-1", "10.0.9.1"));
    settle(stage, "back at its address", "10.0.9.1 10.0.0.3", "10.0.9.1 10.0.0.3");
}

pub fn selected_by_changing_labels(stage: &mut Stage<'_>) {
    web(stage);
    stage.service(
        "canary",
        &json!({
            "selector": {"app": "web", "track": "canary"}, "ports": [{"port": 80}],
        }),
    );
    stage.web_pods(1..=3, &["a"]);
    stage.settle(
        "at first",
        &[
            Wanted::slices("web", &web_ips(1..=3)),
            Wanted::slices("canary", ""),
            Wanted::endpoints("web", &web_ips(1..=3)),
            Wanted::endpoints("canary", ""),
        ],
    );
    stage.merge(Kind::Pod, "web-1", &json!({"metadata": {"labels": {"track": "canary"}}}));
    stage.merge(Kind::Pod, "web-2", &json!({"metadata": {"labels": {"app": "quarantined"}}}));
    let rest = "10.0.0.2 10.0.0.4";
    stage.settle(
        "after two were relabelled",
        &[
            Wanted::slices("web", rest),
            Wanted::slices("canary", "10.0.0.2"),
            Wanted::endpoints("web", rest),
            Wanted::endpoints("canary", "10.0.0.2"),
        ],
    );
    stage.merge(Kind::Pod, "web-1", &json!({"metadata": {"labels": {"track": null}}}));
    stage.merge(Kind::Pod, "web-2", &json!({"metadata": {"labels": {"app": "web"}}}));
    stage.settle(
        "after both were relabelled back",
        &[
            Wanted::slices("web", &web_ips(1..=3)),
            Wanted::slices("canary", ""),
            Wanted::endpoints("web", &web_ips(1..=3)),
            Wanted::endpoints("canary", ""),
        ],
    );
}

/// A hostname is published by the Service that the subdomain names.
pub fn hostnames(stage: &mut Stage<'_>) {
    stage.node_in("a", "zone-a");
    for name in ["web", "other"] {
        stage.service(
            name,
            &json!({
                "selector": {"app": "web"}, "clusterIP": "None", "ports": [{"port": 80}],
            }),
        );
    }
    for n in 1..=2 {
        let named = json!({"hostname": format!("host-{n}"), "subdomain": "web"});
        stage.pod(&web_pod(n, &["a"]).spec(named));
    }
    stage.pod(&web_pod(3, &["a"]));
    stage.settle(
        "with hostnames",
        &[
            Wanted::slices("web", &web_ips(1..=3)),
            Wanted::slices("other", &web_ips(1..=3)),
            Wanted::endpoints("web", &web_ips(1..=3)),
            Wanted::endpoints("other", &web_ips(1..=3)),
            Wanted::shows(&[r#""hostname":"host-2""#]),
        ],
    );
}

pub fn pending_until_it_has_an_address(stage: &mut Stage<'_>) {
    web(stage);
    stage.web_pods(1..=1, &["a"]);
    stage.pending_pod(&web_pod(2, &["a"]));
    settle(stage, "while one is pending", "10.0.0.2", "10.0.0.2");
    let address = |ip: &str| json!({"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}]});
    stage.merge_status(Kind::Pod, "web-2", &address("10.0.0.3"));
    settle(stage, "with an address", "10.0.0.2 10.0.0.3!", "10.0.0.2 10.0.0.3!");
    stage.ready("web-2");
    settle(stage, "and ready", "10.0.0.2 10.0.0.3", "10.0.0.2 10.0.0.3");
    stage.merge_status(Kind::Pod, "web-2", &address("10.0.7.7"));
    settle(stage, "at another address", "10.0.0.2 10.0.7.7", "10.0.0.2 10.0.7.7");
}
