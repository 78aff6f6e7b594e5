//! The faults that are active, and how often each has fired.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::fault::{Fault, Stage};
use crate::request_info::RequestInfo;
use crate::requests::Requests;

const POLL: Duration = Duration::from_millis(10);

#[derive(Default)]
pub(crate) struct Rules {
    active: Mutex<Vec<Arc<Rule>>>,
}

pub(crate) struct Rule {
    requests: Requests,
    pub(crate) fault: Fault,
    n_matched: AtomicUsize,
    n_fired: AtomicUsize,
}

/// An active fault. Drop ends it, and panics if it has never fired.
#[must_use = "the fault ends when this is dropped"]
pub struct Injected {
    rules: Arc<Rules>,
    rule: Arc<Rule>,
}

impl Rules {
    pub(crate) fn inject(self: &Arc<Self>, requests: Requests, fault: Fault) -> Injected {
        let (n_matched, n_fired) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let rule = Arc::new(Rule { requests, fault, n_matched, n_fired });
        self.active().push(Arc::clone(&rule));
        Injected { rules: Arc::clone(self), rule }
    }

    /// The fault that hits this request, and counts it. The fault that was injected first wins.
    pub(crate) fn hit(&self, stage: Stage, request: &RequestInfo) -> Option<Fault> {
        let active = self.active();
        let mut of_stage = active.iter().filter(|rule| rule.fault.stage() == stage);
        let rule = of_stage.find(|rule| rule.is_hit(request))?;
        rule.n_fired.fetch_add(1, Ordering::SeqCst);
        Some(rule.fault.clone())
    }

    fn active(&self) -> MutexGuard<'_, Vec<Arc<Rule>>> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Rule {
    fn is_hit(&self, request: &RequestInfo) -> bool {
        self.requests.contains(request)
            && self.requests.hits(self.n_matched.fetch_add(1, Ordering::SeqCst))
    }
}

impl Injected {
    /// How often the fault has fired.
    pub fn n_fired(&self) -> usize {
        self.rule.n_fired.load(Ordering::SeqCst)
    }

    /// Waits until the fault has fired `n` times.
    ///
    /// # Panics
    ///
    /// If that takes longer than `limit`.
    pub fn wait_until_fired(&self, n: usize, limit: Duration) {
        let started = Instant::now();
        while self.n_fired() < n {
            assert!(
                started.elapsed() < limit,
                "fired {} times instead of {n}: {:?} for {:?}",
                self.n_fired(),
                self.rule.fault,
                self.rule.requests
            );
            thread::sleep(POLL);
        }
    }
}

impl Drop for Injected {
    fn drop(&mut self) {
        self.rules.active().retain(|rule| !Arc::ptr_eq(rule, &self.rule));
        // A second panic would abort the process and hide the first.
        if !thread::panicking() {
            let Rule { requests, fault, n_matched, n_fired: _ } = &*self.rule;
            assert!(
                self.n_fired() > 0,
                "the fault never fired: {fault:?} for {requests:?}, matched {n_matched:?} times"
            );
        }
    }
}
