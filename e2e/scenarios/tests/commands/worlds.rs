//! The worlds of `crates/explain/tests/explain/worlds.txt` on a real control plane, published by
//! kube-controller-manager: `explain` finds the code of each world, says of what is published what is
//! there, and the commands that it suggests do what they should.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use endpointd_control_plane::binaries::is_ci;
use endpointd_control_plane::{Api, ApiError, Binaries, Cluster, Options};
use endpointd_scenarios::cluster::REPLACED_CONTROLLERS;
use serde_json::{Map, Value, json};

use crate::{explain_agrees, run};

const WORLDS: &str = include_str!("../../../../crates/explain/tests/explain/worlds.txt");
const DEFINITIONS: [&str; 2] = [
    include_str!("../../../../deploy/multicluster/serviceexports.yaml"),
    include_str!("../../../../deploy/multicluster/serviceimports.yaml"),
];
/// What a world cannot be, if a controller is running and the API server validates objects.
const NOT_APPLIED: &[(&str, &str)] = &[
    ("EPD114", "the controller overwrites what another client has written"),
    ("EPD207", "a pod that was deleted long ago"),
    ("EPD302", "a probe without a handler is rejected"),
    ("EPD307", "the moment after a change"),
    ("EPD405", "a Service without ports is rejected, unless it is headless"),
    ("EPD605", "an unknown value is rejected"),
    ("EPD704", "invalid addresses are rejected"),
    ("EPD707", "nobody imports endpoints there"),
    ("EPD708", "nobody imports endpoints there"),
    ("EPD715", "the name of a derived Service depends on its namespace"),
    ("EPD801", "a thousand pods: a scenario has them"),
    ("EPD802", "the controller publishes what should be"),
    ("EPD803", "the controller may write"),
    ("EPD804", "a controller runs"),
    ("EPD805", "one controller runs"),
    ("EPD807", "objects that cannot be decoded are rejected"),
];
/// These are applied first, and one after the other: no pod of another namespace may have the labels,
/// or topology depends on all nodes of the cluster.
const ALONE: [&str; 2] = ["EPD102", "EPD60"];
const SETTLED_MAX: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(300);
const THREADS: usize = 4;
const UNTHROTTLED: [&str; 2] = ["--kube-api-qps=1000", "--kube-api-burst=2000"];

/// One section of the file, in a namespace of its own.
struct World {
    namespace: String,
    code: String,
    /// As an argument of `explain`.
    target: String,
    /// Kind, name, and fields.
    objects: Vec<(String, String, Value)>,
}

pub fn every_world_is_explained_as_it_is_published() {
    let Some(binaries) = Binaries::for_test() else { return };
    let cluster = Cluster::start(&binaries, Options::default()).expect("a cluster starts");
    let started = cluster.start_controller_manager(&REPLACED_CONTROLLERS, &UNTHROTTLED);
    started.expect("kube-controller-manager starts");
    let api = cluster.fast_api().expect("the authority is valid");
    define_exports(&api);
    let (alone, together): (Vec<World>, Vec<World>) =
        worlds().into_iter().partition(|world| ALONE.iter().any(|one| world.code.starts_with(one)));
    for world in &alone {
        world.apply(&api).expect("the API server takes it");
        wait_for_codes(&cluster, std::slice::from_ref(world));
        world.delete(&api);
    }
    apply_all(&api, &together);
    wait_for_codes(&cluster, &together);
    let explained = run(&cluster.kubeconfig(), &["explain", "-A", "-o", "json"]).json();
    let n_compared = explain_agrees(&api, &explained);
    assert!(n_compared > 12, "too few Services with ready endpoints: {n_compared}");
    suggested_labels_help(&cluster, &explained);
    eprintln!("{} worlds, {n_compared} Services with endpoints", alone.len() + together.len());
}

/// ServiceExports and ServiceImports, as they are installed.
fn define_exports(api: &Api) {
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    for text in DEFINITIONS {
        let definition: Value = serde_saphyr::from_str(text).expect("a definition is YAML");
        api.create(definitions, &definition).expect("the API server takes it");
    }
    let started = Instant::now();
    for kind in ["ServiceExport", "ServiceImport"] {
        while let Err(error) = api.get(&path(kind, "default")) {
            assert!(started.elapsed() < SETTLED_MAX, "{kind}: {error}");
            thread::sleep(POLL);
        }
    }
}

/// All that the API server does not take is named at once.
fn apply_all(api: &Api, worlds: &[World]) {
    let share = worlds.len().div_ceil(THREADS);
    let refused: Vec<String> = thread::scope(|scope| {
        let apply = |worlds: &[World]| -> Vec<String> {
            worlds.iter().filter_map(|world| world.apply(api).err()).collect()
        };
        let started: Vec<_> =
            worlds.chunks(share).map(|worlds| scope.spawn(move || apply(worlds))).collect();
        started.into_iter().flat_map(|one| one.join().expect("no panic")).collect()
    });
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

fn worlds() -> Vec<World> {
    let sections = WORLDS.split("== ").filter(|section| !section.trim().is_empty());
    let worlds: Vec<World> =
        sections.enumerate().map(|(n, section)| World::parse(n, section)).collect();
    let codes: BTreeSet<&str> = worlds.iter().map(|world| world.code.as_str()).collect();
    let unknown: Vec<_> = NOT_APPLIED.iter().filter(|(code, _)| !codes.contains(code)).collect();
    assert!(unknown.is_empty(), "no world has the code: {unknown:?}");
    let is_applied = |world: &World| NOT_APPLIED.iter().all(|(code, _)| *code != world.code);
    worlds.into_iter().filter(is_applied).collect()
}

/// Until each world is explained with its code.
fn wait_for_codes(cluster: &Cluster, worlds: &[World]) {
    let started = Instant::now();
    loop {
        let missing = without_code(cluster, worlds);
        if missing.is_empty() {
            return;
        }
        assert!(started.elapsed() < SETTLED_MAX, "{}", missing.join("\n"));
        thread::sleep(POLL);
    }
}

/// The worlds whose explanation does not have their code, and what it has.
fn without_code(cluster: &Cluster, worlds: &[World]) -> Vec<String> {
    let kubeconfig = cluster.kubeconfig();
    let all = run(&kubeconfig, &["explain", "-A", "-o", "json"]).json();
    let items = all["items"].as_array().into_iter().flatten();
    let by_key: BTreeMap<String, &Value> = items
        .map(|item| {
            let text = |field: &str| item["object"][field].as_str().unwrap_or_default();
            (format!("{}/{}", text("namespace"), text("name")), item)
        })
        .collect();
    let mut missing = Vec::new();
    for World { namespace, code, target, .. } in worlds {
        let service = target.strip_prefix("svc/");
        let known = service.and_then(|name| by_key.get(&format!("{namespace}/{name}")));
        let explained = match known {
            Some(item) => (*item).clone(),
            // A pod, Endpoints, or what is not there.
            None => run(&kubeconfig, &["explain", target, "-n", namespace, "-o", "json"]).json(),
        };
        let findings = explained["findings"].as_array().into_iter().flatten();
        let found: Vec<&str> = findings.filter_map(|one| one["code"].as_str()).collect();
        if !found.contains(&code.as_str()) {
            let verdict = &explained["verdict"];
            missing.push(format!("{namespace}: no {code} for {target}: {found:?} {verdict}"));
        }
    }
    missing
}

/// With kubectl as the hand of the user: after the command, the near miss is gone.
fn suggested_labels_help(cluster: &Cluster, explained: &Value) {
    if Command::new("kubectl").args(["version", "--client"]).output().is_err() {
        assert!(!is_ci(), "no kubectl on this machine");
        eprintln!("skipped: no kubectl on this machine");
        return;
    }
    let kubeconfig = cluster.kubeconfig();
    let items = explained["items"].as_array().into_iter().flatten();
    let findings = items.flat_map(|item| item["findings"].as_array().into_iter().flatten());
    let commands: Vec<(&Value, &str)> = findings
        .filter_map(|one| Some((one, one["try"].as_str()?)))
        .filter(|(_, command)| command.contains(" label pod "))
        .collect();
    assert!(commands.len() >= 4, "one for each kind of near miss: {commands:?}");
    for (finding, command) in commands {
        kubectl(&kubeconfig, command);
        let namespace = command.split(' ').nth(2).unwrap_or_default();
        let after = run(&kubeconfig, &["explain", "-n", namespace, "-o", "json"]).json();
        assert!(
            !after.to_string().contains(&finding["message"].to_string()),
            "{command}: {after:#}"
        );
    }
}

fn kubectl(kubeconfig: &Path, command: &str) {
    let mut words = command.split(' ');
    let program = words.next().unwrap_or_default();
    let output = Command::new(program).args(words).env("KUBECONFIG", kubeconfig).output();
    let output = output.expect("kubectl starts");
    assert!(output.status.success(), "{command}: {output:?}");
}

impl World {
    fn parse(n: usize, section: &str) -> Self {
        let (head, rest) = section.split_once('\n').expect("a section has a head");
        let (code, target) = head.split_once(' ').expect("a head has a code and a target");
        let text = rest.split("\n--\n").next().unwrap_or(rest);
        let mut statements: Vec<String> = Vec::new();
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            match statements.last_mut() {
                Some(last) if line.starts_with(' ') => last.push_str(line),
                Some(_) | None => statements.push(line.to_owned()),
            }
        }
        let objects = statements.iter().filter_map(|statement| {
            let mut words = statement.splitn(3, ' ');
            let (kind, name) = (words.next()?, words.next()?);
            if kind == "complete" {
                return None; // A cluster has all objects of every kind.
            }
            let fields = serde_saphyr::from_str(words.next().unwrap_or("{}"));
            let fields = fields.unwrap_or_else(|error| panic!("{statement}: {error}"));
            Some((kind.to_owned(), name.to_owned(), fields))
        });
        let (code, target) = (code.to_owned(), target.trim().to_owned());
        Self { namespace: format!("world-{n}"), code, target, objects: objects.collect() }
    }

    /// The error names the object that the API server does not take.
    fn apply(&self, api: &Api) -> Result<(), String> {
        let mut n_pods = 0;
        let mut namespaces = BTreeSet::new();
        for (kind, name, fields) in &self.objects {
            let namespace = match fields.pointer("/metadata/namespace").and_then(Value::as_str) {
                Some(other) => format!("{}-{other}", self.namespace),
                None => self.namespace.clone(),
            };
            for namespace in [&self.namespace, &namespace] {
                if namespaces.insert(namespace.clone()) {
                    let object = json!({"metadata": {"name": namespace}});
                    api.create("/api/v1/namespaces", &object).expect("it is new");
                }
            }
            n_pods += usize::from(kind == "Pod");
            let mut object = self.object(kind, name, fields, n_pods);
            object["metadata"]["namespace"] = namespace.clone().into();
            self.put(api, kind, &object, fields)
                .map_err(|error| format!("{} {}: {object}: {error}", self.code, self.namespace))?;
        }
        Ok(())
    }

    /// With what the API server demands and the file leaves out.
    fn object(&self, kind: &str, name: &str, fields: &Value, n_pods: usize) -> Value {
        let mut object = defaults(kind, name, n_pods);
        merge(&mut object, &json!({"metadata": {"name": name}}));
        merge(&mut object, fields);
        match kind {
            "Node" => object["metadata"]["name"] = self.node_name(name).into(),
            "Pod" => {
                if let Some(node) = object.pointer("/spec/nodeName").and_then(Value::as_str) {
                    object["spec"]["nodeName"] = self.node_name(node).into();
                }
                for container in list(&mut object, "/spec/containers") {
                    container["image"] = "app".into();
                }
                for owner in list(&mut object, "/metadata/ownerReferences") {
                    owner["apiVersion"] = "apps/v1".into();
                    owner["uid"] = "00000000-0000-0000-0000-000000000000".into();
                }
            }
            "Service" if object["spec"]["type"] == "ExternalName" => {
                object["spec"]["ipFamilies"] = Value::Null;
            }
            "Service"
                if object["spec"]["ipFamilies"].as_array().is_some_and(|all| all.len() > 1) =>
            {
                object["spec"]["ipFamilyPolicy"] = "RequireDualStack".into();
            }
            "ServiceExport" | "ServiceImport" => {
                object["apiVersion"] = "multicluster.x-k8s.io/v1beta1".into();
                object["kind"] = kind.into();
                for condition in list(&mut object, "/status/conditions") {
                    let given = condition.take();
                    *condition =
                        json!({"lastTransitionTime": "2026-01-01T11:30:00Z", "message": ""});
                    merge(condition, &given);
                }
            }
            "Event" => {
                object["involvedObject"]["namespace"] = self.namespace.clone().into();
            }
            "Deployment" => {
                let labels = object["spec"]["template"]["metadata"]["labels"].clone();
                object["spec"]["selector"] = json!({"matchLabels": labels});
                let container = json!({"name": "app", "image": "app"});
                object["spec"]["template"]["spec"] = json!({"containers": [container]});
            }
            _ => {}
        }
        object
    }

    /// Creates it, or changes the fields of what is there; then its status and its deletion.
    fn put(&self, api: &Api, kind: &str, object: &Value, fields: &Value) -> Result<(), ApiError> {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        let list = path(kind, text("namespace"));
        let one = format!("{list}/{}", text("name"));
        match api.create(&list, object) {
            Ok(_) => {}
            Err(ApiError::Refused { status: 409, .. }) => {
                self.wait_until_published(api);
                api.merge(&one, fields)?;
            }
            Err(error) => return Err(error),
        }
        if object.get("status").is_some() {
            api.merge(&format!("{one}/status"), &json!({"status": object["status"]}))?;
        }
        if object["metadata"]["deletionTimestamp"].is_string() {
            let grace = if kind == "Pod" { "?gracePeriodSeconds=600" } else { "" };
            api.delete(&format!("{one}{grace}"))?;
        }
        Ok(())
    }

    /// The file changes an object after it was published.
    fn wait_until_published(&self, api: &Api) {
        let slices = path("EndpointSlice", &self.namespace);
        let started = Instant::now();
        loop {
            let found = api.get(&slices).expect("a list");
            if found["items"].as_array().is_some_and(|items| !items.is_empty()) {
                return;
            }
            assert!(started.elapsed() < SETTLED_MAX, "{}: nothing is published", self.namespace);
            thread::sleep(POLL);
        }
    }

    fn node_name(&self, name: &str) -> String {
        format!("{}-{name}", self.namespace)
    }

    fn delete(&self, api: &Api) {
        for (kind, name, _) in &self.objects {
            let name = if kind == "Node" { &self.node_name(name) } else { name };
            let one = format!("{}/{name}", path(kind, &self.namespace));
            api.delete(&format!("{one}?gracePeriodSeconds=0")).expect("it is there");
        }
    }
}

fn list<'v>(object: &'v mut Value, pointer: &str) -> impl Iterator<Item = &'v mut Value> {
    object.pointer_mut(pointer).and_then(Value::as_array_mut).into_iter().flatten()
}

fn path(kind: &str, namespace: &str) -> String {
    let (group, plural) = match kind {
        "Service" => ("/api/v1", "services"),
        "Pod" => ("/api/v1", "pods"),
        "Node" => return "/api/v1/nodes".to_owned(),
        "Endpoints" => ("/api/v1", "endpoints"),
        "Event" => ("/api/v1", "events"),
        "EndpointSlice" => ("/apis/discovery.k8s.io/v1", "endpointslices"),
        "Deployment" => ("/apis/apps/v1", "deployments"),
        "HorizontalPodAutoscaler" => ("/apis/autoscaling/v2", "horizontalpodautoscalers"),
        "Lease" => ("/apis/coordination.k8s.io/v1", "leases"),
        "ServiceExport" => ("/apis/multicluster.x-k8s.io/v1beta1", "serviceexports"),
        "ServiceImport" => ("/apis/multicluster.x-k8s.io/v1beta1", "serviceimports"),
        other => panic!("a kind without a path: {other}"),
    };
    format!("{group}/namespaces/{namespace}/{plural}")
}

/// The defaults of the file, as in `crates/explain/tests/explain/fixture.rs`, and required fields.
fn defaults(kind: &str, name: &str, n_pods: usize) -> Value {
    let condition = |name: &str| json!({"type": name, "status": "True", "lastTransitionTime": "2026-01-01T11:30:00Z"});
    match kind {
        "Service" => json!({"spec": {
            "selector": {"app": name},
            "ipFamilies": ["IPv4"],
            "ports": [{"port": 80, "targetPort": 8080, "protocol": "TCP"}],
        }}),
        "Pod" => {
            let ip = format!("10.0.0.{n_pods}");
            json!({
                "metadata": {"labels": {"app": "web"}},
                "spec": {
                    "nodeName": "n1",
                    "terminationGracePeriodSeconds": 600,
                    "containers": [{
                        "name": "app",
                        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
                    }],
                },
                "status": {
                    "phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}],
                    "conditions": [condition("Ready"), condition("ContainersReady")],
                    "containerStatuses":
                        [{"name": "app", "ready": true, "started": true, "state": {"running": {}}}],
                },
            })
        }
        "Node" => json!({
            "metadata": {"labels": {"topology.kubernetes.io/zone": "zone-a"}},
            "status": {"conditions": [condition("Ready")], "allocatable": {"cpu": "4"}},
        }),
        "EndpointSlice" => json!({"addressType": "IPv4", "endpoints": []}),
        "HorizontalPodAutoscaler" => json!({"spec": {
            "maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1"},
        }}),
        _ => json!({}),
    }
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
