//! One family, the other, and both.

use serde_json::json;

use crate::pods::Pod;
use crate::settle::Wanted;
use crate::stage::{Kind, Stage};

/// Two pods with both families, one with each alone.
fn pods(stage: &Stage<'_>) {
    stage.node_in("a", "zone-a");
    stage.pod(&Pod::new("both-1", "10.0.0.1,fd00::1"));
    stage.pod(&Pod::new("both-2", "10.0.0.2,fd00::2"));
    stage.pod(&Pod::new("four", "10.0.0.3"));
    stage.pod(&Pod::new("six", "fd00::4"));
}

const FOUR: &str = "10.0.0.1 10.0.0.2 10.0.0.3";
const SIX: &str = "fd00::1 fd00::2 fd00::4";

pub fn dual_stack(stage: &mut Stage<'_>) {
    pods(stage);
    let spec = |first: &str, second: &str| {
        json!({
            "selector": {"app": "web"}, "ports": [{"port": 80}],
            "ipFamilyPolicy": "RequireDualStack", "ipFamilies": [first, second],
        })
    };
    stage.service("web", &spec("IPv4", "IPv6"));
    stage.service("six-first", &spec("IPv6", "IPv4"));
    stage.service(
        "headless",
        &json!({
            "selector": {"app": "web"}, "clusterIP": "None", "ipFamilyPolicy": "PreferDualStack",
        }),
    );
    let all = format!("{FOUR} {SIX}");
    stage.settle(
        "with both families",
        &[
            Wanted::slices("web", &all),
            Wanted::endpoints("web", FOUR),
            Wanted::slices("six-first", &all),
            Wanted::endpoints("six-first", SIX),
            Wanted::slices("headless", &all),
            Wanted::endpoints("headless", FOUR),
        ],
    );
    stage.unready("both-1");
    stage.gone("six");
    stage.settle(
        "after one is unready and one gone",
        &[
            Wanted::slices("web", "10.0.0.1! 10.0.0.2 10.0.0.3 fd00::1! fd00::2"),
            Wanted::endpoints("web", "10.0.0.1! 10.0.0.2 10.0.0.3"),
            Wanted::endpoints("six-first", "fd00::1! fd00::2"),
            Wanted::slices("headless", "10.0.0.1! 10.0.0.2 10.0.0.3 fd00::1! fd00::2"),
        ],
    );
}

pub fn ipv6_alone(stage: &mut Stage<'_>) {
    pods(stage);
    stage.service(
        "web",
        &json!({
            "selector": {"app": "web"}, "ports": [{"port": 80}], "ipFamilies": ["IPv6"],
        }),
    );
    stage.settle("with one family", &[Wanted::slices("web", SIX), Wanted::endpoints("web", SIX)]);
    ["both-1", "both-2", "six"].iter().for_each(|pod| stage.gone(pod));
    stage.settle(
        "without a pod of the family",
        &[Wanted::slices("web", ""), Wanted::endpoints("web", "")],
    );
}

pub fn families_changed(stage: &mut Stage<'_>) {
    pods(stage);
    stage.service("web", &json!({"selector": {"app": "web"}, "ports": [{"port": 80}]}));
    stage.settle("with one", &[Wanted::slices("web", FOUR), Wanted::endpoints("web", FOUR)]);
    let both = json!({"ipFamilyPolicy": "RequireDualStack"});
    stage.merge(Kind::Service, "web", &json!({ "spec": both }));
    let all = format!("{FOUR} {SIX}");
    stage.settle("with both", &[Wanted::slices("web", &all), Wanted::endpoints("web", FOUR)]);
    let one = json!({"ipFamilyPolicy": "SingleStack"});
    stage.merge(Kind::Service, "web", &json!({ "spec": one }));
    stage.settle("with one again", &[Wanted::slices("web", FOUR), Wanted::endpoints("web", FOUR)]);
}
