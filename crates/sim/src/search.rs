//! The small-scope search: two Services, three pods, two slices, eight acts, in all orders.
//!
//! The reduction: acts on the same object keep their order, because another order makes them other
//! acts (a pod cannot become ready before it is there). Between acts either nothing passes, or a
//! few milliseconds (requests are under way), or a second (all is settled), the same for a whole
//! run or changing from act to act.

use std::time::Duration;

use endpointd_model::WatchedResource;

use crate::clock::{millis, secs};
use crate::plans::Plan;
use crate::play::Manner;
use crate::script::{
    Act, EndpointsAct, Fault, Mishap, NodeAct, Place, PodAct, ProcessFault, Script, ServiceAct,
    Setup, SliceAct, Step, WatchFault,
};

const WEB: Place = Place { namespace: 0, number: 0 };
const API: Place = Place { namespace: 0, number: 1 };

/// How long nothing is done after each act, by its place in the run.
const RHYTHMS: [[u64; 2]; 4] = [[0, 0], [7, 7], [1000, 1000], [0, 12]];

/// Chains of acts: any order, but each chain in its own.
type Deck = Vec<Vec<Act>>;

/// One run of a deck.
pub struct Search {
    pub name: &'static str,
    deck: Deck,
    orders: Vec<Vec<usize>>,
}

impl Search {
    pub fn len(&self) -> usize {
        self.orders.len() * RHYTHMS.len()
    }

    pub fn is_empty(&self) -> bool {
        self.orders.is_empty()
    }

    pub fn plan(&self, number: usize) -> Plan {
        let order = &self.orders[number / RHYTHMS.len()];
        let rhythm = RHYTHMS[number % RHYTHMS.len()];
        let mut next = vec![0; self.deck.len()];
        let mut steps = begin();
        for (at, chain) in order.iter().enumerate() {
            let act = self.deck[*chain][next[*chain]].clone();
            next[*chain] += 1;
            steps.push(Step::new(act, millis(rhythm[at % 2])));
        }
        let setup = Setup { endpoints_per_slice_max: 2, ..Setup::default() };
        let script = Script { seed: number as u64, setup, steps };
        Plan { name: format!("search {} {number}", self.name), script, manner: Manner::default() }
    }
}

pub fn searches() -> Vec<Search> {
    let decks = [
        ("crash", crash()),
        ("lost answers", lost_answers()),
        ("unseen", unseen()),
        ("recreated", recreated()),
        ("meddling", meddling()),
        ("mirroring", mirroring()),
        ("nodes", nodes()),
    ];
    let search = |(name, deck): (&'static str, Deck)| {
        let lengths: Vec<usize> = deck.iter().map(Vec::len).collect();
        Search { name, orders: orders(lengths), deck }
    };
    decks.into_iter().map(search).collect()
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

fn pod(number: u16, what: PodAct) -> Act {
    Act::Pod(Place { namespace: 0, number }, what)
}

fn service(place: Place, what: ServiceAct) -> Act {
    Act::Service(place, what)
}

fn begin() -> Vec<Step> {
    use crate::plans::{PLAIN_SERVICE, plain_node, plain_pod};
    let settle: Duration = secs(1);
    let mut steps = vec![
        Step::new(Act::Node(0, NodeAct::Put(plain_node(0))), millis(0)),
        Step::new(service(WEB, ServiceAct::Create(PLAIN_SERVICE)), millis(0)),
        Step::new(service(API, ServiceAct::Create(PLAIN_SERVICE)), millis(0)),
    ];
    for number in 0..3 {
        let variety = plain_pod(u32::from(number) + 1, 0);
        steps.push(Step::new(pod(number, PodAct::Create(variety)), millis(0)));
    }
    if let Some(last) = steps.last_mut() {
        last.pause = settle;
    }
    steps
}

fn crash() -> Deck {
    vec![
        vec![pod(0, PodAct::Unready), pod(0, PodAct::Ready), pod(0, PodAct::Remove)],
        vec![service(WEB, ServiceAct::Ports(1)), service(WEB, ServiceAct::Relabel(0))],
        vec![
            Act::Process(0, ProcessFault::Crash(millis(1))),
            Act::Process(0, ProcessFault::Crash(millis(5))),
        ],
        vec![Act::Slice(0, SliceAct::Delete)],
    ]
}

fn lost_answers() -> Deck {
    vec![
        vec![pod(0, PodAct::Unready), pod(0, PodAct::Remove)],
        vec![pod(1, PodAct::Terminate), pod(1, PodAct::Remove)],
        vec![
            Act::Mishap(Mishap::LostApplied),
            Act::Mishap(Mishap::AppliedLate(millis(30))),
            Act::Mishap(Mishap::Overtaken),
        ],
        vec![service(WEB, ServiceAct::Ports(1))],
    ]
}

fn unseen() -> Deck {
    vec![
        vec![pod(0, PodAct::Remove), pod(0, PodAct::Create(7))],
        vec![Act::Watch(0, WatchedResource::Pods, WatchFault::Gone(millis(20)))],
        vec![Act::Watch(0, WatchedResource::Slices, WatchFault::Freeze(millis(40)))],
        vec![service(API, ServiceAct::Select(1)), service(API, ServiceAct::Remove)],
        vec![Act::Watch(0, WatchedResource::Services, WatchFault::OldPicture(4))],
        vec![pod(1, PodAct::Unready)],
    ]
}

fn recreated() -> Deck {
    vec![
        vec![service(WEB, ServiceAct::Recreate(3)), service(WEB, ServiceAct::Recreate(3))],
        vec![pod(0, PodAct::Replace(7)), pod(0, PodAct::Fail)],
        vec![Act::Mishap(Mishap::SlowAnswer(millis(50)))],
        vec![Act::Watch(0, WatchedResource::Endpoints, WatchFault::Gone(millis(20)))],
        vec![Act::Slice(1, SliceAct::Disown), Act::Slice(1, SliceAct::GiveAway)],
    ]
}

fn meddling() -> Deck {
    vec![
        vec![Act::Slice(0, SliceAct::DropEndpoint), Act::Slice(0, SliceAct::Delete)],
        vec![Act::Slice(1, SliceAct::SetFinalizer), Act::Slice(1, SliceAct::Delete)],
        vec![Act::Endpoints(WEB, EndpointsAct::Remove)],
        vec![pod(2, PodAct::Unready)],
        vec![Act::Mishap(Mishap::SlowAnswer(millis(50)))],
        vec![Act::Mishap(Mishap::Unreachable)],
    ]
}

fn mirroring() -> Deck {
    let by_hand = |what| Act::Endpoints(API, what);
    vec![
        vec![service(API, ServiceAct::Unselect), service(API, ServiceAct::Select(3))],
        vec![
            by_hand(EndpointsAct::Put(crate::plans::plain_endpoints(2, 0))),
            by_hand(EndpointsAct::Remove),
        ],
        vec![Act::Mishap(Mishap::SlowRequest(millis(50)))],
        vec![service(WEB, ServiceAct::Unselect)],
        vec![Act::Watch(0, WatchedResource::Endpoints, WatchFault::Cut(millis(30)))],
        vec![Act::Process(0, ProcessFault::Crash(millis(5)))],
    ]
}

fn nodes() -> Deck {
    use crate::plans::plain_node;
    vec![
        vec![Act::Node(0, NodeAct::Remove), Act::Node(0, NodeAct::Put(plain_node(1)))],
        vec![Act::Watch(0, WatchedResource::Nodes, WatchFault::EmptyPicture)],
        vec![Act::Fault(Fault::Blind(millis(40)))],
        vec![pod(0, PodAct::Unready), pod(0, PodAct::Ready)],
        vec![Act::Mishap(Mishap::LostNotApplied)],
        vec![pod(1, PodAct::Replace(7))],
    ]
}
