//! `endpointd playground` as a process: invalid flags, output, and signals. The simulated cluster
//! is tested in its own crate.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::run::{CommandOutput, run};

fn playground(args: &[&str]) -> CommandOutput {
    run(&[("others", "apiVersion: v1\n")], &[&["playground"], args].concat(), b"")
}

#[test]
fn an_invalid_flag_is_one_sentence_and_a_hint() {
    for (args, error, hint) in [
        (
            &["--scenario=earthquake"][..],
            "unknown scenario: `earthquake`",
            "known are rollout, scale",
        ),
        (&["--pods=50001"], "from 1 to 50000: `50001`", "it is 60"),
        (&["--pods=-1"], "from 1 to 50000: `-1`", "it is 60"),
        (&["--services=0"], "from 1 to 10000: `0`", "it is 8"),
        (&["--nodes=0"], "from 1 to 1000: `0`", "it is 12"),
        (&["--nodes=2", "--pods=300"], "capacity of 220 pods, not 300", "a capacity of 110 pods"),
        (&["--clusters=5"], "from 1 to 4: `5`", "it is 1"),
        (&["--scenario=cluster-outage"], "needs several clusters", "`--clusters 3`"),
        (&["--seed=luck"], "`--seed` must be a number", "it is 1"),
        (&["--port=70000"], "from 0 to 65535: `70000`", "any free port"),
        (&["--duration=soon"], "must be a duration above 0: `soon`", "`30s`"),
        (&["--duration=0"], "must be a duration above 0: `0`", "until Ctrl-C"),
        (&["--no-workload", "--scenario=rollout"], "needs Deployments", "need nodes only"),
        (&["--kubeconfig-out=absent/config"], "cannot write the kubeconfig", "another file"),
        (&["--kubeconfig-out=others"], "was not written by endpointd", "another file"),
    ] {
        playground(args).fails_with(error, hint);
    }
}

#[test]
fn a_port_in_use_is_an_error() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port();
    let flag = format!("--port={port}");
    playground(&[&flag]).fails_with(&format!("cannot listen on `127.0.0.1:{port}`"), "a free port");
}

/// On a terminal of a desktop, and nowhere else.
#[test]
fn the_live_page_opens_in_a_browser() {
    let directory = tempfile::tempdir().expect("a directory");
    let (browser, opened) = (directory.path().join("xdg-open"), directory.path().join("opened"));
    let script = format!("#!/bin/sh\nprintf %s \"$1\" > '{}'\n", opened.display());
    fs::write(&browser, script).expect("a file");
    fs::set_permissions(&browser, fs::Permissions::from_mode(0o755)).expect("a mode");
    let path = std::env::var("PATH").expect("a PATH");
    // `script` runs a command on a terminal.
    let play = |more: &str| {
        let command = format!(
            "{} playground --duration=2s --pods=12 {more}",
            env!("CARGO_BIN_EXE_endpointd")
        );
        let output = Command::new("script")
            .args(["--quiet", "--return", "--command", &command, "/dev/null"])
            .env("PATH", format!("{}:{path}", directory.path().display()))
            .env("DISPLAY", ":9")
            .stdin(Stdio::null())
            .output()
            .expect("`script` is part of every Linux");
        assert!(output.status.success(), "{output:?}");
    };
    play("--no-open");
    assert!(!opened.exists(), "it was not asked to");
    play("");
    let url = fs::read_to_string(&opened).expect("an address was opened");
    assert!(url.starts_with("http://127.0.0.1:") && url.ends_with("/ui/"), "{url}");
}

#[test]
fn with_json_standard_output_is_the_summary_only() {
    let args = ["--duration=4s", "--json", "--pods=12", "--services=8", "--seed=5"];
    let output = playground(&args).succeeded();
    let json = output.json();
    assert_eq!((&json["scenario"], &json["seed"]), (&"idle".into(), &5.into()));
    assert_eq!(json["pods"]["all"], 12);
    assert_eq!(json["nodes"]["ready"], 12);
    assert!(json["slices"].as_u64() >= Some(8), "{json}");
    assert!(json["first_slice_ms"].as_f64() > Some(0.0), "{json}");
    assert_eq!(json["failing_keys"], 0);
    output.logs("export KUBECONFIG=");
    output.logs("nodes 12/12");
    assert!(!output.err.contains('\x1b'), "colours are for terminals: {}", output.err);
}

#[test]
fn a_signal_ends_the_process_and_removes_the_kubeconfig() {
    for signal in ["-INT", "-TERM"] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_endpointd"))
            .args(["playground", "--no-workload"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let out = BufReader::new(child.stdout.take().expect("piped"));
        let line = out.lines().map_while(Result::ok).find(|line| line.contains("KUBECONFIG="));
        let line = line.expect("it says where the kubeconfig is");
        let path = line.split_once('=').expect("an assignment").1.to_owned();
        let written = fs::read_to_string(&path).expect("it is there");
        assert!(written.contains("server: 'http://127.0.0.1:"), "{written}");

        let asked = Instant::now();
        let pid = child.id().to_string();
        let killed = Command::new("kill").args([signal, &pid]).status().expect("kill runs");
        assert!(killed.success());
        assert_eq!(child.wait().expect("it ends").code(), Some(0), "{signal}");
        assert!(asked.elapsed() < Duration::from_secs(5), "{signal}: {:?}", asked.elapsed());
        assert!(!Path::new(&path).exists(), "{signal} leaves {path} behind");
    }
}

#[test]
fn a_closed_standard_output_does_not_end_the_process() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_endpointd"))
        .args(["playground", "--duration=2s", "--no-workload"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    drop(child.stdout.take());
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
}

#[test]
fn the_same_seed_gives_the_same_steps() {
    let steps = || -> Value {
        let args = ["--scenario=flapping", "--duration=10s", "--json", "--seed=9"];
        playground(&args).succeeded().json()["steps"].clone()
    };
    let (one, other) = std::thread::scope(|scope| {
        let (one, other) = (scope.spawn(steps), scope.spawn(steps));
        (one.join().expect("it runs"), other.join().expect("it runs"))
    });
    let texts = |steps: &Value| steps.as_array().map(|all| all[..3].to_vec());
    assert_eq!(texts(&one), texts(&other));
}
