//! Pods that a selector nearly matches: EPD103 to EPD106. Pods with the same labels to correct are
//! one finding, because one change of their workload corrects all of them.

use std::collections::BTreeMap;

use endpointd_model::{Labels, Phase, Pod};
use endpointd_plan::ExclusionReason;

use crate::choosing::selector_text;
use crate::code::Code;
use crate::facts::ServiceFacts;
use crate::fields::{counted, names};
use crate::finding::{Finding, ObjectName};
use crate::near_miss::{NearMiss, compare};
use crate::objects::Objects;
use crate::owners;

pub fn explain(facts: &ServiceFacts, selector: &Labels) -> Vec<Finding> {
    let objects = facts.context.objects;
    let namespace = &facts.key.namespace;
    let others = other_selectors(facts);
    let mut pods_by_miss: BTreeMap<(NearMiss, Option<ObjectName>), Vec<&Pod>> = BTreeMap::new();
    for pod in objects.pods_in(namespace).filter(|pod| pod.phase == Phase::Active) {
        let Some(miss) = compare(selector, &pod.labels) else { continue };
        if !others.iter().any(|other| other.selects(&pod.labels)) {
            pods_by_miss.entry((miss, owner_of(objects, pod))).or_default().push(pod);
        }
    }
    let finding = |((miss, owner), pods): ((NearMiss, Option<ObjectName>), Vec<&Pod>)| {
        group_finding(selector, &miss, owner, &pods)
    };
    pods_by_miss.into_iter().map(finding).collect()
}

/// The selectors of the other Services in the namespace. A pod that another Service chooses is
/// where it belongs.
fn other_selectors<'a>(facts: &ServiceFacts<'a>) -> Vec<&'a Labels> {
    let services = facts.context.objects.cluster.services.values();
    let others = services.filter(|one| {
        one.namespace == facts.key.namespace
            && one.name != facts.key.name
            && !one.selector.is_empty()
            && one.selector != facts.service.selector
    });
    others.map(|one| &one.selector).collect()
}

fn owner_of(objects: &Objects, pod: &Pod) -> Option<ObjectName> {
    owners::owner(objects, objects.get("Pod", &pod.namespace, &pod.name)?)
}

fn group_finding(
    selector: &Labels,
    miss: &NearMiss,
    owner: Option<ObjectName>,
    pods: &[&Pod],
) -> Finding {
    let pod_names: Vec<String> = pods.iter().map(|pod| pod.name.to_string()).collect();
    let (subject, have, nearly) = match pod_names.as_slice() {
        [one] => (one.clone(), "it has", "nearly matches"),
        all => (counted(all.len(), "pod"), "they have", "nearly match"),
    };
    let wanted = selector_text(selector);
    let (code, message) = match miss {
        NearMiss::Typo { key, wanted, found } => (
            Code::LabelValueTypo,
            format!(
                "{subject} {nearly}: {have} {key}={found}, the selector asks for {key}={wanted}"
            ),
        ),
        NearMiss::Spelling { key, wanted, found } => (
            Code::LabelSpelling,
            format!(
                "{subject} {nearly}: `{found}` and `{wanted}` are two values of `{key}`, because \
                 labels are compared letter by letter"
            ),
        ),
        NearMiss::Missing { key, n_matched, .. } => (
            Code::LabelMissing,
            format!(
                "{subject} {nearly}: {have} {n_matched} of the {} labels of the selector, and no \
                 label `{key}`",
                n_matched + 1
            ),
        ),
        NearMiss::OtherKey { key, wanted, found_key } => (
            Code::LabelUnderOtherKey,
            format!(
                "{subject} {nearly}: {have} `{wanted}` under `{found_key}`, the selector looks \
                 under `{key}`"
            ),
        ),
    };
    let near = owner.as_ref().map(|owner| {
        let pods = if pods.len() == 1 { "its labels come" } else { "their labels come" };
        format!("{pods} from the pod template of {} {}", owner.kind, owner.name)
    });
    let object =
        owner.clone().unwrap_or_else(|| ObjectName::new("Pod", &pods[0].namespace, &pods[0].name));
    Finding::new(code, object, message)
        .evidence(format!("selector: {wanted}"))
        .evidence(format!("pods: {}", names(&pod_names)))
        .near_miss(near)
        .command(command(miss, owner.as_ref(), pods))
}

/// A label of a pod without owner can be changed safely. With an owner, the change would be lost,
/// or the owner would replace the pod.
fn command(miss: &NearMiss, owner: Option<&ObjectName>, pods: &[&Pod]) -> Option<String> {
    let [pod] = pods else { return None };
    if owner.is_some() {
        return None;
    }
    let (key, value) = miss.suggestion();
    let Pod { namespace, name, .. } = pod;
    let overwrite = if pod.labels.contains_key(key) { " --overwrite" } else { "" };
    Some(format!("kubectl -n {namespace} label pod {name} {key}={value}{overwrite}"))
}

/// Whether a pod is excluded because it does not run any more.
pub fn has_ended(reason: ExclusionReason) -> bool {
    match reason {
        ExclusionReason::Failed | ExclusionReason::Succeeded => true,
        ExclusionReason::NoAddress
        | ExclusionReason::NoAddressOfFamily(_)
        | ExclusionReason::InvalidAddress(_)
        | ExclusionReason::Terminating
        | ExclusionReason::NotScheduled
        | ExclusionReason::NodeNotFound
        | ExclusionReason::NoPort
        | ExclusionReason::ServiceWithoutPorts
        | ExclusionReason::TooManyPorts
        | ExclusionReason::OverCapacity => false,
    }
}
