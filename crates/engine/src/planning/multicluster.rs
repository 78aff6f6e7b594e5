//! From a key to the plan of its import: the snapshot of all clusters, and the deletions that must wait
//! because an object only seems to be absent in another cluster.

use std::collections::{BTreeMap, BTreeSet};

use endpointd_model::{
    ClusterId, EndpointSlice, Key, LiveRead, MultiClusterResource, PublishedResource, Service,
    ServiceExport, SharedStr, Write, names,
};
use endpointd_plan::{
    ImportNamespace, MultiClusterSnapshot, Plan, SourceCluster, SourceState, Zones,
    cluster_slices_named_as_copy,
};

use super::Planned;
use crate::MonotonicTime;
use crate::absence::Assumptions;
use crate::cache::Cache;
use crate::imported::ImportReport;
use crate::sources::Sources;

/// Namespaces of the cluster itself, which are never imported into.
const EXCLUDED_PREFIX: &str = "kube-";

/// What one cluster says about the key. Slices are decoded for one plan.
struct ClusterInputs<'a> {
    id: ClusterId,
    state: SourceState,
    export: Option<&'a ServiceExport>,
    service: Option<&'a Service>,
    slices: Vec<EndpointSlice>,
    zones: Zones,
}

impl<'a> ClusterInputs<'a> {
    fn of(id: &ClusterId, state: SourceState, cache: &'a Cache, key: &Key) -> Self {
        let export = cache.export(key);
        let slices = export.map(|_| cache.slices_of(key)).unwrap_or_default();
        let (service, zones) = (cache.service(key), Zones::default());
        Self { id: id.clone(), state, export, service, slices, zones }
    }

    /// Nothing is known of it.
    fn unknown(id: ClusterId) -> Self {
        let (export, service, slices) = (None, None, Vec::new());
        Self { id, state: SourceState::Unknown, export, service, slices, zones: Zones::default() }
    }

    fn cluster(&self) -> SourceCluster<'_> {
        SourceCluster {
            id: &self.id,
            state: self.state,
            export: self.export,
            service: self.service,
            slices: self.slices.iter().collect(),
            zones: self.zones,
        }
    }

    /// What the cluster does not seem to have, so that a copy of this slice is not needed.
    fn missing(&self, key: &Key, copy: Option<&EndpointSlice>) -> Option<LiveRead> {
        const EXPORT: PublishedResource =
            PublishedResource::MultiCluster(MultiClusterResource::ExportStatus);
        if self.export.is_none() {
            return Some(LiveRead::Object(EXPORT, key.clone()));
        }
        if self.service.is_none() {
            return Some(LiveRead::Service(key.clone()));
        }
        let name = copy?.meta.annotations.get(names::SOURCE_SLICE)?;
        let is_there = self.slices.iter().any(|slice| slice.meta.name == *name);
        let read = || {
            let source = Key::new(key.namespace.clone(), name.clone());
            LiveRead::Object(PublishedResource::Slices, source)
        };
        (!is_there).then(read)
    }
}

pub fn plan(cache: &Cache, sources: &Sources, key: &Key, now: MonotonicTime) -> Planned {
    let Some(settings) = sources.settings() else { return Planned::default() };
    let home = ClusterInputs::of(&settings.home, SourceState::InSync, cache, key);
    let remotes = remotes(cache, sources, key);
    let slices = slices(cache, key, [&home].into_iter().chain(&remotes));
    let snapshot = MultiClusterSnapshot {
        key: key.clone(),
        now: sources.time(now),
        namespace: namespace(cache, key),
        home: home.cluster(),
        remotes: remotes.iter().map(ClusterInputs::cluster).collect(),
        import: cache.import(key),
        derived: cache.derived_of(key),
        slices: slices.iter().collect(),
        refused_families: sources.refused_families(),
        settings: &settings.plan,
    };
    let plan = endpointd_plan::multicluster(&snapshot);
    let import = Some(ImportReport::of(&plan));
    let exporters = cache.import(key).map_or(&[][..], |import| &import.status.clusters);
    let mut absences = Absences {
        home: &home,
        sources,
        reads_at_home: Vec::new(),
        reads_elsewhere: BTreeSet::new(),
    };
    let mut writes = plan.writes;
    writes.retain(|write| {
        let Write::Delete(target) = write else { return true };
        let is_copy = target.resource == PublishedResource::Slices;
        let copy = slices.iter().find(|slice| is_copy && slice.meta.name == target.key.name);
        absences.permit(copy, exporters, key, now)
    });
    let Absences { reads_at_home: absent, reads_elsewhere, .. } = absences;
    let assumptions = Assumptions { absent, present: Vec::new() };
    let shared_reads = reads_elsewhere.into_iter().collect();
    let plan = Plan { writes, ..Plan::default() };
    Planned { plan, assumptions, shared_reads, import, ..Planned::default() }
}

/// The clusters that export the Service, and those of which nobody knows whether they do.
fn remotes<'a>(cache: &Cache, sources: &'a Sources, key: &Key) -> Vec<ClusterInputs<'a>> {
    let mut remotes: BTreeMap<ClusterId, ClusterInputs> = BTreeMap::new();
    if !sources.is_listed() {
        let import = cache.import(key);
        let listed = import.iter().flat_map(|import| import.status.clusters.iter().cloned());
        let unlisted = listed.chain(published_clusters(cache, key));
        for id in unlisted.filter_map(|id| ClusterId::parse(&id).ok()) {
            let is_home = sources.settings().is_some_and(|settings| settings.home == id);
            if !is_home && sources.get(&id).is_none() {
                remotes.insert(id.clone(), ClusterInputs::unknown(id));
            }
        }
    }
    for (id, source) in sources.iter() {
        if source.state() == SourceState::Unknown {
            remotes.insert(id.clone(), ClusterInputs::unknown(id.clone()));
        } else if source.cache().export(key).is_some() {
            let inputs = ClusterInputs::of(id, source.state(), source.cache(), key);
            remotes.insert(id.clone(), ClusterInputs { zones: source.zones, ..inputs });
        }
    }
    remotes.into_values().collect()
}

fn published_clusters(cache: &Cache, key: &Key) -> Vec<SharedStr> {
    let derived = Key::new(key.namespace.clone(), endpointd_model::derived_name(key));
    let slices = cache.slices_of(&derived).into_iter();
    slices.filter_map(|slice| slice.meta.labels.get(names::SOURCE_CLUSTER).cloned()).collect()
}

/// The slices of this cluster that are or were copies, and those with a name that a copy could want.
fn slices<'i, 'a: 'i>(
    cache: &Cache,
    key: &Key,
    clusters: impl Iterator<Item = &'i ClusterInputs<'a>>,
) -> Vec<EndpointSlice> {
    let derived = endpointd_model::derived_name(key);
    let labelled = cache.slices_of(&Key::new(key.namespace.clone(), derived.clone()));
    let mut slices: BTreeMap<SharedStr, EndpointSlice> =
        labelled.into_iter().map(|slice| (slice.meta.name.clone(), slice)).collect();
    let find = |name: &SharedStr| cache.slice(&Key::new(key.namespace.clone(), name.clone()));
    for cluster in clusters {
        for source in &cluster.slices {
            for slice in cluster_slices_named_as_copy(&derived, &cluster.id, source, find) {
                slices.entry(slice.meta.name.clone()).or_insert(slice);
            }
        }
    }
    slices.into_values().collect()
}

fn namespace(cache: &Cache, key: &Key) -> ImportNamespace {
    match cache.namespace_object(&key.namespace) {
        None => ImportNamespace::Missing,
        Some(namespace) if namespace.is_terminating => ImportNamespace::Terminating,
        Some(_) if key.namespace.starts_with(EXCLUDED_PREFIX) => ImportNamespace::Excluded,
        Some(_) => ImportNamespace::Included,
    }
}

/// What must be confirmed before the deletions of one plan.
struct Absences<'a> {
    home: &'a ClusterInputs<'a>,
    sources: &'a Sources,
    reads_at_home: Vec<LiveRead>,
    /// Nothing waits for them: a cluster that does not answer delays no other write.
    reads_elsewhere: BTreeSet<LiveRead>,
}

impl Absences<'_> {
    /// Whether a deletion may be sent, as far as other clusters are concerned. A copy is deleted
    /// because of its own cluster, other objects because of all that are said to export.
    fn permit(
        &mut self,
        copy: Option<&EndpointSlice>,
        exporters: &[SharedStr],
        key: &Key,
        now: MonotonicTime,
    ) -> bool {
        let own = copy.map(|copy| copy.meta.labels.get(names::SOURCE_CLUSTER).cloned());
        let ids = own.map_or_else(|| exporters.to_vec(), |own| own.into_iter().collect());
        let mut is_permitted = true;
        for id in ids.iter().filter_map(|id| ClusterId::parse(id).ok()) {
            if id == self.home.id {
                // The watch has reported the deletion of a slice.
                self.reads_at_home.extend(self.home.missing(key, None));
                continue;
            }
            let Some(source) = self.sources.get(&id) else { continue };
            match source.state() {
                SourceState::InSync | SourceState::Lost { .. } | SourceState::Demoted { .. } => {}
                // Nothing of it is deleted, or there is nobody to ask.
                SourceState::Unknown | SourceState::Expired | SourceState::Removed => continue,
            }
            let inputs = ClusterInputs::of(&id, source.state(), source.cache(), key);
            let Some(read) = inputs.missing(key, copy) else { continue };
            if source.is_absent(&read, now) {
                continue;
            }
            is_permitted = false;
            self.reads_elsewhere.insert(LiveRead::Source(id, Box::new(read)));
        }
        is_permitted
    }
}
