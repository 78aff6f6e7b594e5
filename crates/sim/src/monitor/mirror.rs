//! Writes of the mirroring controller.

use endpointd_model::{EndpointSlice, Endpoints, WatchedResource, names};

use super::{Breach, Check, CheckedWrite, owner_uids};
use crate::coverage::Rule;
use crate::oracle::mirror::{Entry, Group, desired, entries, is_mirrored};
use crate::oracle::slices_of;

pub const CHECKS: [(Rule, Check); 3] = [
    (Rule::NoForeignObject, check_target),
    (Rule::NoWrongAddress, check_addresses),
    (Rule::NoLoss, check_loss),
];

fn sources<'a>(case: &CheckedWrite<'a>) -> Vec<Option<&'a Endpoints>> {
    case.api.endpoints.window(&case.key, case.observed.of(WatchedResource::Endpoints))
}

fn group(slice: &EndpointSlice) -> Group {
    let mut ports = slice.ports.clone();
    ports.sort();
    (slice.address_type.clone(), ports)
}

fn check_target(case: &CheckedWrite) -> Result<(), Breach> {
    let foreign = |text: String| Err((Rule::NoForeignObject, text));
    if case.known_slice().is_none() && case.new_slice().is_none() {
        return foreign(format!("{} is no slice", case.write.key()));
    }
    case.check_manager(names::MANAGED_BY_MIRROR)?;
    if case.known_slice().is_some_and(|slice| slice.meta.is_deleting()) {
        return foreign(format!("{} is being deleted", case.write.key()));
    }
    let Some(slice) = case.new_slice() else { return Ok(()) };
    let owners = owner_uids(slice);
    let services = case.services();
    let may_write = sources(case).into_iter().flatten().any(|endpoints| {
        owners.contains(&&endpoints.meta.uid)
            && services.iter().flatten().any(|service| is_mirrored(endpoints, service))
    });
    if may_write { Ok(()) } else { foreign(format!("{} is not mirrored", case.key)) }
}

fn check_addresses(case: &CheckedWrite) -> Result<(), Breach> {
    let Some(slice) = case.new_slice() else { return Ok(()) };
    let max = case.setup.mirrored_per_subset_max;
    let group = group(slice);
    let published = entries(slice);
    let is_right = |endpoints: &Endpoints| desired(endpoints, max).get(&group) == Some(&published);
    if sources(case).into_iter().flatten().any(is_right) {
        return Ok(());
    }
    Err((Rule::NoWrongAddress, format!("{} mirrors {published:?}", slice.meta.key())))
}

fn check_loss(case: &CheckedWrite) -> Result<(), Breach> {
    let Some(known) = case.known_slice() else { return Ok(()) };
    let known_group = group(known);
    let max = case.setup.mirrored_per_subset_max;
    let others = slices_of(case.api, &case.key, names::MANAGED_BY_MIRROR)
        .filter(|slice| slice.meta.name != known.meta.name);
    let remaining: Vec<(Group, Entry)> = others
        .chain(case.new_slice())
        .flat_map(|slice| entries(slice).into_iter().map(|entry| (group(slice), entry)))
        .collect();
    let services = case.services();
    for lost in entries(known) {
        let is_same = |(group, entry): &(Group, Entry)| {
            *group == known_group
                && (&entry.address, &entry.target) == (&lost.address, &lost.target)
        };
        if remaining.iter().any(is_same) {
            continue;
        }
        let is_desired_throughout = sources(case).into_iter().all(|endpoints| {
            endpoints.is_some_and(|endpoints| {
                let all = desired(endpoints, max);
                let has = all.get(&known_group).is_some_and(|all| all.contains(&lost));
                let mirrors = services
                    .iter()
                    .all(|service| service.is_some_and(|service| is_mirrored(endpoints, service)));
                has && mirrors
            })
        });
        if is_desired_throughout {
            return Err((Rule::NoLoss, format!("{} loses {lost:?}", known.meta.key())));
        }
    }
    Ok(())
}
