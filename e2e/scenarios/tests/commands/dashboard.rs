//! `endpointd dashboard` through kube-apiserver and a kubelet that is not real.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use endpointd_control_plane::{Api, Binaries, Cluster, Options};
use endpointd_scenarios::daemon::command;
use endpointd_scenarios::{ClusterUnderTest, Controllers, Daemon, DaemonFlags};
use serde_json::{Value, json};

use crate::fake_kubelet::FakeKubelet;

const WAIT_MAX: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(50);
const PODS: &str = "/api/v1/namespaces/endpointd/pods";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/endpointd/leases";

/// `endpointd-b` holds the Lease; both pods are the same process here.
pub fn a_dashboard_reaches_the_pod_that_leads() {
    let Some(binaries) = Binaries::for_test() else { return };
    let under_test = ClusterUnderTest::start(&binaries, Controllers::None, Options::default());
    let cluster = &under_test.cluster;
    let daemon = Daemon::start(cluster, "endpointd", &DaemonFlags::new(&under_test.kubeconfig));
    let port = daemon.status_address().port().to_string();
    let kubelet = FakeKubelet::start();
    create_pods(&under_test.api, kubelet.port);

    let directory = cluster.directory();
    let opened = fake_browser(directory);
    let dashboard = Dashboard::start(cluster, &["--pod-port", &port]);
    assert!(
        dashboard.line.starts_with("live page of endpointd/endpointd-b, which leads at http://"),
        "{}",
        dashboard.line
    );
    wait_for("the browser", || {
        fs::read_to_string(&opened).ok().filter(|url| *url == dashboard.url)
    });
    let page = Api::plain(dashboard.url.trim_end_matches("/ui/"));
    let text = page.text("/ui/").expect("the page");
    assert!(text.contains("<title>endpointd</title>"), "{text}");
    let index = page.get("/api/v1").expect("its API");
    assert_eq!(index["mode"], "run");
    assert!(kubelet.paths().iter().all(|path| path == "/portForward/endpointd/endpointd-b"));
    let mut stream = open_stream(&dashboard.url);
    read_until(&mut stream, "\"status\"");

    // The open page has to connect again, and reaches the pod that leads now.
    hold_lease(&under_test.api, "endpointd-a");
    read_to_the_end(&mut stream);
    read_until(&mut open_stream(&dashboard.url), "\"status\"");
    let last = || kubelet.paths().last().cloned();
    assert_eq!(last().as_deref(), Some("/portForward/endpointd/endpointd-a"));
    hold_lease(&under_test.api, "endpointd-b");
    wait_for("the leader of before", || {
        page.get("/api/v1").ok();
        last().filter(|path| path == "/portForward/endpointd/endpointd-b")
    });

    // The next request goes to the pod that is left.
    under_test
        .api
        .delete(&format!("{PODS}/endpointd-b?gracePeriodSeconds=0"))
        .expect("it is there");
    page.get("/api/v1").expect("the other pod");
    assert_eq!(last().as_deref(), Some("/portForward/endpointd/endpointd-a"));
    drop(dashboard);
    what_is_not_possible_is_said(cluster);
}

/// One sentence and a hint, exit code 2.
fn what_is_not_possible_is_said(cluster: &Cluster) {
    for (args, error, hint) in [
        (
            &["--pod-port", "1"][..],
            "pod endpointd-a does not serve the live page on port 1: an error occurred forwarding 1",
            "`--pod-port` names another",
        ),
        (&["pod/other"], "there is no pod `other` in namespace `endpointd`", "get pods"),
        (&["svc/web"], "only pods have ports to forward", "`pod/endpointd-5d8f`"),
        (&["-n", "default"], "no pod in namespace `default` has app.kubernetes", "`-n` and `-l`"),
        (&["--as", "nobody"], "cannot list the pods of namespace `endpointd`", "auth can-i list"),
    ] {
        let output = dashboard_command(cluster, args).output().expect("it starts");
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{err}");
        let lines: Vec<&str> = err.lines().collect();
        let [error_line, hint_line] = lines[..] else { panic!("not two lines: {err}") };
        assert!(error_line.starts_with(&format!("error: {error}")), "{err}");
        assert!(hint_line.starts_with("hint: ") && hint_line.contains(hint), "{err}");
    }
}

fn create_pods(api: &Api, kubelet_port: u16) {
    let created = |path: &str, object: &Value| {
        api.create(path, object).unwrap_or_else(|error| panic!("{object}: {error}"))
    };
    created("/api/v1/namespaces", &json!({"metadata": {"name": "endpointd"}}));
    created("/api/v1/nodes", &json!({"metadata": {"name": "dashboard-node"}}));
    let status = json!({"status": {
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": kubelet_port}},
    }});
    api.merge("/api/v1/nodes/dashboard-node/status", &status).expect("a status");
    for name in ["endpointd-a", "endpointd-b"] {
        let labels = json!({"app.kubernetes.io/name": "endpointd"});
        let spec = json!({
            "nodeName": "dashboard-node", "containers": [{"name": "endpointd", "image": "endpointd"}],
        });
        created(PODS, &json!({"metadata": {"name": name, "labels": labels}, "spec": spec}));
        let ready = json!([{"type": "Ready", "status": "True"}]);
        let status = json!({"status": {"phase": "Running", "conditions": ready}});
        api.merge(&format!("{PODS}/{name}/status"), &status).expect("a status");
    }
    created(LEASES, &json!({"metadata": {"name": "endpointd"}}));
    hold_lease(api, "endpointd-b");
}

fn hold_lease(api: &Api, pod: &str) {
    let spec = json!({"spec": {"holderIdentity": format!("{pod}_0123456789abcdef")}});
    api.merge(&format!("{LEASES}/endpointd"), &spec).expect("it is there");
}

/// A program that writes the address that it should open. Returns the file.
fn fake_browser(directory: &Path) -> std::path::PathBuf {
    let (program, opened) = (directory.join("xdg-open"), directory.join("opened"));
    let script = format!("#!/bin/sh\nprintf %s \"$1\" > '{}'\n", opened.display());
    fs::write(&program, script).expect("we own the directory");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("a mode");
    opened
}

fn dashboard_command(cluster: &Cluster, args: &[&str]) -> Command {
    let mut command = command();
    let path = std::env::var("PATH").unwrap_or_default();
    command.arg("dashboard").args(args).arg("--kubeconfig").arg(cluster.kubeconfig());
    command.env("PATH", format!("{}:{path}", cluster.directory().display())).env("DISPLAY", ":9");
    cluster.adopt(&mut command);
    command
}

/// Killed when it is dropped.
struct Dashboard {
    child: Child,
    line: String,
    url: String,
}

impl Dashboard {
    fn start(cluster: &Cluster, args: &[&str]) -> Self {
        let mut child =
            dashboard_command(cluster, args).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut line = String::new();
        let out = child.stdout.take().expect("piped");
        BufReader::new(out).read_line(&mut line).expect("text");
        let url = line.trim_end().rsplit_once(" at ").map(|(_, url)| url.to_owned());
        Self { child, line, url: url.unwrap_or_default() }
    }
}

impl Drop for Dashboard {
    fn drop(&mut self) {
        // Both fail only if it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn open_stream(url: &str) -> TcpStream {
    let address = url.trim_start_matches("http://").trim_end_matches("/ui/");
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(WAIT_MAX)).expect("a time");
    let head = format!("GET /api/v1/stream HTTP/1.1\r\nHost: {address}\r\n\r\n");
    stream.write_all(head.as_bytes()).expect("it reads");
    stream
}

fn read_until(stream: &mut TcpStream, wanted: &str) {
    let (mut text, mut bytes) = (String::new(), [0; 4096]);
    while !text.contains(wanted) {
        let n = stream.read(&mut bytes).expect("the stream goes on");
        assert!(n > 0, "the stream ended: {text}");
        text.push_str(&String::from_utf8_lossy(&bytes[..n]));
    }
}

fn read_to_the_end(stream: &mut TcpStream) {
    let mut bytes = [0; 4096];
    while stream.read(&mut bytes).expect("it ends without an error") > 0 {}
}

fn wait_for<T>(what: &str, find: impl Fn() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = find() {
            return found;
        }
        assert!(started.elapsed() < WAIT_MAX, "no {what}");
        thread::sleep(POLL);
    }
}
