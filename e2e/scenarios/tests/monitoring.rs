//! Prometheus scrapes a daemon that works: each panel of the Grafana dashboard has data, and no
//! alert is about to fire.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use endpointd_control_plane::{Binaries, Cluster, Options};
use endpointd_scenarios::cluster::controllers_under_test;
use endpointd_scenarios::pods::Pod;
use endpointd_scenarios::{
    ClusterUnderTest, Controllers, Daemon, DaemonFlags, SCENARIOS, TestNamespace, run_scenario,
};
use serde_json::{Value, json};

const DASHBOARD: &str = include_str!("../../../deploy/monitoring/dashboard.json");
const RULES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/monitoring/rules.yaml");
/// What the dashboard for kube-controller-manager of kubernetes-mixin draws, without the Go runtime.
const MIXIN: [&str; 8] = [
    "sum(up)",
    "sum(rate(workqueue_adds_total[1m])) by (instance, name)",
    "sum(rate(workqueue_depth[1m])) by (instance, name)",
    "histogram_quantile(0.99, sum(rate(workqueue_queue_duration_seconds_bucket[1m])) by (instance, name, le))",
    "sum(rate(rest_client_requests_total{code=~\"2..\"}[1m]))",
    "histogram_quantile(0.99, sum(rate(rest_client_request_duration_seconds_bucket{verb=\"POST\"}[1m])) by (verb, le))",
    "histogram_quantile(0.99, sum(rate(rest_client_request_duration_seconds_bucket{verb=\"GET\"}[1m])) by (verb, le))",
    "process_resident_memory_bytes + rate(process_cpu_seconds_total[1m])",
];
/// A scrape a second fills the ranges below.
const DATA_MAX: Duration = Duration::from_secs(60);

#[test]
fn every_panel_has_data_and_no_alert_fires() {
    let Some(binaries) = Binaries::for_test() else { return };
    if !is_installed("prometheus") || controllers_under_test() == Controllers::ControllerManager {
        return;
    }
    let under_test = ClusterUnderTest::start(&binaries, Controllers::None, Options::default());
    let flags = DaemonFlags::elected(&under_test.kubeconfig);
    let _daemon = Daemon::start(&under_test.cluster, "endpointd", &flags);
    let prometheus = Prometheus::start(&under_test.cluster);
    under_test.wait_until_synced();
    for name in ["created", "scaled", "mirrored"] {
        let scenario = SCENARIOS.iter().find(|scenario| scenario.name == name);
        run_scenario(scenario.expect("it exists"), &under_test.api);
    }
    let ns = TestNamespace::new(&under_test.api, "excluded");
    ns.service("web", &json!({"selector": {"app": "web"}, "ports": [{"port": 80}]}));
    ns.pending_pod(&Pod::new("web-0", "").labelled(json!({"app": "web"})));

    let dashboard: Value = serde_json::from_str(DASHBOARD).expect("JSON");
    for panel in dashboard["panels"].as_array().expect("panels") {
        for target in panel["targets"].as_array().into_iter().flatten() {
            let expr = target["expr"].as_str().expect("an expression");
            let expr = expr.replace("$job", ".+").replace("$__rate_interval", "1m");
            prometheus.wait_for_data(&expr);
        }
    }
    MIXIN.into_iter().for_each(|expr| prometheus.wait_for_data(expr));
    // The alerts of a process that has just started: pending ones would fire later.
    assert_eq!(prometheus.query("ALERTS"), json!([]));
}

/// Killed when dropped.
struct Prometheus {
    child: Child,
    url: String,
}

impl Prometheus {
    fn start(cluster: &Cluster) -> Self {
        let target = Daemon::status_address_of(cluster, "endpointd");
        let directory = cluster.directory().join("prometheus");
        fs::create_dir_all(&directory).expect("we own the directory of a cluster");
        let config = directory.join("prometheus.yml");
        let text = json!({
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [RULES],
            "scrape_configs": [
                {"job_name": "endpointd", "static_configs": [{"targets": [target.to_string()]}]},
            ],
        });
        fs::write(&config, text.to_string()).expect("the directory is new");
        let mut command = Command::new("prometheus");
        command.arg(format!("--config.file={}", config.display()));
        command.arg(format!("--storage.tsdb.path={}", directory.join("data").display()));
        command.arg("--web.listen-address=127.0.0.1:0").stderr(Stdio::piped());
        let mut child = cluster.adopt(&mut command).spawn().expect("prometheus starts");
        let mut log = BufReader::new(child.stderr.take().expect("it is piped")).lines();
        let mut lines = log.by_ref().map_while(Result::ok);
        let port = lines
            .find_map(|line| {
                let (_, address) = line.split_once("msg=\"Listening on\" address=")?;
                address.rsplit_once(':').map(|(_, port)| port.to_owned())
            })
            .expect("prometheus listens");
        // An unread pipe would block it.
        thread::spawn(move || log.for_each(drop));
        Self { child, url: format!("http://127.0.0.1:{port}") }
    }

    /// The samples of an instant query.
    fn query(&self, expr: &str) -> Value {
        let output = Command::new("promtool")
            .args(["query", "instant", "--format=json", &self.url, expr])
            .output()
            .expect("promtool starts");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{expr}: {error}");
        serde_json::from_slice(&output.stdout).expect("promtool prints JSON")
    }

    fn wait_for_data(&self, expr: &str) {
        let started = Instant::now();
        loop {
            let samples = self.query(expr);
            let mut values = samples.as_array().into_iter().flatten();
            if values.any(|sample| sample["value"][1].as_str().is_some_and(|value| value != "NaN"))
            {
                return;
            }
            assert!(started.elapsed() < DATA_MAX, "no data: {expr}: {samples}");
            thread::sleep(Duration::from_millis(500));
        }
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        // Both fail only if the process has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Without it the test is skipped, except in CI, where it fails.
fn is_installed(program: &str) -> bool {
    let is_installed = Command::new(program).arg("--version").output().is_ok();
    assert!(is_installed || env::var_os("CI").is_none(), "`{program}` is not installed");
    is_installed
}
