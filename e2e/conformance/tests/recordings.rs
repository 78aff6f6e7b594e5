//! The embedded server against recorded responses, and the recordings against kube-apiserver if it
//! is available. `UPDATE_EXPECT=1` records the responses.

use std::env;

use endpointd_apiserver::GcMode;
use endpointd_conformance::{HttpClient, Script, differences, replay, start_embedded};
use endpointd_control_plane::{Binaries, Cluster, Options};

const EXCHANGES_MIN: usize = 200;

fn scripts() -> Vec<Script> {
    Script::all().expect("the scripts can be read")
}

/// Prints all differences, then fails if there are any.
fn check(client: &HttpClient, who: &str) {
    let mut n_differences = 0;
    for script in scripts() {
        let recorded = script.recorded().expect("every script has a recording");
        let found = replay(&script, client).expect("the server answers");
        for difference in differences(&recorded, &found) {
            n_differences += 1;
            eprintln!("{}: {difference}", script.name);
        }
    }
    assert_eq!(n_differences, 0, "recorded | {who}");
}

#[test]
fn the_embedded_server_answers_as_recorded() {
    let (client, _) = start_embedded(GcMode::OnDemand).expect("the server starts");
    check(&client, "ours");
}

#[test]
fn kube_apiserver_answers_as_recorded() {
    let Some(binaries) = Binaries::for_test() else { return };
    let cluster = Cluster::start(&binaries, Options::default()).expect("a cluster starts");
    let client = HttpClient::from_kubeconfig(&cluster.kubeconfig()).expect("a kubeconfig");
    if env::var_os("UPDATE_EXPECT").is_some() {
        for script in scripts() {
            let answers = replay(&script, &client).expect("the server answers");
            script.record(&answers).expect("the recording can be written");
        }
        return;
    }
    check(&client, "the real one");
}

#[test]
fn there_are_enough_exchanges_and_watches() {
    let lines: Vec<String> =
        scripts().into_iter().flat_map(|script| script.exchanges).map(|one| one.line).collect();
    assert!(lines.len() >= EXCHANGES_MIN, "{} exchanges", lines.len());
    assert!(lines.iter().filter(|line| line.contains("watch=")).count() >= 10);
}

#[test]
fn a_changed_response_is_a_difference() {
    let script = scripts().remove(0);
    let recorded = script.recorded().expect("a recording");
    let mut changed = recorded.clone();
    changed[0]["status"] = 599.into();
    assert!(differences(&recorded, &recorded).is_empty());
    assert_eq!(differences(&recorded, &changed).len(), 1);
}
