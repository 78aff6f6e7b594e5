//! No process and no directory of a cluster outlives its owner, however the owner ends.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use endpointd_control_plane::{Binaries, Cluster, Options};

const TIMEOUT: Duration = Duration::from_secs(20);
const PREFIX: &str = "cluster directory: ";

#[test]
fn dropped_cluster_leaves_nothing() {
    let Some(binaries) = Binaries::for_test() else { return };
    let cluster = Cluster::start(&binaries, Options::default()).unwrap();
    let directory = cluster.directory().to_owned();
    assert!(n_processes_naming(&directory) >= 3, "etcd, kube-apiserver, and their reaper");

    drop(cluster);
    assert!(!directory.exists());
    assert_eq!(n_processes_naming(&directory), 0);
}

#[test]
fn concurrent_clusters_are_independent() {
    let Some(binaries) = Binaries::for_test() else { return };
    let start = || Cluster::start(&binaries, Options::default()).unwrap();
    let (one, other) = thread::scope(|scope| {
        let one = scope.spawn(start);
        let other = scope.spawn(start);
        (one.join().unwrap(), other.join().unwrap())
    });

    assert_ne!(one.url(), other.url());
    let path = format!("/api/v1/namespaces/{}", one.namespace("mine").unwrap());
    assert!(one.api().get(&path).is_ok());
    assert!(other.api().get(&path).is_err());
    drop(one);
    assert!(other.api().text("/readyz").is_ok(), "the other cluster still runs");
}

#[test]
fn owner_killed_with_sigkill_leaves_nothing() {
    if Binaries::for_test().is_none() {
        return;
    }
    let (mut owner, directory) = start_owner("owner_that_waits");
    assert!(n_processes_naming(&directory) >= 3);
    owner.kill().unwrap();
    owner.wait().unwrap();
    assert_nothing_left(&directory);
}

#[test]
fn panicking_owner_leaves_nothing() {
    if Binaries::for_test().is_none() {
        return;
    }
    let (mut owner, directory) = start_owner("owner_that_panics");
    assert!(!owner.wait().unwrap().success());
    assert_nothing_left(&directory);
}

#[test]
#[ignore = "started and killed by another test"]
fn owner_that_waits() {
    let cluster = Cluster::shared().unwrap();
    println!("\n{PREFIX}{}", cluster.directory().display());
    thread::sleep(10 * TIMEOUT);
}

#[test]
#[ignore = "started by another test"]
fn owner_that_panics() {
    let cluster = Cluster::shared().unwrap();
    println!("\n{PREFIX}{}", cluster.directory().display());
    panic!("like a failed test");
}

/// Runs one of the two tests above as another process, and waits for its cluster.
fn start_owner(test: &str) -> (Child, PathBuf) {
    let mut owner = Command::new(env::current_exe().expect("a test knows its file"));
    owner.args(["--exact", test, "--ignored", "--nocapture"]);
    owner.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut owner = owner.spawn().expect("a test can start itself");
    let stdout = BufReader::new(owner.stdout.take().expect("it is piped"));
    let line = stdout.lines().map_while(Result::ok).find(|line| line.starts_with(PREFIX));
    let line = line.expect("the owner names its directory once its cluster is up");
    let directory = PathBuf::from(line.trim_start_matches(PREFIX));
    (owner, directory)
}

fn assert_nothing_left(directory: &Path) {
    let started = Instant::now();
    while directory.exists() || n_processes_naming(directory) > 0 {
        assert!(started.elapsed() < TIMEOUT, "left: {}", directory.display());
        thread::sleep(Duration::from_millis(50));
    }
}

/// Every program of a cluster, and its reaper, has the directory on its command line.
fn n_processes_naming(directory: &Path) -> usize {
    let directory = directory.to_str().expect("temporary paths are text");
    let processes = fs::read_dir("/proc").expect("these tests run on Linux").flatten();
    let commands = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    commands.filter(|command| String::from_utf8_lossy(command).contains(directory)).count()
}
