//! `worlds.txt` has a small world for each code, and what is said about it. After a change of a
//! world or a sentence, `UPDATE_EXPECT=1` writes the answers again; read the difference.

use std::collections::BTreeSet;

use endpointd_explain::{Code, Mode};
use expect_test::{expect, expect_file};

use crate::fixture::{World, text};

/// A section: `== EPD103 svc/web`, the world, `--`, and the answer.
struct Section<'a> {
    code: &'a str,
    target: &'a str,
    world: &'a str,
}

fn sections(file: &str) -> Vec<Section<'_>> {
    let sections = file.split("== ").filter(|section| !section.trim().is_empty());
    sections
        .map(|section| {
            let (head, rest) = section.split_once('\n').expect("a section has a head");
            let (code, target) = head.split_once(' ').expect("a head has a code and a target");
            let world = rest.split("\n--\n").next().unwrap_or(rest).trim_end();
            Section { code, target: target.trim(), world }
        })
        .collect()
}

#[test]
fn each_code_has_a_world_and_a_sentence() {
    let file = include_str!("worlds.txt");
    let mut answered = String::new();
    let mut seen = BTreeSet::new();
    for Section { code, target, world } in sections(file) {
        let explained = World::parse(world).explain(target);
        let is_found = explained.findings.iter().any(|one| one.code.to_string() == code);
        assert!(is_found, "no {code} in:\n{}", text(&explained));
        seen.insert(code.to_owned());
        answered += &format!("== {code} {target}\n{world}\n--\n{}\n\n", text(&explained));
    }
    expect_file!["worlds.txt"].assert_eq(&answered);
    let all = Code::ALL.iter().map(ToString::to_string);
    let by_state = ["EPD806"];
    let missing: Vec<String> =
        all.filter(|code| !seen.contains(code) && !by_state.contains(&&**code)).collect();
    assert_eq!(missing, [""; 0], "codes without a world");
}

#[test]
fn a_lease_of_another_cluster_is_none_of_a_controller() {
    let late = "Service web\nNode n1\ncomplete Lease\nPod web-1\nLease endpointd-source-eu1 \
                {spec: {holderIdentity: eu1, renewTime: \"2026-01-01T11:59:59Z\"}}";
    let explained = World::parse(late).explain("svc/web");
    let codes: Vec<String> = explained.findings.iter().map(|one| one.code.to_string()).collect();
    assert_eq!(codes, ["EPD802", "EPD804"]);
}

#[test]
fn the_state_that_endpointd_reports_of_a_cluster_counts() {
    use endpointd_explain::{Context, ControllerState, SourceReport, explain};
    use endpointd_model::Key;

    let world = World::parse(
        "ServiceImport web {spec: {type: Headless, ports: []}, status: {clusters: [{cluster: eu1}], \
         conditions: [{type: Ready, status: \"True\"}]}}\nLease endpointd-source-eu1 {spec: \
         {renewTime: \"2026-01-01T08:00:00Z\"}}",
    );
    let indexed = world.objects.cluster().index();
    let lost = |state: &str, is_denied| {
        let last_contact = Some("2026-01-01T11:53:00Z".parse().expect("a time"));
        let (cluster, state) = ("eu1".to_owned(), state.to_owned());
        let report = SourceReport { cluster, state, last_contact, is_denied };
        let state = ControllerState { clusters: vec![report], ..ControllerState::default() };
        let context = Context {
            objects: &world.objects,
            indexed: &indexed,
            now: crate::fixture::now(),
            settings: endpointd_plan::Settings::default(),
            controller: Some(&state),
            mode: Mode::Observed,
        };
        let explained = explain::service(&context, &Key::new("shop", "web"));
        let lost = explained.findings.into_iter().find(|one| one.code == Code::ClusterLost);
        lost.map(|one| one.message)
    };
    let demoted = "cluster eu1 has not answered for 7m: it is Demoted";
    assert_eq!(lost("Demoted", false).as_deref(), Some(demoted));
    assert_eq!(lost("InSync", false), None, "the Lease is older than the report");
    let denied = lost("Lost", true).expect("a finding");
    assert!(denied.starts_with("cluster eu1 refuses the credentials"), "{denied}");
}

#[test]
fn what_a_running_endpointd_reports_is_a_finding() {
    use endpointd_explain::{Context, ControllerState, explain};
    use endpointd_model::Key;

    let world = World::parse("Service web\nNode n1\nPod web-1");
    let indexed = world.objects.cluster().index();
    let state = ControllerState {
        key_state: "backing_off".to_owned(),
        last_error: Some("create endpointslices shop/web-x: forbidden".to_owned()),
        is_deletion_limiter_active: true,
        clusters: Vec::new(),
    };
    let mut context = Context {
        objects: &world.objects,
        indexed: &indexed,
        now: crate::fixture::now(),
        settings: endpointd_plan::Settings::default(),
        controller: Some(&state),
        mode: Mode::Observed,
    };
    let codes = |context: &Context| -> Vec<String> {
        let explained = explain::service(context, &Key::new("shop", "web"));
        explained.findings.iter().map(|one| one.code.to_string()).collect()
    };
    assert_eq!(codes(&context), ["EPD802", "EPD803", "EPD806"]);
    expect![[r#"
        Service shop/web sends traffic to 0 of 1 pod, and should to 1.
        ready web-1 10.0.0.1:8080 in zone-a
        EPD802 Service shop/web: web-1 has been ready for 30m and is in no slice
          evidence: endpointd reports the key as `backing_off`
        EPD803 Service shop/web: endpointd cannot write: create endpointslices shop/web-x: forbidden
        EPD806 Service shop/web: endpointd limits deletions: more objects are to be deleted because another object is missing than is plausible (alert MassDeletionLimited)"#]]
    .assert_eq(&text(&explain::service(&context, &Key::new("shop", "web"))));
    // Nothing is published yet for an object that was not applied.
    context.mode = Mode::WhatIf;
    assert_eq!(codes(&context), ["EPD900"]);
}
