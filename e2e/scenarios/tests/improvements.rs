//! Faults that endpointd repairs and upstream does not, tested under both. The ids are those of
//! `docs/spec.md`.

use std::sync::{OnceLock, RwLock};
use std::thread;
use std::time::Duration;

use endpointd_control_plane::{Binaries, Options};
use endpointd_scenarios::cluster::controllers_under_test;
use endpointd_scenarios::convergence::converge_within;
use endpointd_scenarios::harness::{self, Test};
use endpointd_scenarios::pods::{Pod, web_ips, web_pod};
use endpointd_scenarios::test_namespace::Kind;
use endpointd_scenarios::{ClusterUnderTest, Controllers, Expected, TestNamespace};
use serde_json::json;

/// If upstream does not repair a fault in this time, it does not repair it.
const UPSTREAM_WAIT: Duration = Duration::from_secs(12);
const REPAIR_MAX: Duration = Duration::from_secs(30);

/// The test that restarts controllers is first, because it must run alone.
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
        "b6_rejected_create_does_not_keep_unready_pods_published_as_ready",
        b6_rejected_create_does_not_keep_unready_pods_published_as_ready,
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

/// A cluster with kube-controller-manager, and one with endpointd.
fn clusters() -> Option<&'static [(ClusterUnderTest, Controllers); 2]> {
    static CLUSTERS: OnceLock<Option<[(ClusterUnderTest, Controllers); 2]>> = OnceLock::new();
    let start = || {
        let binaries = Binaries::for_test()?;
        let start = |who| (ClusterUnderTest::start(&binaries, who, Options::default()), who);
        Some([Controllers::ControllerManager, controllers_under_test()].map(start))
    };
    CLUSTERS.get_or_init(start).as_ref()
}

/// Locked for writing by the test that restarts controllers, because a restart repairs the faults
/// of the other tests.
static RESTARTS: RwLock<()> = RwLock::new(());

/// Injects a fault; the second argument restarts the controllers.
type InjectFault = fn(&mut TestNamespace<'_>, &dyn Fn());

/// Injects a fault under both: only endpointd reaches the `expected` state.
fn only_endpointd_repairs(namespace: &str, inject: InjectFault, expected: &[Expected]) {
    let Some(clusters) = clusters() else { return };
    thread::scope(|scope| {
        for (under_test, who) in clusters {
            scope.spawn(move || {
                let mut ns = TestNamespace::new(&under_test.api, namespace);
                inject(&mut ns, &|| under_test.restart_controllers(*who));
                assert_outcome(&ns, *who, expected);
            });
        }
    });
}

fn assert_outcome(ns: &TestNamespace<'_>, who: Controllers, expected: &[Expected]) {
    let within = |timeout| converge_within(timeout, ns.api(), ns.namespace(), expected);
    match who {
        Controllers::ControllerManager => {
            let unrepaired = within(UPSTREAM_WAIT);
            assert!(unrepaired.is_err(), "{ns}: upstream repairs this, too: make it a scenario");
        }
        Controllers::Endpointd => {
            let repaired = within(REPAIR_MAX);
            repaired.unwrap_or_else(|error| panic!("{ns}: endpointd does not repair it: {error}"));
        }
        Controllers::None => panic!("{ns}: no controllers run"),
    }
}

fn web(ns: &mut TestNamespace<'_>, n_pods: usize) {
    ns.node_in("a", "zone-a");
    ns.service("web", &json!({
        "selector": {"app": "web"}, "ports": [{"name": "http", "port": 80, "targetPort": "http"}],
    }));
    ns.web_pods(1..=n_pods, &["a"]);
    let all = web_ips(1..=n_pods);
    ns.converge("at first", &[Expected::slices("web", &all), Expected::endpoints("web", &all)]);
}

fn b3_a_slice_deleted_after_a_restart_comes_back() {
    let _alone = RESTARTS.write();
    let inject: InjectFault = |ns, restart| {
        web(ns, 2);
        restart();
        ns.delete(Kind::Slice, &ns.slice_name("web"));
    };
    only_endpointd_repairs("b3-deleted", inject, &[Expected::slices("web", &web_ips(1..=2))]);
}

fn b3_edited_endpoints_are_repaired() {
    let _shared = RESTARTS.read();
    let inject: InjectFault = |ns, _| {
        web(ns, 2);
        ns.edit(Kind::Endpoints, "web", |endpoints| {
            endpoints["subsets"][0]["addresses"] = json!([{"ip": "10.66.6.6"}]);
        });
    };
    only_endpointd_repairs("b3-edited", inject, &[Expected::endpoints("web", &web_ips(1..=2))]);
}

fn b3_a_slice_whose_managed_by_label_was_removed_is_replaced() {
    let _shared = RESTARTS.read();
    let inject: InjectFault = |ns, _| {
        web(ns, 2);
        let unlabelled =
            json!({"metadata": {"labels": {"endpointslice.kubernetes.io/managed-by": null}}});
        ns.merge(Kind::Slice, &ns.slice_name("web"), &unlabelled);
    };
    let managed = r#""endpointslice.kubernetes.io/managed-by":"endpointslice-controller.k8s.io""#;
    only_endpointd_repairs(
        "b3-unlabelled",
        inject,
        &[Expected::shows(&["slices of [2]", managed])],
    );
}

fn b6_rejected_create_does_not_keep_unready_pods_published_as_ready() {
    let _shared = RESTARTS.read();
    let inject: InjectFault = |ns, _| {
        web(ns, 10);
        let slices = "count/endpointslices.discovery.k8s.io";
        let quota = json!({"metadata": {"name": "one-slice"}, "spec": {"hard": {slices: "1"}}});
        ns.create(Kind::Quota, &quota);
        let status = json!({"hard": {slices: "1"}, "used": {slices: "1"}});
        ns.merge_status(Kind::Quota, "one-slice", &status);
        // Another number for the same port name needs another slice, which the quota forbids.
        let other = json!([{"name": "http", "containerPort": 9090}]);
        ns.pod(&Pod::new("other", "10.0.7.7").ports(other));
        ns.pause(Duration::from_secs(1));
        (1..=10).for_each(|n| ns.unready(&format!("web-{n}")));
    };
    let unready = web_ips(1..=10).replace(' ', "! ") + "!";
    only_endpointd_repairs("b6-quota", inject, &[Expected::slices("web", &unready)]);
}

fn b10_a_late_zone_label_reaches_the_endpoints() {
    let _shared = RESTARTS.read();
    let inject: InjectFault = |ns, _| {
        web(ns, 2);
        let moved = json!({"metadata": {"labels": {"topology.kubernetes.io/zone": "zone-z"}}});
        ns.merge(Kind::Node, &ns.node_name("a"), &moved);
    };
    let in_zone =
        [Expected::shows(&["10.0.0.2", "zone-z"]), Expected::shows(&["10.0.0.3", "zone-z"])];
    only_endpointd_repairs("b10-zone", inject, &in_zone);
}

fn b10_a_late_node_publishes_its_pods_at_once() {
    let _shared = RESTARTS.read();
    let inject: InjectFault = |ns, _| {
        web(ns, 2);
        // Each pod causes a failing sync, and each failure doubles upstream's back-off.
        ns.web_pods(3..=10, &["late"]);
        ns.pause(Duration::from_secs(4));
        ns.node_in("late", "zone-b");
    };
    only_endpointd_repairs("b10-node", inject, &[Expected::slices("web", &web_ips(1..=10))]);
}

fn b11_a_pod_that_ends_while_not_ready_is_taken_out() {
    let _shared = RESTARTS.read();
    let inject: InjectFault = |ns, _| {
        ns.node_in("a", "zone-a");
        ns.service("web", &json!({
            "selector": {"app": "web"}, "ports": [{"port": 80}], "publishNotReadyAddresses": true,
        }));
        ns.web_pods(1..=1, &["a"]);
        ns.pod(&web_pod(2, &["a"]).unready());
        ns.converge(
            "at first",
            &[
                Expected::slices("web", "10.0.0.2 10.0.0.3s"),
                Expected::endpoints("web", "10.0.0.2 10.0.0.3"),
            ],
        );
        ns.ended("web-2", "Failed");
    };
    let one = [Expected::slices("web", "10.0.0.2"), Expected::endpoints("web", "10.0.0.2")];
    only_endpointd_repairs("b11-failed", inject, &one);
}

fn b19_a_slice_held_by_a_finalizer_does_not_keep_its_service_unpublished() {
    let _shared = RESTARTS.read();
    let inject: InjectFault = |ns, _| {
        web(ns, 2);
        let held = ns.slice_name("web");
        ns.merge(Kind::Slice, &held, &json!({"metadata": {"finalizers": ["example.com/held"]}}));
        ns.delete(Kind::Slice, &held);
    };
    only_endpointd_repairs("b19-held", inject, &[Expected::slices("web", &web_ips(1..=2))]);
}
