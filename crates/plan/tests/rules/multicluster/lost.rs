//! Clusters that do not answer: what is published of them, and when (U, M1, M2).

use std::collections::BTreeMap;

use endpointd_model::{ClusterId, names};
use endpointd_plan::{
    Access, Contact, ContactLimits, Knowledge, KubeconfigFile, SourceState, source_states,
};

use super::world::{World, at, two};

fn lost_eu1(state: &str) -> World {
    two().settled().then(&format!("eu1 is {state}"))
}

/// U: `Unknown`.
#[test]
fn nothing_changes_for_an_unknown_cluster() {
    let world =
        lost_eu1("unknown").then("eu1 gone export\n eu1 gone service\n eu1 gone slice web-b");
    assert_eq!(world.plan().writes, []);
}

/// After a restart during an outage: its endpoints stay demoted, and the condition says so.
#[test]
fn nothing_changes_for_a_demoted_cluster_that_is_unknown() {
    let world = lost_eu1("demoted@100").settled().then("eu1 is unknown");
    assert_eq!(world.plan().writes, []);
    let overlapping = two().then("eu1 slice web-b port=http:8080 10.0.0.1").settled();
    assert_eq!(overlapping.then("eu1 is unknown").plan().writes, []);
}

/// Slices of another import in the namespace say nothing about this one.
#[test]
fn slices_of_another_import_do_not_count() {
    let other = two().settled().copies("eu1")[0].clone();
    let world = two().then("eu1 gone slice web-b\n home gone slice web-a").edit(|state| {
        let mut slice = other;
        slice.meta.name = "derived-other-1".into();
        slice.meta.labels = slice
            .meta
            .labels
            .with(names::IMPORT_NAME, Some("other"))
            .with(names::SERVICE_NAME, Some("derived-other"));
        slice.meta.owners.clear();
        state.home.slices.insert(slice.meta.key(), slice);
    });
    let world = world.settled().then("eu1 is unknown");
    assert_eq!(world.plan().writes, []);
}

#[test]
fn other_clusters_are_published_while_one_is_unknown() {
    let world =
        lost_eu1("unknown").then("home slice web-a port=http:8080 10.0.0.9:za@n1").settled();
    assert_eq!(world.published("home"), "10.0.0.9 ready");
    assert_eq!(world.published("eu1"), "10.1.0.1 ready");
    assert_eq!(world.clusters(), "eu1 home");
}

/// The merge needs all exports, so the import stays as it is until they are known.
#[test]
fn the_spec_of_an_import_stays_while_a_cluster_is_unknown() {
    let world = lost_eu1("unknown");
    let (before, says) = (world.import().clone(), world.export_says("Conflict"));
    let world = world.then("home service headless port=web:81").settled();
    assert_eq!(world.import().spec, before.spec);
    assert_eq!(world.export_says("Conflict"), says);
    assert_eq!(world.published("eu1"), "10.1.0.1 ready");
}

/// M2.
#[test]
fn an_unknown_cluster_keeps_an_import_that_nobody_else_exports() {
    let world = lost_eu1("unknown").then("home gone export").settled();
    assert_eq!(
        (world.published("home"), world.published("eu1")),
        (String::new(), "10.1.0.1 ready".into())
    );
    assert!(world.derived().is_some());
    let world = world.then("eu1 is insync").settled();
    assert_eq!(world.clusters(), "eu1");
}

/// The status was not written before the restart: the slices say it.
#[test]
fn slices_of_an_unknown_cluster_keep_the_import_without_the_status() {
    let world = lost_eu1("unknown").then("home gone export").edit(|state| {
        state.imports.values_mut().for_each(|import| import.status = Default::default());
    });
    let world = world.settled();
    assert!(world.derived().is_some() && world.state.imports.len() == 1);
}

#[test]
fn an_unknown_cluster_that_nothing_names_delays_nobody() {
    let world = two().then("us1 is unknown").settled();
    assert_eq!(
        (world.clusters(), world.published("eu1")),
        ("eu1 home".into(), "10.1.0.1 ready".into())
    );
}

/// U: `Lost`.
#[test]
fn endpoints_of_a_lost_cluster_stay_as_they_were_seen() {
    assert_eq!(lost_eu1("lost@100").plan().writes, []);
}

/// U: `Demoted`.
#[test]
fn endpoints_of_a_demoted_cluster_are_not_ready_where_others_are() {
    let world = lost_eu1("demoted@100").settled();
    assert_eq!(world.published("eu1"), "10.1.0.1 not-ready");
    assert_eq!(world.published("home"), "10.0.0.1 ready");
    let conditions = world.copies("eu1")[0].endpoints[0].conditions;
    assert_eq!((conditions.serving, conditions.terminating), (Some(true), Some(false)));
    // U7: told where slices changed.
    assert_eq!(
        world.import_says("endpointd/SourcesReachable"),
        "False/ClusterLost: eu1 last seen 1970-01-01T00:01:40Z, demoted."
    );
    // U1: the return is at once.
    let world = world.then("eu1 is insync").settled();
    assert_eq!(world.published("eu1"), "10.1.0.1 ready");
    let says = "True/AllReachable: No endpoint is demoted.";
    assert_eq!(world.import_says("endpointd/SourcesReachable"), says);
}

/// A deletion or demotion without an alternative turns maybe broken into surely broken.
#[test]
fn endpoints_stay_ready_where_nobody_else_has_any() {
    for other in [
        "home gone export",
        "home gone slice web-a",
        "home slice web-a port=http:8080 10.0.0.1!",
        "home is lost@100",
        // Another port.
        "home service port=http:81\n home slice web-a port=http:8081 10.0.0.1",
    ] {
        let world = two().then(other).settled().then("eu1 is demoted@100").settled();
        assert_eq!(world.published("eu1"), "10.1.0.1 ready", "{other}");
    }
}

/// At least half of the ready endpoints must be fresh.
#[test]
fn a_few_fresh_endpoints_do_not_replace_many() {
    let eu1 = |n: usize| {
        let endpoints: Vec<String> = (1..=n).map(|n| format!("10.1.0.{n}")).collect();
        two().then(&format!("eu1 slice web-b port=http:8080 {}", endpoints.join(" ")))
    };
    let is_demoted = |world: World| {
        let world = world.then("eu1 is demoted@100").settled();
        world.published("eu1").contains("not-ready")
    };
    assert!(is_demoted(eu1(1)));
    assert!(!is_demoted(eu1(2)), "one of three is less than half");
    assert!(is_demoted(eu1(2).edit(|state| state.settings.fresh_percent_min = 33)));
    let enough = "home slice web-a port=http:8080 10.0.0.1 10.0.0.2 10.0.0.3!";
    assert!(is_demoted(eu1(2).then(enough)));
}

#[test]
fn families_are_demoted_one_by_one() {
    let world = two().then(
        "eu1 service port=http:80 families=4,6
         home service port=http:80 families=4,6
         eu1 slice web-6 IPv6 port=http:8080 fd00::1",
    );
    let world = world.then("eu1 is demoted@100").settled();
    assert_eq!(world.published("eu1"), "fd00::1 ready, 10.1.0.1 not-ready");
}

/// U: `Expired`, `Removed`, and a cluster that nobody configures any more.
#[test]
fn expired_and_removed_clusters_are_deleted() {
    for state in ["eu1 is expired", "eu1 is removed", "eu1 unconfigured"] {
        let world = two().settled().then(state).settled();
        assert_eq!((world.published("eu1"), world.clusters()), (String::new(), "home".into()));
        let world = world.then("home gone export").settled();
        assert!(world.state.imports.is_empty(), "its export counts no more");
    }
}

fn contact(last: Option<i64>) -> Contact {
    Contact {
        knowledge: Knowledge::Current,
        access: Access::Granted,
        last_contact: last.map(at),
        kubeconfig: KubeconfigFile::Present,
        limits: ContactLimits::default(),
    }
}

/// The state of the first contact, `now` seconds after the epoch.
fn state(now: i64, contacts: &[Contact]) -> SourceState {
    let id = |n: usize| ClusterId::parse(&format!("c{n}")).expect("a label");
    let contacts: BTreeMap<ClusterId, Contact> =
        (0..).zip(contacts).map(|(n, contact)| (id(n), *contact)).collect();
    source_states(at(now), &contacts)[&id(0)]
}

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;

#[test]
fn the_age_of_the_last_contact_decides() {
    let last_contact = Some(at(0));
    for (now, expected) in [
        (0, SourceState::InSync),
        (29, SourceState::InSync),
        (30, SourceState::Lost { last_contact }),
        (5 * MINUTE - 1, SourceState::Lost { last_contact }),
        (5 * MINUTE, SourceState::Demoted { last_contact }),
        (24 * HOUR - 1, SourceState::Demoted { last_contact }),
        (24 * HOUR, SourceState::Expired),
    ] {
        assert_eq!(state(now, &[contact(Some(0))]), expected, "after {now} s");
    }
    let never = ContactLimits { expire_after: None, ..ContactLimits::default() };
    let kept = Contact { limits: never, ..contact(Some(0)) };
    assert_eq!(state(1_000 * HOUR, &[kept]), SourceState::Demoted { last_contact });
    // A clock that was set back.
    assert_eq!(state(0, &[contact(Some(100))]), SourceState::InSync);
}

/// U3, U5: after a restart nothing is known, and the age goes on.
#[test]
fn a_cluster_that_was_not_seen_since_the_start_is_unknown_until_it_expires() {
    let unseen = |last| Contact { knowledge: Knowledge::Nothing, ..contact(last) };
    assert_eq!(state(HOUR, &[unseen(None)]), SourceState::Unknown);
    assert_eq!(state(100 * HOUR, &[unseen(None)]), SourceState::Unknown, "it has no age");
    assert_eq!(state(HOUR, &[unseen(Some(0))]), SourceState::Unknown);
    assert_eq!(state(24 * HOUR, &[unseen(Some(0))]), SourceState::Expired);
    let back = Contact { knowledge: Knowledge::Current, ..unseen(Some(HOUR)) };
    assert_eq!(state(HOUR, &[back]), SourceState::InSync);
}

#[test]
fn a_denied_cluster_is_lost_at_once() {
    let denied = Contact { access: Access::Denied, ..contact(Some(0)) };
    assert_eq!(state(1, &[denied]), SourceState::Lost { last_contact: Some(at(0)) });
}

/// U1: a link that flaps within five minutes changes no slice.
#[test]
fn a_flapping_link_never_demotes() {
    for second in 0..HOUR {
        let last = second - second % (5 * MINUTE - 1);
        let flapping = Contact { knowledge: Knowledge::Outdated, ..contact(Some(last)) };
        let found = state(second, &[flapping]);
        assert!(matches!(found, SourceState::InSync | SourceState::Lost { .. }), "{found:?}");
    }
}

/// U2: if all are gone, the cause is here.
#[test]
fn nobody_is_demoted_while_nobody_answers() {
    let lost = SourceState::Lost { last_contact: Some(at(0)) };
    let now = 10 * MINUTE;
    assert_eq!(state(now, &[contact(Some(0)), contact(Some(1))]), lost);
    let demoted = SourceState::Demoted { last_contact: Some(at(0)) };
    assert_eq!(state(now, &[contact(Some(0)), contact(Some(now))]), demoted, "one answers");
    assert_eq!(state(now, &[contact(Some(0))]), demoted, "one cluster alone says nothing");
    assert_eq!(state(24 * HOUR, &[contact(Some(0)), contact(Some(1))]), SourceState::Expired);
}

/// U: `Removed`.
#[test]
fn a_cluster_is_removed_when_its_file_was_missing_twice() {
    let missing = |n_looks| Contact {
        kubeconfig: KubeconfigFile::Missing { since: at(0), n_looks },
        ..contact(Some(0))
    };
    assert_eq!(state(9, &[missing(2)]), SourceState::InSync, "a file that is replaced");
    assert_eq!(state(10, &[missing(1)]), SourceState::InSync);
    assert_eq!(state(10, &[missing(2)]), SourceState::Removed);
    // It is no witness for U2.
    let gone = missing(2);
    let found = state(10 * MINUTE, &[contact(Some(0)), gone]);
    assert_eq!(found, SourceState::Demoted { last_contact: Some(at(0)) });
}
