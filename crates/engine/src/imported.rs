//! What the plans of imports have found, for metrics: the endpoints of each cluster, and how many
//! imports have a conflict of each kind. Sums follow the plans one by one.

use std::collections::BTreeMap;

use endpointd_model::{ClusterId, Key};
use endpointd_plan::{ConflictKind, MultiClusterPlan};

#[derive(Debug, Default)]
pub struct Imported {
    by_key: BTreeMap<Key, ImportReport>,
    endpoints: BTreeMap<ClusterId, ImportedCounts>,
    conflicts: BTreeMap<ConflictKind, usize>,
}

/// What one plan has found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ImportReport {
    conflicts: Vec<ConflictKind>,
    endpoints: Vec<(ClusterId, ImportedCounts)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImportedCounts {
    pub n: usize,
    pub n_ready: usize,
}

impl ImportReport {
    pub fn of(plan: &MultiClusterPlan) -> Self {
        let published = plan.sources.iter().filter(|source| source.n_endpoints > 0);
        let counts = published.map(|source| {
            let counts = ImportedCounts { n: source.n_endpoints, n_ready: source.n_ready };
            (source.cluster.clone(), counts)
        });
        Self {
            conflicts: plan.conflicts.iter().map(|conflict| conflict.kind).collect(),
            endpoints: counts.collect(),
        }
    }
}

impl Imported {
    /// Replaces what the plan before has found.
    pub fn record(&mut self, key: &Key, report: ImportReport) {
        let before = match report == ImportReport::default() {
            true => self.by_key.remove(key),
            false => {
                self.add(&report);
                self.by_key.insert(key.clone(), report)
            }
        };
        if let Some(before) = before {
            self.subtract(&before);
        }
    }

    /// After leadership was lost another process plans.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    pub fn endpoints_of(&self, cluster: &ClusterId) -> ImportedCounts {
        self.endpoints.get(cluster).copied().unwrap_or_default()
    }

    /// Of every kind, those of which there are none included.
    pub fn conflicts(&self) -> Vec<(ConflictKind, usize)> {
        let n = |kind| self.conflicts.get(&kind).copied().unwrap_or_default();
        ConflictKind::ALL.into_iter().map(|kind| (kind, n(kind))).collect()
    }

    fn add(&mut self, report: &ImportReport) {
        for (cluster, ImportedCounts { n, n_ready }) in &report.endpoints {
            let sum = self.endpoints.entry(cluster.clone()).or_default();
            *sum = ImportedCounts { n: sum.n + n, n_ready: sum.n_ready + n_ready };
        }
        for kind in &report.conflicts {
            *self.conflicts.entry(*kind).or_default() += 1;
        }
    }

    fn subtract(&mut self, report: &ImportReport) {
        for (cluster, ImportedCounts { n, n_ready }) in &report.endpoints {
            let sum = self.endpoints.entry(cluster.clone()).or_default();
            *sum = ImportedCounts { n: sum.n - n, n_ready: sum.n_ready - n_ready };
            if sum.n == 0 {
                self.endpoints.remove(cluster);
            }
        }
        for kind in &report.conflicts {
            *self.conflicts.entry(*kind).or_default() -= 1;
        }
    }
}
