//! Writes of the endpoints controller.

use endpointd_model::{Key, Pod, WatchedResource};

use super::{Breach, Check, CheckedWrite};
use crate::coverage::Rule;
use crate::oracle::endpoints::{Entry, entries, is_lock};
use crate::oracle::left_behind::are_endpoints_left;
use crate::oracle::slices::publishes;

/// Larger Endpoints may have been truncated.
const UNCUT_MAX: usize = 900;

pub const CHECKS: [(Rule, Check); 3] = [
    (Rule::NoForeignObject, check_target),
    (Rule::NoWrongAddress, check_addresses),
    (Rule::NoLoss, check_loss),
];

fn check_target(case: &CheckedWrite) -> Result<(), Breach> {
    let foreign = |text: String| Err((Rule::NoForeignObject, text));
    if case.known_slice().is_some() || case.new_slice().is_some() {
        return foreign(format!("{} is a slice", case.write.key()));
    }
    let services = case.services();
    if case.new_endpoints().is_some() {
        let may_write = services.into_iter().flatten().any(publishes);
        return if may_write { Ok(()) } else { foreign(format!("{} has no pods", case.key)) };
    }
    if case.known_endpoints().is_some_and(is_lock) {
        return foreign(format!("{} is a lock", case.key));
    }
    if case.may_delete_left_behind()
        && let Some(endpoints) = case.known_endpoints()
        && services.iter().flatten().any(|service| are_endpoints_left(service, endpoints))
    {
        return Ok(());
    }
    if services.iter().all(Option::is_some) {
        return foreign(format!("{} is deleted although its Service exists", case.key));
    }
    Ok(())
}

fn pods<'a>(case: &CheckedWrite<'a>, name: &str) -> Vec<Option<&'a Pod>> {
    let key = Key::new(case.key.namespace.clone(), name);
    case.api.pods.window(&key, case.observed.of(WatchedResource::Pods))
}

fn check_addresses(case: &CheckedWrite) -> Result<(), Breach> {
    let Some(endpoints) = case.new_endpoints() else { return Ok(()) };
    let services: Vec<_> = case.services().into_iter().flatten().collect();
    for published in Entry::all(endpoints) {
        let is_justified = pods(case, &published.pod)
            .into_iter()
            .flatten()
            .any(|pod| services.iter().any(|service| entries(service, pod).contains(&published)));
        if !is_justified {
            let text = format!("{} publishes {published:?}", case.key);
            return Err((Rule::NoWrongAddress, text));
        }
    }
    Ok(())
}

fn check_loss(case: &CheckedWrite) -> Result<(), Breach> {
    let (Some(known), Some(new)) = (case.known_endpoints(), case.new_endpoints()) else {
        return Ok(());
    };
    let (known, new) = (Entry::all(known), Entry::all(new));
    if new.len() > UNCUT_MAX {
        return Ok(());
    }
    let is_same = |a: &Entry, b: &Entry| (&a.port, &a.ip, &a.uid) == (&b.port, &b.ip, &b.uid);
    let services = case.services();
    for lost in known {
        if lost.pod.is_empty() || new.iter().any(|entry| is_same(entry, &lost)) {
            continue;
        }
        let pods = pods(case, &lost.pod);
        let is_desired_throughout = services.iter().all(|service| {
            pods.iter().all(|pod| {
                let desired = service.zip(*pod).map(|(service, pod)| entries(service, pod));
                desired.is_some_and(|all| all.iter().any(|entry| is_same(entry, &lost)))
            })
        });
        if is_desired_throughout {
            return Err((Rule::NoLoss, format!("Endpoints {} lose {lost:?}", case.key)));
        }
    }
    Ok(())
}
