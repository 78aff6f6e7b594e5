//! Short scenarios that converge without faults.

use crate::clock::{millis, secs};
use crate::script::{
    Action, EndpointsAction, NamespaceAction, NodeAction, Place, PodAction, Script, ServiceAction,
    Setup, SliceAction, Step,
};

pub const WEB: Place = Place { namespace: 0, number: 0 };
const API: Place = Place { namespace: 0, number: 1 };
pub const OLD: Place = Place { namespace: 0, number: 3 };

/// Shapes, as the workload decodes them: pods of `web` with one IPv4 address on a node, ready.
const PLAIN_PODS: [u32; 4] = [plain_pod(1, 0), plain_pod(2, 1), plain_pod(3, 0), plain_pod(4, 1)];

/// Label 0 (`app=web`), no tier, address, one family, node, ready, both named ports, no hostname.
pub const fn plain_pod(address: u32, node: u32) -> u32 {
    let digits = [(0, 6), (1, 3), (address, 24), (8, 12), (node, 7), (1, 3), (3, 4), (2, 6)];
    mixed(&digits)
}

/// Selector by name, no labels, one port 8080, ready pods only, one family, no topology.
pub const PLAIN_SERVICE: u32 = mixed(&[(3, 8), (3, 5), (6, 8), (1, 6), (1, 4), (1, 3)]);

/// Zone a or b, ready, a worker, four cores.
pub const fn plain_node(zone: u32) -> u32 {
    mixed(&[(zone, 6), (1, 6), (1, 10), (0, 6)])
}

/// One subset: two ready addresses from `first` on, one that is not, two ports or (`ports` 1) one.
pub const fn plain_endpoints(first: u32, ports: u32) -> u32 {
    let (second, third) = ((first + 1) % 9, (first + 2) % 9);
    mixed(&[(1, 3), (2, 4), (1, 3), (first, 9), (second, 9), (third, 9), (ports, 3)])
}

/// Mixed-radix number of (digit, base) pairs, lowest first; `ShapeSeed` takes the digits off.
pub const fn mixed<const N: usize>(digits: &[(u32, u32); N]) -> u32 {
    let (mut sum, mut unit, mut at) = (0, 1, 0);
    while at < N {
        sum += digits[at].0 * unit;
        unit *= digits[at].1;
        at += 1;
    }
    sum
}

pub fn pod(number: u16) -> Place {
    Place { namespace: 0, number }
}

/// Two nodes and `web` with four pods; time for the first writes.
pub fn initial_steps() -> Vec<Step> {
    let mut steps = vec![
        Step::new(Action::Node(0, NodeAction::Put(plain_node(0))), millis(1)),
        Step::new(Action::Node(1, NodeAction::Put(plain_node(1))), millis(1)),
        Step::new(Action::Service(WEB, ServiceAction::Create(PLAIN_SERVICE)), millis(1)),
    ];
    for (number, shape) in PLAIN_PODS.into_iter().enumerate() {
        steps.push(Step::new(Action::Pod(pod(number as u16), PodAction::Create(shape)), millis(5)));
    }
    if let Some(last) = steps.last_mut() {
        last.pause = secs(2);
    }
    steps
}

/// One action a second, so that each sync ends before the next action.
fn scenario(seed: u64, actions: Vec<Action>) -> Script {
    let mut steps = initial_steps();
    steps.extend(actions.into_iter().map(|action| Step::new(action, secs(1))));
    Script { seed, setup: Setup { endpoints_per_slice_max: 2, ..Setup::default() }, steps }
}

pub fn all() -> Vec<(&'static str, Script)> {
    let replace = |number: u16| Action::Pod(pod(number), PodAction::Replace(plain_pod(9, 0)));
    let service = |what| Action::Service(WEB, what);
    let old = |what| Action::Endpoints(OLD, what);
    let scenarios = [
        ("rollout", (0..4).map(replace).collect()),
        ("replaced in place", in_place()),
        ("scale down", (0..4).map(|number| Action::Pod(pod(number), PodAction::Remove)).collect()),
        ("readiness changes", readiness_changes()),
        ("other ports", vec![service(ServiceAction::Ports(1)), service(ServiceAction::Ports(6))]),
        (
            "recreated Service",
            vec![
                service(ServiceAction::Remove),
                service(ServiceAction::Create(PLAIN_SERVICE)),
                service(ServiceAction::Recreate(PLAIN_SERVICE)),
            ],
        ),
        ("families", (0..5).map(|shape| service(ServiceAction::Families(shape))).collect()),
        (
            "selector and type",
            vec![
                service(ServiceAction::Unselect),
                service(ServiceAction::Select(3)),
                service(ServiceAction::External),
                service(ServiceAction::Internal),
            ],
        ),
        ("nodes", nodes()),
        ("mirroring", mirroring(old)),
        ("foreign edits", foreign_edits()),
        ("topology", (0..6).map(|shape| service(ServiceAction::Topology(shape))).collect()),
        ("namespace deletion", namespace()),
    ];
    let number = scenarios.into_iter().zip(1..);
    number.map(|((name, actions), seed)| (name, scenario(seed, actions))).collect()
}

/// The same address and node again, under the same name.
fn in_place() -> Vec<Action> {
    let again =
        |number: usize| Action::Pod(pod(number as u16), PodAction::Replace(PLAIN_PODS[number]));
    (0..4).map(again).collect()
}

fn readiness_changes() -> Vec<Action> {
    let actions = [
        PodAction::Unready,
        PodAction::Ready,
        PodAction::Terminate,
        PodAction::Fail,
        PodAction::Remove,
    ];
    actions.into_iter().map(|what| Action::Pod(pod(0), what)).collect()
}

fn nodes() -> Vec<Action> {
    vec![
        Action::Node(0, NodeAction::Remove),
        Action::Node(0, NodeAction::Put(plain_node(1))),
        Action::Pod(pod(5), PodAction::Create(plain_pod(7, 2))),
        Action::Node(2, NodeAction::Put(plain_node(0))),
        Action::Node(1, NodeAction::Remove),
    ]
}

fn mirroring(old: impl Fn(EndpointsAction) -> Action) -> Vec<Action> {
    vec![
        Action::Service(OLD, ServiceAction::Create(PLAIN_SERVICE)),
        old(EndpointsAction::Put(plain_endpoints(2, 0))),
        old(EndpointsAction::Annotate(0)),
        old(EndpointsAction::Put(plain_endpoints(3, 1))),
        old(EndpointsAction::SkipMirror),
        old(EndpointsAction::RemoveMarks),
        old(EndpointsAction::Recreate(plain_endpoints(0, 0))),
        old(EndpointsAction::Remove),
        old(EndpointsAction::Put(plain_endpoints(5, 2))),
        Action::Service(OLD, ServiceAction::Remove),
    ]
}

fn foreign_edits() -> Vec<Action> {
    let actions = [
        SliceAction::DropEndpoint,
        SliceAction::Delete,
        SliceAction::Relabel,
        SliceAction::ChangeAddress,
        SliceAction::DropOwners,
        SliceAction::ChangeManager,
        SliceAction::SetFinalizer,
        SliceAction::Delete,
        SliceAction::DropFinalizer,
        SliceAction::AddMislabelled(0),
        SliceAction::AddForeign(4),
    ];
    actions.into_iter().map(|what| Action::Slice(0, what)).collect()
}

fn namespace() -> Vec<Action> {
    vec![
        Action::Service(API, ServiceAction::Create(PLAIN_SERVICE)),
        Action::Namespace(0, NamespaceAction::End),
        Action::Pod(pod(0), PodAction::Unready),
        Action::Quiesce,
        Action::Namespace(0, NamespaceAction::Begin),
        Action::Service(API, ServiceAction::Create(PLAIN_SERVICE)),
    ]
}
