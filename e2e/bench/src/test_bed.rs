//! Control planes for measurements. The objects of a [`SavedCluster`] are written once, then etcd
//! is stopped; every run starts a control plane of its own with a copy of etcd's data.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use endpointd_control_plane::{Api, Audit, Binaries, Cluster, Options};
use endpointd_scenarios::cluster::{ACCOUNT, ACCOUNT_NAMESPACE, create_admin_account};
use tokio::runtime::Runtime;

use crate::load::{Layout, Sender, Templates, create_objects};
use crate::process::Usage;
use crate::progress::Progress;
use crate::published::{ExpectedState, Observer};
use crate::subject::{RunningSubject, Subject};

/// Ten times the longest time that endpointd needed.
pub const COMPLETE_MAX: Duration = Duration::from_secs(1800);
/// Time for late writes before etcd is stopped.
const LATE_WRITES: Duration = Duration::from_secs(3);

/// The data of a stopped etcd, and the layout of its objects.
pub struct SavedCluster {
    /// Owns the directory.
    _cluster: Cluster,
    data: PathBuf,
    pub layout: Layout,
    templates: Arc<Templates>,
}

/// Whether the cluster already has its Endpoints and slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Publication {
    None,
    Complete,
}

/// Saved clusters by size, written at first use.
pub struct ClusterCache<'a> {
    binaries: &'a Binaries,
    runtime: &'a Runtime,
    progress: &'a Progress,
    saved: HashMap<(usize, usize, usize, Publication), Arc<SavedCluster>>,
}

/// A running control plane with a copy of a saved cluster.
pub struct TestBed {
    pub drivers: Drivers,
    pub cluster: Cluster,
    /// Reuses connections.
    pub api: Api,
    /// The kubeconfig of the account that endpointd uses.
    pub account: PathBuf,
}

/// Changes pods and observes what is published. Clones share connections and the observer.
#[derive(Clone)]
pub struct Drivers {
    pub observer: Observer,
    pub sender: Sender,
    pub layout: Layout,
    pub templates: Arc<Templates>,
}

impl<'a> ClusterCache<'a> {
    pub fn new(binaries: &'a Binaries, runtime: &'a Runtime, progress: &'a Progress) -> Self {
        Self { binaries, runtime, progress, saved: HashMap::new() }
    }

    pub fn get(&mut self, layout: Layout, publication: Publication) -> Result<Arc<SavedCluster>> {
        let Layout { n_namespaces, n_services, n_pods, n_nodes: _ } = layout;
        let at = (n_namespaces, n_services, n_pods, publication);
        if let Some(saved) = self.saved.get(&at) {
            return Ok(saved.clone());
        }
        let saved = match publication {
            Publication::None => self.write(layout),
            Publication::Complete => self.publish(layout),
        };
        let saved = Arc::new(
            saved.with_context(|| format!("cannot save a cluster with {}", layout.describe()))?,
        );
        self.saved.insert(at, saved.clone());
        Ok(saved)
    }

    /// Starts a control plane.
    pub fn start(
        &self,
        saved: &SavedCluster,
        audit: Audit,
        expected: ExpectedState,
    ) -> Result<TestBed> {
        self.progress.detail("starting a control plane");
        let options = Options { audit, data: Some(saved.data.clone()), ..Options::default() };
        let cluster = Cluster::start(self.binaries, options)?;
        let account = cluster.kubeconfig_of(ACCOUNT_NAMESPACE, ACCOUNT)?;
        let api = cluster.fast_api()?;
        // A list with resourceVersion 0 is answered once the watch cache is filled.
        for kind in ["api/v1/pods", "api/v1/services", "api/v1/nodes"] {
            // No object has this name, so the response is small.
            api.text(&format!("/{kind}?fieldSelector=metadata.name%3D-&resourceVersion=0"))?;
        }
        let (sender, observer) = self.runtime.block_on(async {
            let sender = Sender::connect(&cluster.kubeconfig()).await?;
            let observer = Observer::start(&cluster.kubeconfig(), expected).await?;
            anyhow::Ok((sender, observer))
        })?;
        let templates = saved.templates.clone();
        let drivers = Drivers { observer, sender, layout: saved.layout, templates };
        Ok(TestBed { drivers, cluster, api, account })
    }

    fn write(&self, layout: Layout) -> Result<SavedCluster> {
        let cluster = Cluster::start(self.binaries, Options::default())?;
        create_admin_account(&cluster);
        let before = Usage::own()?;
        let templates = self.runtime.block_on(async {
            let sender = Sender::connect(&cluster.kubeconfig()).await?;
            let templates = Arc::new(Templates::make(&sender).await?);
            let done = |n| self.progress.count("pods written", n, layout.n_pods);
            create_objects(&sender, &templates, layout, done).await?;
            anyhow::Ok(templates)
        })?;
        let cpu = Usage::own()? - before;
        let sizes = templates.sizes;
        self.progress.note(&format!(
            "{}: written with {:.1} s of CPU; a pod is {} bytes of JSON, {} of protobuf",
            layout.describe(),
            cpu.as_secs_f64(),
            sizes.json,
            sizes.protobuf,
        ));
        let data = cluster.stop_and_save()?;
        Ok(SavedCluster { _cluster: cluster, data, layout, templates })
    }

    /// Publishes with endpointd. A takeover of a converged cluster writes nothing, so this is valid
    /// for all subjects.
    fn publish(&mut self, layout: Layout) -> Result<SavedCluster> {
        let saved = self.get(layout, Publication::None)?;
        let test_bed = self.start(&saved, Audit::Off, ExpectedState::all(layout))?;
        self.progress.detail("publishing Endpoints and slices");
        let publisher = RunningSubject::start(Subject::Endpointd, &test_bed)?;
        self.runtime.block_on(test_bed.drivers.observer.wait_until_complete(COMPLETE_MAX))?;
        std::thread::sleep(LATE_WRITES);
        publisher.stop()?;
        let TestBed { drivers: Drivers { templates, .. }, cluster, .. } = test_bed;
        let data = cluster.stop_and_save()?;
        Ok(SavedCluster { _cluster: cluster, data, layout, templates })
    }
}
