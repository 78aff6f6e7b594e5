//! endpointd as a plugin of kubectl, and what is generated from its flags.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use crate::run::run;

/// A directory with a link that kubectl finds as a plugin.
fn plugin_directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    let link = directory.path().join("kubectl-endpointd");
    symlink(env!("CARGO_BIN_EXE_endpointd"), link).expect("a link");
    directory
}

#[test]
fn a_link_is_called_as_kubectl_calls_it() {
    let directory = plugin_directory();
    let help = Command::new(directory.path().join("kubectl-endpointd"))
        .args(["explain", "--help"])
        .output()
        .expect("it starts");
    let help = String::from_utf8(help.stdout).expect("UTF-8");
    assert!(help.contains("Usage: kubectl endpointd explain "), "{help}");
}

#[test]
fn kubectl_finds_the_plugin() {
    if Command::new("kubectl").args(["version", "--client"]).output().is_err() {
        let is_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
        assert!(!is_ci, "no kubectl on this machine");
        eprintln!("skipped: no kubectl on this machine");
        return;
    }
    let directory = plugin_directory();
    let path = std::env::var("PATH").expect("a PATH");
    let dump = directory.path().join("dump.yaml");
    let text = "{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, \
                spec: {selector: {app: web}, ports: [{port: 80}]}}";
    fs::write(&dump, text).expect("a file");
    let output = Command::new("kubectl")
        .args(["endpointd", "explain", "svc/web", "-n", "shop", "-f"])
        .arg(&dump)
        .env("PATH", format!("{}:{path}", directory.path().display()))
        .env("HOME", directory.path())
        .output()
        .expect("kubectl starts");
    let out = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(
        out.starts_with("Service shop/web chooses no pod: its selector is app=web.\n"),
        "{out}"
    );
}

#[test]
fn completion_and_manual_pages_are_generated() {
    for shell in ["bash", "zsh", "fish", "powershell"] {
        let script = run(&[], &["completion", shell], b"").succeeded().out;
        assert!(script.contains("only-problems"), "{shell}");
    }
    let directory = tempfile::tempdir().expect("a directory");
    let target = directory.path().join("man");
    run(&[], &["man-pages", target.to_str().expect("UTF-8")], b"").succeeded();
    let page = fs::read_to_string(target.join("endpointd-explain.1")).expect("a page");
    assert!(page.contains("only\\-problems"), "{page}");
}
