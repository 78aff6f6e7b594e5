//! Three clusters that import from each other, with their controllers over TCP: an outage of one
//! demotes its endpoints in the others, and its return brings them back.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use endpointd_playground::cluster_spec::Size;
use endpointd_playground::scenario::Scenario;
use endpointd_playground::{
    ClusterSet, KubeconfigTarget, LIMITS, Options, Playground, TimeScale, Workload,
};
use serde_json::Value;

const TIMEOUT: Duration = Duration::from_secs(120);
const SOURCE_CLUSTER: &str = "multicluster.kubernetes.io/source-cluster";
const IMPORT: &str = "multicluster.kubernetes.io/service-name";

/// Of one Service: endpoints and ready endpoints by cluster.
type Imported = BTreeMap<String, (usize, usize)>;

fn slices(playground: &Playground) -> Vec<Value> {
    playground.server().with(|server| {
        let slices = server.store().list("endpointslices", None).objects;
        slices.iter().map(|slice| slice.value()).collect()
    })
}

fn imported(playground: &Playground) -> Imported {
    let mut imported = Imported::new();
    for slice in slices(playground) {
        let labels = &slice["metadata"]["labels"];
        let (Some(cluster), true) = (labels[SOURCE_CLUSTER].as_str(), labels[IMPORT] == "web")
        else {
            continue;
        };
        let (n, n_ready) = imported.entry(cluster.to_owned()).or_default();
        let endpoints = slice["endpoints"].as_array().into_iter().flatten();
        for endpoint in endpoints {
            *n += 1;
            *n_ready += usize::from(endpoint["conditions"]["ready"] == true);
        }
    }
    imported
}

fn is_ready(imported: &Imported, cluster: &str) -> bool {
    imported.get(cluster).is_some_and(|(n, n_ready)| *n > 0 && n == n_ready)
}

async fn wait_until(what: &str, is_reached: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_reached() {
        assert!(started.elapsed() < TIMEOUT, "not reached: {what}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outage_of_a_cluster_demotes_its_endpoints_until_it_returns() {
    let home = tempfile::tempdir().expect("a folder");
    let kubeconfig = home.path().join("config");
    let options = Options {
        size: Size::default(),
        workload: Workload::Default,
        scenario: Scenario::Idle,
        seed: 1,
        time_scale: TimeScale { speed: 3, ..TimeScale::default() },
        port: 0,
        page_port: 0,
        kubeconfig: KubeconfigTarget::Path(kubeconfig.clone()),
        version: "test".to_owned(),
    };
    let set = ClusterSet::start(options, 3).await.expect("it starts");
    let [us1, ap1] = set.others() else { panic!("three clusters") };
    let names: Vec<&str> = set.clusters().iter().map(|one| one.name).collect();
    assert_eq!(names, ["eu1", "us1", "ap1"]);
    let text = std::fs::read_to_string(&kubeconfig).expect("it is written");
    for name in names {
        assert!(text.contains(&format!("context: {{cluster: {name}, user")), "{text}");
    }
    let all_ready = |playground: &Playground| {
        let imported = imported(playground);
        ["eu1", "us1", "ap1"].iter().all(|cluster| is_ready(&imported, cluster))
    };
    wait_until("each imports from all", || {
        all_ready(set.first()) && all_ready(us1) && all_ready(ap1)
    })
    .await;
    let addresses: Vec<String> = slices(set.first())
        .iter()
        .filter(|slice| slice["metadata"]["labels"][IMPORT] == "web")
        .flat_map(|slice| slice["endpoints"].as_array().cloned().unwrap_or_default())
        .map(|endpoint| endpoint["addresses"][0].to_string())
        .collect();
    let unique: BTreeSet<&String> = addresses.iter().collect();
    assert_eq!(unique.len(), addresses.len(), "no address is in two clusters");

    let began = Instant::now();
    ap1.server().set_outage(true);
    let is_demoted = |playground: &Playground| {
        let imported = imported(playground);
        let (n, n_ready) = imported.get("ap1").copied().unwrap_or_default();
        n > 0 && n_ready == 0 && is_ready(&imported, "us1") && is_ready(&imported, "eu1")
    };
    wait_until("ap1 is demoted", || is_demoted(set.first()) && is_demoted(us1)).await;
    let limit = Duration::from_secs(u64::try_from(LIMITS.demote_after).expect("positive"));
    // The last contact may have been a while before.
    assert!(began.elapsed() + Duration::from_secs(25) > limit, "{:?}", began.elapsed());
    ap1.server().set_outage(false);
    wait_until("ap1 is back", || all_ready(set.first()) && all_ready(us1)).await;
    set.stop().await;
}
