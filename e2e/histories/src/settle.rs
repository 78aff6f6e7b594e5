//! Waiting until a namespace is at rest in the state a history wants. Start at [`settle`].

use std::fmt;
use std::thread;
use std::time::{Duration, Instant};

use endpointd_control_plane::Api;

use crate::canonical::form;
use crate::view::View;

/// Nothing may be written for so long: longer than a controller takes from one write to the next.
const QUIET: Duration = Duration::from_millis(1200);
/// kube-controller-manager backs off for up to some ten seconds where a history makes it fail.
const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(300);

/// One thing that must be so at rest. Lists of addresses are in any order; for the marks see
/// [`View::sliced`] and [`View::listed`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// All that the slices of a Service publish.
    Slices {
        service: String,
        endpoints: String,
    },
    /// All that an Endpoints object publishes.
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
    /// The canonical form has a line with all of these words.
    Shows(Vec<String>),
    /// It has none.
    Lacks(Vec<String>),
}

impl Wanted {
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

    /// What is there instead, when it is not so.
    fn missing(&self, view: &View) -> Option<String> {
        match self {
            Self::Slices { service, endpoints } => {
                let there = view.sliced(service);
                (there.as_ref() != Some(endpoints)).then(|| there.unwrap_or_else(|| NONE.into()))
            }
            Self::Endpoints { name, addresses } => {
                let there = view.listed(name);
                (there.as_ref() != Some(addresses)).then(|| there.unwrap_or_else(|| NONE.into()))
            }
            Self::NoSlices { service } => view.sliced(service),
            Self::NoEndpoints { name } => view.listed(name),
            Self::Shows(words) => {
                let form = form(view);
                (!has_line(&form, words)).then_some(form)
            }
            Self::Lacks(words) => {
                let form = form(view);
                has_line(&form, words).then_some(form)
            }
        }
    }
}

const NONE: &str = "nothing at all";

/// What a wait found, or what was missing when patience ended.
pub fn settle(api: &Api, namespace: &str, wanted: &[Wanted]) -> Result<View, Unsettled> {
    settle_within(PATIENCE, api, namespace, wanted)
}

pub fn settle_within(
    patience: Duration,
    api: &Api,
    namespace: &str,
    wanted: &[Wanted],
) -> Result<View, Unsettled> {
    let started = Instant::now();
    let mut rest = None;
    loop {
        let view = View::without_pods(api, namespace);
        let missing = match &view {
            Ok(view) => first_missing(view, wanted),
            Err(error) => Some(format!("the server cannot be asked: {error}")),
        };
        let versions = view.as_ref().ok().map(View::versions);
        let since = match rest.take() {
            Some((since, before)) if before == versions => since,
            _ => Instant::now(),
        };
        rest = Some((since, versions));
        match (view, missing) {
            (Ok(view), None) if since.elapsed() >= QUIET => return Ok(view),
            (_, missing) if started.elapsed() > patience => {
                let missing = missing.unwrap_or_else(|| "rest".into());
                return Err(Unsettled { patience, missing });
            }
            _ => thread::sleep(POLL),
        }
    }
}

fn first_missing(view: &View, wanted: &[Wanted]) -> Option<String> {
    wanted.iter().find_map(|one| {
        let there = one.missing(view)?;
        Some(format!("wanted {one:?}\nthere is: {there}"))
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

/// What did not come within the time allowed.
#[derive(Debug)]
pub struct Unsettled {
    pub patience: Duration,
    pub missing: String,
}

impl fmt::Display for Unsettled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not settled after {} s: {}", self.patience.as_secs(), self.missing)
    }
}
