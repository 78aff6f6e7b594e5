//! The small-scope search: two Services, three pods, two slices, eight actions, in all orders.
//!
//! The reduction: actions on the same object keep their order, because in another order they are
//! different actions (a pod cannot become ready before it exists). The delay between actions is
//! zero, a few milliseconds (requests are in flight), or a second (all syncs have ended); it is
//! constant in a run or alternates.

use endpointd_model::WatchedResource;

use crate::clock::{millis, secs};
use crate::fault_schedules::Schedule;
use crate::run::RunOptions;
use crate::script::{
    Action, EndpointsAction, Fault, NodeAction, Place, PodAction, ProcessFault, RequestFault,
    Script, ServiceAction, Setup, SliceAction, Step, WatchFault,
};

const WEB: Place = Place { namespace: 0, number: 0 };
const API: Place = Place { namespace: 0, number: 1 };

/// Milliseconds after each action, alternating between the two.
const INTER_ACTION_DELAYS: [[u64; 2]; 4] = [[0, 0], [7, 7], [1000, 1000], [0, 12]];

/// Actions of one chain keep their order; chains interleave in every order.
type ActionChains = Vec<Vec<Action>>;

/// All interleavings of some chains of actions.
pub struct Search {
    pub name: &'static str,
    chains: ActionChains,
    orders: Vec<Vec<usize>>,
}

impl Search {
    pub fn len(&self) -> usize {
        self.orders.len() * INTER_ACTION_DELAYS.len()
    }

    pub fn is_empty(&self) -> bool {
        self.orders.is_empty()
    }

    pub fn schedule(&self, number: usize) -> Schedule {
        let order = &self.orders[number / INTER_ACTION_DELAYS.len()];
        let delays = INTER_ACTION_DELAYS[number % INTER_ACTION_DELAYS.len()];
        let mut next = vec![0; self.chains.len()];
        let mut steps = initial_steps();
        for (at, chain) in order.iter().enumerate() {
            let action = self.chains[*chain][next[*chain]].clone();
            next[*chain] += 1;
            steps.push(Step::new(action, millis(delays[at % 2])));
        }
        let setup = Setup { endpoints_per_slice_max: 2, ..Setup::default() };
        let script = Script { seed: number as u64, setup, steps };
        Schedule {
            name: format!("search {} {number}", self.name),
            script,
            options: RunOptions::default(),
        }
    }
}

pub fn searches() -> Vec<Search> {
    let scopes = [
        ("crash", crash()),
        ("lost responses", lost_responses()),
        ("undelivered", undelivered()),
        ("recreated", recreated()),
        ("foreign edits", foreign_edits()),
        ("mirroring", mirroring()),
        ("nodes", nodes()),
    ];
    let search = |(name, chains): (&'static str, ActionChains)| {
        let lengths: Vec<usize> = chains.iter().map(Vec::len).collect();
        Search { name, orders: orders(lengths), chains }
    };
    scopes.into_iter().map(search).collect()
}

/// Every way to interleave chains of these lengths.
fn orders(left: Vec<usize>) -> Vec<Vec<usize>> {
    if left.iter().all(|n| *n == 0) {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for chain in 0..left.len() {
        if left[chain] > 0 {
            let mut rest = left.clone();
            rest[chain] -= 1;
            for mut order in orders(rest) {
                order.insert(0, chain);
                all.push(order);
            }
        }
    }
    all
}

fn pod(number: u16, what: PodAction) -> Action {
    Action::Pod(Place { namespace: 0, number }, what)
}

fn service(place: Place, what: ServiceAction) -> Action {
    Action::Service(place, what)
}

fn initial_steps() -> Vec<Step> {
    use crate::fault_schedules::{PLAIN_SERVICE, plain_node, plain_pod};
    let mut steps = vec![
        Step::new(Action::Node(0, NodeAction::Put(plain_node(0))), millis(0)),
        Step::new(service(WEB, ServiceAction::Create(PLAIN_SERVICE)), millis(0)),
        Step::new(service(API, ServiceAction::Create(PLAIN_SERVICE)), millis(0)),
    ];
    for number in 0..3 {
        let shape = plain_pod(u32::from(number) + 1, 0);
        steps.push(Step::new(pod(number, PodAction::Create(shape)), millis(0)));
    }
    if let Some(last) = steps.last_mut() {
        last.pause = secs(1);
    }
    steps
}

fn crash() -> ActionChains {
    vec![
        vec![pod(0, PodAction::Unready), pod(0, PodAction::Ready), pod(0, PodAction::Remove)],
        vec![service(WEB, ServiceAction::Ports(1)), service(WEB, ServiceAction::Relabel(0))],
        vec![
            Action::Process(0, ProcessFault::Crash(millis(1))),
            Action::Process(0, ProcessFault::Crash(millis(5))),
        ],
        vec![Action::Slice(0, SliceAction::Delete)],
    ]
}

fn lost_responses() -> ActionChains {
    vec![
        vec![pod(0, PodAction::Unready), pod(0, PodAction::Remove)],
        vec![pod(1, PodAction::Terminate), pod(1, PodAction::Remove)],
        vec![
            Action::Request(RequestFault::ResponseLost),
            Action::Request(RequestFault::AppliedLate(millis(30))),
            Action::Request(RequestFault::ConcurrentWrite),
        ],
        vec![service(WEB, ServiceAction::Ports(1))],
    ]
}

fn undelivered() -> ActionChains {
    vec![
        vec![pod(0, PodAction::Remove), pod(0, PodAction::Create(7))],
        vec![Action::Watch(0, WatchedResource::Pods, WatchFault::Expired(millis(20)))],
        vec![Action::Watch(0, WatchedResource::Slices, WatchFault::Freeze(millis(40)))],
        vec![service(API, ServiceAction::Select(1)), service(API, ServiceAction::Remove)],
        vec![Action::Watch(0, WatchedResource::Services, WatchFault::OutdatedList(4))],
        vec![pod(1, PodAction::Unready)],
    ]
}

fn recreated() -> ActionChains {
    vec![
        vec![service(WEB, ServiceAction::Recreate(3)), service(WEB, ServiceAction::Recreate(3))],
        vec![pod(0, PodAction::Replace(7)), pod(0, PodAction::Fail)],
        vec![Action::Request(RequestFault::SlowResponse(millis(50)))],
        vec![Action::Watch(0, WatchedResource::Endpoints, WatchFault::Expired(millis(20)))],
        vec![
            Action::Slice(1, SliceAction::DropOwners),
            Action::Slice(1, SliceAction::ChangeManager),
        ],
    ]
}

fn foreign_edits() -> ActionChains {
    vec![
        vec![Action::Slice(0, SliceAction::DropEndpoint), Action::Slice(0, SliceAction::Delete)],
        vec![Action::Slice(1, SliceAction::SetFinalizer), Action::Slice(1, SliceAction::Delete)],
        vec![Action::Endpoints(WEB, EndpointsAction::Remove)],
        vec![pod(2, PodAction::Unready)],
        vec![Action::Request(RequestFault::SlowResponse(millis(50)))],
        vec![Action::Request(RequestFault::Unreachable)],
    ]
}

fn mirroring() -> ActionChains {
    let written = |what| Action::Endpoints(API, what);
    vec![
        vec![service(API, ServiceAction::Unselect), service(API, ServiceAction::Select(3))],
        vec![
            written(EndpointsAction::Put(crate::fault_schedules::plain_endpoints(2, 0))),
            written(EndpointsAction::Remove),
        ],
        vec![Action::Request(RequestFault::SlowRequest(millis(50)))],
        vec![service(WEB, ServiceAction::Unselect)],
        vec![Action::Watch(0, WatchedResource::Endpoints, WatchFault::Disconnect(millis(30)))],
        vec![Action::Process(0, ProcessFault::Crash(millis(5)))],
    ]
}

fn nodes() -> ActionChains {
    use crate::fault_schedules::plain_node;
    vec![
        vec![Action::Node(0, NodeAction::Remove), Action::Node(0, NodeAction::Put(plain_node(1)))],
        vec![Action::Watch(0, WatchedResource::Nodes, WatchFault::EmptyList)],
        vec![Action::Fault(Fault::FailedReads(millis(40)))],
        vec![pod(0, PodAction::Unready), pod(0, PodAction::Ready)],
        vec![Action::Request(RequestFault::RequestLost)],
        vec![pod(1, PodAction::Replace(7))],
    ]
}
