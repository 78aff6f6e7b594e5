//! How many writes the engine may have in flight.

use endpointd_model::Object;

use crate::coverage::Rule;
use crate::simulation::Simulation;

/// Of each process, also those that wait in the client.
const IN_FLIGHT_MAX: usize = 64;

impl Simulation {
    /// Called when the engine sends a write.
    pub(crate) fn check_in_flight(&mut self, process: usize) {
        self.coverage.count_rule(Rule::WritesInFlight);
        let n = self.processes[process].n_in_flight;
        if n > IN_FLIGHT_MAX {
            self.violate(Rule::WritesInFlight, || format!("{n} writes in flight"));
        }
    }
}

/// A write that takes all endpoints out of an object.
pub fn publishes_nothing(object: &Object) -> bool {
    match object {
        Object::Slice(slice) => slice.endpoints.is_empty(),
        Object::Endpoints(endpoints) => endpoints.subsets.is_empty(),
        Object::ServiceStatus(_) | Object::MultiCluster(_) => false,
    }
}
