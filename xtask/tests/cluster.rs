//! `cargo xtask cluster` and `cargo xtask control-plane` from the command line.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use endpointd_control_plane::Binaries;
use rustix::process::{Pid, Signal, kill_process};

#[test]
fn sigterm_stops_the_cluster_and_removes_its_directory() {
    if Binaries::for_test().is_none() {
        return;
    }
    let (mut xtask, kubeconfig) = start(&["--controllers", "endpointslice-controller"]);
    let directory = kubeconfig.parent().unwrap();
    assert!(kubeconfig.exists());
    assert!(directory.join("kube-controller-manager.log").exists());

    kill_process(Pid::from_child(&xtask), Signal::TERM).unwrap();
    assert!(xtask.wait().unwrap().success());
    assert!(!directory.exists());
}

#[test]
fn unknown_controller_is_an_error_with_its_name() {
    if Binaries::for_test().is_none() {
        return;
    }
    let output = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["cluster", "--controllers", "no-such-controller"])
        .output()
        .unwrap();
    assert!(!output.status.success());
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("no-such-controller"), "{message}");
    assert!(output.stdout.is_empty(), "a failed start exports no KUBECONFIG");
}

#[test]
fn control_plane_prints_the_directory_as_last_line() {
    let Some(binaries) = Binaries::for_test() else { return };
    let xtask = Command::new(env!("CARGO_BIN_EXE_xtask")).arg("control-plane").output().unwrap();
    let stdout = String::from_utf8(xtask.stdout).unwrap();
    assert_eq!(stdout.lines().last().map(Path::new), Some(binaries.directory()));
}

#[test]
fn missing_go_is_an_error_with_a_hint() {
    let empty = Path::new(env!("CARGO_TARGET_TMPDIR")).join("empty");
    let xtask = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .arg("control-plane")
        .env_clear()
        .env("XDG_CACHE_HOME", &empty)
        .env("PATH", &empty)
        .output()
        .unwrap();
    assert!(!xtask.status.success());
    let message = String::from_utf8(xtask.stderr).unwrap();
    assert!(message.contains("error: the Go toolchain is not installed\nhint: "), "{message}");
}

fn start(args: &[&str]) -> (Child, PathBuf) {
    let mut xtask = Command::new(env!("CARGO_BIN_EXE_xtask"));
    xtask.arg("cluster").args(args).stdout(Stdio::piped());
    let mut xtask = xtask.spawn().expect("cargo has built it");
    let mut stdout = BufReader::new(xtask.stdout.take().expect("it is piped"));
    let mut line = String::new();
    stdout.read_line(&mut line).expect("it writes text");
    let kubeconfig = line.trim_end().strip_prefix("export KUBECONFIG=").expect("what to export");
    (xtask, PathBuf::from(kubeconfig))
}
