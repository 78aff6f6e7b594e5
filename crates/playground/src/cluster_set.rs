//! Several playgrounds that export Services to each other. Start at [`ClusterSet::start`].

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use endpointd_engine::{ClusterSetSettings, ContactLimits, ControllerSettings, Settings};
use endpointd_model::{ClusterId, Controller};
use endpointd_runtime::ClusterOptions;

use crate::kubeconfig::{Kubeconfig, WriteError};
use crate::observer::Observer;
use crate::playground::{Bound, Options, Playground, StartError};
use crate::scenario::Scenario;
use crate::summary::Summary;
use crate::view::ClusterInfo;

/// The names of the clusters, in order.
const NAMES: [&str; CLUSTERS_MAX] = ["eu1", "us1", "ap1", "sa1"];
/// The addresses of pods are enough for so many clusters.
pub const CLUSTERS_MAX: usize = 4;
/// The nodes of a cluster have numbers from here on, times its index; addresses follow from them.
const NODES_PER_CLUSTER: u16 = 8192;
/// Services that every cluster exports, if it has them.
const EXPORTS: [&str; 3] = ["web", "db", "checkout"];
/// Shorter than those of `endpointd run`, so that an outage of a minute shows all of it. A cluster that
/// is silent is asked every 20 s at the latest.
pub const LIMITS: ContactLimits =
    ContactLimits { lost_after: 25, demote_after: 30, expire_after: None };
/// The namespace of the Leases, which every cluster has.
const LEASE_NAMESPACE: &str = "kube-system";

/// One of several clusters.
pub struct Membership {
    pub name: &'static str,
    index: usize,
    /// With a kubeconfig for each other cluster.
    directory: PathBuf,
    /// Of the first cluster, whose view also shows what happens here.
    shown_by: Option<Arc<Observer>>,
}

impl Membership {
    pub fn exports(&self) -> &'static [&'static str] {
        &EXPORTS
    }

    pub fn first_node(&self) -> u16 {
        u16::try_from(self.index).unwrap_or(0).saturating_mul(NODES_PER_CLUSTER)
    }

    pub fn shown_by(&self) -> Option<(Arc<Observer>, &'static str)> {
        Some((self.shown_by.clone()?, self.name))
    }

    /// Adds the controller for Services of several clusters.
    pub fn add_to(&self, settings: &mut Settings) {
        settings.controllers.push(ControllerSettings::new(Controller::MultiCluster));
        let home = ClusterId::parse(self.name).expect("the names are labels");
        settings.clusters = Some(ClusterSetSettings { home, plan: Default::default() });
    }

    pub fn cluster_options(&self, user_agent: &str) -> ClusterOptions {
        ClusterOptions {
            directory: self.directory.clone(),
            limits: LIMITS,
            // Its kubeconfigs have no settings.
            parse_duration: |_| None,
            lease_namespace: LEASE_NAMESPACE.into(),
            user_agent: user_agent.to_owned(),
        }
    }
}

/// Running playgrounds; the first is the one that is shown.
pub struct ClusterSet {
    first: Playground,
    others: Vec<Playground>,
    scenario: Scenario,
    directory: Option<Directory>,
}

/// The kubeconfigs, removed at the end.
struct Directory(PathBuf);

impl Drop for Directory {
    fn drop(&mut self) {
        // Files that remain only name closed ports.
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl ClusterSet {
    /// One cluster is a playground alone. Of several, the last has the outage of the scenario, and the
    /// first has every other scenario.
    pub async fn start(options: Options, n_clusters: usize) -> Result<Self, StartError> {
        let n_clusters = n_clusters.clamp(1, CLUSTERS_MAX);
        let scenario = options.scenario;
        if n_clusters == 1 {
            let first = Playground::start(options).await?;
            return Ok(Self { first, others: Vec::new(), scenario, directory: None });
        }
        let mut bound = Vec::new();
        for n in 0..n_clusters {
            bound.push(Bound::open(if n == 0 { options.port } else { 0 }).await?);
        }
        let servers: Vec<(&str, u16)> =
            NAMES.into_iter().zip(bound.iter().map(|one| one.port)).collect();
        let kubeconfig = Arc::new(Kubeconfig::write(options.kubeconfig.clone(), &servers)?);
        let directory = write_directories(&servers)?;
        let mut playgrounds: Vec<Playground> = Vec::new();
        for (index, bound) in bound.into_iter().enumerate() {
            let name = NAMES[index];
            let shown_by = playgrounds.first().map(Playground::observer);
            let member = Membership { name, index, directory: directory.0.join(name), shown_by };
            let options = options_of(&options, index, n_clusters);
            let started = Playground::start_on(options, bound, kubeconfig.clone(), Some(member));
            playgrounds.push(started.await?);
        }
        let first = playgrounds.remove(0);
        Ok(Self { first, others: playgrounds, scenario, directory: Some(directory) })
    }

    pub fn first(&self) -> &Playground {
        &self.first
    }

    /// In one of the clusters.
    pub fn scenario(&self) -> Scenario {
        self.scenario
    }

    pub fn others(&self) -> &[Playground] {
        &self.others
    }

    /// None for a cluster alone.
    pub fn clusters(&self) -> Vec<ClusterInfo> {
        let all = std::iter::once(&self.first).chain(&self.others);
        let cluster = |one: &Playground| {
            let (url, page) = (one.url().to_owned(), one.page_url());
            Some(ClusterInfo { name: one.name()?, url, page })
        };
        all.filter_map(cluster).collect()
    }

    /// The summary of the first.
    pub async fn stop(self) -> Summary {
        let Self { first, others, scenario, directory } = self;
        let summary = Summary { scenario: scenario.name(), ..first.stop().await };
        for playground in others {
            playground.stop().await;
        }
        drop(directory);
        summary
    }
}

fn options_of(options: &Options, index: usize, n_clusters: usize) -> Options {
    let is_outage = options.scenario == Scenario::ClusterOutage;
    let has_scenario = if is_outage { index + 1 == n_clusters } else { index == 0 };
    let seed = u64::try_from(index).map_or(options.seed, |n| options.seed.wrapping_add(n));
    Options {
        scenario: if has_scenario { options.scenario } else { Scenario::Idle },
        seed,
        page_port: if index == 0 { options.page_port } else { 0 },
        ..options.clone()
    }
}

/// A directory for each cluster, with a kubeconfig for each other one.
fn write_directories(servers: &[(&str, u16)]) -> Result<Directory, WriteError> {
    let port = servers.first().map_or(0, |(_, port)| *port);
    let path = std::env::temp_dir().join(format!("endpointd-playground-{port}.clusters"));
    let directory = Directory(path);
    for (name, _) in servers {
        let own = directory.0.join(name);
        fs::create_dir_all(&own).map_err(|reason| unwritten(&own, &reason))?;
        for (other, port) in servers.iter().filter(|(other, _)| other != name) {
            let path = own.join(other);
            let text = Kubeconfig::text(&[(*other, *port)]);
            fs::write(&path, text).map_err(|reason| unwritten(&path, &reason))?;
        }
    }
    Ok(directory)
}

fn unwritten(path: &Path, reason: &std::io::Error) -> WriteError {
    WriteError { path: path.to_owned(), reason: reason.to_string() }
}
