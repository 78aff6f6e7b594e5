//! Upstream's own code, as a program.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use endpointd_control_plane::binaries::is_ci;
use serde_json::Value;

/// Addresses by the name of the port.
pub type Reached = BTreeMap<String, Vec<String>>;

pub fn ask(program: &Path, question: &Value) -> Reached {
    let mut child = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stdin = child.stdin.take().expect("it is piped");
    writeln!(stdin, "{question}").expect("the program reads");
    drop(stdin);
    let output = child.wait_with_output().expect("the program ends");
    serde_json::from_slice(&output.stdout).expect("one answer")
}

/// Upstream's code, built once. Without Go the tests are skipped, except in CI, where they fail.
pub fn program() -> Option<&'static Path> {
    static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
    PROGRAM.get_or_init(build).as_deref()
}

fn build() -> Option<PathBuf> {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kube-proxy-endpoints");
    // The same flags as for the control plane, so that Go compiles shared packages only once.
    let built = Command::new("go")
        .args(["build", "-mod=readonly", "-buildvcs=false", "-trimpath", "-o"])
        .arg(&program)
        .arg(".")
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("kube-proxy"))
        .env("GOFLAGS", "")
        .env("CGO_ENABLED", "0")
        .stdin(Stdio::null())
        .output();
    match built {
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            Some(program)
        }
        Err(error) => {
            assert!(!is_ci(), "Go is not installed: {error}");
            eprintln!("skipped: `go` cannot be started: {error}");
            None
        }
    }
}

pub fn reached(pairs: &[(&str, &[&str])]) -> Reached {
    let of = |(port, addresses): &(&str, &[&str])| {
        let addresses = addresses.iter().map(|one| format!("{one}:8080"));
        ((*port).to_owned(), addresses.collect())
    };
    pairs.iter().map(of).collect()
}
