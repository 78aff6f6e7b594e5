//! endpointd as a child process: built once, started on a cluster, stopped or killed by tests.

use std::env;
use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use endpointd_control_plane::{Api, Cluster};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// The program to use instead of the one built from this workspace.
const PROGRAM_VARIABLE: &str = "ENDPOINTD_PROGRAM";
const START_MAX: Duration = Duration::from_secs(30);
const STOP_MAX: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(20);
/// Shown when a test fails.
const LOG_LINES_MAX: usize = 40;

/// Command-line flags of a daemon.
#[derive(Clone, Debug)]
pub struct DaemonFlags {
    kubeconfig: PathBuf,
    is_elected: bool,
    more: Vec<String>,
    open_files_max: Option<u32>,
}

impl DaemonFlags {
    pub fn new(kubeconfig: &Path) -> Self {
        let kubeconfig = kubeconfig.to_owned();
        Self { kubeconfig, is_elected: false, more: Vec::new(), open_files_max: None }
    }

    /// One of several replicas.
    pub fn elected(kubeconfig: &Path) -> Self {
        Self { is_elected: true, ..Self::new(kubeconfig) }
    }

    pub fn with(mut self, flag: &str) -> Self {
        self.more.push(flag.to_owned());
        self
    }

    /// The soft and the hard limit of file descriptors.
    pub fn open_files_max(self, n: u32) -> Self {
        Self { open_files_max: Some(n), ..self }
    }

    fn command(&self) -> Command {
        let mut command = match self.open_files_max {
            None => Command::new(program()),
            Some(n) => {
                let mut shell = Command::new("sh");
                shell.arg("-c").arg(format!("ulimit -n {n} && exec \"$0\" \"$@\"")).arg(program());
                shell
            }
        };
        command.arg("run").arg("--kubeconfig").arg(&self.kubeconfig);
        command.arg(format!("--leader-elect={}", self.is_elected));
        command.arg("--metrics-bind-address=127.0.0.1:0").args(&self.more);
        if !self.more.iter().any(|flag| flag.starts_with("--secure-port=")) {
            command.arg("--secure-port=0");
        }
        command
    }
}

/// A running daemon. Drop sends SIGKILL, and shows the end of the log if a test failed.
pub struct Daemon {
    child: Child,
    log: PathBuf,
    /// Length of the log before the start.
    log_start: usize,
}

impl Daemon {
    /// Daemons with the same name append to the same log file.
    pub fn start(cluster: &Cluster, name: &str, flags: &DaemonFlags) -> Self {
        let path = log_path(cluster, name);
        let log = File::options().create(true).append(true).open(&path);
        let log = log.expect("we own the directory of a cluster");
        let log_start = fs::read(&path).map_or(0, |text| text.len());
        let mut command = flags.command();
        command.env_clear().env("RUST_BACKTRACE", "1").current_dir(cluster.directory());
        command.stdin(Stdio::null()).stdout(log.try_clone().expect("the log is open")).stderr(log);
        let child = cluster.adopt(&mut command).spawn().expect("endpointd can be started");
        Self { child, log: path, log_start }
    }

    /// What this process has logged.
    pub fn log(&self) -> String {
        let log = fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(log.get(self.log_start..).unwrap_or_default()).into_owned()
    }

    /// The last lines of [`Self::log`].
    pub fn log_end(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(LOG_LINES_MAX)..].join("\n")
    }

    /// Its metrics, health checks, and report.
    pub fn status(&self) -> Api {
        Api::plain(&format!("http://{}", self.status_address()))
    }

    /// Waits until the process has logged it.
    pub fn status_address(&self) -> SocketAddr {
        let started = Instant::now();
        loop {
            let log = self.log();
            let found = log.split_once("status_address=").map(|(_, rest)| rest);
            if let Some(address) = found.and_then(|rest| rest.split_whitespace().next())
                && let Ok(address) = address.parse()
            {
                return address;
            }
            assert!(started.elapsed() < START_MAX, "endpointd does not start: {log}");
            thread::sleep(POLL);
        }
    }

    /// The value of a metric, with its labels as they are shown; `None` if it is not there.
    pub fn metric(&self, name: &str) -> Option<f64> {
        let text = self.status().text("/metrics").expect("metrics are served");
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|value| value.parse().ok())
    }

    /// The rows of a key, one per controller.
    pub fn key_rows(&self, key: &str) -> Vec<Value> {
        let report = self.status().get(&format!("/report?key={key}")).expect("it is served");
        report["keys"].as_array().cloned().unwrap_or_default()
    }

    pub fn log_of(cluster: &Cluster, name: &str) -> String {
        let log = fs::read(log_path(cluster, name)).unwrap_or_default();
        String::from_utf8_lossy(&log).into_owned()
    }

    /// Where the daemon that started last serves its pages: it logs the port that it got.
    pub fn status_address_of(cluster: &Cluster, name: &str) -> SocketAddr {
        let started = Instant::now();
        loop {
            let log = Self::log_of(cluster, name);
            let logged = log.rsplit_once("status_address=").map(|(_, rest)| rest);
            let address = logged.and_then(|rest| rest.split_whitespace().next());
            if let Some(Ok(address)) = address.map(str::parse) {
                return address;
            }
            assert!(started.elapsed() < START_MAX, "endpointd serves no pages: {log}");
            thread::sleep(POLL);
        }
    }

    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends SIGTERM and waits until the process has ended.
    pub fn stop(mut self) {
        self.signal(Signal::TERM);
        let started = Instant::now();
        while self.is_running() {
            assert!(started.elapsed() < STOP_MAX, "endpointd ignores SIGTERM");
            thread::sleep(POLL);
        }
    }

    pub fn signal(&mut self, signal: Signal) {
        if self.is_running() {
            kill_process(Pid::from_child(&self.child), signal).expect("the daemon is our child");
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // Both fail only if the process has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            eprintln!("-- end of {}:\n{}", self.log.display(), self.log_end());
        }
    }
}

/// A command of endpointd other than `run`.
pub fn command() -> Command {
    Command::new(program())
}

fn log_path(cluster: &Cluster, name: &str) -> PathBuf {
    cluster.directory().join(format!("{name}.log"))
}

/// Makes all daemons started from now on use the build with the profile `dist` (no PGO, no BOLT),
/// or the program that `ENDPOINTD_PROGRAM` names.
///
/// # Panics
///
/// If a daemon was started before, or if the build fails.
pub fn use_dist_profile() -> &'static Path {
    let chosen = env::var_os(PROGRAM_VARIABLE)
        .map_or_else(|| build(&["--profile", "dist", "--no-default-features"]), Into::into);
    PROGRAM.set(chosen).expect("the program is chosen before the first daemon");
    program()
}

static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Cargo builds only the binaries of a test's own package, so this runs `cargo build`.
pub fn program() -> &'static Path {
    PROGRAM.get_or_init(|| env::var_os(PROGRAM_VARIABLE).map_or_else(|| build(&[]), PathBuf::from))
}

fn build(profile: &[&str]) -> PathBuf {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    // The package of this test must not look like a changed environment to build scripts: `ring`
    // and all its users would be compiled again in each run.
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    let output = command
        .args(["build", "--package", "endpointd", "--message-format=json-render-diagnostics"])
        .args(profile)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stderr(Stdio::inherit())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "endpointd does not build");
    let messages = String::from_utf8_lossy(&output.stdout);
    let executable = messages.lines().find_map(|line| {
        let message: Value = serde_json::from_str(line).ok()?;
        let path = message["executable"].as_str()?;
        (message["target"]["name"] == "endpointd").then(|| PathBuf::from(path))
    });
    executable.expect("cargo prints the path of the executable")
}
