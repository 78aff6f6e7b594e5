//! Address families: EPD502 and EPD503. EPD501 is a reason of a pod.

use endpointd_model::{AddressType, Family};

use crate::code::Code;
use crate::facts::ServiceFacts;
use crate::fields::counted;
use crate::finding::Finding;

pub fn explain(facts: &ServiceFacts, findings: &mut Vec<Finding>) {
    let [primary, _] = facts.service.families.as_slice() else { return };
    findings.extend(half(facts));
    findings.extend(one_family(facts, *primary));
}

/// EPD502.
fn half(facts: &ServiceFacts) -> Option<Finding> {
    let count = |family: Family| {
        let slices = facts.desired.iter();
        let of_family = slices.filter(|slice| slice.address_type == AddressType::from(family));
        let endpoints = of_family.flat_map(|slice| &slice.endpoints);
        endpoints.filter(|endpoint| endpoint.is_ready()).count()
    };
    let (n_v4, n_v6) = (count(Family::V4), count(Family::V6));
    let (more, n_more, fewer, n_fewer) = match n_v4.cmp(&n_v6) {
        std::cmp::Ordering::Equal => return None,
        std::cmp::Ordering::Greater => (Family::V4, n_v4, Family::V6, n_v6),
        std::cmp::Ordering::Less => (Family::V6, n_v6, Family::V4, n_v4),
    };
    let fewer_text = match n_fewer {
        0 => "none".to_owned(),
        n => n.to_string(),
    };
    let message = format!(
        "the Service is dual-stack: {more} has {}, {fewer} has {fewer_text}",
        counted(n_more, "ready endpoint")
    );
    let near = "pods that were started before their node had both families get the second one \
                when they are restarted";
    Some(Finding::new(Code::DualStackHalf, facts.object(), message).near_miss(Some(near.into())))
}

/// EPD503. See kubernetes/kubernetes#121631.
fn one_family(facts: &ServiceFacts, primary: Family) -> Option<Finding> {
    facts.raw_endpoints()?;
    let message =
        format!("Endpoints contain the first family only, here {primary}; the slices have both");
    Some(Finding::new(Code::EndpointsOneFamily, facts.endpoints_object(), message))
}
