//! The properties of every plan.

use std::collections::BTreeMap;

use endpointd_model::{
    Controller, EndpointSlice, Family, Object, Pod, PodIp, Selection, Service, SharedStr,
    SliceManagers, TolerateUnready, TopologyMode, Write, is_forbidden_endpoint_ip, names,
};
use endpointd_plan::{
    AnnotationPolicy, CarriedState, ClusterState, OrphanPolicy, Plan, ServicesSeen, Settings,
    endpoints, mirror, publishes_not_ready, slices,
};

use crate::generators::{Case, another_instance, key};

/// Checks all properties at once, because generating a cluster state costs more than the checks.
pub fn check(case: &Case, controller: Controller) {
    let plan = planned(case, controller, &case.cluster, &CarriedState::default());
    input_order_does_not_matter(case, controller, &plan);
    the_annotation_is_another_spelling(case, controller, &plan);
    only_what_is_left_behind_is_deleted(case, controller, &plan);
    a_missing_service_can_belong_to_another_instance(case, &plan);
    writes_have_preconditions(&plan);
    only_managed_objects_are_written(case, controller, &plan);
    no_slice_exceeds_the_maximum(case, controller, &plan);
    let after = applied(&case.cluster, &plan.writes);
    the_next_plan_is_empty(case, controller, &after, &plan);
    instances_do_not_touch_each_other(case, controller, &after);
    if controller == Controller::Slices {
        every_eligible_pod_is_published_once(case, &after);
    }
    every_prefix_converges(case, controller, &plan, &after);
}

fn planned(
    case: &Case,
    controller: Controller,
    cluster: &ClusterState,
    carried: &CarriedState,
) -> Plan {
    cluster.plan(controller, &key(), carried, &case.settings)
}

fn applied(cluster: &ClusterState, writes: &[Write]) -> ClusterState {
    let mut cluster = cluster.clone();
    writes.iter().for_each(|write| cluster.apply(write));
    cluster
}

fn input_order_does_not_matter(case: &Case, controller: Controller, plan: &Plan) {
    let index = case.cluster.index();
    let carried = CarriedState::default();
    let shuffled = match controller {
        Controller::Slices => {
            let mut snapshot = index.slice_snapshot(&key(), &carried);
            snapshot.pods.reverse();
            let n = snapshot.slices.len();
            snapshot.slices.rotate_left(n / 2);
            slices(&snapshot, &case.settings)
        }
        Controller::Endpoints => {
            let mut snapshot = index.endpoints_snapshot(&key(), &carried);
            snapshot.pods.reverse();
            endpoints(&snapshot, &case.settings)
        }
        Controller::Mirror => {
            let mut snapshot = index.mirror_snapshot(&key());
            snapshot.slices.reverse();
            mirror(&snapshot, &case.settings)
        }
        Controller::Import | Controller::MultiCluster => {
            panic!("tests/properties has the properties of this controller in its own file")
        }
    };
    assert_eq!(&shuffled, plan, "the plan depends on the order of the input");
}

/// An honored annotation gives the writes of `publishNotReadyAddresses` with its value; an ignored or
/// invalid one changes nothing.
fn the_annotation_is_another_spelling(case: &Case, controller: Controller, plan: &Plan) {
    let mut cluster = case.cluster.clone();
    for service in cluster.services.values_mut() {
        let annotation = std::mem::take(&mut service.tolerate_unready);
        service.publish_not_ready = match (case.settings.tolerate_unready_annotation, annotation) {
            (AnnotationPolicy::Honor, TolerateUnready::Known(value)) => value,
            (AnnotationPolicy::Honor | AnnotationPolicy::Ignore, _) => service.publish_not_ready,
        };
    }
    let spelled = planned(case, controller, &cluster, &CarriedState::default());
    assert_eq!(spelled.writes, plan.writes, "the annotation is not publishNotReadyAddresses");
    assert_eq!(spelled.excluded_pods, plan.excluded_pods);
}

/// Without pods to publish, plans only delete what the Service owns, and only if they may.
fn only_what_is_left_behind_is_deleted(case: &Case, controller: Controller, plan: &Plan) {
    let Some(service) = case.cluster.services.get(&key()) else { return };
    let publishes = match service.selection() {
        Selection::Pods(_) => true,
        Selection::Manual | Selection::External => false,
    };
    if publishes || controller == Controller::Mirror {
        return;
    }
    let may_delete = case.settings.orphan_policy == OrphanPolicy::Delete;
    for write in &plan.writes {
        assert!(may_delete && matches!(write, Write::Delete(_)), "{plan}");
        let Some(slice) = case.cluster.slices.get(&write.key()) else { continue };
        assert!(slice.meta.owners.iter().any(|owner| owner.uid == service.uid), "{plan}");
    }
}

fn a_missing_service_can_belong_to_another_instance(case: &Case, plan: &Plan) {
    let is_missing = !case.cluster.services.contains_key(&key());
    if is_missing && case.settings.services_seen == ServicesSeen::Selected {
        assert_eq!(plan.writes, []);
    }
}

fn writes_have_preconditions(plan: &Plan) {
    for write in &plan.writes {
        match write {
            Write::Create(object) => assert!(object.meta().uid.is_empty()),
            Write::Update(object) => assert!(!object.meta().resource_version.is_none(), "{plan}"),
            Write::Delete(target) => {
                assert!(!target.uid.is_empty() && !target.resource_version.is_none(), "{plan}");
            }
        }
    }
}

fn only_managed_objects_are_written(case: &Case, controller: Controller, plan: &Plan) {
    let managers = &case.settings.managers;
    for write in &plan.writes {
        assert_eq!(write.key().namespace.as_ref(), "ns");
        let observed = case.cluster.slices.get(&write.key());
        match (controller, write) {
            (Controller::Endpoints, _) => assert_eq!(write.key(), key()),
            (_, Write::Create(_)) => assert!(observed.is_none(), "the name is taken:\n{plan}"),
            (_, Write::Update(_) | Write::Delete(_)) => {
                let meta = &observed.expect("an observed slice").meta;
                assert_eq!(managers.controller(&meta.labels), Some(controller), "{plan}");
                assert!(meta.labels.has(names::SERVICE_NAME, "web"), "{plan}");
                assert!(!meta.is_deleting(), "{plan}");
            }
        }
    }
}

fn no_slice_exceeds_the_maximum(case: &Case, controller: Controller, plan: &Plan) {
    let max = match controller {
        Controller::Slices => case.settings.endpoints_per_slice_max,
        Controller::Mirror => case.settings.mirrored_per_subset_max,
        Controller::Endpoints | Controller::Import | Controller::MultiCluster => return,
    };
    for object in plan.writes.iter().filter_map(Write::object) {
        let Object::Slice(slice) = object else { panic!("a slice controller writes slices") };
        let observed = case.cluster.slices.get(&slice.meta.key());
        let was = observed.map_or(0, |observed| observed.endpoints.len());
        assert!(slice.endpoints.len() <= max.max(was), "{plan}");
    }
}

fn the_next_plan_is_empty(case: &Case, controller: Controller, after: &ClusterState, plan: &Plan) {
    for carried in [&plan.carried, &CarriedState::default()] {
        let again = planned(case, controller, after, carried);
        assert!(
            again.writes.is_empty(),
            "the second plan writes. First:\n{plan}\nSecond:\n{again}"
        );
    }
    let events_again = planned(case, controller, after, &plan.carried).event_records;
    let repeats =
        events_again.iter().filter(|record| record.reason.as_str().starts_with("Topology"));
    assert_eq!(repeats.count(), 0, "hint events are for transitions: {events_again:?}");
}

/// An instance with another name publishes with objects of its own, and leaves those of this one; what
/// it publishes is foreign here.
fn instances_do_not_touch_each_other(case: &Case, controller: Controller, after: &ClusterState) {
    if controller == Controller::Endpoints {
        return; // A Service has one Endpoints object.
    }
    let mut settings = case.settings.clone();
    settings.managers = match settings.managers == SliceManagers::default() {
        true => another_instance(),
        false => SliceManagers::default(),
    };
    let plan = after.plan(controller, &key(), &CarriedState::default(), &settings);
    for write in &plan.writes {
        let is_foreign = |slice: &EndpointSlice| {
            settings.managers.controller(&slice.meta.labels) != Some(controller)
        };
        let touched = after.slices.get(&write.key()).filter(|slice| is_foreign(slice));
        assert!(touched.is_none(), "{plan}");
    }
    let both = applied(after, &plan.writes);
    let again = planned(case, controller, &both, &CarriedState::default());
    assert!(again.writes.is_empty(), "after\n{plan}\nthe other instance writes:\n{again}");
}

/// An independent and simple computation of the endpoints that must be published.
fn every_eligible_pod_is_published_once(case: &Case, after: &ClusterState) {
    let Some(service) = after.services.get(&key()) else { return };
    if service.is_external_name || service.selector.is_empty() || service.is_deleting {
        return;
    }
    for family in [Family::V4, Family::V6] {
        let managed: Vec<&EndpointSlice> =
            after.slices.values().filter(|s| is_live(case, s, family)).collect();
        let wanted = families(service).contains(&family);
        assert_eq!(
            wanted,
            !managed.is_empty(),
            "slices exist for each family of the Service and no other"
        );
        let mut n_by_pod: BTreeMap<&SharedStr, usize> = BTreeMap::new();
        for target in
            managed.iter().flat_map(|s| &s.endpoints).filter_map(|e| e.target_ref.as_ref())
        {
            *n_by_pod.entry(&target.name).or_default() += 1;
        }
        for pod in after.pods.values() {
            let expected = wanted && is_published((after, &case.settings), service, pod, family);
            let found = n_by_pod.remove(&pod.name).unwrap_or(0);
            assert_eq!(found, usize::from(expected), "{} in {family}", pod.name);
        }
        assert!(n_by_pod.is_empty(), "pods that do not exist: {n_by_pod:?}");
    }
}

fn is_live(case: &Case, slice: &EndpointSlice, family: Family) -> bool {
    slice.meta.labels.has(names::MANAGED_BY, &case.settings.managers.slices)
        && slice.meta.labels.has(names::SERVICE_NAME, "web")
        && !slice.meta.is_deleting()
        && slice.address_type == family.into()
}

fn families(service: &Service) -> Vec<Family> {
    match (service.families.is_empty(), service.cluster_ip) {
        (false, _) => service.families.clone(),
        (true, endpointd_model::ClusterIp::Ip(family)) => vec![family],
        (true, _) => vec![Family::V4, Family::V6],
    }
}

fn is_published(
    (cluster, settings): (&ClusterState, &Settings),
    service: &Service,
    pod: &Pod,
    family: Family,
) -> bool {
    let has_address = pod.ips.all.iter().any(|ip| match ip {
        PodIp::Ip(ip) => Family::of(*ip) == family && is_forbidden_endpoint_ip(*ip).is_none(),
        PodIp::Invalid(_) => false,
    });
    let has_node = pod.node_name.as_ref().is_some_and(|name| cluster.nodes.contains_key(name));
    service.selector.selects(&pod.labels)
        && pod.phase == endpointd_model::Phase::Active
        && has_address
        && (has_node || publishes_not_ready(service, settings))
}

/// Any prefix of a plan's writes, followed by a new plan, reaches the same state as the whole plan.
fn every_prefix_converges(case: &Case, controller: Controller, plan: &Plan, after: &ClusterState) {
    let goal = published(after);
    for n in 0..plan.writes.len() {
        let partly = applied(&case.cluster, &plan.writes[..n]);
        let second = planned(case, controller, &partly, &CarriedState::default());
        let end = applied(&partly, &second.writes);
        assert_eq!(published(&end), goal, "after {n} writes of:\n{plan}\nthen:\n{second}");
        let again = planned(case, controller, &end, &CarriedState::default());
        assert!(
            again.writes.is_empty(),
            "after {n} writes of:\n{plan}\nthe next plan writes:\n{again}"
        );
    }
}

/// The published endpoints, whichever slice has them. Topology hints are left out because they
/// depend on the slice; a Service that is being deleted is left out because it keeps only endpoints
/// that fit into existing slices.
fn published(cluster: &ClusterState) -> Vec<String> {
    let service = cluster.services.get(&key());
    let has_free_hints = service.is_some_and(|one| one.topology == TopologyMode::Auto);
    if service.is_some_and(|one| one.is_deleting)
        || cluster.endpoints.values().any(|one| one.meta.is_deleting())
    {
        return Vec::new();
    }
    let mut lines = Vec::new();
    for slice in cluster.slices.values().filter(|slice| !slice.meta.is_deleting()) {
        for endpoint in &slice.endpoints {
            let mut endpoint = endpoint.clone();
            if has_free_hints {
                endpoint.hints = None;
            }
            lines.push(format!("{} {:?} {endpoint:?}", slice.address_type, slice.ports));
        }
    }
    lines.sort_unstable();
    lines.extend(cluster.endpoints.values().map(|one| format!("{:?}", one.subsets)));
    lines
}
