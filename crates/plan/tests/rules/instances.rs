//! Instances with names of their own (docs/spec.md, section 12, P6).

use endpointd_model::{Object, Write, names};
use endpointd_plan::{ClusterState, Plan};

use crate::fixture::{Fixture, endpoints, mirror, slices};

const SELECTED: &str = "service web port=80; node n1 za; pod web-a 10.0.0.1 ready on=n1";
const MANUAL: &str = "service web manual port=80; endpoints web ready=10.0.0.1 port=http:80";

/// What the slice controllers have to plan.
fn fixtures() -> [Fixture; 2] {
    [slices(SELECTED), mirror(MANUAL)]
}

fn managers(cluster: &ClusterState) -> Vec<&str> {
    let labels = cluster.slices.values().map(|slice| &slice.meta.labels);
    labels.map(|labels| labels.get(names::MANAGED_BY).map_or("", AsRef::as_ref)).collect()
}

fn creates_only(plan: &Plan) -> bool {
    plan.writes.iter().all(|write| matches!(write, Write::Create(Object::Slice(_))))
}

#[test]
fn slices_have_the_name_of_their_instance() {
    let [selected, manual] = fixtures().map(|fixture| fixture.named("blue").applied());
    assert_eq!(managers(&selected.cluster), ["endpointslice-controller.blue"]);
    assert_eq!(managers(&manual.cluster), ["endpointslicemirroring-controller.blue"]);
}

#[test]
fn slices_of_other_instances_are_foreign() {
    for fixture in fixtures() {
        let of_green = fixture.named("green").applied();
        let plan = of_green.named("blue").plan();
        assert!(creates_only(&plan) && plan.writes.len() == 1, "{plan}");
    }
    let gone = mirror(MANUAL).applied().then("gone service web");
    assert_eq!(gone.named("blue").plan().writes, [], "only its own instance deletes them");
}

#[test]
fn what_another_instance_leaves_behind_is_kept() {
    let left = slices(SELECTED).named("green").applied().deleting_left_behind();
    let left = left.then("service web manual port=80");
    assert_eq!(left.plan().writes.len(), 1);
    assert_eq!(left.named("blue").plan().writes, []);
}

#[test]
fn endpoints_have_the_same_label_whatever_the_name() {
    let usual = endpoints(SELECTED).plan();
    assert_eq!(endpoints(SELECTED).named("blue").plan(), usual);
}
