//! Small worlds as text. A line `Kind name {fields}` adds an object; the fields are YAML in flow
//! style and may continue on the next lines. Services, pods, and nodes have defaults, so that a
//! world shows only what matters: a Service `web` chooses `app=web`, a pod is ready and has this
//! label, a node is ready and in `zone-a`. The line `published` publishes what the plan of the
//! objects so far says. All objects are in the namespace `shop`, and it is noon.

use endpointd_explain::{Context, Findings, Mode, Objects, explain};
use endpointd_model::{Controller, Key, Timestamp, Write};
use endpointd_plan::{AnnotationPolicy, CarriedState, Settings};
use endpointd_wire::to_json_value;
use serde_json::{Map, Value, json};

const NAMESPACE: &str = "shop";

pub fn now() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().expect("a time")
}

#[derive(Default)]
pub struct World {
    pub objects: Objects,
    pub settings: Settings,
    n_pods: usize,
}

impl World {
    pub fn parse(text: &str) -> Self {
        let mut world = Self::default();
        for kind in ["Service", "Pod", "EndpointSlice", "Endpoints"] {
            world.objects.complete(kind);
        }
        let mut statements: Vec<String> = Vec::new();
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            match statements.last_mut() {
                Some(last) if line.starts_with(' ') => last.push_str(line),
                Some(_) | None => statements.push(line.to_owned()),
            }
        }
        statements.iter().for_each(|one| world.statement(one));
        world.objects.assume_nodes();
        world
    }

    fn statement(&mut self, statement: &str) {
        let mut words = statement.splitn(3, ' ');
        let (kind, name) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        match kind {
            "published" => return self.publish(),
            "complete" => return self.objects.complete(name),
            "more-pods-elsewhere" => return self.objects.more_elsewhere("Pod"),
            "honoring-annotation" => {
                self.settings.tolerate_unready_annotation = AnnotationPolicy::Honor;
                return;
            }
            // `pods 1002`: as many ready pods.
            "pods" => {
                let n: usize = name.parse().expect("a number of pods");
                return (0..n).for_each(|n| self.numbered_pod(n));
            }
            _ => {}
        }
        let fields = words.next().unwrap_or("{}");
        let fields: Value =
            serde_saphyr::from_str(fields).unwrap_or_else(|error| panic!("{statement}: {error}"));
        self.add(kind, name, &fields);
    }

    pub fn add(&mut self, kind: &str, name: &str, fields: &Value) {
        let mut object = match kind {
            "Service" => service(name),
            "Pod" => {
                self.n_pods += 1;
                pod(self.n_pods)
            }
            "Node" => node(),
            "EndpointSlice" => json!({"addressType": "IPv4", "endpoints": []}),
            _ => json!({}),
        };
        let namespace = if kind == "Node" { Value::Null } else { NAMESPACE.into() };
        let api_version = match kind {
            "EndpointSlice" => "discovery.k8s.io/v1",
            "ServiceExport" | "ServiceImport" => "multicluster.x-k8s.io/v1beta1",
            _ => "v1",
        };
        let head = json!({
            "apiVersion": api_version,
            "kind": kind,
            "metadata": {"name": name, "namespace": namespace, "uid": format!("uid-{name}")},
        });
        merge(&mut object, &head);
        merge(&mut object, fields);
        self.objects.add(object);
    }

    fn numbered_pod(&mut self, n: usize) {
        let ip = format!("10.1.{}.{}", n / 250, 1 + n % 250);
        let status = json!({"podIP": ip, "podIPs": [{"ip": ip}]});
        self.add("Pod", &format!("web-{n:04}"), &json!({"status": status}));
    }

    /// Applies the plans of all controllers.
    pub fn publish(&mut self) {
        for controller in Controller::DEFAULT {
            let cluster = self.objects.cluster();
            let indexed = cluster.index();
            let carried = CarriedState::default();
            let plan = |key| indexed.plan(controller, &key, &carried, &self.settings);
            let plans: Vec<_> =
                indexed.keys(controller, &Settings::default()).into_iter().map(plan).collect();
            let mut cluster = cluster.clone();
            let writes = plans.iter().flat_map(|plan| &plan.writes);
            for write in writes {
                cluster.apply(write);
                let key = write.key();
                let object = match write {
                    Write::Create(object) | Write::Update(object) => object,
                    Write::Delete(_) => panic!("`published` deletes {key}"),
                };
                self.objects.add(to_json_value(object));
            }
        }
    }

    pub fn explain(&self, target: &str) -> Findings {
        let (kind, name) = target.split_once('/').unwrap_or(("svc", target));
        let indexed = self.objects.cluster().index();
        let context = Context {
            objects: &self.objects,
            indexed: &indexed,
            now: now(),
            settings: self.settings.clone(),
            controller: None,
            mode: Mode::Observed,
        };
        let key = Key::new(NAMESPACE, name);
        match kind {
            "svc" => explain::service(&context, &key),
            "pod" => explain::pod(&context, &key),
            "endpoints" => explain::endpoints(&context, &key),
            "endpointslice" => explain::slice(&context, &key),
            other => panic!("unknown kind: {other}"),
        }
    }
}

/// Verdict and findings, one line each.
pub fn text(explained: &Findings) -> String {
    let mut lines = vec![explained.verdict.clone()];
    for endpoint in explained.endpoints.iter().take(3) {
        let zone = endpoint.zone.as_ref().map_or_else(String::new, |zone| format!(" in {zone}"));
        lines.push(format!("ready {} {}{zone}", endpoint.pod, endpoint.addresses.join(" ")));
    }
    for finding in &explained.findings {
        lines.push(format!("{} {}: {}", finding.code, finding.object, finding.message));
        lines.extend(finding.evidence.iter().map(|fact| format!("  evidence: {fact}")));
        lines.extend(finding.near_miss.iter().map(|near| format!("  near: {near}")));
        lines.extend(finding.command.iter().map(|command| format!("  try: {command}")));
    }
    lines.extend(explained.not_read.iter().map(|what| format!("not read: {what}")));
    lines.join("\n")
}

/// JSON merge patch: null removes.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let fields = target.as_object_mut().expect("made an object above");
    for (key, value) in patch {
        if value.is_null() {
            fields.remove(key);
        } else {
            merge(fields.entry(key.clone()).or_insert(Value::Null), value);
        }
    }
}

fn service(name: &str) -> Value {
    json!({"spec": {
        "selector": {"app": name},
        "clusterIP": "10.96.0.1",
        "ipFamilies": ["IPv4"],
        "ports": [{"port": 80, "targetPort": 8080, "protocol": "TCP"}],
    }})
}

fn pod(n: usize) -> Value {
    let ip = format!("10.0.0.{n}");
    json!({
        "metadata": {"labels": {"app": "web"}, "creationTimestamp": "2026-01-01T11:00:00Z"},
        "spec": {
            "nodeName": "n1",
            "containers": [{
                "name": "app",
                "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
            }],
        },
        "status": {
            "phase": "Running",
            "podIP": ip,
            "podIPs": [{"ip": ip}],
            "conditions": [condition("Ready", "True"), condition("ContainersReady", "True")],
            "containerStatuses":
                [{"name": "app", "ready": true, "started": true, "state": {"running": {}}}],
        },
    })
}

fn condition(name: &str, status: &str) -> Value {
    json!({"type": name, "status": status, "lastTransitionTime": "2026-01-01T11:30:00Z"})
}

fn node() -> Value {
    json!({
        "metadata": {"labels": {"topology.kubernetes.io/zone": "zone-a"}},
        "status": {"conditions": [condition("Ready", "True")], "allocatable": {"cpu": "4"}},
    })
}
