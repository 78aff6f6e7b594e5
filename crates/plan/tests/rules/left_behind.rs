//! What is left of a time when a Service had a selector (docs/spec.md, 3.2 and 4.2).

use endpointd_model::{EndpointAddress, names};
use expect_test::expect;

use crate::fixture::{Fixture, endpoints, slices};

const WEB: &str = "service web port=80; node n1 za; pod web-a 10.0.0.1 ready on=n1";
const WITHOUT_SELECTOR: &str = "service web manual port=80";
const EXTERNAL: &str = "service web external port=80";

fn published(fixture: fn(&str) -> Fixture) -> Fixture {
    fixture(WEB).applied()
}

#[test]
fn what_is_left_behind_is_kept_without_the_policy() {
    for fixture in [slices, endpoints] {
        for now in [WITHOUT_SELECTOR, EXTERNAL] {
            assert_eq!(published(fixture).then(now).plan().writes, []);
        }
    }
}

#[test]
fn slices_left_behind_are_deleted() {
    for now in [WITHOUT_SELECTOR, EXTERNAL] {
        let plan = published(slices).deleting_left_behind().then(now).apply().to_string();
        assert!(plan.starts_with("delete endpointslices web-"), "{plan}");
    }
}

#[test]
fn slices_of_others_are_not_left_behind() {
    let fixture = || published(slices).deleting_left_behind().then(WITHOUT_SELECTOR);
    let other_manager = fixture().edit(|cluster| {
        let slice = cluster.slices.values_mut().next().expect("a slice");
        slice.meta.labels = slice.meta.labels.with(names::MANAGED_BY, Some("somebody"));
    });
    other_manager.check(expect![[""]]);
    let other_owner = fixture().then("service web manual uid=another port=80");
    other_owner.check(expect![[""]]);
    let without_owner = fixture().edit(|cluster| {
        cluster.slices.values_mut().for_each(|slice| slice.meta.owners.clear());
    });
    without_owner.check(expect![[""]]);
}

#[test]
fn the_garbage_collector_deletes_what_a_deleted_service_leaves() {
    let deleting = "service web manual deleting port=80";
    for fixture in [slices, endpoints] {
        published(fixture).deleting_left_behind().then(deleting).check(expect![[""]]);
    }
}

#[test]
fn endpoints_left_behind_are_deleted() {
    for now in [WITHOUT_SELECTOR, EXTERNAL] {
        published(endpoints)
            .deleting_left_behind()
            .then(now)
            .check(expect!["delete endpoints web"]);
    }
}

#[test]
fn endpoints_of_others_are_not_left_behind() {
    let fixture = || published(endpoints).deleting_left_behind().then(WITHOUT_SELECTOR);
    let of_a_user = fixture().edit(|cluster| {
        let object = cluster.endpoints.values_mut().next().expect("Endpoints");
        let own = EndpointAddress { ip: "10.1.0.1".into(), ..EndpointAddress::default() };
        object.subsets[0].addresses.push(own);
    });
    of_a_user.check(expect![[""]]);
    let unlabelled = fixture().edit(|cluster| {
        let object = cluster.endpoints.values_mut().next().expect("Endpoints");
        object.meta.labels = object.meta.labels.with(names::ENDPOINTS_MANAGED_BY, None);
    });
    unlabelled.check(expect![[""]]);
    let lock = fixture().edit(|cluster| {
        let object = cluster.endpoints.values_mut().next().expect("Endpoints");
        object.meta.annotations = object.meta.annotations.with(names::LEADER, Some("{}"));
    });
    lock.check(expect![[""]]);
}
