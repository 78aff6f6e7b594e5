//! `endpointd cluster` as a process: what is refused, with one sentence and a hint. What it writes on
//! real API servers is in `e2e/scenarios/tests/source_clusters.rs`.

use std::fs;
use std::path::Path;

use serde_json::json;
use tempfile::TempDir;

use crate::run::{CommandOutput, run};
use crate::test_cluster::TestCluster;

/// Two clusters, a kubeconfig with a context for each and one that leads nowhere, and a directory.
struct Sites {
    home: TestCluster,
    eu1: TestCluster,
    directory: TempDir,
}

impl Sites {
    fn start(forbidden: &'static [&'static str]) -> Self {
        let (home, eu1) = (TestCluster::start(&[]), TestCluster::start(forbidden));
        let directory = tempfile::tempdir().expect("a directory");
        fs::create_dir(directory.path().join("clusters")).expect("a directory");
        let sites = Self { home, eu1, directory };
        let contexts = [
            ("home", sites.home.url.as_str()),
            ("eu1", &sites.eu1.url),
            ("nowhere", "http://127.0.0.1:1"),
        ];
        let named = |field: &str, value: &dyn Fn(&str, &str) -> serde_json::Value| -> Vec<_> {
            let entry = |(name, url): &(&str, &str)| json!({"name": name, field: value(name, url)});
            contexts.iter().map(entry).collect()
        };
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "home", "users": [],
            "clusters": named("cluster", &|_, url| json!({"server": url})),
            "contexts": named("context", &|name, _| json!({"cluster": name, "user": ""})),
        });
        fs::write(sites.path("config"), kubeconfig.to_string()).expect("a file");
        sites
    }

    fn path(&self, name: &str) -> String {
        self.directory.path().join(name).display().to_string()
    }

    /// Knows a cluster without asking it.
    fn know(&self, name: &str, url: &str) {
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "a",
            "users": [{"name": "a", "user": {"token": "top-secret"}}],
            "clusters": [{"name": "a", "cluster": {"server": url}}],
            "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        });
        fs::write(self.path(&format!("clusters/{name}")), kubeconfig.to_string()).expect("a file");
    }

    fn run(&self, args: &[&str]) -> CommandOutput {
        let (config, clusters) = (self.path("config"), self.path("clusters"));
        let place = ["--kubeconfig", &config, "--clusters", &clusters];
        let output = run(&[], &[&["cluster"], args, &place].concat(), b"");
        assert!(!format!("{output:?}").contains("top-secret"), "no credential is shown");
        output
    }

    /// `add` fails, and writes nothing anywhere.
    #[track_caller]
    fn add_fails(&self, args: &[&str], error: &str, hint: &str) {
        let names = || -> Vec<_> {
            let files = fs::read_dir(Path::new(&self.path("clusters"))).expect("it is there");
            files.map(|file| file.expect("a file").file_name()).collect()
        };
        let before = names();
        self.run(&[&["add"], args].concat()).fails_with(error, hint);
        assert_eq!(names(), before);
        assert_eq!(self.eu1.n_writes() + self.home.n_writes(), 0);
    }
}

#[test]
fn a_name_must_be_a_label() {
    let sites = Sites::start(&[]);
    for name in ["EU1", "eu.1", "a_b", ""] {
        sites.add_fails(&[name, "--context", "eu1"], &format!("`{name}`"), "as in `eu1`");
    }
}

#[test]
fn a_cluster_is_known_once() {
    let sites = Sites::start(&[]);
    sites.know("eu1", &sites.eu1.url);
    let args = ["eu1", "--context", "eu1"];
    sites.add_fails(&args, "cluster `eu1` is known already", "--replace");
    let args = ["eu2", "--context", "eu1"];
    sites.add_fails(&args, "`eu2` is the same cluster as `eu1`", "cluster remove eu1");
    let args = ["eu1", "--context", "home", "--replace"];
    sites.add_fails(&args, "`eu1` is known as another cluster", "cluster remove eu1");
}

#[test]
fn this_cluster_is_not_another_one() {
    let sites = Sites::start(&[]);
    let args = ["eu1", "--context", "home", "--home-context", "home"];
    sites.add_fails(&args, "`eu1` is this cluster", "--home-context");
    let config = sites.path("config");
    let args = ["cluster", "add", "eu1", "--context", "home", "--kubeconfig", &config];
    run(&[], &args, b"").fails_with("`eu1` is this cluster", "--home-context");
}

#[test]
fn a_cluster_must_answer_and_permit() {
    let sites = Sites::start(&["/namespaces/kube-system"]);
    let args = ["eu1", "--context", "nowhere"];
    sites.add_fails(&args, "cannot read from the API server at http://127.0.0.1:1", "cluster-info");
    let args = ["eu1", "--context", "eu1"];
    sites.add_fails(&args, "cannot read the namespace kube-system", "kubectl auth can-i get");
    let args = ["eu1", "--context", "eu2"];
    sites.add_fails(&args, "no such context: `eu2`", "`home`, `eu1`, `nowhere`");
}

#[test]
fn without_permission_for_an_account_nothing_is_written() {
    let sites = Sites::start(&["/namespaces"]);
    let output = sites.run(&["add", "eu1", "--context", "eu1"]);
    output.fails_with("cannot write namespaces/endpointd", "an administrator of that cluster");
    assert!(!Path::new(&sites.path("clusters/eu1")).exists());
}

#[test]
fn wrong_values_are_one_sentence() {
    let sites = Sites::start(&[]);
    let args = ["eu1", "--context", "eu1", "--token-lifetime", "1s"];
    sites.add_fails(&args, "at least 10m: `1s`", "720h");
    let args = ["eu1", "--context", "eu1", "--server-address", "10.0.0.1:6443"];
    sites.add_fails(&args, "not the URL of a server: `10.0.0.1:6443`", "https://");
    let missing = run(&[], &["cluster", "list", "--clusters", "nowhere"], b"");
    missing.fails_with("`--clusters` is no directory: `nowhere`", "Secret");
    sites.run(&["remove", "eu1"]).fails_with("has no cluster `eu1`", "it has none");
    sites.know("us1", &sites.eu1.url);
    sites.run(&["remove", "eu1"]).fails_with("has no cluster `eu1`", "it has `us1`");
    let args = ["remove", "us1", "--purge", "--context", "home"];
    sites.run(&args).fails_with("leads to another cluster than `us1`", "nothing was deleted");
    let removed = sites.run(&["remove", "us1"]).succeeded();
    assert!(removed.out.contains("kept there: the account"), "{removed:?}");
    assert!(!Path::new(&sites.path("clusters/us1")).exists());
}

#[test]
fn a_dry_run_writes_nothing_and_shows_no_token() {
    let sites = Sites::start(&[]);
    let output = sites.run(&["add", "eu1", "--context", "eu1", "--dry-run"]).succeeded();
    for text in ["kind: ClusterRoleBinding", "token: \"(omitted)\"", "would be written here: `eu1`"]
    {
        assert!(output.out.contains(text), "{text}: {}", output.out);
    }
    assert_eq!(sites.eu1.n_writes(), 0);
    assert!(!Path::new(&sites.path("clusters/eu1")).exists());
}

#[test]
fn the_list_says_what_is_wrong_with_each_cluster() {
    let sites = Sites::start(&["/namespaces/kube-system"]);
    sites.know("eu1", &sites.eu1.url);
    sites.know("us1", "http://127.0.0.1:1");
    sites.know("Bad", &sites.home.url);
    fs::write(sites.path("clusters/broken"), "top-secret: [").expect("a file");
    let output = sites.run(&["list", "-o", "json"]);
    assert_eq!(output.code, Some(1), "{output:?}");
    let all = output.json();
    let states: Vec<_> = all["clusters"].as_array().expect("clusters").iter().collect();
    let states: Vec<_> = states
        .iter()
        .map(|one| format!("{}: {}", one["name"].as_str().expect("a name"), one["state"]))
        .collect();
    let want =
        ["Bad: \"refused\"", "broken: \"refused\"", "eu1: \"denied\"", "us1: \"unreachable\""];
    assert_eq!(states, want);
    let text = sites.run(&["list"]).out;
    assert!(text.starts_with("NAME    STATE        SERVER "), "{text}");
    assert!(text.contains("us1: "), "{text}");
    let none = Sites::start(&[]).run(&["list"]).succeeded();
    assert_eq!(none.out, "no other cluster is known\n");
}
