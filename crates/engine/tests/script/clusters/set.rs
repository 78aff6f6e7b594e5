//! The home cluster, and others whose watches a script delivers.

use std::collections::BTreeMap;
use std::time::Duration;

use endpointd_engine::{
    ClusterSetSettings, ControllerSettings, Input, SOURCE_RESOURCES, Settings, SourceInput,
};
use endpointd_memory_api::{MemoryApi, NamespaceState};
use endpointd_model::{
    ClusterId, ClusterIp, Controller, Endpoint, EndpointSlice, Family, Key, Labels, Meta,
    MultiClusterObject, MultiClusterResource, Object, PublishedResource, Service, ServiceExport,
    ServiceImport, Timestamp, Uid, WatchSignal, WatchedResource, derived_name, names,
};
use endpointd_plan::{ContactLimits, MultiClusterSettings, Zones};

use crate::cluster::Cluster;
use crate::objects;

pub const START: i64 = 1_760_000_000;
pub const HOUR: u64 = 3_600;

pub fn id(name: &str) -> ClusterId {
    ClusterId::parse(name).expect("a label")
}

pub fn key() -> Key {
    Key::new("shop", "web")
}

fn settings() -> Settings {
    Settings {
        controllers: vec![ControllerSettings::new(Controller::MultiCluster)],
        clusters: Some(ClusterSetSettings {
            home: id("home"),
            plan: MultiClusterSettings::default(),
        }),
        ..Settings::default()
    }
}

/// The home cluster, and how far the watches of the others were delivered.
pub struct ClusterSet {
    pub home: Cluster,
    delivered: BTreeMap<(ClusterId, WatchedResource), u64>,
    secs: u64,
}

pub fn service() -> Service {
    Service {
        namespace: "shop".into(),
        name: "web".into(),
        uid: Uid::from("uid-web"),
        selector: Labels::default(),
        cluster_ip: ClusterIp::Ip(Family::V4),
        families: vec![Family::V4],
        ..objects::service("web")
    }
}

/// A slice of the Service; an address with `!` is not ready.
pub fn slice(name: &str, addresses: &[&str]) -> Object {
    Object::Slice(objects::slice_of(&key(), name, addresses))
}

pub fn meta(name: &str) -> Meta {
    Meta { namespace: "shop".into(), name: name.into(), ..Meta::default() }
}

pub fn export(second: i64) -> Object {
    let created = Timestamp::from_second(START - 1_000 + second).ok();
    let meta = Meta { created, ..meta("web") };
    let export = ServiceExport { meta, ..ServiceExport::default() };
    Object::MultiCluster(MultiClusterObject::ExportStatus(export))
}

pub const EXPORT: PublishedResource =
    PublishedResource::MultiCluster(MultiClusterResource::ExportStatus);

pub fn populate(api: &mut MemoryApi, second: i64, addresses: &[&str]) {
    api.put_namespace("shop", NamespaceState::Active);
    api.put_service(service());
    api.force(slice("web-a", addresses));
    api.force(export(second));
}

impl ClusterSet {
    /// All of them export; nothing is started.
    pub fn new(remotes: &[&str]) -> Self {
        let mut home = Cluster::new(settings());
        populate(&mut home.api, 0, &["10.0.0.1", "10.0.0.2"]);
        for (n, name) in (1..).zip(remotes) {
            let mut api = MemoryApi::default();
            populate(&mut api, n, &[&format!("10.{n}.0.1"), &format!("10.{n}.0.2")]);
            home.sources.insert(id(name), api);
        }
        Self { home, delivered: BTreeMap::new(), secs: 0 }
    }

    /// In sync and at rest.
    pub fn started(remotes: &[&str]) -> Self {
        let mut set = Self::new(remotes);
        set.start(remotes);
        remotes.iter().for_each(|name| set.list(name));
        set.home.handle(Input::SourcesListed);
        set.run();
        set.clear_log();
        set
    }

    /// A process begins to lead, and has not heard of the others yet.
    pub fn start(&mut self, remotes: &[&str]) {
        self.tick();
        for name in remotes {
            self.configure(name);
        }
        self.home.start();
    }

    pub fn restart(&mut self, remotes: &[&str]) {
        self.home.engine = endpointd_engine::Engine::new(settings());
        self.delivered.clear();
        self.clear_log();
        self.start(remotes);
    }

    pub fn configure(&mut self, name: &str) {
        let (limits, zones) = (ContactLimits::default(), Zones::default());
        self.source(name, SourceInput::Configured { limits, zones, last_contact: None });
    }

    pub fn source(&mut self, name: &str, input: SourceInput) {
        self.home.handle(Input::Source(id(name), input));
    }

    /// Lists the resources of another cluster.
    pub fn list(&mut self, name: &str) {
        SOURCE_RESOURCES.into_iter().for_each(|resource| self.list_one(name, resource));
    }

    pub fn list_one(&mut self, name: &str, resource: WatchedResource) {
        let api = &self.home.sources[&id(name)];
        let revision = api.revision();
        let signals = api.list_at(resource, revision);
        self.delivered.insert((id(name), resource), revision);
        self.source(name, SourceInput::Watch(resource, WatchSignal::InitStarted));
        for signal in signals {
            self.source(name, SourceInput::Watch(resource, signal));
        }
        let done = WatchSignal::InitDone(revision.into());
        self.source(name, SourceInput::Watch(resource, done));
    }

    /// Delivers all events of another cluster, and does what follows.
    pub fn deliver(&mut self, name: &str) {
        for resource in SOURCE_RESOURCES {
            loop {
                let at = self.delivered.get(&(id(name), resource)).copied().unwrap_or_default();
                let next = self.home.sources[&id(name)].next_signal(resource, at);
                let Some((revision, _, signal)) = next else { break };
                self.delivered.insert((id(name), resource), revision);
                self.source(name, SourceInput::Watch(resource, signal));
            }
        }
        self.run();
    }

    pub fn change(&mut self, name: &str, change: impl FnOnce(&mut MemoryApi)) {
        change(self.home.sources.get_mut(&id(name)).expect("a cluster"));
    }

    /// Runs until every key has been synced, cooldowns included.
    pub fn run(&mut self) {
        self.home.advance(Duration::from_secs(1));
        self.secs += 1;
        self.tick();
        self.home.run();
    }

    /// The wall clock is set.
    pub fn jump(&mut self, secs: i64) {
        self.secs = self.secs.checked_add_signed(secs).expect("not before the start");
        self.tick();
        self.home.run();
    }

    pub fn tick(&mut self) {
        let time = Timestamp::from_second(START + self.secs as i64).expect("in range");
        self.home.handle(Input::Clock(time));
    }

    /// Time passes; these clusters answer.
    pub fn pass(&mut self, secs: u64, answering: &[&str]) {
        self.home.advance(Duration::from_secs(secs));
        self.secs += secs;
        let time = Timestamp::from_second(START + self.secs as i64).expect("in range");
        // The engine has the time by the monotonic clock, too.
        for name in answering {
            self.source(name, SourceInput::Answered);
        }
        self.home.handle(Input::Clock(time));
        self.run();
    }

    pub fn disconnect(&mut self, name: &str) {
        for resource in SOURCE_RESOURCES {
            let signal = WatchSignal::Disconnected("connection refused".into());
            self.source(name, SourceInput::Watch(resource, signal));
        }
    }

    pub fn reconnect(&mut self, name: &str) {
        for resource in SOURCE_RESOURCES {
            self.source(name, SourceInput::Watch(resource, WatchSignal::Reconnected));
        }
        self.run();
    }

    pub fn clear_log(&mut self) {
        self.home.clear_log();
    }

    /// The writes since the last time, without the derived part of names.
    pub fn sent(&mut self) -> Vec<String> {
        let derived = derived_name(&key());
        let text = |line: String| match line.find(&*derived) {
            Some(at) => format!("{}derived", &line[..at]),
            None => line,
        };
        std::mem::take(&mut self.home.sent).into_iter().map(text).collect()
    }

    /// The published addresses by cluster; those that are not ready have a `!`.
    pub fn published(&self) -> Vec<String> {
        let of_import = |slice: &&EndpointSlice| slice.meta.labels.contains_key(names::IMPORT_NAME);
        let mut lines: Vec<String> = self
            .home
            .slices()
            .into_iter()
            .filter(of_import)
            .map(|slice| {
                let cluster = slice.meta.labels.get(names::SOURCE_CLUSTER).expect("every slice");
                let endpoint = |one: &Endpoint| {
                    let mark = if one.is_ready() { "" } else { "!" };
                    format!(" {}{mark}", one.addresses[0])
                };
                format!("{cluster}:{}", slice.endpoints.iter().map(endpoint).collect::<String>())
            })
            .collect();
        lines.sort_unstable();
        lines
    }

    pub fn import(&self) -> Option<&ServiceImport> {
        self.home.api.imports.get(&key()).map(AsRef::as_ref)
    }

    pub fn state(&self, name: &str) -> &'static str {
        let status = self.home.report();
        let source = status.sources.iter().find(|source| source.cluster == id(name));
        source.expect("it is configured").state.as_str()
    }
}
