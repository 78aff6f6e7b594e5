//! Endpoints of other namespaces.

use std::time::Duration;

use endpointd_model::WatchedResource;

use super::Schedule;
use super::scenarios::{PLAIN_SERVICE, WEB, initial_steps, mixed, plain_pod, pod};
use crate::clock::{millis, secs};
use crate::run::RunOptions;
use crate::script::{
    Action, Check, CopyEdit, Fault, ImportAction, NamespaceAction, Place, PodAction, ProcessFault,
    RequestFault, Script, ServiceAction, Setup, Step, WatchFault,
};

const CONSUMER: Place = Place { namespace: 1, number: 0 };
const API: Place = Place { namespace: 0, number: 1 };

/// The wish for the endpoints of `web`, or of `api`, of the first namespace.
const ASKS_WEB: u32 = mixed(&[(0, 2), (0, 4), (0, 2), (11, 12)]);
const ASKS_API: u32 = mixed(&[(0, 2), (1, 4), (0, 2), (11, 12)]);
/// `*`, or no annotation.
const PERMITS_ALL: u32 = 7;
const PERMITS_NOBODY: u32 = 0;
/// To Services of the second namespace, all Services.
const GRANT: u32 = mixed(&[(0, 3), (0, 4), (0, 4), (1, 3), (0, 4), (0, 4), (0, 2)]);
/// No labels, one port 8080, ready only, one family, no topology.
const PLAIN_CONSUMER: u32 = mixed(&[(3, 5), (6, 8), (1, 6), (1, 4), (1, 3)]);

fn setup() -> Setup {
    Setup { endpoints_per_slice_max: 2, runs_imports: true, ..Setup::default() }
}

fn import(what: ImportAction) -> Action {
    Action::Import(what)
}

fn permit(shape: u32) -> Action {
    import(ImportAction::Permit(WEB, shape))
}

fn consumer(what: ServiceAction) -> Action {
    import(ImportAction::Consumer(CONSUMER, what))
}

/// `web` with four pods, and a consumer in the other namespace that may use it.
fn pair() -> Vec<Step> {
    let mut steps = initial_steps();
    let actions = [
        permit(PERMITS_ALL),
        consumer(ServiceAction::Create(PLAIN_CONSUMER)),
        import(ImportAction::Ask(CONSUMER, ASKS_WEB)),
    ];
    steps.extend(actions.into_iter().map(|action| Step::new(action, secs(1))));
    steps
}

pub fn scenarios() -> Vec<(&'static str, Script)> {
    let scenarios = [
        ("endpoints of another namespace", life()),
        ("consent that comes and goes", consent()),
        ("edited copies", edits()),
        ("namespaces of a pair", namespaces()),
    ];
    let script = |actions: Vec<Action>, seed| {
        let mut steps = pair();
        steps.extend(actions.into_iter().map(|action| Step::new(action, secs(1))));
        Script { seed, setup: setup(), steps }
    };
    let number = scenarios.into_iter().zip(51..);
    number.map(|((name, actions), seed)| (name, script(actions, seed))).collect()
}

fn life() -> Vec<Action> {
    vec![
        Action::Pod(pod(0), PodAction::Unready),
        Action::Pod(pod(1), PodAction::Remove),
        Action::Pod(pod(5), PodAction::Create(plain_pod(7, 0))),
        import(ImportAction::WriteSlice(WEB, 3)),
        consumer(ServiceAction::Ports(1)),
        consumer(ServiceAction::Topology(2)),
        consumer(ServiceAction::Families(2)),
        Action::Service(API, ServiceAction::Create(PLAIN_SERVICE)),
        import(ImportAction::Ask(CONSUMER, ASKS_API)),
        import(ImportAction::Permit(API, PERMITS_ALL)),
        import(ImportAction::Ask(CONSUMER, ASKS_WEB)),
        Action::Service(WEB, ServiceAction::Recreate(PLAIN_SERVICE)),
        permit(PERMITS_ALL),
        Action::Service(WEB, ServiceAction::Remove),
        consumer(ServiceAction::Recreate(PLAIN_CONSUMER)),
        import(ImportAction::Ask(CONSUMER, ASKS_WEB)),
    ]
}

fn consent() -> Vec<Action> {
    vec![
        permit(PERMITS_NOBODY),
        import(ImportAction::Grant(0, GRANT)),
        permit(PERMITS_ALL),
        import(ImportAction::Revoke(0, 0)),
        permit(PERMITS_NOBODY),
        permit(PERMITS_ALL),
        import(ImportAction::Select(CONSUMER)),
        consumer(ServiceAction::Unselect),
        import(ImportAction::Grant(0, GRANT)),
        Action::Service(WEB, ServiceAction::Remove),
        import(ImportAction::Revoke(0, 0)),
    ]
}

fn edits() -> Vec<Action> {
    let mut actions: Vec<Action> =
        CopyEdit::ALL.map(|edit| import(ImportAction::EditCopy(0, edit))).into();
    actions.push(import(ImportAction::EditCondition(CONSUMER)));
    actions
}

fn namespaces() -> Vec<Action> {
    let end = |number| Action::Namespace(number, NamespaceAction::End);
    let begin = |number| Action::Namespace(number, NamespaceAction::Begin);
    vec![
        end(0),
        Action::Quiesce,
        begin(0),
        Action::Service(WEB, ServiceAction::Create(PLAIN_SERVICE)),
        permit(PERMITS_ALL),
        Action::Pod(pod(0), PodAction::Create(plain_pod(1, 0))),
        end(1),
        Action::Pod(pod(0), PodAction::Unready),
        Action::Quiesce,
        begin(1),
        consumer(ServiceAction::Create(PLAIN_CONSUMER)),
        import(ImportAction::Ask(CONSUMER, ASKS_WEB)),
    ]
}

pub fn targeted() -> Vec<Schedule> {
    [
        ("consent withdrawn while other work waits", withdrawn_under_load()),
        ("source missing from a list", source_missing_from_a_list()),
        ("copy edited while no process runs", edited_while_down()),
        ("endpoints move between slices of the source", moved()),
    ]
    .into_iter()
    .map(|(name, steps)| {
        let setup = Setup { endpoints_per_slice_max: 4, ..setup() };
        let script = Script { seed: 98, setup, steps };
        Schedule { name: name.into(), script, options: RunOptions::default() }
    })
    .collect()
}

fn after(action: Action, pause: Duration) -> Step {
    Step::new(action, pause)
}

/// The copies go before the other work, which is much.
fn withdrawn_under_load() -> Vec<Step> {
    const N_SERVICES: u16 = 600;
    let mut steps = pair();
    steps.extend((10..10 + N_SERVICES).map(|number| {
        let place = Place { namespace: 0, number };
        after(Action::Service(place, ServiceAction::Create(PLAIN_SERVICE)), millis(0))
    }));
    steps.extend([
        after(permit(PERMITS_NOBODY), millis(100)),
        after(Action::Check(Check::NoUnwantedEndpoint), secs(60)),
        after(Action::Check(Check::Converged), secs(1)),
    ]);
    steps
}

/// What a list does not contain may exist: the copies stay.
fn source_missing_from_a_list() -> Vec<Step> {
    let missing = Action::Watch(0, WatchedResource::Services, WatchFault::EmptyList);
    let mut steps = pair();
    steps.extend([
        after(Action::Fault(Fault::FailedReads(secs(5))), millis(0)),
        after(missing, secs(10)),
        after(Action::Quiesce, secs(1)),
    ]);
    steps
}

/// The consumer still owns it, and it has the name of a copy, but its source is another one now.
fn edited_while_down() -> Vec<Step> {
    let mut steps = pair();
    steps.extend([
        after(Action::Process(0, ProcessFault::Crash(secs(5))), secs(1)),
        after(import(ImportAction::EditCopy(0, CopyEdit::DropManager)), millis(1)),
        after(import(ImportAction::EditCopy(0, CopyEdit::OtherManager)), millis(1)),
        after(Action::Service(API, ServiceAction::Create(PLAIN_SERVICE)), millis(1)),
        after(import(ImportAction::Permit(API, PERMITS_ALL)), millis(1)),
        after(import(ImportAction::Ask(CONSUMER, ASKS_API)), secs(10)),
        after(Action::Quiesce, secs(1)),
    ]);
    steps
}

/// A written slice of the source by its number, with one endpoint, or with that and two others.
const fn with_one(slice: u32, ready: u32) -> u32 {
    let (ready, serving, node, zone) = ((ready, 3), (1, 2), (0, 2), (0, 3));
    let (hostname, target, ports) = ((1, 3), (1, 2), (3, 4));
    mixed(&[(slice, 2), (0, 4), (1, 4), ready, serving, node, zone, hostname, target, ports])
}

const fn with_three(slice: u32) -> u32 {
    const ENDPOINT: [(u32, u32); 6] = [(1, 3), (1, 2), (0, 2), (0, 3), (1, 3), (1, 2)];
    let [a, b, c, d, e, f] = ENDPOINT;
    let (number, ports) = ((3, 4), (3, 4));
    mixed(&[
        (slice, 2),
        (0, 4),
        number,
        a,
        b,
        c,
        d,
        e,
        f,
        a,
        b,
        c,
        d,
        e,
        f,
        a,
        b,
        c,
        d,
        e,
        f,
        ports,
    ])
}

/// Both slices change while a write is in flight, so one plan has both changes. In every second round
/// the endpoint that stays changes, too.
fn moved() -> Vec<Step> {
    const READY: u32 = 1;
    let write = |shape| import(ImportAction::WriteSlice(WEB, shape));
    let mut steps = pair();
    for round in 0..12 {
        let (from, to) = (round % 2, (round + 1) % 2);
        let is_ready = (round / 2) % 2;
        let slow = RequestFault::SlowResponse(millis(400));
        steps.extend([
            after(write(with_three(from)), millis(0)),
            after(write(with_one(to, READY)), secs(2)),
            after(Action::Request(slow), millis(0)),
            after(write(with_one(to, 1 - READY)), millis(50)),
            after(write(with_three(to)), millis(0)),
            after(write(with_one(from, is_ready)), secs(2)),
            after(Action::Check(Check::Converged), millis(1)),
        ]);
    }
    steps
}
