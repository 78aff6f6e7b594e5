//! Writes to the home cluster, and live reads of all clusters.

use endpointd_engine::{Input, RequestId};
use endpointd_memory_api::{Response, write_result};
use endpointd_model::{Failure, FailureKind, LiveRead, LiveReadResult, Write, WriteResult};

use super::site::{HOME, Site};
use super::{ClusterSet, Event};

impl ClusterSet {
    pub(super) fn send(&mut self, id: RequestId, write: Box<Write>) {
        self.n_sent += 1;
        self.coverage.n_writes += 1;
        self.trace(|| {
            let (verb, resource, key) = (write.verb(), write.resource().as_str(), write.key());
            format!("  {verb} {resource} {key}")
        });
        let (wait, incarnation) = (self.latency(), self.incarnation);
        self.check_write(&write);
        self.schedule(wait, Event::Arrive { incarnation, id, write });
    }

    /// The write reaches the API server; now and then its response is lost.
    pub(super) fn arrive(&mut self, incarnation: u32, id: RequestId, write: &Write) {
        const LOST_PERCENT: u64 = 3;
        let is_lost = !self.is_quiescent && self.rng.percent(LOST_PERCENT);
        let home = &mut self.sites[HOME].api;
        home.now = self.now;
        let response = home.write(write);
        if let Response::Invalid(reason) = &response {
            let text = format!("{} is invalid: {reason}", write.key());
            return self.violate(crate::coverage::Rule::NoRedundantWrite, || text);
        }
        let result = write_result(write, response);
        let result = if is_lost {
            self.coverage.count_fault("response lost, applied");
            WriteResult::NoResponse(unreachable())
        } else {
            result
        };
        let wait = self.latency();
        let input = Box::new(Input::WriteResult(id, result));
        self.schedule(wait, Event::Respond { incarnation, input });
        self.schedule_deliveries();
    }

    pub(super) fn read(&mut self, incarnation: u32, id: RequestId, read: &LiveRead) {
        let site = match read {
            LiveRead::Source(cluster, _) => {
                (0..self.sites.len()).find(|site| Site::id(*site) == *cluster)
            }
            LiveRead::Service(_)
            | LiveRead::Node(_)
            | LiveRead::Object(..)
            | LiveRead::FieldManager(..)
            | LiveRead::Pods(_) => Some(HOME),
        };
        let answers = |site: &usize| *site == HOME || self.sites[*site].is_reachable(self.now);
        let result = match site.filter(answers) {
            Some(site) => self.sites[site].api.read(read),
            None => None,
        };
        let result = result.unwrap_or_else(|| LiveReadResult::Failed(unreachable()));
        let wait = self.latency();
        let input = Box::new(Input::LiveReadResult(id, result));
        self.schedule(wait, Event::Respond { incarnation, input });
    }
}

fn unreachable() -> Failure {
    Failure { kind: FailureKind::Unreachable, message: "no response".into() }
}
