//! The other clusters of the set: what each of them exports, and how long ago it was in contact. No
//! write concerns them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use endpointd_model::{
    ClusterId, Failure, FailureKind, Family, Key, LiveRead, MultiClusterResource,
    PublishedResource, SliceManagers, Timestamp, WatchSignal, WatchedResource,
};
use endpointd_plan::{
    Access, ConflictKind, Contact, ContactLimits, Knowledge, KubeconfigFile, SourceState, Zones,
    source_states,
};

use crate::cache::Cache;
use crate::imported::{Imported, ImportedCounts};
use crate::observed::{Observed, Reaction};
use crate::settings::ClusterSetSettings;
use crate::{MonotonicTime, WatchStatus};

/// What is watched in another cluster.
pub const SOURCE_RESOURCES: [WatchedResource; 3] =
    [WatchedResource::Services, WatchedResource::Slices, WatchedResource::ServiceExports];

/// An absence that a live read has found counts for so long.
const CONFIRMED_MAX: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub struct Sources {
    settings: Option<ClusterSetSettings>,
    clusters: BTreeMap<ClusterId, Source>,
    /// The wall-clock time at a monotonic one.
    clock: Option<(MonotonicTime, Timestamp)>,
    is_listed: bool,
    refused_families: BTreeSet<Family>,
    pub imported: Imported,
}

/// While lists of a cluster are incomplete, so long: one of its Services may be new, and its export
/// old.
const HOLD_MAX: Duration = Duration::from_secs(30);

/// One other cluster.
#[derive(Debug)]
pub struct Source {
    observed: Observed,
    contact: Contact,
    state: SourceState,
    pub zones: Zones,
    /// Changed keys that wait until all lists are complete, and since when keys wait.
    held: BTreeSet<Key>,
    held_since: Option<MonotonicTime>,
    /// The keys that wait for a live read of what is absent.
    waiting: BTreeMap<LiveRead, BTreeSet<Key>>,
    /// The keys that wait for a live read until the cluster is in contact again.
    waiting_for_contact: BTreeSet<Key>,
    /// What live reads have not found, and when.
    absent: BTreeMap<LiveRead, MonotonicTime>,
}

/// A snapshot of one other cluster for metrics and `/report`.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceStatus {
    pub cluster: ClusterId,
    pub state: SourceState,
    pub last_contact: Option<Timestamp>,
    pub last_contact_age: Option<Duration>,
    /// Set while it refuses our credentials or permissions.
    pub is_denied: bool,
    pub watches: Vec<WatchStatus>,
    pub n_exports: usize,
    pub n_slices: usize,
    /// Those that are imported.
    pub endpoints: ImportedCounts,
}

/// A state that is another one now.
#[derive(Clone, Debug, PartialEq)]
pub struct StateChange {
    pub cluster: ClusterId,
    pub from: SourceState,
    pub to: SourceState,
}

impl Sources {
    pub fn new(settings: Option<ClusterSetSettings>) -> Self {
        Self {
            settings,
            clusters: BTreeMap::new(),
            clock: None,
            is_listed: false,
            refused_families: BTreeSet::new(),
            imported: Imported::default(),
        }
    }

    /// How many imports have a conflict of each kind; empty if the controller does not run.
    pub fn conflicts(&self) -> Vec<(ConflictKind, usize)> {
        self.settings.as_ref().map_or_else(Vec::new, |_| self.imported.conflicts())
    }

    pub fn settings(&self) -> Option<&ClusterSetSettings> {
        self.settings.as_ref()
    }

    pub fn refused_families(&self) -> &BTreeSet<Family> {
        &self.refused_families
    }

    pub fn is_listed(&self) -> bool {
        self.is_listed
    }

    pub fn set_listed(&mut self) {
        self.is_listed = true;
    }

    pub fn get(&self, cluster: &ClusterId) -> Option<&Source> {
        self.clusters.get(cluster)
    }

    pub fn get_mut(&mut self, cluster: &ClusterId) -> Option<&mut Source> {
        self.clusters.get_mut(cluster)
    }

    /// The changed keys of all clusters that need not wait any more.
    pub fn release(&mut self, now: MonotonicTime) -> BTreeSet<Key> {
        self.clusters.values_mut().flat_map(|source| source.release(now)).collect()
    }

    /// Sorted.
    pub fn iter(&self) -> impl Iterator<Item = (&ClusterId, &Source)> {
        self.clusters.iter()
    }

    /// If the wall clock has jumped, contacts were as long ago as before.
    pub fn set_clock(&mut self, now: MonotonicTime, time: Timestamp) {
        if self.clock.is_some() {
            let jump = time.duration_since(self.time(now));
            for source in self.clusters.values_mut() {
                let moved = |at: Timestamp| at.checked_add(jump).unwrap_or(at);
                source.contact.last_contact = source.contact.last_contact.map(moved);
            }
        }
        self.clock = Some((now, time));
    }

    /// The wall-clock time.
    pub fn time(&self, now: MonotonicTime) -> Timestamp {
        let Some((at, time)) = self.clock else { return Timestamp::UNIX_EPOCH };
        time.checked_add(now.since(at)).unwrap_or(Timestamp::MAX)
    }

    pub fn configure(
        &mut self,
        cluster: ClusterId,
        limits: ContactLimits,
        zones: Zones,
        last_contact: Option<Timestamp>,
    ) {
        let source = self.clusters.entry(cluster).or_insert_with(Source::new);
        source.await_lists();
        source.contact.limits = limits;
        source.contact.kubeconfig = KubeconfigFile::Present;
        source.contact.last_contact = source.contact.last_contact.max(last_contact);
        source.zones = zones;
        if source.state == SourceState::Removed {
            source.reset();
        }
    }

    /// The states as they are now, and which of them have changed.
    pub fn refresh(&mut self, now: MonotonicTime) -> Vec<StateChange> {
        let time = self.time(now);
        let contacts = self.clusters.iter().map(|(id, source)| (id.clone(), source.contact));
        let states = source_states(time, &contacts.collect());
        let mut changes = Vec::new();
        for (cluster, to) in states {
            let Some(source) = self.clusters.get_mut(&cluster) else { continue };
            let from = std::mem::replace(&mut source.state, to);
            if std::mem::discriminant(&from) != std::mem::discriminant(&to) {
                changes.push(StateChange { cluster, from, to });
            }
        }
        changes
    }

    /// The API server of this cluster does not serve a family.
    pub fn note_refusal(&mut self, resource: PublishedResource, failure: &Failure) {
        let is_derived = resource == PublishedResource::MultiCluster(MultiClusterResource::Derived);
        if !is_derived || failure.kind != FailureKind::Invalid {
            return;
        }
        for family in [Family::V4, Family::V6] {
            if failure.message.contains(&format!("\"{family}\": not configured on this cluster")) {
                self.refused_families.insert(family);
            }
        }
    }

    pub fn statuses(&self, now: MonotonicTime) -> Vec<SourceStatus> {
        let time = self.time(now);
        let status = |(cluster, source): (&ClusterId, &Source)| SourceStatus {
            cluster: cluster.clone(),
            state: source.state,
            last_contact: source.contact.last_contact,
            last_contact_age: source
                .contact
                .last_contact
                .map(|at| Duration::try_from(time.duration_since(at)).unwrap_or_default()),
            is_denied: source.contact.access == Access::Denied,
            watches: source.observed.watch_statuses(now),
            n_exports: source.cache().n_objects(WatchedResource::ServiceExports),
            n_slices: source.cache().n_objects(WatchedResource::Slices),
            endpoints: self.imported.endpoints_of(cluster),
        };
        self.clusters.iter().map(status).collect()
    }
}

impl Source {
    fn new() -> Self {
        let contact = Contact {
            knowledge: Knowledge::Nothing,
            access: Access::Granted,
            last_contact: None,
            kubeconfig: KubeconfigFile::Present,
            limits: ContactLimits::default(),
        };
        Self {
            observed: Observed::new(SOURCE_RESOURCES.to_vec(), &SliceManagers::default()),
            contact,
            state: SourceState::Unknown,
            zones: Zones::default(),
            held: BTreeSet::new(),
            held_since: None,
            waiting: BTreeMap::new(),
            waiting_for_contact: BTreeSet::new(),
            absent: BTreeMap::new(),
        }
    }

    pub fn state(&self) -> SourceState {
        self.state
    }

    pub fn cache(&self) -> &Cache {
        self.observed.cache()
    }

    pub fn observed_mut(&mut self) -> &mut Observed {
        &mut self.observed
    }

    /// Forgets its objects: nothing of it is written, changed, or deleted until they are listed.
    pub fn reset(&mut self) {
        self.observed.reset();
        self.observed.accept_signals();
        self.held.clear();
        self.held_since = None;
        self.waiting.clear();
        self.waiting_for_contact.clear();
        self.absent.clear();
        self.contact.knowledge = Knowledge::Nothing;
    }

    /// Its watches begin with lists: it is not in contact before the last of them is complete.
    pub fn await_lists(&mut self) {
        self.observed.await_lists();
        self.contact.knowledge = self.observed.knowledge();
    }

    pub fn set_kubeconfig(&mut self, kubeconfig: KubeconfigFile) {
        self.contact.kubeconfig = kubeconfig;
    }

    pub fn on_signal(
        &mut self,
        resource: WatchedResource,
        signal: WatchSignal,
        (now, time): (MonotonicTime, Timestamp),
    ) -> Reaction {
        let is_contact = !matches!(signal, WatchSignal::Disconnected(_));
        let reaction = self.observed.on_signal(resource, signal, now);
        if is_contact {
            self.on_contact(time);
        } else {
            self.contact.knowledge = self.observed.knowledge();
        }
        reaction
    }

    /// Its API server has answered. That counts only if its lists are current, too.
    pub fn on_contact(&mut self, time: Timestamp) {
        self.contact.knowledge = self.observed.knowledge();
        if self.contact.knowledge == Knowledge::Current {
            self.contact.access = Access::Granted;
            self.contact.last_contact = self.contact.last_contact.max(Some(time));
        }
    }

    pub fn on_denied(&mut self) {
        self.contact.access = Access::Denied;
    }

    /// Whether a live read has confirmed lately that the object is absent. Otherwise the key waits for
    /// the read.
    pub fn is_absent(&self, read: &LiveRead, now: MonotonicTime) -> bool {
        self.absent.get(read).is_some_and(|at| now.since(*at) <= CONFIRMED_MAX)
    }

    pub fn wait_for(&mut self, read: LiveRead, key: Key) {
        self.waiting.entry(read).or_default().insert(key);
    }

    /// Whether changes wait: after a break, lists come one after the other.
    pub fn holds_changes(&mut self, now: MonotonicTime) -> bool {
        match self.contact.knowledge {
            Knowledge::Nothing | Knowledge::Current => false,
            Knowledge::Outdated => now.since(*self.held_since.get_or_insert(now)) < HOLD_MAX,
        }
    }

    pub fn hold(&mut self, keys: impl Iterator<Item = Key>) {
        self.held.extend(keys);
    }

    /// The changed keys that need not wait any more.
    pub fn release(&mut self, now: MonotonicTime) -> BTreeSet<Key> {
        if self.contact.knowledge == Knowledge::Current {
            self.held_since = None;
        } else if self.held_since.is_some_and(|since| now.since(since) < HOLD_MAX) {
            return BTreeSet::new();
        }
        std::mem::take(&mut self.held)
    }

    pub fn wait_for_contact(&mut self, key: Key) {
        self.waiting_for_contact.insert(key);
    }

    /// The keys that are planned again, because the cluster can be asked now.
    pub fn take_waiting_for_contact(&mut self) -> BTreeSet<Key> {
        std::mem::take(&mut self.waiting_for_contact)
    }

    /// The keys that wait for this read.
    pub fn take_waiting(&mut self, read: &LiveRead) -> BTreeSet<Key> {
        self.waiting.remove(read).unwrap_or_default()
    }

    pub fn confirm_absent(&mut self, read: LiveRead, now: MonotonicTime) {
        self.absent.retain(|_, at| now.since(*at) <= CONFIRMED_MAX);
        self.absent.insert(read, now);
    }

    /// The Services that it exports, and the slices of one of them.
    pub fn exports(&self) -> impl Iterator<Item = &Key> {
        self.cache().exports().map(|(key, _)| key)
    }
}
