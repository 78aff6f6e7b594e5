//! Services of several clusters (docs/spec.md, section 11). The engine runs in `home`; `eu1` and `us1`
//! are other API servers, whose watches a script delivers.

use std::collections::BTreeMap;
use std::time::Duration;

use endpointd_engine::{
    ClusterSetSettings, ControllerSettings, Input, SOURCE_RESOURCES, Settings, SourceInput,
};
use endpointd_memory_api::{MemoryApi, NamespaceState};
use endpointd_model::{
    ClusterId, ClusterIp, Controller, Endpoint, EndpointPort, EndpointSlice, Family, Key, Labels,
    LiveRead, Meta, MultiClusterObject, MultiClusterResource, Object, PublishedResource, Service,
    ServiceExport, ServiceImport, Timestamp, Uid, WatchSignal, WatchedResource, derived_name,
    names,
};
use endpointd_plan::{ContactLimits, KubeconfigFile, MultiClusterSettings, Zones};

use crate::cluster::Cluster;
use crate::objects;

const START: i64 = 1_760_000_000;
const HOUR: u64 = 3_600;

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

fn service() -> Service {
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
    let endpoint = |address: &&str| {
        let mut endpoint = Endpoint {
            addresses: vec![address.trim_end_matches('!').into()],
            ..Endpoint::default()
        };
        endpoint.conditions.ready = Some(!address.ends_with('!'));
        endpoint
    };
    let labels = [(names::SERVICE_NAME, "web"), (names::MANAGED_BY, names::MANAGED_BY_SLICES)];
    Object::Slice(EndpointSlice {
        meta: Meta { labels: labels.into_iter().collect(), ..meta(name) },
        endpoints: addresses.iter().map(endpoint).collect(),
        ports: vec![EndpointPort {
            name: Some("".into()),
            port: Some(80),
            ..EndpointPort::default()
        }],
        ..EndpointSlice::default()
    })
}

fn meta(name: &str) -> Meta {
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

    fn list_one(&mut self, name: &str, resource: WatchedResource) {
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
    fn jump(&mut self, secs: i64) {
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

#[test]
fn exports_of_all_clusters_are_one_import() {
    let mut set = ClusterSet::new(&["eu1"]);
    set.start(&["eu1"]);
    set.list("eu1");
    set.run();
    let import = set.import().expect("it is created");
    assert_eq!(import.status.clusters, ["eu1".into(), "home".into()]);
    assert_eq!(import.spec.ips.len(), 1, "{import:?}");
    assert_eq!(set.published(), ["eu1: 10.1.0.1 10.1.0.2", "home: 10.0.0.1 10.0.0.2"]);
    let export = set.home.api.exports.get(&key()).expect("it exists");
    let ready = export.conditions.iter().find(|one| one.condition_type == "Ready".into());
    assert_eq!(ready.map(|one| one.status.as_str()), Some("True"));
    set.clear_log();
    set.restart(&["eu1"]);
    set.list("eu1");
    set.home.handle(Input::SourcesListed);
    set.run();
    assert_eq!(set.sent(), [""; 0], "a restart writes nothing");
}

#[test]
fn a_change_elsewhere_is_one_write_here() {
    let mut set = ClusterSet::started(&["eu1", "us1"]);
    set.change("eu1", |api| api.force(slice("web-a", &["10.1.0.1!", "10.1.0.2"])));
    set.deliver("eu1");
    assert_eq!(set.sent(), ["update endpointslices derived"]);
    assert_eq!(set.published()[0], "eu1: 10.1.0.1! 10.1.0.2");
}

/// Feature off: nothing of it is watched or written.
#[test]
fn other_controllers_watch_nothing_of_it() {
    let engine = endpointd_engine::Engine::new(Settings::default());
    assert_eq!(engine.watched_resources(), WatchedResource::DEFAULT);
}

/// U3: a restart while another cluster does not answer.
#[test]
fn nothing_is_deleted_for_a_cluster_that_was_not_seen() {
    let mut set = ClusterSet::started(&["eu1"]);
    let published = set.published();
    set.restart(&["eu1"]);
    set.home.handle(Input::SourcesListed);
    set.pass(2 * HOUR, &[]);
    assert_eq!((set.state("eu1"), set.sent()), ("Unknown", vec![]));
    assert_eq!(set.published(), published);
    // Local changes go on.
    set.home.put_object(slice("web-a", &["10.0.0.3"]));
    set.run();
    assert_eq!(set.sent(), ["update endpointslices derived"]);
    // When it is seen, and exports no more, it is asked again before anything is deleted.
    set.change("eu1", |api| drop(api.remove(EXPORT, &key())));
    set.list("eu1");
    set.run();
    let read = LiveRead::Source(id("eu1"), Box::new(LiveRead::Object(EXPORT, key())));
    assert_eq!(set.home.live_reads, [read]);
    assert_eq!(set.published(), ["home: 10.0.0.3"]);
}

/// Before all clusters are configured, those that objects name are unknown.
#[test]
fn nothing_is_deleted_before_all_clusters_are_known() {
    let mut set = ClusterSet::started(&["eu1"]);
    set.restart(&[]);
    set.run();
    assert_eq!(set.sent(), [""; 0]);
    set.home.handle(Input::SourcesListed);
    set.run();
    assert_eq!(set.published(), ["home: 10.0.0.1 10.0.0.2"]);
}

/// A list that is short, or a watch that is wrong: the cluster still exports.
#[test]
fn an_export_that_only_seems_to_be_gone_is_kept() {
    let mut set = ClusterSet::started(&["eu1"]);
    let published = set.published();
    for signal in [WatchSignal::InitStarted, WatchSignal::InitDone(999.into())] {
        set.source("eu1", SourceInput::Watch(WatchedResource::ServiceExports, signal));
    }
    set.run();
    assert_eq!(set.home.live_reads.len(), 1);
    assert_eq!(set.published(), published);
    assert!(set.sent().iter().all(|line| !line.starts_with("delete")));
}

/// What a lost cluster does not have any more is confirmed when it is in contact again, although no
/// state of it changes what is published.
#[test]
fn a_deletion_that_a_lost_cluster_reports_is_done_when_it_is_in_sync() {
    let mut set = ClusterSet::started(&["eu1", "us1"]);
    set.disconnect("eu1");
    set.pass(40, &["us1"]);
    assert_eq!(set.state("eu1"), "Lost");
    set.change("eu1", |api| {
        drop(api.remove(PublishedResource::Slices, &Key::new("shop", "web-a")));
    });
    // The watch of slices is there before the others.
    let slices = WatchedResource::Slices;
    set.source("eu1", SourceInput::Watch(slices, WatchSignal::Reconnected));
    set.deliver("eu1");
    assert_eq!((set.state("eu1"), set.home.live_reads.len()), ("Lost", 0));
    set.reconnect("eu1");
    assert_eq!(set.published(), ["home: 10.0.0.1 10.0.0.2", "us1: 10.2.0.1 10.2.0.2"]);
}

/// U1: by any wall clock, which may jump, contacts were as long ago as before.
#[test]
fn a_wall_clock_that_jumps_loses_no_cluster() {
    let mut set = ClusterSet::started(&["eu1"]);
    for days in [1, 2, -2] {
        set.jump(days * 24 * HOUR as i64);
        assert_eq!((set.state("eu1"), set.sent()), ("InSync", vec![]), "{days} days");
    }
}

/// The live read of a dead cluster holds no other write of the key up.
#[test]
fn a_cluster_that_does_not_answer_delays_nothing() {
    let mut set = ClusterSet::started(&["eu1", "us1"]);
    let eu1 = set.home.sources.remove(&id("eu1")).expect("a cluster");
    for signal in [WatchSignal::InitStarted, WatchSignal::InitDone(999.into())] {
        set.source("eu1", SourceInput::Watch(WatchedResource::ServiceExports, signal));
    }
    set.change("us1", |api| api.force(slice("web-a", &["10.2.0.9"])));
    set.deliver("us1");
    let lines = ["eu1: 10.1.0.1 10.1.0.2", "home: 10.0.0.1 10.0.0.2", "us1: 10.2.0.9"];
    assert_eq!(set.published(), lines);
    // It answers, and has no export.
    set.home.sources.insert(id("eu1"), eu1);
    set.change("eu1", |api| drop(api.remove(EXPORT, &key())));
    set.pass(20, &["eu1", "us1"]);
    assert_eq!(set.published(), lines[1..]);
}

/// U0, U1.
#[test]
fn a_lost_cluster_is_demoted_after_five_minutes_and_comes_back_at_once() {
    let mut set = ClusterSet::started(&["eu1", "us1"]);
    set.disconnect("eu1");
    set.pass(20, &["us1"]);
    assert_eq!(set.state("eu1"), "InSync");
    set.pass(20, &["us1"]);
    assert_eq!((set.state("eu1"), set.sent()), ("Lost", vec![]));
    for _ in 0..10 {
        set.pass(29, &["us1"]);
    }
    assert_eq!(set.state("eu1"), "Demoted");
    assert_eq!(set.published()[0], "eu1: 10.1.0.1! 10.1.0.2!");
    let sent = set.sent();
    assert_eq!(sent[0], "update endpointslices derived");
    assert!(sent[1..].iter().all(|line| line == "update serviceimports/status web"), "{sent:?}");
    set.reconnect("eu1");
    assert_eq!(set.state("eu1"), "InSync");
    assert_eq!(set.published()[0], "eu1: 10.1.0.1 10.1.0.2");
}

/// The lists of a lost cluster, one after the other: it is fresh when the last is complete.
#[test]
fn a_cluster_that_is_listed_again_is_lost_until_its_lists_are_complete() {
    for begins_by_configuration in [true, false] {
        let mut set = ClusterSet::started(&["eu1", "us1"]);
        if begins_by_configuration {
            set.pass(40, &["us1"]);
            set.configure("eu1");
        } else {
            set.disconnect("eu1");
            set.pass(40, &["us1"]);
        }
        assert_eq!(set.state("eu1"), "Lost");
        for resource in SOURCE_RESOURCES {
            set.run();
            assert_eq!(set.state("eu1"), "Lost", "before the list of {}", resource.as_str());
            set.list_one("eu1", resource);
        }
        set.run();
        assert_eq!((set.state("eu1"), set.sent()), ("InSync", vec![]));
    }
}

/// Lists come one after the other: a Service of now and its export of then are not planned together.
#[test]
fn changes_of_a_cluster_wait_for_all_its_lists() {
    let mut set = ClusterSet::started(&["eu1", "us1"]);
    let before = set.published();
    set.disconnect("eu1");
    set.pass(40, &["us1"]);
    set.change("eu1", |api| {
        let families = vec![Family::V6];
        api.put_service(Service { families, cluster_ip: ClusterIp::Ip(Family::V6), ..service() });
        drop(api.remove(EXPORT, &key()));
    });
    for resource in SOURCE_RESOURCES {
        assert_eq!((set.published(), set.sent()), (before.clone(), vec![]));
        set.list_one("eu1", resource);
        set.run();
    }
    assert_eq!(set.published(), before[1..]);
    // A list that does not end delays changes for a while only.
    set.disconnect("us1");
    set.list_one("us1", WatchedResource::Slices);
    set.change("us1", |api| api.force(slice("web-a", &["10.2.0.9"])));
    set.deliver("us1");
    assert_eq!(set.published(), before[1..]);
    set.pass(31, &["eu1"]);
    assert_eq!(set.published()[1], "us1: 10.2.0.9");
}

/// U1.
#[test]
fn a_link_that_flaps_causes_no_write() {
    let mut set = ClusterSet::started(&["eu1", "us1"]);
    for _ in 0..20 {
        set.disconnect("eu1");
        for _ in 0..8 {
            set.pass(29, &["us1"]);
        }
        assert_eq!(set.state("eu1"), "Lost");
        set.reconnect("eu1");
        assert_eq!(set.state("eu1"), "InSync");
    }
    assert_eq!(set.sent(), [""; 0]);
}

/// U2.
#[test]
fn if_no_cluster_answers_none_is_demoted() {
    let mut set = ClusterSet::started(&["eu1", "us1"]);
    set.disconnect("eu1");
    set.disconnect("us1");
    set.pass(HOUR, &[]);
    assert_eq!((set.state("eu1"), set.state("us1")), ("Lost", "Lost"));
    assert_eq!(set.sent(), [""; 0]);
    set.reconnect("us1");
    assert_eq!((set.state("eu1"), set.state("us1")), ("Demoted", "InSync"));
}

#[test]
fn a_lost_cluster_expires_after_a_day() {
    let mut set = ClusterSet::started(&["eu1", "us1"]);
    set.disconnect("eu1");
    for _ in 0..24 * HOUR / 29 + 4 {
        set.pass(28, &["us1"]);
    }
    assert_eq!(set.state("eu1"), "Expired");
    assert_eq!(set.published(), ["home: 10.0.0.1 10.0.0.2", "us1: 10.2.0.1 10.2.0.2"]);
    let clusters = &set.import().expect("others export").status.clusters;
    assert_eq!(*clusters, ["home".into(), "us1".into()]);
}

#[test]
fn a_cluster_without_kubeconfig_is_removed() {
    let mut set = ClusterSet::started(&["eu1"]);
    let since = Timestamp::from_second(START).expect("in range");
    set.source("eu1", SourceInput::Kubeconfig(KubeconfigFile::Missing { since, n_looks: 1 }));
    set.pass(20, &[]);
    assert_eq!((set.state("eu1"), set.sent()), ("InSync", vec![]), "a file may be replaced");
    set.source("eu1", SourceInput::Kubeconfig(KubeconfigFile::Missing { since, n_looks: 2 }));
    set.run();
    assert_eq!(set.state("eu1"), "Removed");
    assert_eq!(set.published(), ["home: 10.0.0.1 10.0.0.2"]);
    set.configure("eu1");
    set.list("eu1");
    set.run();
    assert_eq!(set.published(), ["eu1: 10.1.0.1 10.1.0.2", "home: 10.0.0.1 10.0.0.2"]);
}

/// Another cluster under the same name is unknown until it is listed.
#[test]
fn a_replaced_cluster_deletes_nothing_before_it_is_listed() {
    let mut set = ClusterSet::started(&["eu1"]);
    let published = set.published();
    let mut api = MemoryApi::default();
    api.put_namespace("shop", NamespaceState::Active);
    set.home.sources.insert(id("eu1"), api);
    set.source("eu1", SourceInput::Replaced);
    set.pass(HOUR, &["eu1"]);
    assert_eq!((set.state("eu1"), set.sent()), ("Unknown", vec![]));
    assert_eq!(set.published(), published);
    set.list("eu1");
    set.run();
    assert_eq!(set.published(), ["home: 10.0.0.1 10.0.0.2"]);
}

/// M12, M2.
#[test]
fn the_last_export_takes_everything_with_it() {
    let mut set = ClusterSet::started(&["eu1"]);
    set.change("eu1", |api| drop(api.remove(EXPORT, &key())));
    set.deliver("eu1");
    assert_eq!(set.published(), ["home: 10.0.0.1 10.0.0.2"]);
    set.clear_log();
    set.home.remove_object(EXPORT, &key());
    set.run();
    set.run();
    assert_eq!(set.published(), [""; 0]);
    assert_eq!(
        set.sent(),
        ["delete endpointslices derived", "delete services derived", "delete serviceimports web"]
    );
    assert!(set.import().is_none());
}

/// M12, M2: what waits for a write is planned, in whichever order the watch and the response report it.
#[test]
fn responses_after_their_events_stop_nothing() {
    let mut set = ClusterSet::new(&["eu1"]);
    set.home.responses_last = true;
    set.start(&["eu1"]);
    set.list("eu1");
    set.home.handle(Input::SourcesListed);
    set.run();
    assert_eq!(set.published(), ["eu1: 10.1.0.1 10.1.0.2", "home: 10.0.0.1 10.0.0.2"]);
    let clusters = set.import().expect("it is created").status.clusters.clone();
    assert_eq!(clusters, ["eu1".into(), "home".into()]);
    set.change("eu1", |api| drop(api.remove(EXPORT, &key())));
    set.home.remove_object(EXPORT, &key());
    set.deliver("eu1");
    set.run();
    assert_eq!(set.published(), [""; 0]);
    assert!(set.import().is_none(), "{:?}", set.sent());
}

/// M14.
#[test]
fn imports_of_somebody_else_are_left_alone() {
    let mut set = ClusterSet::new(&["eu1"]);
    let import = ServiceImport { meta: meta("web"), ..ServiceImport::default() };
    set.home.put_object(Object::MultiCluster(MultiClusterObject::Import(import)));
    set.start(&["eu1"]);
    set.list("eu1");
    set.run();
    assert_eq!(set.sent(), ["update serviceexports/status web"]);
    assert_eq!(set.published(), [""; 0]);
}

/// M13.
#[test]
fn an_import_waits_for_its_namespace() {
    let mut set = ClusterSet::new(&["eu1"]);
    set.home.api = MemoryApi::default();
    set.start(&["eu1"]);
    set.list("eu1");
    set.run();
    assert_eq!(set.sent(), [""; 0]);
    set.home.api.put_namespace("shop", NamespaceState::Active);
    set.run();
    assert_eq!(set.published(), ["eu1: 10.1.0.1 10.1.0.2"]);
}

/// resourceVersions of another cluster that go backwards void only what is known of it.
#[test]
fn a_cluster_that_was_restored_is_listed_again() {
    let mut set = ClusterSet::started(&["eu1"]);
    let published = set.published();
    for _ in 0..2 {
        for signal in [WatchSignal::InitStarted, WatchSignal::InitDone(1.into())] {
            set.source("eu1", SourceInput::Watch(WatchedResource::Slices, signal));
        }
    }
    set.run();
    assert_eq!(set.home.source_relists.last(), Some(&(id("eu1"), None)));
    assert_eq!((set.state("eu1"), set.sent()), ("Unknown", vec![]));
    set.list("eu1");
    set.run();
    assert_eq!((set.state("eu1"), set.published()), ("InSync", published));
    assert_eq!(set.sent(), [""; 0]);
}

/// A derived Service that somebody deletes is created again.
#[test]
fn deleted_objects_are_created_again() {
    let mut set = ClusterSet::started(&["eu1"]);
    let derived = Key::new("shop", derived_name(&key()));
    let resource = PublishedResource::MultiCluster(MultiClusterResource::Derived);
    set.home.remove_object(resource, &derived);
    set.run();
    assert!(set.home.object(resource, &derived).is_some(), "{:?}", set.sent());
    let first = set
        .home
        .slices()
        .iter()
        .map(|one| one.meta.key())
        .find(|key| key.name.starts_with("derived-"));
    set.home.remove_object(PublishedResource::Slices, &first.expect("there are copies"));
    set.run();
    assert_eq!(set.published(), ["eu1: 10.1.0.1 10.1.0.2", "home: 10.0.0.1 10.0.0.2"]);
}
