//! Requests that wait to be sent. However many requests a plan has, only so many are in flight.
//!
//! As in API Priority and Fairness, a request in flight occupies a seat, and a namespace is a flow:
//! it may occupy at most as many seats as are free. One namespace alone gets half of the seats, and
//! however slow its requests are, the requests of another one find seats.

use std::collections::{BTreeMap, VecDeque};

use endpointd_model::SharedStr;

use crate::queue::Priority;

/// Every 8th request is the one whose turn is the earliest, of any priority, so that none starves.
const FAIRNESS_INTERVAL: u64 = 8;

const N_PRIORITIES: usize = 4;

/// What may be in flight at once.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub seats_max: usize,
    pub bytes_max: usize,
}

#[derive(Debug)]
pub struct RequestQueue<T> {
    limits: Limits,
    used: Usage,
    /// By namespace; only those with requests that wait or are in flight.
    flows: BTreeMap<SharedStr, Flow<T>>,
    /// The turn of the request that was sent last.
    turn: u64,
    n_added: u64,
    n_popped: u64,
}

#[derive(Debug)]
struct Flow<T> {
    used: Usage,
    /// By priority, and by turn and age.
    waiting: [BTreeMap<(u64, u64), Waiting<T>>; N_PRIORITIES],
}

#[derive(Debug)]
struct Waiting<T> {
    request: T,
    n_bytes: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    n_seats: usize,
    n_bytes: usize,
}

impl<T> RequestQueue<T> {
    pub fn new(limits: Limits) -> Self {
        let used = Usage::default();
        Self { limits, used, flows: BTreeMap::new(), turn: 0, n_added: 0, n_popped: 0 }
    }

    /// Adds the requests of one plan, each with its size. The n-th of them has its turn n turns
    /// from now: a request that is added later does not wait for all of them.
    pub fn add(
        &mut self,
        namespace: &str,
        priority: Priority,
        requests: impl IntoIterator<Item = (T, usize)>,
    ) {
        let namespace = SharedStr::from(namespace);
        for (turn, (request, n_bytes)) in (self.turn..).zip(requests) {
            self.n_added += 1;
            let at = (turn, self.n_added);
            let flow = self.flows.entry(namespace.clone()).or_default();
            flow.waiting[priority as usize].insert(at, Waiting { request, n_bytes });
        }
    }

    /// The next request that may be sent. It occupies a seat until [`Self::release`].
    pub fn pop(&mut self) -> Option<T> {
        let (namespace, priority) = self.next()?;
        let flow = self.flows.get_mut(&namespace)?;
        let ((turn, _), Waiting { request, n_bytes }) = flow.waiting[priority].pop_first()?;
        flow.used.add(n_bytes);
        self.used.add(n_bytes);
        self.turn = self.turn.max(turn);
        self.n_popped += 1;
        Some(request)
    }

    /// A response has arrived.
    pub fn release(&mut self, namespace: &str, n_bytes: usize) {
        self.used.subtract(n_bytes);
        let Some(flow) = self.flows.get_mut(namespace) else { return };
        flow.used.subtract(n_bytes);
        if flow.used.n_seats == 0 && flow.waiting.iter().all(BTreeMap::is_empty) {
            self.flows.remove(namespace);
        }
    }

    /// Takes out all requests that wait. Each occupies a seat until [`Self::release`], as if it had
    /// been sent.
    pub fn take_waiting(&mut self) -> VecDeque<T> {
        let mut all = VecDeque::new();
        for flow in self.flows.values_mut() {
            for (_, Waiting { request, n_bytes }) in
                flow.waiting.iter_mut().flat_map(std::mem::take)
            {
                flow.used.add(n_bytes);
                self.used.add(n_bytes);
                all.push_back(request);
            }
        }
        all
    }

    /// Takes out requests of one namespace that wait, likewise.
    pub fn take_waiting_of(&mut self, namespace: &str, is_taken: impl Fn(&T) -> bool) -> Vec<T> {
        let mut all = Vec::new();
        let Some(flow) = self.flows.get_mut(namespace) else { return all };
        for waiting in &mut flow.waiting {
            for (_, taken) in waiting.extract_if(.., |_, one| is_taken(&one.request)) {
                flow.used.add(taken.n_bytes);
                self.used.add(taken.n_bytes);
                all.push(taken.request);
            }
        }
        all
    }

    pub fn can_pop(&self) -> bool {
        self.next().is_some()
    }

    pub fn n_in_flight(&self) -> usize {
        self.used.n_seats
    }

    /// The namespace and the priority of the next request that may be sent.
    fn next(&self) -> Option<(SharedStr, usize)> {
        let is_fair_turn = self.n_popped % FAIRNESS_INTERVAL == FAIRNESS_INTERVAL - 1;
        let firsts = self.flows.iter().flat_map(|(namespace, flow)| {
            flow.waiting.iter().enumerate().filter_map(move |(priority, waiting)| {
                let (at, first) = waiting.first_key_value()?;
                let has_seat = self.has_seat(flow.used, first.n_bytes);
                has_seat.then_some((*at, priority, namespace))
            })
        });
        let next = if is_fair_turn {
            firsts.min()
        } else {
            firsts.min_by_key(|(at, priority, _)| (*priority, *at))
        };
        next.map(|(_, priority, namespace)| (namespace.clone(), priority))
    }

    /// A namespace without requests in flight may send one of any size: progress is guaranteed.
    fn has_seat(&self, used_by_flow: Usage, n_bytes: usize) -> bool {
        let free_seats = self.limits.seats_max.saturating_sub(self.used.n_seats);
        let free_bytes = self.limits.bytes_max.saturating_sub(self.used.n_bytes);
        let fits = used_by_flow.n_bytes + 2 * n_bytes <= free_bytes;
        used_by_flow.n_seats < free_seats && (fits || used_by_flow.n_seats == 0)
    }
}

impl<T> Default for Flow<T> {
    fn default() -> Self {
        Self { used: Usage::default(), waiting: Default::default() }
    }
}

impl Usage {
    fn add(&mut self, n_bytes: usize) {
        self.n_seats += 1;
        self.n_bytes += n_bytes;
    }

    fn subtract(&mut self, n_bytes: usize) {
        self.n_seats -= 1;
        self.n_bytes -= n_bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { seats_max: 64, bytes_max: 1000 };

    fn queue() -> RequestQueue<String> {
        RequestQueue::new(LIMITS)
    }

    fn add(
        queue: &mut RequestQueue<String>,
        name: &str,
        priority: Priority,
        n: usize,
        bytes: usize,
    ) {
        let requests = (0..n).map(|at| (format!("{name}{at}"), bytes));
        queue.add(&name[..1], priority, requests);
    }

    fn pop_all(queue: &mut RequestQueue<String>) -> Vec<String> {
        std::iter::from_fn(|| queue.pop()).collect()
    }

    #[test]
    fn namespaces_leave_seats_to_others() {
        let mut queue = queue();
        add(&mut queue, "x", Priority::Live, 1000, 0);
        assert_eq!(pop_all(&mut queue).len(), 32, "half of the seats");
        add(&mut queue, "y", Priority::Live, 1000, 0);
        assert_eq!(pop_all(&mut queue).len(), 16, "half of the rest");
        for name in ["a", "b", "c", "d"] {
            add(&mut queue, name, Priority::Removal, 1, 0);
        }
        assert_eq!(pop_all(&mut queue).len(), 4, "each of them finds a seat");
        assert!(queue.n_in_flight() <= LIMITS.seats_max);
    }

    #[test]
    fn released_seat_goes_to_the_most_urgent_request() {
        let mut queue = queue();
        add(&mut queue, "x-plan", Priority::Live, 100, 0);
        pop_all(&mut queue);
        add(&mut queue, "x-removal", Priority::Removal, 1, 0);
        assert_eq!(queue.pop(), None);
        queue.release("x", 0);
        assert_eq!(queue.pop().as_deref(), Some("x-removal0"));
    }

    #[test]
    fn small_plan_does_not_wait_for_a_large_one() {
        let mut queue = queue();
        add(&mut queue, "x-large", Priority::Live, 1000, 0);
        assert_eq!(pop_all(&mut queue).len(), 32);
        add(&mut queue, "x-small", Priority::Live, 2, 0);
        (0..3).for_each(|_| queue.release("x", 0));
        assert!(pop_all(&mut queue).contains(&"x-small0".to_owned()));
    }

    #[test]
    fn removals_do_not_starve_other_requests() {
        let mut queue = queue();
        add(&mut queue, "x-plan", Priority::Background, 1, 0);
        for n in 1..=FAIRNESS_INTERVAL {
            add(&mut queue, "x-removal", Priority::Removal, 1, 0);
            let popped = queue.pop().expect("a seat is free");
            queue.release("x", 0);
            assert_eq!(popped.starts_with("x-plan"), n == FAIRNESS_INTERVAL);
        }
    }

    #[test]
    fn bytes_are_limited_and_one_request_always_goes() {
        let mut queue = queue();
        add(&mut queue, "x", Priority::Live, 20, 100);
        assert_eq!(pop_all(&mut queue).len(), 5, "half of the bytes");
        add(&mut queue, "y", Priority::Live, 2, 5000);
        assert_eq!(pop_all(&mut queue), ["y0"]);
        queue.release("y", 5000);
        assert_eq!(pop_all(&mut queue), ["y1"]);
    }

    #[test]
    fn nothing_remains_of_a_namespace_without_requests() {
        let mut queue = queue();
        add(&mut queue, "x", Priority::Live, 40, 10);
        assert!(queue.pop().is_some());
        assert_eq!(queue.take_waiting().len(), 39);
        (0..40).for_each(|_| queue.release("x", 10));
        assert_eq!((queue.n_in_flight(), queue.flows.len()), (0, 0));
    }
}
