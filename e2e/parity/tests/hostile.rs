//! Damaged and large input: decoding and planning neither panic nor take long.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use endpointd_model::{
    Controller, Family, Key, NamedPort, Node, Pod, PodIp, PodIps, Protocol, Readiness, Service,
    ServicePort, TargetPort, Uid,
};
use endpointd_parity::{Case, add};
use endpointd_plan::{CarriedState, ClusterState, Settings};
use endpointd_rng::SplitMix64;
use endpointd_wire::AnyObject;
use serde_json::{Value, json};

/// Equal damage in every run.
struct Damage(SplitMix64);

impl Damage {
    fn below(&mut self, n: usize) -> usize {
        self.0.index(n.max(1))
    }

    fn value(&mut self) -> Value {
        let deep = (0..60).fold(json!(1), |inner, _| json!([inner]));
        let odd = [
            json!(null),
            json!(""),
            json!("\u{0}\u{202e}💥"),
            json!(-1),
            json!(1e300),
            json!(i64::MAX),
            json!(true),
            json!([]),
            json!({}),
            json!("x".repeat(10_000)),
            json!("999999999999999999999999"),
            json!(["None", null, 7]),
            deep,
        ];
        odd[self.below(odd.len())].clone()
    }

    /// Replaces one value somewhere in the tree.
    fn damage(&mut self, value: &mut Value) {
        let n_children = match value {
            Value::Object(fields) => fields.len(),
            Value::Array(items) => items.len(),
            _ => 0,
        };
        if n_children == 0 || self.below(5) == 0 {
            *value = self.value();
            return;
        }
        let at = self.below(n_children);
        match value {
            Value::Object(fields) => self.damage(fields.values_mut().nth(at).expect("counted")),
            Value::Array(items) => self.damage(&mut items[at]),
            _ => {}
        }
    }
}

/// Adds the valid objects and plans every key. The others must give an error.
fn decode_and_plan(objects: &[Value]) -> usize {
    let mut cluster = ClusterState::default();
    let mut n_rejected = 0;
    for object in objects {
        match AnyObject::from_value(object) {
            Ok(Some(object)) => add(&mut cluster, object),
            Ok(None) => {}
            Err(malformed) => {
                assert!(!malformed.to_string().is_empty());
                n_rejected += 1;
            }
        }
    }
    let index = cluster.index();
    for controller in Controller::ALL {
        for key in index.keys(controller, &Settings::default()) {
            let plan = index.plan(controller, &key, &CarriedState::default(), &Settings::default());
            let mut after = cluster.clone();
            plan.writes.iter().for_each(|write| after.apply(write));
        }
    }
    n_rejected
}

fn small_cases() -> Vec<Case> {
    let files = ["endpointslice.jsonl", "endpoints.jsonl", "mirroring.jsonl"];
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors");
    let texts =
        files.map(|file| fs::read_to_string(folder.join(file)).expect("part of the project"));
    let lines = texts.iter().flat_map(|text| text.lines()).filter(|line| line.len() < 12_000);
    lines.map(|line| Case::parse(line).expect("a vector")).collect()
}

#[test]
fn damaged_objects_never_panic() {
    let mut damage = Damage(SplitMix64::new(1));
    let (mut n_cases, mut n_rejected) = (0, 0);
    for case in small_cases().iter().cycle().take(3_000) {
        let mut objects: Vec<Value> = case.objects.all().cloned().collect();
        for _ in 0..1 + damage.below(6) {
            let at = damage.below(objects.len());
            objects.get_mut(at).into_iter().for_each(|object| damage.damage(object));
        }
        n_rejected += decode_and_plan(&objects);
        n_cases += 1;
    }
    assert!(n_rejected > 500, "{n_cases} cases, only {n_rejected} rejected objects");
}

/// A Service with many ports, half of them with a named target, and pods that have all the names.
fn large_cluster(n_ports: i32, n_pods: usize) -> ClusterState {
    let mut cluster = ClusterState::default();
    let target = |n: i32| match n % 2 {
        0 => TargetPort::Number(n + 1),
        _ => TargetPort::Name(format!("p{n}").into()),
    };
    let port = |n: i32| ServicePort {
        name: format!("p{n}").into(),
        protocol: Protocol::Tcp,
        number: 80,
        app_protocol: None,
        target: target(n),
    };
    let service = Service {
        namespace: "ns".into(),
        name: "web".into(),
        uid: Uid::from("service"),
        selector: [("app", "web")].into_iter().collect(),
        families: vec![Family::V4],
        ports: (0..n_ports).map(port).collect(),
        ..Service::default()
    };
    cluster.services.insert(service.key(), service);
    cluster.nodes.insert("n".into(), Node { name: "n".into(), ..Node::default() });
    for n in 0..n_pods {
        let ip = PodIp::parse(&format!("10.0.{}.{}", n / 250, n % 250 + 1));
        let named = |at: i32| NamedPort {
            name: format!("p{at}").into(),
            protocol: Protocol::Tcp,
            // Every tenth pod differs in one port.
            number: if n % 10 == 0 && at == 1 { 9_000 } else { at + 1 },
        };
        let pod = Pod {
            namespace: "ns".into(),
            name: format!("web-{n}").into(),
            labels: [("app", "web")].into_iter().collect(),
            node_name: Some("n".into()),
            ips: PodIps { primary: Some(ip.clone()), all: [ip].into() },
            readiness: Some(Readiness { is_ready: true, since: None }),
            named_ports: (0..n_ports).map(named).collect(),
            ..Pod::default()
        };
        cluster.pods.insert(pod.key(), pod);
    }
    cluster
}

#[test]
fn a_thousand_ports_on_a_thousand_pods_are_planned_within_seconds() {
    // With a cost of ports times pods times ports this would take minutes.
    const PLAN_TIME_MAX: Duration = Duration::from_secs(5);
    let cluster = large_cluster(1000, 1000);
    let index = cluster.index();
    for controller in [Controller::Slices, Controller::Endpoints] {
        let start = Instant::now();
        let key = Key::new("ns", "web");
        let plan = index.plan(controller, &key, &CarriedState::default(), &Settings::default());
        let elapsed = start.elapsed();
        assert!(!plan.writes.is_empty());
        assert!(elapsed < PLAN_TIME_MAX, "{controller:?} took {elapsed:?}");
    }
}
