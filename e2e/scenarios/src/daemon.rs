//! endpointd as a child process: built once, started on a cluster, stopped or killed by tests.

use std::env;
use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use endpointd_control_plane::Cluster;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// The program to use instead of the one built from this workspace.
const PROGRAM_VARIABLE: &str = "ENDPOINTD_PROGRAM";
const START_MAX: Duration = Duration::from_secs(30);
const STOP_MAX: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(20);

/// Command-line flags of a daemon.
#[derive(Clone, Debug)]
pub struct DaemonFlags {
    kubeconfig: PathBuf,
    /// Appended to the standard flags; the last value of a flag counts.
    more: Vec<String>,
}

impl DaemonFlags {
    pub fn new(kubeconfig: &Path) -> Self {
        let more = vec!["--leader-elect=false".to_owned()];
        Self { kubeconfig: kubeconfig.to_owned(), more }
    }

    /// One of several replicas.
    pub fn elected(kubeconfig: &Path) -> Self {
        Self { kubeconfig: kubeconfig.to_owned(), more: vec!["--leader-elect=true".to_owned()] }
    }

    pub fn with(mut self, flag: &str) -> Self {
        self.more.push(flag.to_owned());
        self
    }
}

/// A running daemon. Drop sends SIGKILL.
pub struct Daemon {
    child: Child,
}

impl Daemon {
    /// Daemons with the same name append to the same log file.
    pub fn start(cluster: &Cluster, name: &str, flags: &DaemonFlags) -> Self {
        let log = File::options().create(true).append(true).open(log_path(cluster, name));
        let log = log.expect("we own the directory of a cluster");
        let mut command = Command::new(program());
        command.arg("run").arg("--kubeconfig").arg(&flags.kubeconfig);
        command.arg("--metrics-bind-address=127.0.0.1:0").args(&flags.more);
        command.env_clear().env("RUST_BACKTRACE", "1").current_dir(cluster.directory());
        command.stdin(Stdio::null()).stdout(log.try_clone().expect("the log is open")).stderr(log);
        let child = cluster.adopt(&mut command).spawn().expect("endpointd can be started");
        Self { child }
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
    }
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
fn program() -> &'static Path {
    PROGRAM.get_or_init(|| env::var_os(PROGRAM_VARIABLE).map_or_else(|| build(&[]), PathBuf::from))
}

fn build(profile: &[&str]) -> PathBuf {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
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
