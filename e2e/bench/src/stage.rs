//! Control planes to measure on. A [`World`] is written once and put to rest; every run begins on a
//! control plane of its own, with a copy of the world's data.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use endpointd_control_plane::{Api, Audit, Binaries, Cluster, Options};
use endpointd_histories::cluster::{ACCOUNT, ACCOUNT_NAMESPACE, account};
use tokio::runtime::Runtime;

use crate::contender::{AtWork, Contender};
use crate::load::{Layout, Sender, Templates, write_world};
use crate::process::Usage;
use crate::progress::Progress;
use crate::published::{Observer, Wanted};

/// Ours took a tenth of it where it took longest.
pub const WHOLE_MAX: Duration = Duration::from_secs(1800);
/// After the last write, so that even a late one is part of the world.
const SETTLE: Duration = Duration::from_secs(3);

/// Objects at rest.
pub struct World {
    /// Owns the files.
    _cluster: Cluster,
    data: PathBuf,
    pub layout: Layout,
    templates: Arc<Templates>,
}

/// Whether the world is published already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Settled {
    No,
    Yes,
}

/// Worlds by size: written when they are first asked for.
pub struct Worlds<'a> {
    binaries: &'a Binaries,
    runtime: &'a Runtime,
    progress: &'a Progress,
    known: HashMap<(usize, usize, usize, Settled), Arc<World>>,
}

/// A control plane with a copy of a world.
pub struct Stage {
    pub actors: Actors,
    pub cluster: Cluster,
    /// With connections that stay open.
    pub api: Api,
    /// The kubeconfig of the account that endpointd uses.
    pub account: PathBuf,
}

/// What changes pods and looks at what is published; clones share connections and sight.
#[derive(Clone)]
pub struct Actors {
    pub observer: Observer,
    pub sender: Sender,
    pub layout: Layout,
    pub templates: Arc<Templates>,
}

impl<'a> Worlds<'a> {
    pub fn new(binaries: &'a Binaries, runtime: &'a Runtime, progress: &'a Progress) -> Self {
        Self { binaries, runtime, progress, known: HashMap::new() }
    }

    pub fn get(&mut self, layout: Layout, settled: Settled) -> Result<Arc<World>> {
        let Layout { n_namespaces, n_services, n_pods, n_nodes: _ } = layout;
        let at = (n_namespaces, n_services, n_pods, settled);
        if let Some(world) = self.known.get(&at) {
            return Ok(world.clone());
        }
        let world = match settled {
            Settled::No => self.write(layout),
            Settled::Yes => self.settle(layout),
        };
        let world = Arc::new(world.with_context(|| format!("no world of {}", layout.describe()))?);
        self.known.insert(at, world.clone());
        Ok(world)
    }

    /// A fresh control plane.
    pub fn stage(&self, world: &World, audit: Audit, wanted: Wanted) -> Result<Stage> {
        self.progress.detail("starting a control plane");
        let options = Options { audit, data: Some(world.data.clone()), ..Options::default() };
        let cluster = Cluster::start(self.binaries, options)?;
        let account = cluster.kubeconfig_of(ACCOUNT_NAMESPACE, ACCOUNT)?;
        let api = cluster.fast_api()?;
        // Lists from memory are answered when the server has everything there: it is warm then.
        for kind in ["api/v1/pods", "api/v1/services", "api/v1/nodes"] {
            // No object has this name: such a list has no limit, and all pods are a lot to read.
            api.text(&format!("/{kind}?fieldSelector=metadata.name%3D-&resourceVersion=0"))?;
        }
        let (sender, observer) = self.runtime.block_on(async {
            let sender = Sender::connect(&cluster.kubeconfig()).await?;
            let observer = Observer::start(&cluster.kubeconfig(), wanted).await?;
            anyhow::Ok((sender, observer))
        })?;
        let templates = world.templates.clone();
        let actors = Actors { observer, sender, layout: world.layout, templates };
        Ok(Stage { actors, cluster, api, account })
    }

    fn write(&self, layout: Layout) -> Result<World> {
        let cluster = Cluster::start(self.binaries, Options::default())?;
        account(&cluster);
        let before = Usage::own()?;
        let templates = self.runtime.block_on(async {
            let sender = Sender::connect(&cluster.kubeconfig()).await?;
            let templates = Arc::new(Templates::make(&sender).await?);
            let done = |n| self.progress.count("pods written", n, layout.n_pods);
            write_world(&sender, &templates, layout, done).await?;
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
        let data = cluster.rest()?;
        Ok(World { _cluster: cluster, data, layout, templates })
    }

    /// Published by us: a hand-over on a settled cluster writes nothing, either way.
    fn settle(&mut self, layout: Layout) -> Result<World> {
        let world = self.get(layout, Settled::No)?;
        let stage = self.stage(&world, Audit::Off, Wanted::all(layout))?;
        self.progress.detail("publishing the world");
        let ours = AtWork::start(Contender::Ours, &stage)?;
        self.runtime.block_on(stage.actors.observer.wait_until_whole(WHOLE_MAX))?;
        std::thread::sleep(SETTLE);
        ours.stop()?;
        let Stage { actors: Actors { templates, .. }, cluster, .. } = stage;
        let data = cluster.rest()?;
        Ok(World { _cluster: cluster, data, layout, templates })
    }
}
