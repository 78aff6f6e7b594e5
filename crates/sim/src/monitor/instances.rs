//! Who may write: the leader of an instance, objects of its scope; and each Service has a writer.

use endpointd_engine::Engine;
use endpointd_model::{Key, WatchedResource, Write};

use crate::coverage::Rule;
use crate::instances::Instances;
use crate::process::{Process, RENEW_DEADLINE};
use crate::simulation::{Request, Simulation};

impl Simulation {
    pub(super) fn check_lease(&mut self, process: usize) {
        if self.has_election() {
            self.coverage.count_rule(Rule::NoWriteWithoutLease);
            let lease = self.processes[process].lease;
            if self.now >= lease.renewed + RENEW_DEADLINE || !lease.is_leading {
                let text = format!("p{process} renewed at {}", lease.renewed);
                self.violate(Rule::NoWriteWithoutLease, || text);
            }
        }
    }

    /// An object of the namespaces of its scope, for a Service that had labels of its scope in some
    /// version that the engine may have observed.
    pub(super) fn check_scope(&mut self, request: &Request, write: &Write) {
        let instances = self.setup.instances;
        let instance = self.processes[request.process].instance;
        if instances == Instances::One {
            return;
        }
        self.coverage.count_rule(Rule::OwnScope);
        let key = write.key();
        let is_in_namespace = instances.writers(&key.namespace).contains(&instance);
        let is_labelled = instances != Instances::Selectors
            || self.service_of(write).is_some_and(|key| {
                let since = request.observed.of(WatchedResource::Services);
                let mut versions = self.api.services.window(&key, since).into_iter().flatten();
                versions.any(|service| instances.writers_for(&service.labels).contains(&instance))
            });
        if !is_in_namespace || !is_labelled {
            self.violate(Rule::OwnScope, || format!("instance {instance} writes {key}"));
        }
    }

    /// Between them, the instances that run look at everything once.
    pub(crate) fn check_writers(&mut self) {
        if self.setup.instances == Instances::One {
            return;
        }
        self.coverage.count_rule(Rule::OneWriter);
        let now = self.now;
        let has_lease = |one: &&Process| !self.has_election() || one.may_write(now);
        let leading: Vec<&Engine> =
            self.processes.iter().filter(has_lease).filter_map(|one| one.engine.as_ref()).collect();
        let n_writers = |key: &Key| {
            leading.iter().filter(|engine| engine.service_overview(key).is_some()).count()
        };
        let keys = self.api.services.keys().into_iter();
        let odd = keys.map(|key| (n_writers(&key), key)).find(|(n, _)| *n != 1);
        if let Some((n, key)) = odd {
            self.violate(Rule::OneWriter, || format!("{key} has {n} writers"));
        }
    }
}
