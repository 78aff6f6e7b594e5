//! Random histories of three clusters: partitions, flaps, restarts, kubeconfigs that come and go, and
//! clusters that are replaced. Meanwhile nothing of an unknown cluster changes, and every slice has the
//! endpoints of one cluster; after healing, what is published is what is exported.

use std::collections::BTreeMap;

use endpointd_engine::{Input, SourceInput};
use endpointd_memory_api::{MemoryApi, NamespaceState};
use endpointd_model::{EndpointSlice, Timestamp, names};
use endpointd_plan::KubeconfigFile;
use endpointd_rng::SplitMix64;

use crate::clusters::set::{ClusterSet, EXPORT, export, id, key, populate, slice};

const REMOTES: [&str; 2] = ["eu1", "us1"];
const HISTORIES: u64 = 150;
const STEPS: usize = 25;

/// What the script knows of a remote cluster.
#[derive(Clone, Copy, Debug)]
struct Link {
    is_connected: bool,
    is_configured: bool,
    /// Its watches continue; otherwise they begin with lists.
    is_listed: bool,
}

#[test]
fn whatever_happens_the_clusters_agree_in_the_end() {
    for seed in 0..HISTORIES {
        History::new(seed).run();
    }
}

struct History {
    set: ClusterSet,
    rng: SplitMix64,
    links: BTreeMap<&'static str, Link>,
    seed: u64,
}

impl History {
    fn new(seed: u64) -> Self {
        let link = Link { is_connected: true, is_configured: true, is_listed: true };
        let links = REMOTES.into_iter().map(|name| (name, link)).collect();
        Self { set: ClusterSet::started(&REMOTES), rng: SplitMix64::new(seed), links, seed }
    }

    fn run(mut self) {
        for _ in 0..STEPS {
            let before = self.of_unknown();
            self.step();
            let after = self.of_unknown();
            for (cluster, slices) in &before {
                let now = after.get(cluster).unwrap_or(slices);
                assert_eq!(slices, now, "seed {}: {cluster} is unknown", self.seed);
            }
            self.check_slices();
        }
        self.heal();
        self.check_end();
    }

    fn step(&mut self) {
        let name = REMOTES[self.rng.below(2) as usize];
        match self.rng.below(11) {
            0 | 1 => self.change_slice(name),
            2 => self.toggle_export(name),
            3 => self.disconnect(name),
            4 | 5 => self.connect(name),
            6 | 7 => self.pass(),
            8 => self.restart(),
            9 => self.toggle_kubeconfig(name),
            _ => self.replace(name),
        }
        self.set.run();
    }

    fn change_slice(&mut self, name: &str) {
        let prefix = prefix(name);
        let addresses: Vec<String> =
            (1..=self.rng.below(3) + 1).map(|n| format!("{prefix}{n}")).collect();
        let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
        self.set.change(name, |api| api.force(slice("web-a", &addresses)));
        self.deliver(name);
    }

    fn toggle_export(&mut self, name: &str) {
        self.set.change(name, |api| match api.exports.contains(&key()) {
            true => drop(api.remove(EXPORT, &key())),
            false => api.force(export(1)),
        });
        self.deliver(name);
    }

    /// Only if the watches are connected.
    fn deliver(&mut self, name: &str) {
        let link = self.links[name];
        if link.is_connected && link.is_configured && link.is_listed {
            self.set.deliver(name);
        }
    }

    fn disconnect(&mut self, name: &'static str) {
        self.link(name).is_connected = false;
        if self.links[name].is_configured {
            self.set.disconnect(name);
        }
    }

    fn connect(&mut self, name: &'static str) {
        self.link(name).is_connected = true;
        let link = self.links[name];
        if !link.is_configured {
            return;
        }
        if link.is_listed {
            self.set.reconnect(name);
            self.set.deliver(name);
        } else {
            self.set.list(name);
            self.link(name).is_listed = true;
        }
    }

    fn pass(&mut self) {
        let is_answering = |name: &&&str| {
            let link = self.links[**name];
            link.is_connected && link.is_configured
        };
        let answering: Vec<&str> = REMOTES.iter().filter(is_answering).copied().collect();
        for _ in 0..=self.rng.below(20) {
            self.set.pass(29, &answering);
        }
    }

    fn restart(&mut self) {
        let configured: Vec<&str> =
            REMOTES.into_iter().filter(|name| self.links[name].is_configured).collect();
        self.set.restart(&configured);
        for name in REMOTES {
            self.link(name).is_listed = false;
        }
        // After the start, before all kubeconfigs are known.
        self.set.run();
        self.set.home.handle(Input::SourcesListed);
        for name in REMOTES {
            if self.links[name].is_connected {
                self.connect(name);
            }
        }
    }

    fn toggle_kubeconfig(&mut self, name: &'static str) {
        if self.links[name].is_configured {
            let since = Timestamp::UNIX_EPOCH;
            let missing = KubeconfigFile::Missing { since, n_looks: 2 };
            self.set.source(name, SourceInput::Kubeconfig(missing));
            self.link(name).is_configured = false;
        } else {
            self.set.configure(name);
            *self.link(name) = Link { is_configured: true, is_listed: false, ..self.links[name] };
            if self.links[name].is_connected {
                self.connect(name);
            }
        }
    }

    /// By a cluster that exports the same, or nothing.
    fn replace(&mut self, name: &'static str) {
        let mut api = MemoryApi::default();
        match self.rng.below(2) {
            0 => populate(&mut api, 1, &[&format!("{}1", prefix(name))]),
            _ => api.put_namespace("shop", NamespaceState::Active),
        }
        self.set.home.sources.insert(id(name), api);
        self.link(name).is_listed = false;
        if self.links[name].is_configured {
            self.set.source(name, SourceInput::Replaced);
            if self.links[name].is_connected {
                self.connect(name);
            }
        }
    }

    fn heal(&mut self) {
        for name in REMOTES {
            if !self.links[name].is_configured {
                self.toggle_kubeconfig(name);
            }
            self.connect(name);
        }
        for _ in 0..3 {
            self.set.pass(20, &REMOTES);
        }
    }

    fn link(&mut self, name: &'static str) -> &mut Link {
        self.links.get_mut(name).expect("a remote cluster")
    }

    /// The slices of clusters that are unknown.
    fn of_unknown(&self) -> BTreeMap<&'static str, Vec<EndpointSlice>> {
        let is_unknown =
            |name: &&str| self.links[*name].is_configured && self.set.state(name) == "Unknown";
        let slices = |name: &str| {
            let is_of =
                |slice: &&&EndpointSlice| slice.meta.labels.has(names::SOURCE_CLUSTER, name);
            self.set.home.slices().iter().filter(is_of).map(|one| (*one).clone()).collect()
        };
        REMOTES.into_iter().filter(is_unknown).map(|name| (name, slices(name))).collect()
    }

    fn check_slices(&self) {
        for line in self.set.published() {
            let (cluster, addresses) = line.split_once(':').expect("a cluster");
            let is_of = |address: &str| address.starts_with(&prefix(cluster));
            assert!(addresses.split_whitespace().all(is_of), "seed {}: {line}", self.seed);
        }
    }

    fn check_end(&mut self) {
        let mut expected = vec!["home: 10.0.0.1 10.0.0.2".to_owned()];
        for name in REMOTES {
            let api = &self.set.home.sources[&id(name)];
            if !api.exports.contains(&key()) || !api.services.contains(&key()) {
                continue;
            }
            let addresses = api.slices.values().flat_map(|one| &one.endpoints);
            let addresses: String = addresses.map(|one| format!(" {}", one.addresses[0])).collect();
            if !addresses.is_empty() {
                expected.push(format!("{name}:{addresses}"));
            }
        }
        expected.sort_unstable();
        assert_eq!(self.set.published(), expected, "seed {}", self.seed);
        self.set.clear_log();
        self.set.pass(20, &REMOTES);
        assert_eq!(self.set.sent(), [""; 0], "seed {}: at rest", self.seed);
    }
}

fn prefix(cluster: &str) -> String {
    let n = REMOTES.iter().position(|name| *name == cluster).map_or(0, |at| at + 1);
    format!("10.{n}.0.")
}
