//! A cluster for commands: the embedded API server, with some paths forbidden, and the paths that
//! were asked for.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::thread;

use axum::extract::Request;
use axum::http::{Method, StatusCode};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use endpointd_apiserver::http::{Shared, router};
use endpointd_apiserver::kinds::{self, Kind};
use endpointd_apiserver::{Server, Settings, SystemClockAndIds, Target, WriteOptions};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::run::{CommandOutput, run};

/// A group, the plural, and the kind of what the tests create.
const KINDS: [(&str, &str, &str); 10] = [
    ("", "services", "Service"),
    ("", "pods", "Pod"),
    ("", "nodes", "Node"),
    ("", "namespaces", "Namespace"),
    ("", "endpoints", "Endpoints"),
    ("discovery.k8s.io", "endpointslices", "EndpointSlice"),
    ("apps", "deployments", "Deployment"),
    ("coordination.k8s.io", "leases", "Lease"),
    ("multicluster.x-k8s.io", "serviceexports", "ServiceExport"),
    ("multicluster.x-k8s.io", "serviceimports", "ServiceImport"),
];

pub struct TestCluster {
    pub url: String,
    shared: Shared,
    /// Methods and paths.
    requests: Arc<Mutex<Vec<(Method, String)>>>,
    _stop: oneshot::Sender<()>,
}

impl TestCluster {
    /// Requests whose path ends like this are forbidden.
    pub fn start(forbidden: &'static [&'static str]) -> Self {
        let server = Server::new(Box::new(SystemClockAndIds), Settings::default());
        let shared = Shared::new(server);
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (started, address) = std::sync::mpsc::channel();
        let (stop, stopped) = oneshot::channel::<()>();
        let (served, recorded) = (shared.clone(), Arc::clone(&requests));
        thread::spawn(move || serve(served, recorded, forbidden, &started, stopped));
        let address: SocketAddr = address.recv().expect("the server starts");
        Self { url: format!("http://{address}"), shared, requests, _stop: stop }
    }

    /// Creates objects, with their status.
    pub fn add(&self, objects: &[Value]) {
        for object in objects {
            let kind = kind_of(object);
            let text =
                |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
            self.shared.with(|server| {
                let options = WriteOptions::default();
                let collection = Target::collection(kind, namespace);
                server.create(&collection, object.clone(), &options).expect("a valid object");
                if object.get("status").is_some() {
                    let target = Target::object(kind, namespace, name);
                    server.update_status(&target, object.clone(), &options).expect("a status");
                }
            });
        }
    }

    /// Runs a command against the cluster.
    pub fn run(&self, args: &[&str]) -> CommandOutput {
        self.run_with(&[], args)
    }

    pub fn run_with(&self, files: &[(&str, &str)], args: &[&str]) -> CommandOutput {
        run(files, &[args, &["--server", &self.url]].concat(), b"")
    }

    /// The paths that were read, without queries.
    pub fn paths(&self) -> Vec<String> {
        let requests = self.requests.lock().expect("no panic");
        requests.iter().map(|(_, path)| path.clone()).collect()
    }

    pub fn n_writes(&self) -> usize {
        let requests = self.requests.lock().expect("no panic");
        requests.iter().filter(|(method, _)| method != Method::GET).count()
    }
}

fn kind_of(object: &Value) -> &'static Kind {
    let kind = object["kind"].as_str().expect("a kind");
    let (group, plural, _) = KINDS.iter().find(|(_, _, one)| *one == kind).expect("a known kind");
    kinds::find(group, plural).expect("a kind of the server")
}

fn serve(
    shared: Shared,
    requests: Arc<Mutex<Vec<(Method, String)>>>,
    forbidden: &'static [&'static str],
    started: &std::sync::mpsc::Sender<SocketAddr>,
    stopped: oneshot::Receiver<()>,
) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async move {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        started.send(listener.local_addr().expect("an address")).expect("the test waits");
        let guard = move |request: Request, next: Next| {
            let path = request.uri().path().to_owned();
            let made = (request.method().clone(), path.clone());
            requests.lock().expect("no panic").push(made);
            async move {
                match forbidden.iter().any(|end| path.ends_with(end)) {
                    true => forbidden_response(&path),
                    false => next.run(request).await,
                }
            }
        };
        let served = axum::serve(listener, router(shared).layer(from_fn(guard)));
        tokio::select! {
            ended = async { served.await } => ended.expect("it serves"),
            _ = stopped => {}
        }
    });
}

fn forbidden_response(path: &str) -> Response {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden",
        "message": format!("{path} is forbidden"), "code": 403,
    });
    (StatusCode::FORBIDDEN, axum::Json(status)).into_response()
}

pub fn service(namespace: &str, name: &str, selector: Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"namespace": namespace, "name": name},
        "spec": {"selector": selector, "ports": [{"name": "http", "port": 80, "targetPort": 8080}]},
    })
}

/// A pod on `node-1` with the label `app`, ready for a long time.
pub fn pod(namespace: &str, name: &str, app: &str, ip: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"namespace": namespace, "name": name, "labels": {"app": app}},
        "spec": {
            "nodeName": "node-1",
            "containers": [{"name": "app", "image": "app", "ports": [{"containerPort": 8080}]}],
        },
        "status": {
            "phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}],
            "conditions": [
                {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T12:00:00Z"},
            ],
        },
    })
}

pub fn node(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {"topology.kubernetes.io/zone": "a"}},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    })
}

pub fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}
