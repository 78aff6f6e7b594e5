//! What happens to endpoints of other namespaces, between the steps of a script. It is drawn from a
//! generator of its own: without it the script is the same.

use endpointd_model::WatchedResource;
use endpointd_rng::SplitMix64;

use crate::clock::millis;
use crate::rng::rng_of;
use crate::script::{
    Action, CopyEdit, Fault, ImportAction, Place, ServiceAction, Step, WatchFault,
};
use crate::workload::{CONSUMERS, NAMESPACES, SERVICES};

/// Not drawn: the scripts of kept seeds, and of those that detect mutants, stay as they are.
pub fn runs_imports(seed: u64) -> bool {
    matches!(seed % 16, 11 | 13 | 15)
}

pub fn interleaved(steps: Vec<Step>, seed: u64, n_initial: usize) -> Vec<Step> {
    let mut rng = rng_of(seed ^ 0x1390);
    let share = rng.pick(&[10, 20, 40]);
    let mut all = Vec::with_capacity(steps.len() * 2);
    for (number, step) in steps.into_iter().enumerate() {
        all.push(step);
        if number + 1 == n_initial {
            all.extend(initial_steps(&mut rng));
        }
        if number + 1 >= n_initial && rng.percent(share) {
            let pause = millis(rng.pick(&[0, 0, 3, 30, 300]));
            all.push(Step::new(action(&mut rng), pause));
        }
    }
    all
}

fn initial_steps(rng: &mut SplitMix64) -> Vec<Step> {
    let mut actions = Vec::new();
    for namespace in 0..NAMESPACES.len() as u8 {
        for number in 0..CONSUMERS.len() as u16 {
            let place = Place { namespace, number };
            actions.push(ImportAction::Consumer(place, ServiceAction::Create(shape(rng))));
            actions.push(ImportAction::Ask(place, shape(rng)));
        }
        for number in 0..SERVICES.len() as u16 {
            actions.push(ImportAction::Permit(Place { namespace, number }, shape(rng)));
        }
    }
    actions.into_iter().map(|action| Step::new(Action::Import(action), millis(1))).collect()
}

fn shape(rng: &mut SplitMix64) -> u32 {
    rng.next_u64() as u32
}

fn place(rng: &mut SplitMix64, n: usize) -> Place {
    let namespace = rng.below(NAMESPACES.len() as u64) as u8;
    Place { namespace, number: rng.below(n as u64) as u16 }
}

fn action(rng: &mut SplitMix64) -> Action {
    let shape = shape(rng);
    let (consumer, service) = (place(rng, CONSUMERS.len()), place(rng, SERVICES.len()));
    let namespace = rng.below(NAMESPACES.len() as u64) as u8;
    Action::Import(match rng.below(100) {
        0..=14 => ImportAction::Ask(consumer, shape),
        15..=34 => ImportAction::Permit(service, shape),
        35..=44 => ImportAction::Grant(namespace, shape),
        45..=50 => ImportAction::Revoke(namespace, shape),
        51..=68 => ImportAction::WriteSlice(service, shape),
        69..=80 => ImportAction::EditCopy(shape, copy_edit(rng)),
        81..=82 => ImportAction::EditCondition(consumer),
        83 => ImportAction::Select(consumer),
        84..=97 => ImportAction::Consumer(consumer, consumer_action(rng, shape)),
        98 => return Action::Watch(rng.below(2) as u8, GRANTS, grant_fault(rng)),
        _ => return Action::Fault(Fault::Compact(GRANTS)),
    })
}

const GRANTS: WatchedResource = WatchedResource::ReferenceGrants;

fn consumer_action(rng: &mut SplitMix64, shape: u32) -> ServiceAction {
    rng.pick(&[
        ServiceAction::Create(shape),
        ServiceAction::Create(shape),
        ServiceAction::Create(shape),
        ServiceAction::Create(shape),
        ServiceAction::Remove,
        ServiceAction::Recreate(shape),
        ServiceAction::Recreate(shape),
        ServiceAction::Recreate(shape),
        ServiceAction::Ports(shape),
        ServiceAction::Ports(shape),
        ServiceAction::Families(shape),
        ServiceAction::Topology(shape),
        ServiceAction::Topology(shape),
        ServiceAction::Unselect,
        ServiceAction::Unselect,
        ServiceAction::External,
        ServiceAction::Internal,
        ServiceAction::Internal,
        ServiceAction::Relabel(shape),
        ServiceAction::Delete,
    ])
}

fn copy_edit(rng: &mut SplitMix64) -> CopyEdit {
    rng.pick(&CopyEdit::ALL)
}

fn grant_fault(rng: &mut SplitMix64) -> WatchFault {
    let time = millis(rng.between(0, 5000));
    rng.pick(&[
        WatchFault::Delay(time),
        WatchFault::Delay(millis(0)),
        WatchFault::Freeze(time),
        WatchFault::Disconnect(time),
        WatchFault::Expired(time),
        WatchFault::Replay(5),
        WatchFault::OutdatedList(20),
    ])
}
