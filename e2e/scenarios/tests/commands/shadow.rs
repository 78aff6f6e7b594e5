//! What a shadow says of differences: `/report`, metrics, and one log line when one begins and one
//! when it ends.

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use endpointd_scenarios::pods::Pod;
use endpointd_scenarios::{ClusterUnderTest, Controllers, Daemon, Expected, TestNamespace};
use serde_json::{Value, json};

/// A planted difference must show within this time.
const DIFFERENCE_MAX: Duration = Duration::from_secs(10);
const SETTLED_MAX: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(200);
const BEGINS: &str = "differs from what is published";
const ENDS: &str = "agrees again with what is published";
const CONTROLLERS: [&str; 2] = ["endpoints-controller", "endpointslice-controller"];

/// A key differs only if it does so 5 s after its last change, so a quiet point with a difference would
/// be in the log.
pub fn agrees_at_every_quiet_point(daemon: &Daemon) {
    let shadow = wait_for(daemon, SETTLED_MAX, |shadow| {
        shadow["unsettled"] == 0 && shadow["agrees"].as_u64() > Some(20)
    });
    assert_eq!(shadow["differences"], json!([]), "{}", daemon.log());
    let log = daemon.log();
    let begun: Vec<&str> = log.lines().filter(|line| line.contains(BEGINS)).collect();
    assert!(begun.is_empty(), "{}", begun.join("\n"));
}

/// Without kube-controller-manager, nobody publishes that a pod is not ready.
pub fn shows_a_planted_difference(under_test: &ClusterUnderTest, daemon: &Daemon) {
    let mut ns = TestNamespace::new(&under_test.api, "planted");
    ns.node_in("planted-node", "a");
    ns.service("web", &json!({"selector": {"app": "web"}, "ports": [{"port": 80}]}));
    let pod = |name: &str, ip: &str| {
        Pod::new(name, ip).labelled(json!({"app": "web"})).on("planted-node")
    };
    ns.pod(&pod("web-0", "10.9.9.1"));
    ns.converge("published", &[Expected::slices("web", "10.9.9.1")]);
    assert_eq!(transitions(daemon), [0, 0], "{}", daemon.log());

    under_test.stop_controllers();
    ns.unready("web-0");
    let planted = Instant::now();
    let shadow = wait_for(daemon, DIFFERENCE_MAX, |shadow| shadow["differs"] == 2);
    let shown_after = planted.elapsed();
    assert_eq!(differing_keys(&shadow), ["planted/web"].into());
    let differs = "endpointd_shadow_keys{state=\"differs\"}";
    assert_eq!(daemon.metric(differs), Some(2.0));
    assert_eq!(daemon.metric("endpointd_shadow_agreed_seconds"), Some(0.0));
    assert_eq!(transitions(daemon), [1, 0], "{}", daemon.log());

    // A further change while it differs is no transition.
    let before = n_synced(daemon);
    ns.pod(&pod("web-1", "10.9.9.2"));
    wait_for(daemon, SETTLED_MAX, |_| n_synced(daemon) > before);
    assert_eq!(transitions(daemon), [1, 0], "{}", daemon.log());

    under_test.start_controllers(Controllers::ControllerManager);
    wait_for(daemon, SETTLED_MAX, |shadow| shadow["differs"] == 0);
    assert_eq!(daemon.metric(differs), Some(0.0));
    assert_eq!(transitions(daemon), [1, 1], "{}", daemon.log());
    eprintln!("the difference shows after {shown_after:?}");
}

/// How many log lines say that the key begins to differ, and that it agrees again; the same for
/// both controllers.
fn transitions(daemon: &Daemon) -> [usize; 2] {
    let log = daemon.log();
    let counts = CONTROLLERS.map(|controller| {
        [BEGINS, ENDS].map(|text| {
            let is_of = |line: &&str| {
                line.contains(text) && line.contains(controller) && line.contains("planted/web")
            };
            log.lines().filter(is_of).count()
        })
    });
    let [endpoints, slices] = counts;
    assert_eq!(endpoints, slices, "{log}");
    slices
}

/// Keys that the controllers have taken from their queues; both wait for nothing.
fn n_synced(daemon: &Daemon) -> u64 {
    let report = daemon.status().get("/report").expect("it is served");
    let of = |field: &str| -> u64 {
        let controllers = report["controllers"].as_array().into_iter().flatten();
        controllers.filter_map(|one| one[field].as_u64()).sum()
    };
    if of("waiting") + of("inFlight") == 0 { of("adds") } else { 0 }
}

fn differing_keys(shadow: &Value) -> BTreeSet<&str> {
    let differences = shadow["differences"].as_array().into_iter().flatten();
    differences.filter_map(|one| one["key"].as_str()).collect()
}

fn wait_for(daemon: &Daemon, time_max: Duration, is_reached: impl Fn(&Value) -> bool) -> Value {
    let report = daemon.status();
    let started = Instant::now();
    loop {
        let shadow = report.get("/report").unwrap_or_default()["shadow"].clone();
        if is_reached(&shadow) {
            return shadow;
        }
        assert!(started.elapsed() < time_max, "{shadow:#}");
        thread::sleep(POLL);
    }
}
