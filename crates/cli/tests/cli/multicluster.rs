//! `endpointd plan --cluster` as a process: output, messages, and exit codes.

use std::fs;
use std::path::Path;

use crate::run::plan;
use expect_test::expect_file;

fn example(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/clusters").join(name);
    fs::read_to_string(path).expect("an example")
}

/// The example with these further arguments.
fn plan_example(more: &[&str]) -> crate::run::CommandOutput {
    let (home, eu1) = (example("home.yaml"), example("eu1.yaml"));
    let files = [("home.yaml", home.as_str()), ("eu1.yaml", eu1.as_str())];
    plan(&files, &[&["-f", "home.yaml", "--cluster", "eu1=eu1.yaml"], more].concat())
}

#[test]
fn the_table_shows_writes_clusters_and_conflicts() {
    let output = plan_example(&[]).succeeded();
    expect_file!["multicluster.txt"].assert_eq(&output.out);
    assert_eq!(
        output.err,
        "note: the API server assigns the addresses of derived Services, so imports lack them here\n\
         planned 1 key: 6 writes\n"
    );
}

#[test]
fn the_json_has_every_object() {
    let json = plan_example(&["-o", "json"]).succeeded().json();
    let import = &json["imports"][0];
    assert_eq!(import["key"], "shop/web");
    let slices: Vec<_> = import["writes"]
        .as_array()
        .expect("writes")
        .iter()
        .filter(|write| write["resource"] == "endpointslices")
        .collect();
    assert_eq!(slices.len(), 2);
    for slice in slices {
        let labels = &slice["object"]["metadata"]["labels"];
        assert_eq!(labels["multicluster.kubernetes.io/service-name"], "web");
        let is_home = labels["multicluster.kubernetes.io/source-cluster"] == "local";
        assert_eq!(slice["object"]["endpoints"][0]["nodeName"].is_string(), is_home);
    }
    assert_eq!(import["conflicts"][0]["reason"], "PortConflict");
    assert_eq!(import["clusters"][1]["cluster"], "eu1");
    assert_eq!(import["clusters"][1]["ready"], 1);
}

#[test]
fn a_lost_cluster_is_demoted_in_the_plan() {
    let json = plan_example(&["-o", "json", "--lost", "eu1"]).succeeded().json();
    let eu1 = &json["imports"][0]["clusters"][1];
    assert_eq!((&eu1["state"], &eu1["ready"]), (&"Demoted".into(), &0.into()));
    assert_eq!(eu1["demotedFamilies"][0], "IPv4");
}

#[test]
fn the_exit_code_says_whether_something_is_written() {
    assert_eq!(plan_example(&["--exit-code"]).code, Some(1));
    let service = "{apiVersion: v1, kind: Service, metadata: {name: web}}";
    let files = [("a.yaml", service)];
    let output = plan(&files, &["-f", "a.yaml", "--cluster", "eu1=a.yaml", "--exit-code"]);
    assert_eq!((output.code, output.out.as_str()), (Some(0), "nothing to write\n"));
    assert!(output.err.starts_with("note: no cluster has a ServiceExport"), "{}", output.err);
}

#[test]
fn a_key_with_a_malformed_object_is_not_planned() {
    let (home, eu1) = (example("home.yaml"), example("eu1.yaml"));
    let eu1 = eu1.replace("[{name: web, port: 80, targetPort: 8080}]", "nonsense");
    let files = [("home.yaml", home.as_str()), ("eu1.yaml", eu1.as_str())];
    let output = plan(&files, &["-f", "home.yaml", "--cluster", "eu1=eu1.yaml"]).succeeded();
    assert_eq!(output.out, "nothing to write\n");
    assert!(output.err.contains("in cluster eu1: malformed Service `shop/web`"), "{}", output.err);
}

#[test]
fn wrong_flags_get_a_sentence() {
    for (flags, message) in [
        (&["--cluster", "eu1"][..], "`--cluster` must be NAME=FILE: `eu1`"),
        (&["--cluster", "EU1=a.yaml"], "`EU1` is not a DNS label"),
        (&["--cluster", "eu1=a.yaml", "--cluster", "eu1=a.yaml"], "two clusters have the name"),
        (&["--cluster", "eu1=a.yaml", "--cluster-id", "eu1"], "two clusters have the name"),
        (&["--cluster", "eu1=a.yaml", "--lost", "us1"], "`--lost` names no cluster"),
        (&["--cluster", "eu1=missing.yaml"], "cannot read `missing.yaml`"),
    ] {
        let service = "{apiVersion: v1, kind: Service, metadata: {name: web}}";
        let output = plan(&[("a.yaml", service)], &[&["-f", "a.yaml"], flags].concat());
        assert_eq!(output.code, Some(2), "{flags:?}");
        assert!(output.err.contains(message), "{flags:?}: {}", output.err);
    }
}
