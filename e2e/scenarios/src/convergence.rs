//! Waits until a namespace has converged to the state that a scenario expects. Start at
//! [`converge`].

use std::fmt;
use std::thread;
use std::time::{Duration, Instant};

use endpointd_control_plane::Api;

use crate::canonical::form;
use crate::observed_state::ObservedState;

/// No write may occur during this time. It is longer than the time between two writes of one sync.
const QUIET_PERIOD: Duration = Duration::from_millis(1200);
/// In some scenarios kube-controller-manager backs off for up to about ten seconds.
pub const TIMEOUT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(300);

/// One condition of the converged state. Addresses can be in any order; for the marks after an
/// address see [`ObservedState::slice_summary`] and [`ObservedState::endpoints_summary`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    /// The endpoints in all slices of a Service.
    Slices {
        service: String,
        endpoints: String,
    },
    /// The addresses in an Endpoints object.
    Endpoints {
        name: String,
        addresses: String,
    },
    NoSlices {
        service: String,
    },
    NoEndpoints {
        name: String,
    },
    /// The canonical form has a line with all of these strings.
    Shows(Vec<String>),
    /// The canonical form has no such line.
    Lacks(Vec<String>),
}

impl Expected {
    pub fn slices(service: &str, endpoints: &str) -> Self {
        Self::Slices { service: service.to_owned(), endpoints: in_order(endpoints) }
    }

    pub fn endpoints(name: &str, addresses: &str) -> Self {
        Self::Endpoints { name: name.to_owned(), addresses: in_order(addresses) }
    }

    pub fn no_slices(service: &str) -> Self {
        Self::NoSlices { service: service.to_owned() }
    }

    pub fn no_endpoints(name: &str) -> Self {
        Self::NoEndpoints { name: name.to_owned() }
    }

    pub fn shows(words: &[&str]) -> Self {
        Self::Shows(words.iter().map(|&word| word.to_owned()).collect())
    }

    pub fn lacks(words: &[&str]) -> Self {
        Self::Lacks(words.iter().map(|&word| word.to_owned()).collect())
    }

    /// The actual state, if it does not match.
    fn mismatch(&self, state: &ObservedState) -> Option<String> {
        match self {
            Self::Slices { service, endpoints } => {
                let there = state.slice_summary(service);
                (there.as_ref() != Some(endpoints)).then(|| there.unwrap_or_else(|| NONE.into()))
            }
            Self::Endpoints { name, addresses } => {
                let there = state.endpoints_summary(name);
                (there.as_ref() != Some(addresses)).then(|| there.unwrap_or_else(|| NONE.into()))
            }
            Self::NoSlices { service } => state.slice_summary(service),
            Self::NoEndpoints { name } => state.endpoints_summary(name),
            Self::Shows(words) => {
                let form = form(state);
                (!has_line(&form, words)).then_some(form)
            }
            Self::Lacks(words) => {
                let form = form(state);
                has_line(&form, words).then_some(form)
            }
        }
    }
}

const NONE: &str = "nothing";

/// The converged state, or the first condition that did not hold at the time-out.
pub fn converge(
    api: &Api,
    namespace: &str,
    expected: &[Expected],
) -> Result<ObservedState, NotConverged> {
    converge_within(TIMEOUT, api, namespace, expected)
}

pub fn converge_within(
    timeout: Duration,
    api: &Api,
    namespace: &str,
    expected: &[Expected],
) -> Result<ObservedState, NotConverged> {
    let started = Instant::now();
    let mut unchanged = None;
    loop {
        let state = ObservedState::without_pods(api, namespace);
        let missing = match &state {
            Ok(state) => first_missing(state, expected),
            Err(error) => Some(format!("the server does not answer: {error}")),
        };
        let versions = state.as_ref().ok().map(ObservedState::versions);
        let since = match unchanged.take() {
            Some((since, before)) if before == versions => since,
            _ => Instant::now(),
        };
        unchanged = Some((since, versions));
        match (state, missing) {
            (Ok(state), None) if since.elapsed() >= QUIET_PERIOD => return Ok(state),
            (_, missing) if started.elapsed() > timeout => {
                let missing = missing.unwrap_or_else(|| "writes continue".into());
                return Err(NotConverged { timeout, missing });
            }
            _ => thread::sleep(POLL),
        }
    }
}

fn first_missing(state: &ObservedState, expected: &[Expected]) -> Option<String> {
    expected.iter().find_map(|one| {
        let there = one.mismatch(state)?;
        Some(format!("expected {one:?}\nactual: {there}"))
    })
}

fn in_order(words: &str) -> String {
    let mut words: Vec<&str> = words.split_whitespace().collect();
    words.sort_unstable();
    words.join(" ")
}

fn has_line(form: &str, words: &[String]) -> bool {
    form.lines().any(|line| words.iter().all(|word| line.contains(word.as_str())))
}

/// The namespace did not converge in time.
#[derive(Debug)]
pub struct NotConverged {
    pub timeout: Duration,
    pub missing: String,
}

impl fmt::Display for NotConverged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not converged after {} s: {}", self.timeout.as_secs(), self.missing)
    }
}
