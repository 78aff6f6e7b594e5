//! A running kube-controller-manager has our families of its names with the same types, labels,
//! and buckets, and none of these subsystems that we lack.

use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::{Duration, Instant};

use endpointd_control_plane::Cluster;
use endpointd_status::{Family, FamilyKind, Metrics};
use serde_json::json;

const PATIENCE: Duration = Duration::from_secs(60);
const CONTROLLERS: &[&str] =
    &["endpoints-controller", "endpointslice-controller", "endpointslice-mirroring-controller"];
/// Subsystems of which we have everything.
const WHOLE: &[&str] =
    &["endpoint_slice_controller_", "endpoint_slice_mirroring_controller_", "workqueue_"];

#[test]
fn families_by_upstreams_names_are_upstreams() {
    let Some(cluster) = Cluster::shared() else { return };
    give_each_controller_something_to_do(cluster);
    cluster.start_controller_manager(CONTROLLERS, &["--leader-elect=true"]).unwrap();
    let metrics = Metrics::new();
    let ours: BTreeMap<&str, &Family> = metrics
        .families()
        .iter()
        .filter(|family| !family.name.starts_with("endpointd_"))
        .map(|family| (family.name.as_str(), family))
        .collect();
    // Linux only, and of the Rust library only.
    let not_upstreams = BTreeSet::from(["process_threads"]);

    let theirs = eventually(|| {
        let scraped = Scraped::of(&cluster.controller_manager().ok()?.text("/metrics").ok()?);
        let is_there = |name: &&str| scraped.watches.contains_key(*name);
        let n_missing = ours.keys().filter(|name| !is_there(name)).count();
        (n_missing <= not_upstreams.len()).then_some(scraped)
    });
    for (name, family) in ours.iter().filter(|(name, _)| !not_upstreams.contains(*name)) {
        assert_eq!(
            theirs.watches.get(*name).map(String::as_str),
            Some(family.kind.as_str()),
            "{name}"
        );
        let labels: BTreeSet<String> = family.labels.iter().cloned().collect();
        assert_eq!(theirs.labels[*name], labels, "{name}");
        if let FamilyKind::Histogram(bounds) = &family.kind {
            assert_eq!(&theirs.bounds[*name], bounds, "{name}");
        }
    }
    let lacking: Vec<&String> = theirs
        .watches
        .keys()
        .filter(|name| WHOLE.iter().any(|prefix| name.starts_with(prefix)))
        .filter(|name| !ours.contains_key(name.as_str()))
        .collect();
    assert!(lacking.is_empty(), "upstream has more: {lacking:?}");
    for name in ["endpoint", "endpoint_slice", "endpoint_slice_mirroring"] {
        assert!(theirs.queues.contains(name), "no queue of that name: {name}");
    }
}

/// A family appears with its first value: a Service with pods to publish and a distribution, and
/// Endpoints to mirror.
fn give_each_controller_something_to_do(cluster: &Cluster) {
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

/// What the text format tells about families.
#[derive(Default)]
struct Scraped {
    watches: BTreeMap<String, String>,
    /// But for `le`.
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
                scraped.watches.insert(family.clone(), kind.to_owned());
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
        assert!(started.elapsed() < PATIENCE, "not after {PATIENCE:?}");
        thread::sleep(Duration::from_millis(200));
    }
}
