//! Compares metric families with those of a running kube-controller-manager: same names, types,
//! labels, and buckets, and no family of these subsystems missing.

use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::{Duration, Instant};

use endpointd_control_plane::Cluster;
use endpointd_status::{Family, FamilyKind, Metrics};
use serde_json::json;

const WAIT_MAX: Duration = Duration::from_secs(60);
const CONTROLLERS: &[&str] =
    &["endpoints-controller", "endpointslice-controller", "endpointslice-mirroring-controller"];
/// Subsystems of which every family must exist.
const COMPLETE_SUBSYSTEMS: &[&str] =
    &["endpoint_slice_controller_", "endpoint_slice_mirroring_controller_", "workqueue_"];

#[test]
fn upstream_families_have_the_same_types_labels_and_buckets() {
    let Some(cluster) = Cluster::shared() else { return };
    create_objects_for_each_controller(cluster);
    cluster.start_controller_manager(CONTROLLERS, &["--leader-elect=true"]).unwrap();
    let metrics = Metrics::new();
    let ours: BTreeMap<&str, &Family> = metrics
        .families()
        .iter()
        .filter(|family| !family.name.starts_with("endpointd_"))
        .map(|family| (family.name.as_str(), family))
        .collect();
    // Only the Rust library has it, on Linux.
    let only_ours = BTreeSet::from(["process_threads"]);

    let theirs = eventually(|| {
        let scraped = Scraped::of(&cluster.controller_manager().ok()?.text("/metrics").ok()?);
        let is_there = |name: &&str| scraped.kinds.contains_key(*name);
        let n_missing = ours.keys().filter(|name| !is_there(name)).count();
        (n_missing <= only_ours.len()).then_some(scraped)
    });
    for (name, family) in ours.iter().filter(|(name, _)| !only_ours.contains(*name)) {
        assert_eq!(
            theirs.kinds.get(*name).map(String::as_str),
            Some(family.kind.as_str()),
            "{name}"
        );
        let labels: BTreeSet<String> = family.labels.iter().cloned().collect();
        assert_eq!(theirs.labels[*name], labels, "{name}");
        if let FamilyKind::Histogram(bounds) = &family.kind {
            assert_eq!(&theirs.bounds[*name], bounds, "{name}");
        }
    }
    let missing: Vec<&String> = theirs
        .kinds
        .keys()
        .filter(|name| COMPLETE_SUBSYSTEMS.iter().any(|prefix| name.starts_with(prefix)))
        .filter(|name| !ours.contains_key(name.as_str()))
        .collect();
    assert!(missing.is_empty(), "upstream has more: {missing:?}");
    for name in ["endpoint", "endpoint_slice", "endpoint_slice_mirroring"] {
        assert!(theirs.queues.contains(name), "upstream has no queue `{name}`");
    }
}

/// A family appears with its first value: a Service with pods to publish and a distribution, and
/// Endpoints to mirror.
fn create_objects_for_each_controller(cluster: &Cluster) {
    let namespace = cluster.namespace("metrics").expect("a namespace");
    let core = format!("/api/v1/namespaces/{namespace}");
    let service = |name: &str, selector: serde_json::Value| {
        json!({
            "metadata": {"name": name},
            "spec": {
                "ports": [{"port": 80}],
                "selector": selector,
                "trafficDistribution": "PreferSameZone",
            },
        })
    };
    let create = |kind: &str, object: &serde_json::Value| {
        cluster.api().create(&format!("{core}/{kind}"), object).expect("the object is valid");
    };
    create("services", &service("web", json!({"app": "web"})));
    create("services", &service("manual", json!(null)));
    let endpoints = json!({
        "metadata": {"name": "manual"},
        "subsets": [{"addresses": [{"ip": "192.0.2.7"}], "ports": [{"port": 80}]}],
    });
    create("endpoints", &endpoints);
}

/// The families of one scrape.
#[derive(Default)]
struct Scraped {
    kinds: BTreeMap<String, String>,
    /// Without `le`.
    labels: BTreeMap<String, BTreeSet<String>>,
    bounds: BTreeMap<String, Vec<f64>>,
    /// Values of `name` in `workqueue_depth`.
    queues: BTreeSet<String>,
}

impl Scraped {
    fn of(text: &str) -> Self {
        let mut scraped = Self::default();
        let mut family = String::new();
        for line in text.lines() {
            if let Some(declared) = line.strip_prefix("# TYPE ") {
                let (name, kind) = declared.split_once(' ').expect("a name and a type");
                family = name.to_owned();
                scraped.kinds.insert(family.clone(), kind.to_owned());
            } else if !line.starts_with('#') {
                scraped.series(&family, line);
            }
        }
        scraped
    }

    fn series(&mut self, family: &str, line: &str) {
        let labels = labels_of(line);
        let names = labels.iter().map(|(name, _)| name.clone()).filter(|name| name != "le");
        self.labels.entry(family.to_owned()).or_default().extend(names);
        for (name, value) in labels {
            if name == "le" && value != "+Inf" {
                let bounds = self.bounds.entry(family.to_owned()).or_default();
                let bound: f64 = value.parse().expect("a bound is a number");
                // Each series repeats the bounds.
                if !bounds.contains(&bound) {
                    bounds.push(bound);
                }
            } else if name == "name" && family == "workqueue_depth" {
                self.queues.insert(value);
            }
        }
    }
}

/// Values here hold no escaped quotes.
fn labels_of(line: &str) -> Vec<(String, String)> {
    let Some((_, rest)) = line.split_once('{') else { return Vec::new() };
    let inner = rest.rsplit_once('}').expect("braces close").0;
    let mut parts = inner.split('"');
    let mut labels = Vec::new();
    while let (Some(name), Some(value)) = (parts.next(), parts.next()) {
        labels.push((name.trim_matches([',', '=']).to_owned(), value.to_owned()));
    }
    labels
}

fn eventually<T>(mut probe: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = probe() {
            return found;
        }
        assert!(started.elapsed() < WAIT_MAX, "not after {WAIT_MAX:?}");
        thread::sleep(Duration::from_millis(200));
    }
}
