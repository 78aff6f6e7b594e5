//! A namespace goes, with everything in it.

use serde_json::json;

use crate::pods::{web_ips, web_pod};
use crate::settle::Wanted;
use crate::stage::{Kind, Stage};

/// While it goes nothing may be created in it, and nothing comes back.
pub fn deleted_with_all_in_it(stage: &mut Stage<'_>) {
    let namespace = stage.namespace().to_owned();
    stage.node_in("a", "zone-a");
    stage.service("web", &json!({"selector": {"app": "web"}, "ports": [{"port": 80}]}));
    stage.service("db", &json!({"ports": [{"port": 5432}]}));
    stage.create(
        Kind::Endpoints,
        &json!({
            "metadata": {"name": "db"},
            "subsets": [{"addresses": [{"ip": "192.168.0.1"}], "ports": [{"port": 5432}]}],
        }),
    );
    for n in 1..=3 {
        // A short grace: whoever empties the namespace comes back after half of it.
        let brief = json!({"terminationGracePeriodSeconds": 2});
        stage.pod(&web_pod(n, &["a"]).spec(brief));
    }
    stage.settle(
        "before",
        &[
            Wanted::slices("web", &web_ips(1..=3)),
            Wanted::endpoints("web", &web_ips(1..=3)),
            Wanted::slices("db", "192.168.0.1"),
        ],
    );
    stage.delete(Kind::Namespace, &namespace);
    // Whoever empties a namespace waits for the pods before it takes what depends on them.
    stage.settle(
        "while pods terminate",
        &[
            Wanted::slices("web", "10.0.0.2!st 10.0.0.3!st 10.0.0.4!st"),
            Wanted::endpoints("web", ""),
        ],
    );
    (1..=3).for_each(|n| stage.gone(&format!("web-{n}")));
    let nothing = [
        Wanted::no_slices("web"),
        Wanted::no_endpoints("web"),
        Wanted::no_slices("db"),
        Wanted::no_endpoints("db"),
    ];
    stage.settle("after the last pod", &nothing);
    stage.wait_until_gone(Kind::Namespace, &namespace);
    stage.create(Kind::Namespace, &json!({"metadata": {"name": namespace}}));
    stage.service("web", &json!({"selector": {"app": "web"}, "ports": [{"port": 80}]}));
    stage.pod(&web_pod(7, &["a"]));
    stage.settle(
        "in its successor",
        &[Wanted::slices("web", &web_ips(7..=7)), Wanted::endpoints("web", &web_ips(7..=7))],
    );
}
