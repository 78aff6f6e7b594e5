//! What upstream leaves broken and we repair, shown on both. The ids are those of `docs/parity.md`.

use std::sync::{OnceLock, RwLock};
use std::thread;
use std::time::Duration;

use endpointd_control_plane::{Binaries, Options};
use endpointd_histories::cluster::ours;
use endpointd_histories::harness::{self, Test};
use endpointd_histories::pods::{Pod, web_ips, web_pod};
use endpointd_histories::settle::settle_within;
use endpointd_histories::stage::Kind;
use endpointd_histories::{ClusterUnderTest, Controllers, Stage, Wanted};
use serde_json::json;

/// Upstream repairs nothing in this time, so it was not about to.
const UPSTREAM_LEAVES_IT: Duration = Duration::from_secs(12);
const WE_REPAIR: Duration = Duration::from_secs(30);

/// The one that restarts controllers is first: it runs alone.
const TESTS: &[Test] = &[
    (
        "b3_a_slice_deleted_after_a_restart_comes_back",
        b3_a_slice_deleted_after_a_restart_comes_back,
    ),
    ("b3_edited_endpoints_are_repaired", b3_edited_endpoints_are_repaired),
    (
        "b3_a_slice_whose_managed_by_label_was_removed_is_replaced",
        b3_a_slice_whose_managed_by_label_was_removed_is_replaced,
    ),
    (
        "b6_a_refused_create_does_not_keep_unready_pods_published_as_ready",
        b6_a_refused_create_does_not_keep_unready_pods_published_as_ready,
    ),
    ("b10_a_late_zone_label_reaches_the_endpoints", b10_a_late_zone_label_reaches_the_endpoints),
    ("b10_a_late_node_publishes_its_pods_at_once", b10_a_late_node_publishes_its_pods_at_once),
    (
        "b11_a_pod_that_ends_while_not_ready_is_taken_out",
        b11_a_pod_that_ends_while_not_ready_is_taken_out,
    ),
    (
        "b19_a_slice_held_by_a_finalizer_does_not_keep_its_service_unpublished",
        b19_a_slice_held_by_a_finalizer_does_not_keep_its_service_unpublished,
    ),
];

fn main() {
    harness::run(TESTS)
}

/// First kube-controller-manager's, then ours.
fn clusters() -> Option<&'static [(ClusterUnderTest, Controllers); 2]> {
    static CLUSTERS: OnceLock<Option<[(ClusterUnderTest, Controllers); 2]>> = OnceLock::new();
    let start = || {
        let binaries = Binaries::for_test()?;
        let start = |who| (ClusterUnderTest::start(&binaries, who, Options::default()), who);
        Some([Controllers::ControllerManager, ours()].map(start))
    };
    CLUSTERS.get_or_init(start).as_ref()
}

/// Held for writing by the test that restarts controllers: a restart repairs what others watch.
static RESTARTS: RwLock<()> = RwLock::new(());

/// How a test breaks something on one of the two.
type Break = fn(&mut Stage<'_>, &dyn Fn());

/// Breaks the same thing on both: upstream leaves it, and we bring about what is `wanted`.
fn only_we_repair(namespace: &str, break_it: Break, wanted: &[Wanted]) {
    let Some(clusters) = clusters() else { return };
    thread::scope(|scope| {
        for (under_test, who) in clusters {
            scope.spawn(move || {
                let mut stage = Stage::enter(&under_test.api, namespace);
                break_it(&mut stage, &|| under_test.restart_controllers(*who));
                judge(&stage, *who, wanted);
            });
        }
    });
}

fn judge(stage: &Stage<'_>, who: Controllers, wanted: &[Wanted]) {
    let within = |patience| settle_within(patience, stage.api(), stage.namespace(), wanted);
    match who {
        Controllers::ControllerManager => {
            let left = within(UPSTREAM_LEAVES_IT);
            assert!(left.is_err(), "{stage}: upstream repairs this too: make it a plain history");
        }
        Controllers::Endpointd => {
            let repaired = within(WE_REPAIR);
            repaired.unwrap_or_else(|error| panic!("{stage}: endpointd does not: {error}"));
        }
        Controllers::Nobody => panic!("{stage}: somebody must be there"),
    }
}

fn web(stage: &mut Stage<'_>, n_pods: usize) {
    stage.node_in("a", "zone-a");
    stage.service("web", &json!({
        "selector": {"app": "web"}, "ports": [{"name": "http", "port": 80, "targetPort": "http"}],
    }));
    stage.web_pods(1..=n_pods, &["a"]);
    let all = web_ips(1..=n_pods);
    stage.settle("at first", &[Wanted::slices("web", &all), Wanted::endpoints("web", &all)]);
}

fn b3_a_slice_deleted_after_a_restart_comes_back() {
    let _alone = RESTARTS.write();
    let break_it: Break = |stage, restart| {
        web(stage, 2);
        restart();
        stage.delete(Kind::Slice, &stage.slice_name("web"));
    };
    only_we_repair("b3-deleted", break_it, &[Wanted::slices("web", &web_ips(1..=2))]);
}

fn b3_edited_endpoints_are_repaired() {
    let _shared = RESTARTS.read();
    let break_it: Break = |stage, _| {
        web(stage, 2);
        stage.edit(Kind::Endpoints, "web", |endpoints| {
            endpoints["subsets"][0]["addresses"] = json!([{"ip": "10.66.6.6"}]);
        });
    };
    only_we_repair("b3-edited", break_it, &[Wanted::endpoints("web", &web_ips(1..=2))]);
}

fn b3_a_slice_whose_managed_by_label_was_removed_is_replaced() {
    let _shared = RESTARTS.read();
    let break_it: Break = |stage, _| {
        web(stage, 2);
        let taken =
            json!({"metadata": {"labels": {"endpointslice.kubernetes.io/managed-by": null}}});
        stage.merge(Kind::Slice, &stage.slice_name("web"), &taken);
    };
    let managed = r#""endpointslice.kubernetes.io/managed-by":"endpointslice-controller.k8s.io""#;
    only_we_repair("b3-taken", break_it, &[Wanted::shows(&["slices of [2]", managed])]);
}

fn b6_a_refused_create_does_not_keep_unready_pods_published_as_ready() {
    let _shared = RESTARTS.read();
    let break_it: Break = |stage, _| {
        web(stage, 10);
        let slices = "count/endpointslices.discovery.k8s.io";
        let quota = json!({"metadata": {"name": "one-slice"}, "spec": {"hard": {slices: "1"}}});
        stage.create(Kind::Quota, &quota);
        let status = json!({"hard": {slices: "1"}, "used": {slices: "1"}});
        stage.merge_status(Kind::Quota, "one-slice", &status);
        // Another number behind the same name needs a slice of its own, which is refused.
        let other = json!([{"name": "http", "containerPort": 9090}]);
        stage.pod(&Pod::new("other", "10.0.7.7").ports(other));
        stage.pause(Duration::from_secs(1));
        (1..=10).for_each(|n| stage.unready(&format!("web-{n}")));
    };
    let unready = web_ips(1..=10).replace(' ', "! ") + "!";
    only_we_repair("b6-quota", break_it, &[Wanted::slices("web", &unready)]);
}

fn b10_a_late_zone_label_reaches_the_endpoints() {
    let _shared = RESTARTS.read();
    let break_it: Break = |stage, _| {
        web(stage, 2);
        let moved = json!({"metadata": {"labels": {"topology.kubernetes.io/zone": "zone-z"}}});
        stage.merge(Kind::Node, &stage.node_name("a"), &moved);
    };
    let in_zone = [Wanted::shows(&["10.0.0.2", "zone-z"]), Wanted::shows(&["10.0.0.3", "zone-z"])];
    only_we_repair("b10-zone", break_it, &in_zone);
}

fn b10_a_late_node_publishes_its_pods_at_once() {
    let _shared = RESTARTS.read();
    let break_it: Break = |stage, _| {
        web(stage, 2);
        // Each pod is a sync that fails, and each failure doubles the time until the next.
        stage.web_pods(3..=10, &["late"]);
        stage.pause(Duration::from_secs(4));
        stage.node_in("late", "zone-b");
    };
    only_we_repair("b10-node", break_it, &[Wanted::slices("web", &web_ips(1..=10))]);
}

fn b11_a_pod_that_ends_while_not_ready_is_taken_out() {
    let _shared = RESTARTS.read();
    let break_it: Break = |stage, _| {
        stage.node_in("a", "zone-a");
        stage.service("web", &json!({
            "selector": {"app": "web"}, "ports": [{"port": 80}], "publishNotReadyAddresses": true,
        }));
        stage.web_pods(1..=1, &["a"]);
        stage.pod(&web_pod(2, &["a"]).unready());
        stage.settle(
            "at first",
            &[
                Wanted::slices("web", "10.0.0.2 10.0.0.3s"),
                Wanted::endpoints("web", "10.0.0.2 10.0.0.3"),
            ],
        );
        stage.ended("web-2", "Failed");
    };
    let one = [Wanted::slices("web", "10.0.0.2"), Wanted::endpoints("web", "10.0.0.2")];
    only_we_repair("b11-failed", break_it, &one);
}

fn b19_a_slice_held_by_a_finalizer_does_not_keep_its_service_unpublished() {
    let _shared = RESTARTS.read();
    let break_it: Break = |stage, _| {
        web(stage, 2);
        let held = stage.slice_name("web");
        stage.merge(Kind::Slice, &held, &json!({"metadata": {"finalizers": ["example.com/held"]}}));
        stage.delete(Kind::Slice, &held);
    };
    only_we_repair("b19-held", break_it, &[Wanted::slices("web", &web_ips(1..=2))]);
}
