//! Numbers of the last plan of each key, and their totals.

use std::collections::BTreeMap;

use endpointd_plan::{Counts, ExcludedPod, ExclusionReason};

/// The numbers of the last plan of one key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyStats {
    n_desired: u32,
    n_slices: u32,
    n_slices_desired: u32,
    distribution: Option<&'static str>,
    /// Selected pods that are not published, by reason.
    excluded_pods: Vec<(ExclusionReason, u32)>,
}

/// Totals of all keys. The maps hold no zeros.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TotalStats {
    pub n_desired: usize,
    pub n_slices: usize,
    pub n_slices_desired: usize,
    pub excluded_pods: BTreeMap<ExclusionReason, usize>,
    pub n_by_distribution: BTreeMap<Option<&'static str>, usize>,
}

impl KeyStats {
    pub fn new(
        counts: &Counts,
        excluded_pods: &[ExcludedPod],
        distribution: Option<&'static str>,
    ) -> Self {
        let mut by_reason: BTreeMap<ExclusionReason, u32> = BTreeMap::new();
        for one in excluded_pods {
            *by_reason.entry(one.reason).or_default() += 1;
        }
        Self {
            n_desired: counts.n_desired as u32,
            n_slices: counts.n_slices as u32,
            n_slices_desired: counts.n_slices_desired as u32,
            distribution,
            excluded_pods: by_reason.into_iter().collect(),
        }
    }

    pub fn excluded_pods(&self) -> BTreeMap<ExclusionReason, usize> {
        self.excluded_pods.iter().map(|(reason, n)| (*reason, *n as usize)).collect()
    }
}

impl TotalStats {
    pub fn add(&mut self, stats: &KeyStats) {
        let KeyStats { n_desired, n_slices, n_slices_desired, distribution, excluded_pods } = stats;
        self.n_desired += *n_desired as usize;
        self.n_slices += *n_slices as usize;
        self.n_slices_desired += *n_slices_desired as usize;
        *self.n_by_distribution.entry(*distribution).or_default() += 1;
        for (reason, n) in excluded_pods {
            *self.excluded_pods.entry(*reason).or_default() += *n as usize;
        }
    }

    /// Takes back what was added before.
    pub fn subtract(&mut self, stats: &KeyStats) {
        let KeyStats { n_desired, n_slices, n_slices_desired, distribution, excluded_pods } = stats;
        self.n_desired -= *n_desired as usize;
        self.n_slices -= *n_slices as usize;
        self.n_slices_desired -= *n_slices_desired as usize;
        decrease(&mut self.n_by_distribution, distribution, 1);
        for (reason, n) in excluded_pods {
            decrease(&mut self.excluded_pods, reason, *n as usize);
        }
    }
}

fn decrease<K: Ord>(from: &mut BTreeMap<K, usize>, key: &K, n: usize) {
    if let Some(left) = from.get_mut(key) {
        *left -= n;
        if *left == 0 {
            from.remove(key);
        }
    }
}

impl<'a> FromIterator<&'a KeyStats> for TotalStats {
    fn from_iter<I: IntoIterator<Item = &'a KeyStats>>(all: I) -> Self {
        let mut totals = Self::default();
        all.into_iter().for_each(|stats| totals.add(stats));
        totals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stats(n_desired: u32, distribution: Option<&'static str>, n_without_ip: u32) -> KeyStats {
        let excluded_pods = vec![(ExclusionReason::NoAddress, n_without_ip)];
        KeyStats { n_desired, distribution, excluded_pods, ..KeyStats::default() }
    }

    #[test]
    fn subtracting_what_was_added_gives_the_default() {
        let (first, second) = (stats(3, None, 2), stats(5, Some("PreferSameZone"), 1));
        let mut totals: TotalStats = [&first, &second].into_iter().collect();
        assert_eq!((totals.n_desired, totals.excluded_pods[&ExclusionReason::NoAddress]), (8, 3));
        totals.subtract(&second);
        assert_eq!(totals, [&first].into_iter().collect());
        totals.subtract(&first);
        assert_eq!(totals, TotalStats::default());
    }
}
