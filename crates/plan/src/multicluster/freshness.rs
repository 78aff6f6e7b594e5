//! Which endpoints of lost clusters become not ready: those for which clusters in sync have enough
//! (docs/spec.md, U rules). Without an alternative they stay as they are, because an endpoint that may
//! be there is better than none.

use std::collections::{BTreeMap, BTreeSet};

use endpointd_model::{ClusterId, Endpoint, EndpointPort, Family};

use super::contact::SourceState;
use super::copies::Copy;

/// The ready endpoints of one family.
#[derive(Default)]
struct Ready<'c> {
    n: usize,
    n_fresh: usize,
    fresh_ports: BTreeSet<&'c EndpointPortName>,
    /// Of each lost cluster whose time is up.
    stale_ports: BTreeMap<&'c ClusterId, BTreeSet<&'c EndpointPortName>>,
}

/// Ports are the same if their names are: kube-proxy compares no more.
type EndpointPortName = Option<endpointd_model::SharedStr>;

pub fn demoted(copies: &[Copy], fresh_percent_min: usize) -> BTreeSet<(ClusterId, Family)> {
    let mut by_family: BTreeMap<Family, Ready> = BTreeMap::new();
    for copy in copies {
        by_family.entry(copy.family).or_default().add(copy);
    }
    let demoted = by_family.into_iter().flat_map(|(family, ready)| {
        ready.demoted(fresh_percent_min).into_iter().map(move |id| (id, family))
    });
    demoted.collect()
}

impl<'c> Ready<'c> {
    fn add(&mut self, copy: &'c Copy) {
        let n_ready = copy.slice.endpoints.iter().filter(|one| Endpoint::is_ready(one)).count();
        let ports = copy.slice.ports.iter().map(|port: &EndpointPort| &port.name);
        self.n += n_ready;
        match copy.member.cluster.state {
            SourceState::InSync => {
                self.n_fresh += n_ready;
                if n_ready > 0 {
                    self.fresh_ports.extend(ports);
                }
            }
            SourceState::Demoted { .. } => {
                self.stale_ports.entry(copy.member.id()).or_default().extend(ports);
            }
            SourceState::Lost { .. }
            | SourceState::Unknown
            | SourceState::Expired
            | SourceState::Removed => {}
        }
    }

    fn demoted(self, fresh_percent_min: usize) -> Vec<ClusterId> {
        let Self { n, n_fresh, fresh_ports, stale_ports } = self;
        let is_enough = n_fresh > 0 && n_fresh * 100 >= n * fresh_percent_min;
        let demoted = stale_ports.into_iter().filter(|(_, ports)| ports.is_subset(&fresh_ports));
        demoted.filter(|_| is_enough).map(|(id, _)| id.clone()).collect()
    }
}
