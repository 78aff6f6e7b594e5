//! Small histories that go well by themselves.

use crate::clock::{millis, secs};
use crate::script::{
    Act, EndpointsAct, NamespaceAct, NodeAct, Place, PodAct, Script, ServiceAct, Setup, SliceAct,
    Step,
};

pub const WEB: Place = Place { namespace: 0, number: 0 };
const API: Place = Place { namespace: 0, number: 1 };
const OLD: Place = Place { namespace: 0, number: 3 };

/// Varieties, as the workload reads them: pods of `web` with one IPv4 address on a node, ready.
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

/// Digits with their bases, the first one lowest, as `Variety` takes them off.
const fn mixed<const N: usize>(digits: &[(u32, u32); N]) -> u32 {
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

/// Two nodes, `web` with four pods, settled.
pub fn begin() -> Vec<Step> {
    let mut steps = vec![
        Step::new(Act::Node(0, NodeAct::Put(plain_node(0))), millis(1)),
        Step::new(Act::Node(1, NodeAct::Put(plain_node(1))), millis(1)),
        Step::new(Act::Service(WEB, ServiceAct::Create(PLAIN_SERVICE)), millis(1)),
    ];
    for (number, variety) in PLAIN_PODS.into_iter().enumerate() {
        steps.push(Step::new(Act::Pod(pod(number as u16), PodAct::Create(variety)), millis(5)));
    }
    if let Some(last) = steps.last_mut() {
        last.pause = secs(2);
    }
    steps
}

/// The acts come a second apart: each is dealt with before the next.
fn scenario(seed: u64, acts: Vec<Act>) -> Script {
    let mut steps = begin();
    steps.extend(acts.into_iter().map(|act| Step::new(act, secs(1))));
    Script { seed, setup: Setup { endpoints_per_slice_max: 2, ..Setup::default() }, steps }
}

pub fn all() -> Vec<(&'static str, Script)> {
    let replace = |number: u16| Act::Pod(pod(number), PodAct::Replace(plain_pod(9, 0)));
    let service = |what| Act::Service(WEB, what);
    let old = |what| Act::Endpoints(OLD, what);
    let histories = [
        ("rollout", (0..4).map(replace).collect()),
        ("replaced in place", in_place()),
        ("scale down", (0..4).map(|number| Act::Pod(pod(number), PodAct::Remove)).collect()),
        ("flapping", flapping()),
        ("other ports", vec![service(ServiceAct::Ports(1)), service(ServiceAct::Ports(6))]),
        (
            "recreated Service",
            vec![
                service(ServiceAct::Remove),
                service(ServiceAct::Create(PLAIN_SERVICE)),
                service(ServiceAct::Recreate(PLAIN_SERVICE)),
            ],
        ),
        ("families", (0..5).map(|variety| service(ServiceAct::Families(variety))).collect()),
        (
            "selector and type",
            vec![
                service(ServiceAct::Unselect),
                service(ServiceAct::Select(3)),
                service(ServiceAct::External),
                service(ServiceAct::Internal),
            ],
        ),
        ("nodes", nodes()),
        ("mirroring", mirroring(old)),
        ("meddling", meddling()),
        ("topology", (0..6).map(|variety| service(ServiceAct::Topology(variety))).collect()),
        ("end of a namespace", namespace()),
    ];
    let number = histories.into_iter().zip(1..);
    number.map(|((name, acts), seed)| (name, scenario(seed, acts))).collect()
}

/// The same address and node again, under the same name.
fn in_place() -> Vec<Act> {
    let again = |number: usize| Act::Pod(pod(number as u16), PodAct::Replace(PLAIN_PODS[number]));
    (0..4).map(again).collect()
}

fn flapping() -> Vec<Act> {
    let acts = [PodAct::Unready, PodAct::Ready, PodAct::Terminate, PodAct::Fail, PodAct::Remove];
    acts.into_iter().map(|what| Act::Pod(pod(0), what)).collect()
}

fn nodes() -> Vec<Act> {
    vec![
        Act::Node(0, NodeAct::Remove),
        Act::Node(0, NodeAct::Put(plain_node(1))),
        Act::Pod(pod(5), PodAct::Create(plain_pod(7, 2))),
        Act::Node(2, NodeAct::Put(plain_node(0))),
        Act::Node(1, NodeAct::Remove),
    ]
}

fn mirroring(old: impl Fn(EndpointsAct) -> Act) -> Vec<Act> {
    vec![
        Act::Service(OLD, ServiceAct::Create(PLAIN_SERVICE)),
        old(EndpointsAct::Put(plain_endpoints(2, 0))),
        old(EndpointsAct::Annotate(0)),
        old(EndpointsAct::Put(plain_endpoints(3, 1))),
        old(EndpointsAct::SkipMirror),
        old(EndpointsAct::Unmark),
        old(EndpointsAct::Recreate(plain_endpoints(0, 0))),
        old(EndpointsAct::Remove),
        old(EndpointsAct::Put(plain_endpoints(5, 2))),
        Act::Service(OLD, ServiceAct::Remove),
    ]
}

fn meddling() -> Vec<Act> {
    let acts = [
        SliceAct::DropEndpoint,
        SliceAct::Delete,
        SliceAct::Relabel,
        SliceAct::Readdress,
        SliceAct::Disown,
        SliceAct::GiveAway,
        SliceAct::SetFinalizer,
        SliceAct::Delete,
        SliceAct::DropFinalizer,
        SliceAct::AddImpostor(0),
        SliceAct::AddForeign(4),
    ];
    acts.into_iter().map(|what| Act::Slice(0, what)).collect()
}

fn namespace() -> Vec<Act> {
    vec![
        Act::Service(API, ServiceAct::Create(PLAIN_SERVICE)),
        Act::Namespace(0, NamespaceAct::End),
        Act::Pod(pod(0), PodAct::Unready),
        Act::Calm,
        Act::Namespace(0, NamespaceAct::Begin),
        Act::Service(API, ServiceAct::Create(PLAIN_SERVICE)),
    ]
}
