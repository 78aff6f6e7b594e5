//! Our server answers as kube-apiserver does: against the recording always, and the recording
//! against the real one when it is there. `UPDATE_EXPECT=1` records anew.

use std::env;

use endpointd_apiserver::Sweeping;
use endpointd_conformance::{Door, Script, differences, hold, ours};
use endpointd_control_plane::{Binaries, Cluster, Options};

const EXCHANGES_MIN: usize = 200;

fn scripts() -> Vec<Script> {
    Script::all().expect("the scripts can be read")
}

/// Prints every difference of every script before it fails.
fn check(door: &Door, who: &str) {
    let mut n_differences = 0;
    for script in scripts() {
        let recorded = script.recorded().expect("every script has a recording");
        let found = hold(&script, door).expect("the server answers");
        for difference in differences(&recorded, &found) {
            n_differences += 1;
            eprintln!("{}: {difference}", script.name);
        }
    }
    assert_eq!(n_differences, 0, "recorded | {who}");
}

#[test]
fn ours_answers_as_recorded() {
    let (door, _) = ours(Sweeping::OnDemand).expect("our server starts");
    check(&door, "ours");
}

#[test]
fn the_real_one_answers_as_recorded() {
    let Some(binaries) = Binaries::for_test() else { return };
    let cluster = Cluster::start(&binaries, Options::default()).expect("a cluster starts");
    let door = Door::from_kubeconfig(&cluster.kubeconfig()).expect("a kubeconfig");
    if env::var_os("UPDATE_EXPECT").is_some() {
        for script in scripts() {
            let answers = hold(&script, &door).expect("the server answers");
            script.record(&answers).expect("the recording can be written");
        }
        return;
    }
    check(&door, "the real one");
}

#[test]
fn there_are_enough_exchanges_and_watches_among_them() {
    let lines: Vec<String> =
        scripts().into_iter().flat_map(|script| script.exchanges).map(|one| one.line).collect();
    assert!(lines.len() >= EXCHANGES_MIN, "{} exchanges", lines.len());
    assert!(lines.iter().filter(|line| line.contains("watch=")).count() >= 10);
}

#[test]
fn a_changed_answer_is_a_difference() {
    let script = scripts().remove(0);
    let recorded = script.recorded().expect("a recording");
    let mut changed = recorded.clone();
    changed[0]["status"] = 599.into();
    assert!(differences(&recorded, &recorded).is_empty());
    assert_eq!(differences(&recorded, &changed).len(), 1);
}
