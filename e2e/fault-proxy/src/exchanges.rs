//! The requests that a proxy has seen, for assertions about what was sent, when, and how much of it
//! at the same time.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::request_info::RequestInfo;

/// The oldest are dropped beyond this number.
const EXCHANGES_MAX: usize = 200_000;

/// One request, and how it ended.
#[derive(Clone, Debug)]
pub struct Exchange {
    pub request: RequestInfo,
    pub started: Instant,
    /// When the client received the response head or the connection was closed.
    pub ended: Option<Instant>,
    /// The status code that the client received. `None` for a request without a response.
    pub code: Option<u16>,
}

/// The largest number of these exchanges that were in flight at the same time.
pub fn in_flight_max<'a>(exchanges: impl IntoIterator<Item = &'a Exchange>) -> usize {
    let mut changes = Vec::new();
    for exchange in exchanges {
        changes.push((exchange.started, 1));
        changes.extend(exchange.ended.map(|ended| (ended, -1)));
    }
    // At the same time, ends come first: -1 before 1.
    changes.sort_unstable();
    let (mut n, mut n_max) = (0_i64, 0);
    for (_, change) in changes {
        n += change;
        n_max = n_max.max(n);
    }
    usize::try_from(n_max).unwrap_or(0)
}

#[derive(Default)]
pub(crate) struct Exchanges {
    list: Mutex<List>,
}

#[derive(Default)]
struct List {
    exchanges: VecDeque<Exchange>,
    n_dropped: usize,
}

impl Exchanges {
    /// Returns the number of the exchange, for [`Self::end`].
    pub(crate) fn begin(&self, request: RequestInfo) -> usize {
        let mut list = self.list();
        if list.exchanges.len() == EXCHANGES_MAX {
            list.exchanges.pop_front();
            list.n_dropped += 1;
        }
        let exchange = Exchange { request, started: Instant::now(), ended: None, code: None };
        list.exchanges.push_back(exchange);
        list.n_dropped + list.exchanges.len() - 1
    }

    pub(crate) fn end(&self, number: usize, code: Option<u16>) {
        let mut list = self.list();
        let Some(index) = number.checked_sub(list.n_dropped) else { return };
        if let Some(exchange) = list.exchanges.get_mut(index) {
            exchange.ended = Some(Instant::now());
            exchange.code = code;
        }
    }

    pub(crate) fn all(&self) -> Vec<Exchange> {
        self.list().exchanges.iter().cloned().collect()
    }

    fn list(&self) -> MutexGuard<'_, List> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::Method;

    use super::*;

    fn exchange(start: Instant, from: u64, to: Option<u64>) -> Exchange {
        let at = |seconds| start + Duration::from_secs(seconds);
        let request = RequestInfo::new(&Method::GET, &"/readyz".parse().unwrap());
        Exchange { request, started: at(from), ended: to.map(at), code: Some(200) }
    }

    #[test]
    fn exchanges_in_flight_at_the_same_time_are_counted() {
        let now = Instant::now();
        let one = |from, to| exchange(now, from, to);
        assert_eq!(in_flight_max(&[]), 0);
        assert_eq!(in_flight_max(&[one(0, Some(1)), one(1, Some(2))]), 1);
        assert_eq!(in_flight_max(&[one(0, Some(2)), one(1, Some(3)), one(2, None)]), 2);
        assert_eq!(in_flight_max(&[one(0, None), one(1, None), one(2, None)]), 3);
    }

    #[test]
    fn exchange_keeps_its_number_when_older_ones_are_dropped() {
        let exchanges = Exchanges::default();
        let request = || RequestInfo::new(&Method::GET, &"/readyz".parse().unwrap());
        let first = exchanges.begin(request());
        for _ in 1..EXCHANGES_MAX {
            exchanges.begin(request());
        }
        let last = exchanges.begin(request());
        exchanges.end(first, Some(200));
        exchanges.end(last, Some(201));
        let all = exchanges.all();
        assert_eq!(all.len(), EXCHANGES_MAX);
        assert_eq!(all.last().unwrap().code, Some(201));
        assert!(all.iter().rev().skip(1).all(|one| one.code.is_none()));
    }
}
