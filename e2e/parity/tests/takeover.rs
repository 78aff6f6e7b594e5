//! On a real API server: a takeover of a converged cluster causes no writes, from
//! kube-controller-manager to endpointd and back (B17).

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use endpointd_control_plane::{Binaries, Cluster, Options};
use endpointd_model::{Controller, PublishedResource, Write};
use endpointd_parity::add;
use endpointd_plan::{CarriedState, ClusterState, Plan, Settings};
use endpointd_wire::{AnyObject, flatten, to_json_value};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(60);
const CONTROLLERS: [&str; 3] =
    ["endpoints-controller", "endpointslice-controller", "endpointslice-mirroring-controller"];

/// A new cluster without controllers, with Services, pods, and nodes.
fn populated() -> Option<Cluster> {
    let binaries = Binaries::for_test()?;
    let cluster = Cluster::start(&binaries, Options::default()).expect("a cluster starts");
    let api = cluster.api();
    for (name, zone) in [("node-a", "zone-a"), ("node-b", "zone-b")] {
        let labels = json!({"topology.kubernetes.io/zone": zone});
        let mut node = api
            .create("/api/v1/nodes", &json!({"metadata": {"name": name, "labels": labels}}))
            .expect("the Node is valid");
        node["status"] = json!({
            "allocatable": {"cpu": "4"},
            "conditions": [{"type": "Ready", "status": "True"}],
        });
        api.replace(&format!("/api/v1/nodes/{name}/status"), &node).expect("the status is valid");
    }
    let ports = json!([{"name": "http", "port": 80, "targetPort": "http"}]);
    let web = json!({"app": "web"});
    for (name, spec) in [
        ("plain", json!({"selector": web, "ports": ports})),
        ("headless", json!({"selector": web, "clusterIP": "None"})),
        ("unready", json!({"selector": web, "ports": ports, "publishNotReadyAddresses": true})),
        (
            "zoned",
            json!({"selector": web, "ports": ports, "trafficDistribution": "PreferSameZone"}),
        ),
        ("nobody", json!({"selector": {"app": "nobody"}, "ports": ports})),
        ("manual", json!({"ports": [{"name": "sql", "port": 5432}]})),
        ("outside", json!({"type": "ExternalName", "externalName": "example.com"})),
    ] {
        let service = json!({"metadata": {"name": name, "labels": {"team": "shop"}}, "spec": spec});
        api.create("/api/v1/namespaces/default/services", &service).expect("the Service is valid");
    }
    let by_hand = json!({
        "metadata": {"name": "manual", "annotations": {"example.com/a": "b"}},
        "subsets": [{
            "addresses": [{"ip": "192.168.0.7"}, {"ip": "fd00::7"}],
            "notReadyAddresses": [{"ip": "192.168.0.8"}],
            "ports": [{"name": "sql", "port": 5432, "appProtocol": "postgres"}],
        }],
    });
    api.create("/api/v1/namespaces/default/endpoints", &by_hand).expect("the Endpoints are valid");
    for n in 1..=12 {
        create_pod(&cluster, n);
    }
    Some(cluster)
}

/// Every third pod is not ready; every fourth has another port number.
fn create_pod(cluster: &Cluster, n: usize) {
    let node = if n.is_multiple_of(2) { "node-a" } else { "node-b" };
    let port = if n.is_multiple_of(4) { 9090 } else { 8080 };
    let ready = if n.is_multiple_of(3) { "False" } else { "True" };
    let container = json!({
        "name": "web", "image": "web", "ports": [{"name": "http", "containerPort": port}],
    });
    let pods = "/api/v1/namespaces/default/pods";
    let pod = json!({
        "metadata": {"name": format!("web-{n}"), "labels": {"app": "web"}},
        "spec": {"nodeName": node, "containers": [container]},
    });
    let mut pod = cluster.api().create(pods, &pod).expect("the Pod is valid");
    pod["status"] = json!({
        "phase": "Running",
        "podIP": format!("10.0.0.{n}"),
        "podIPs": [{"ip": format!("10.0.0.{n}")}],
        "conditions": [{"type": "Ready", "status": ready, "lastTransitionTime": "2026-01-01T00:00:00Z"}],
    });
    cluster.api().replace(&format!("{pods}/web-{n}/status"), &pod).expect("the status is valid");
}

fn observe(cluster: &Cluster) -> ClusterState {
    let mut cluster_state = ClusterState::default();
    for path in [
        "/api/v1/services",
        "/api/v1/pods",
        "/api/v1/nodes",
        "/api/v1/endpoints",
        "/apis/discovery.k8s.io/v1/endpointslices",
    ] {
        for object in flatten(cluster.api().get(path).expect("the list is served")) {
            let object =
                AnyObject::from_value(&object).expect("the API server writes valid objects");
            add(&mut cluster_state, object.expect("one of the five kinds"));
        }
    }
    cluster_state
}

fn plan_everything(cluster_state: &ClusterState) -> Vec<Plan> {
    let index = cluster_state.index();
    let keys = |controller| {
        index.keys(controller, &Settings::default()).into_iter().map(move |key| (controller, key))
    };
    let all = Controller::DEFAULT.into_iter().flat_map(keys);
    all.map(|(controller, key)| {
        index.plan(controller, &key, &CarriedState::default(), &Settings::default())
    })
    .collect()
}

fn writes(plans: &[Plan]) -> Vec<&Write> {
    plans.iter().flat_map(|plan| &plan.writes).collect()
}

fn send(cluster: &Cluster, write: &Write) {
    let key = write.key();
    let group = match write.resource() {
        PublishedResource::Slices => "/apis/discovery.k8s.io/v1",
        PublishedResource::Endpoints
        | PublishedResource::ServiceStatus
        | PublishedResource::MultiCluster(_) => "/api/v1",
    };
    let list = format!("{group}/namespaces/{}/{}", key.namespace, write.resource().as_str());
    let sent = match write {
        Write::Create(object) => cluster.api().create(&list, &to_json_value(object)),
        Write::Update(object) => {
            cluster.api().replace(&format!("{list}/{}", key.name), &to_json_value(object))
        }
        Write::Delete(_) => cluster.api().delete(&format!("{list}/{}", key.name)),
    };
    sent.unwrap_or_else(|error| panic!("{} {list}/{}: {error}", write.verb(), key.name));
}

/// resourceVersions of all objects that the controllers write, by name.
fn versions(cluster_state: &ClusterState) -> BTreeMap<String, String> {
    let slices = cluster_state.slices.values().map(|slice| ("slice", &slice.meta));
    let endpoints = cluster_state.endpoints.values().map(|one| ("endpoints", &one.meta));
    slices
        .chain(endpoints)
        .map(|(kind, meta)| (format!("{kind} {}", meta.key()), meta.resource_version.to_string()))
        .collect()
}

#[test]
fn a_cluster_settled_by_kube_controller_manager_needs_no_writes() {
    let Some(cluster) = populated() else { return };
    assert!(writes(&plan_everything(&observe(&cluster))).len() > 10, "there is work to do");
    cluster.start_controller_manager(&CONTROLLERS, &[]).expect("kube-controller-manager starts");
    let started = Instant::now();
    loop {
        let plans = plan_everything(&observe(&cluster));
        if writes(&plans).is_empty() {
            break;
        }
        assert!(started.elapsed() < PATIENCE, "still to write: {:#?}", writes(&plans));
        thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_cluster_settled_by_us_is_left_alone_by_kube_controller_manager() {
    let Some(cluster) = populated() else { return };
    let plans = plan_everything(&observe(&cluster));
    writes(&plans).into_iter().for_each(|write| send(&cluster, write));
    let settled = observe(&cluster);
    assert_eq!(
        writes(&plan_everything(&settled)),
        Vec::<&Write>::new(),
        "the second plan is empty"
    );

    cluster.start_controller_manager(&CONTROLLERS, &[]).expect("kube-controller-manager starts");
    // kube-controller-manager syncs a new Service after the existing ones, so its slice shows that
    // it has synced all of them.
    let late: Value = json!({"metadata": {"name": "late"}, "spec": {
        "selector": {"app": "late"}, "ports": [{"port": 80}],
    }});
    cluster.api().create("/api/v1/namespaces/default/services", &late).expect("it is valid");
    let before = versions(&settled);
    let started = Instant::now();
    let is_late_published = |cluster_state: &ClusterState| {
        cluster_state.slices.keys().any(|key| key.name.starts_with("late-"))
            && cluster_state.endpoints.keys().any(|key| key.name.as_ref() == "late")
    };
    while !is_late_published(&observe(&cluster)) {
        assert!(started.elapsed() < PATIENCE, "kube-controller-manager does not work");
        thread::sleep(Duration::from_millis(100));
    }
    thread::sleep(Duration::from_secs(2));
    let mut after = versions(&observe(&cluster));
    after.retain(|name, _| !name.contains("/late"));
    assert_eq!(after, before, "kube-controller-manager rewrote what we had written");
}
