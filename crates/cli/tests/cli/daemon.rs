//! `endpointd run` as a process: invalid flags, an unreachable server, and signals. Tests against a
//! cluster are in `e2e`.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rcgen::{CertificateParams, KeyPair};
use serde_json::json;

use crate::run::CommandOutput;
use crate::test_cluster::{TestCluster, namespace, node, pod, service};

fn daemon(args: &[&str]) -> CommandOutput {
    crate::run::run(&[], &[&["run"], args].concat(), b"")
}

/// Nothing listens there.
const SERVER: &str = "--server=http://127.0.0.1:1";

#[test]
fn an_invalid_flag_is_one_sentence_and_a_hint() {
    for (args, error, hint) in [
        (&["--max-endpoints-per-slice=0"][..], "from 1 to 1000: `0`", "it is 100"),
        (&["--concurrent-service-endpoint-syncs=51"], "from 1 to 50: `51`", "it is 5"),
        (&["--concurrent-endpoint-syncs=none"], "must be a number", "it is 5"),
        (&["--endpointslice-updates-batch-period=5"], "must be a duration: `5`", "`500ms`"),
        (&["--endpoint-updates-batch-period=-1s"], "must be a duration", "`1m30s`"),
        (&["--kube-api-qps=0"], "above 0: `0`", "only the API server"),
        (&["--kube-api-burst=-3"], "above 0: `-3`", "--kube-api-qps"),
        (&["--metrics-bind-address=nowhere"], "not an address and port: `nowhere`", "`0`"),
        (&["--metrics-bind-address=0.0.0.0:1"], "not a loopback address", "--secure-port"),
        (&["--secure-port=https"], "must be a port from 0 to 65535: `https`", "10270"),
        (&["--bind-address=localhost"], "not an IP address: `localhost`", "0.0.0.0"),
        (&["--tls-min-version=1.1"], "unknown `--tls-min-version`: `1.1`", "VersionTLS13"),
        (&[SERVER, "--tls-cipher-suites=RC4"], "unknown cipher suite: `RC4`", "known are"),
        (&[SERVER, "--cert-dir=absent"], "cannot use `absent/tls.crt`", "PEM"),
        (&["--authentication-token-webhook-cache-ttl=5"], "must be a duration: `5`", "`500ms`"),
        (&["--controllers=gardener"], "unknown controller: `gardener`", "known are"),
        (&["--controllers=-endpoint"], "selects no controller", "the three of Kubernetes"),
        (&["--shard=3/2"], "must be `i/n` with i from 1 to n: `3/2`", "--shard 2/4"),
        (&["--namespaces=Shop"], "names no namespace: `Shop`", "shop,test"),
        (&["--service-selector=a in (b)"], "not a label selector: `a in (b)`", "key=value"),
        (&["--controller-name=Blue"], "cannot be part of a label value: `Blue`", "lower-case"),
        (&["--controller-name="], "cannot be part of a label value: ``", "1 to 29"),
        (&["--orphan-policy=drop"], "must be `keep` or `delete`: `drop`", "are kept"),
        (
            &["--controllers=*,endpointslice-import-controller", "--shard=1/2"],
            "needs all Services of all namespaces",
            "without `--namespaces`",
        ),
        (&["--leader-elect-renew-deadline=20s"], "must last longer", "15s, 10s, and 2s"),
        (&["--leader-elect-retry-period=9s"], "more than one attempt", "15s, 10s, and 2s"),
        (&["--kubeconfig=absent.yaml"], "cannot read kubeconfig `absent.yaml`", "--kubeconfig"),
        (&["--server=ftp://x"], "not the URL of a server: `ftp://x`", "https://"),
    ] {
        daemon(args).fails_with(error, hint);
    }
}

#[test]
fn an_invalid_flag_about_clusters_is_one_sentence_and_a_hint() {
    const ON: &str = "--controllers=*,multicluster-controller";
    for (args, error, hint) in [
        (&[ON][..], "needs the name of this cluster", "--cluster-id"),
        (&["--cluster-id=eu1"], "which does not run", "--controllers=*,multicluster-controller"),
        (&[ON, "--cluster-id=eu.1"], "is not a DNS label", "--cluster-id"),
        (&[ON, "--cluster-id=eu1", "--lost-min-fresh=101"], "from 0 to 100: `101`", "50"),
        (&[ON, "--cluster-id=eu1", "--clusters=absent"], "is no directory: `absent`", "kubeconfig"),
        (
            &[ON, "--cluster-id=eu1", "--clusters=.", "--lost-demote-after=5"],
            "must be a duration: `5`",
            "`500ms`",
        ),
        (&[ON, "--cluster-id=eu1", "--shard=1/2"], "needs all Services", "without `--namespaces`"),
    ] {
        daemon(args).fails_with(error, hint);
    }
}

#[test]
fn a_port_in_use_is_an_error() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let flag = format!("--metrics-bind-address={address}");
    daemon(&[SERVER, "--secure-port=0", &flag]).fails_with("cannot serve pages on", "`0`");
    let port = taken.local_addr().expect("an address").port();
    let flag = format!("--secure-port={port}");
    let flags = [SERVER, "--metrics-bind-address=0", "--bind-address=127.0.0.1", &flag];
    daemon(&flags).fails_with("cannot serve pages on", "`0`");
}

#[test]
fn a_key_of_another_certificate_is_an_error() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let [key, other] = [(); 2].map(|()| KeyPair::generate().expect("a key"));
    let params = CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
    let certificate = params.self_signed(&key).expect("it signs itself").pem();
    fs::write(directory.path().join("tls.crt"), certificate).expect("the directory is ours");
    fs::write(directory.path().join("tls.key"), other.serialize_pem()).expect("it is ours");
    let flag = format!("--cert-dir={}", directory.path().display());
    daemon(&[SERVER, "--metrics-bind-address=0", &flag])
        .fails_with("does not belong to the certificate", "--tls-private-key-file");
}

/// Killed when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts `run` with pages on a port of its own, and returns their address.
fn with_pages(server: &str, args: &[&str]) -> (Running, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_endpointd"))
        .args(["run", "--server", server, "--metrics-bind-address=127.0.0.1:0"])
        .args(["--leader-elect=false", "--secure-port=0"])
        .args(args)
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
    let address = lines.by_ref().find_map(|line| {
        let line = line.expect("UTF-8");
        let (_, rest) = line.split_once("status_address=")?;
        rest.split_whitespace().next().map(str::to_owned)
    });
    // An unread pipe would block it.
    thread::spawn(move || lines.for_each(drop));
    (Running(child), address.expect("it logs its address"))
}

fn request(address: &str, head: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("the pages are served");
    let length = body.len();
    let text = format!("{head} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n{body}");
    stream.write_all(text.as_bytes()).expect("it reads");
    let mut response = String::new();
    stream.read_to_string(&mut response).expect("UTF-8");
    response
}

#[test]
fn flags_status_and_log_level_have_pages() {
    let (_running, address) = with_pages("http://127.0.0.1:1", &["--concurrent-endpoint-syncs=7"]);
    let flagz = request(&address, "GET /flagz", "");
    assert!(flagz.contains("endpointd flagz\nWarning: "), "{flagz}");
    assert!(flagz.contains("\nconcurrent-endpoint-syncs=7\n"), "{flagz}");
    assert!(flagz.contains("\nleader-elect=false\n"), "{flagz}");
    let statusz = request(&address, "GET /statusz", "");
    assert!(statusz.contains("\nUp: 0 hr 00 min "), "{statusz}");
    assert!(statusz.contains("\nBinary version: "), "{statusz}");
    assert!(request(&address, "GET /debug/flags/v", "").ends_with("\r\n\r\ninfo\n"));
    let set = request(&address, "PUT /debug/flags/v", "debug");
    assert!(set.contains("successfully set the log level to debug"), "{set}");
    assert!(request(&address, "GET /debug/flags/v", "").ends_with("\r\n\r\ndebug\n"));
    let unknown = request(&address, "PUT /debug/flags/v", "loud");
    assert!(unknown.starts_with("HTTP/1.1 400 "), "{unknown}");
}

/// The daemon may not create slices, and `explain` has no access to the cluster.
#[test]
fn explain_asks_a_running_endpointd_about_errors() {
    let cluster = TestCluster::start(&["/namespaces/shop/endpointslices"]);
    let objects =
        [service("shop", "web", json!({"app": "web"})), pod("shop", "web-1", "web", "10.0.0.1")];
    cluster.add(&[namespace("shop"), node("node-1")]);
    cluster.add(&objects);
    let (_running, address) = with_pages(&cluster.url, &[]);
    let dump = json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string();
    let url = format!("http://{address}");
    let args = ["explain", "web", "-f", "dump.json", "--endpointd", &url];
    let started = Instant::now();
    loop {
        let output = crate::run::run(&[("dump.json", &dump)], &args, b"");
        if output.out.contains("endpointd cannot write: ") && output.out.contains("EPD803") {
            return;
        }
        assert!(started.elapsed() < Duration::from_secs(30), "{output:?}");
        thread::sleep(Duration::from_millis(100));
    }
}

/// Who cannot read the cluster gets the answer of the daemon, which can.
#[test]
fn explain_asks_a_running_endpointd_if_the_cluster_cannot_be_read() {
    let cluster = TestCluster::start(&[]);
    cluster.add(&[namespace("shop"), node("node-1")]);
    cluster.add(&[
        service("shop", "web", json!({"app": "web"})),
        pod("shop", "web-1", "web", "10.0.0.1"),
        pod("shop", "web-2", "wbe", "10.0.0.2"),
    ]);
    let (_running, address) = with_pages(&cluster.url, &[]);
    let url = format!("http://{address}");
    let explain = |args: &[&str]| {
        let common = ["explain", "-n", "shop", "--endpointd", &url, "--server=http://127.0.0.1:1"];
        crate::run::run(&[], &[&common, args].concat(), b"")
    };
    let started = Instant::now();
    let output = loop {
        let output = explain(&["svc/web"]);
        if output.out.starts_with("Service shop/web sends traffic to its only pod.\n") {
            break output;
        }
        assert!(started.elapsed() < Duration::from_secs(30), "{output:?}");
        thread::sleep(Duration::from_millis(100));
    };
    let why = format!("? not read     explained by endpointd at {url}, because cannot read from");
    assert!(output.out.contains(&why), "{output:?}");
    assert_eq!(output.code, Some(0), "{output:?}");
    let missing = explain(&["svc/api"]);
    missing.fails_with("There is no Service `api` in namespace `shop`", "");
    explain(&["pod/web-2"]).fails_with("cannot read from the API server", "`-f FILE`");
}

/// A dry run differs as long as nobody else writes, and sends nothing.
#[test]
fn a_dry_run_reports_differences_and_writes_nothing() {
    let cluster = TestCluster::start(&[]);
    cluster.add(&[namespace("shop"), node("node-1")]);
    cluster.add(&[
        service("shop", "web", json!({"app": "web"})),
        pod("shop", "web-1", "web", "10.0.0.1"),
    ]);
    let (_running, address) = with_pages(&cluster.url, &["--dry-run"]);
    let started = Instant::now();
    let report = loop {
        let report = request(&address, "GET /report", "");
        if report.contains(r#""differs":2"#) {
            break report;
        }
        assert!(started.elapsed() < Duration::from_secs(30), "{report}");
        thread::sleep(Duration::from_millis(100));
    };
    assert!(report.contains(r#""key":"shop/web""#), "{report}");
    assert!(report.contains(r#""state":"dry_run""#), "{report}");
    let metrics = request(&address, "GET /metrics", "");
    assert!(metrics.contains("\nendpointd_shadow_keys{state=\"differs\"} 2\n"), "{metrics}");
    assert_eq!(cluster.n_writes(), 0);
}

#[test]
fn an_unreachable_server_is_retried_with_few_warnings_until_a_signal() {
    let child = Command::new(env!("CARGO_BIN_EXE_endpointd"))
        .args(["run", SERVER, "--metrics-bind-address=0", "--secure-port=0"])
        .args(["--log-format=json", "--leader-elect=false"])
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut running = Running(child);
    thread::sleep(Duration::from_secs(4));
    let pid = running.0.id().to_string();
    let asked = Instant::now();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().expect("kill runs").success());
    let code = running.0.wait().expect("it ends").code();
    assert_eq!(code, Some(0));
    assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());

    let mut log = String::new();
    let stderr = running.0.stderr.as_mut().expect("piped");
    stderr.read_to_string(&mut log).expect("UTF-8");
    let lines: Vec<serde_json::Value> =
        log.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let warnings = lines.iter().filter(|line| line["level"] == "WARN").count();
    assert!((1..=6).contains(&warnings), "one a kind, and none a try: {log}");
    assert!(log.contains("127.0.0.1:1"), "it says where it tried: {log}");
}

/// Soft and hard limit of open files.
fn descriptor_limits(pid: u32) -> Option<(String, String)> {
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    let mut numbers = line.split_whitespace().map(str::to_owned);
    Some((numbers.next()?, numbers.next()?))
}

#[test]
fn the_limit_of_open_files_is_raised_at_start() {
    let child = Command::new("sh")
        .args(["-c", r#"ulimit -S -n 256 && exec "$0" "$@""#, env!("CARGO_BIN_EXE_endpointd")])
        .args(["run", SERVER, "--metrics-bind-address=0", "--secure-port=0"])
        .arg("--leader-elect=false")
        .stderr(Stdio::null())
        .spawn()
        .expect("a shell");
    let mut running = Running(child);
    let (started, pid) = (Instant::now(), running.0.id());
    while descriptor_limits(pid).is_none_or(|(soft, hard)| soft != hard) {
        assert!(running.0.try_wait().expect("a child").is_none(), "it has ended");
        assert!(started.elapsed() < Duration::from_secs(20), "{:?}", descriptor_limits(pid));
        thread::sleep(Duration::from_millis(20));
    }
}

/// How the daemon ends under a limit, and what it wrote; `None`: there is enough memory to start.
fn run_with_memory(kib: u32) -> Option<(ExitStatus, String)> {
    let stderr = tempfile::NamedTempFile::new().expect("a temporary file");
    let script = format!(r#"ulimit -d {kib} && exec "$0" "$@""#);
    let child = Command::new("sh")
        .args(["-c", &script, env!("CARGO_BIN_EXE_endpointd")])
        .args(["run", SERVER, "--metrics-bind-address=0", "--secure-port=0"])
        .arg("--leader-elect=false")
        .env("RUST_BACKTRACE", "1")
        .stderr(stderr.reopen().expect("a temporary file"))
        .spawn()
        .expect("a shell");
    let (mut running, started) = (Running(child), Instant::now());
    loop {
        let ended = running.0.try_wait().expect("a child");
        let log = fs::read_to_string(stderr.path()).expect("UTF-8");
        match ended {
            Some(status) => return Some((status, log)),
            None if log.contains("watch disconnected") => return None,
            None => assert!(started.elapsed() < Duration::from_secs(30), "{kib} KiB, hangs: {log}"),
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// With little memory no thread can be started, which is a panic. Its backtrace needs more memory
/// than there is, and the allocation that failed within it waited for a lock forever.
#[test]
fn too_little_memory_ends_the_process_even_with_backtraces() {
    let limits = (8..40).map(|mib| mib << 10);
    let ends: Vec<_> = limits.map_while(run_with_memory).collect();
    for (status, log) in &ends {
        assert!(!status.success() && log.contains("memory"), "{status}: {log}");
    }
    let is_panic = |(_, log): &&(ExitStatus, String)| log.contains("hint: memory may be short");
    assert!(ends.iter().filter(is_panic).count() > 0, "no limit caused a panic: {ends:?}");
}
