//! Live lists of the pods of a namespace.

use std::collections::BTreeSet;

use endpointd_model::{Key, PodUids, SharedStr, WatchedResource};

use super::Observed;
use crate::cache::ConfirmedPods;

impl Observed {
    /// Whether some of these pods, which are not cached, may be missing from the list of all pods.
    /// What cannot be decoded is not missing.
    pub fn has_unlisted(&self, namespace: &SharedStr, names: BTreeSet<SharedStr>) -> bool {
        !self.without_undecodable(namespace, names).is_empty()
    }

    /// The pods that published objects of the namespace name, and the cache does not hold, stay
    /// published until a live list shows that they are gone.
    pub fn expect_published_pods(&mut self, namespace: &SharedStr) {
        let names = self.cache.uncached_published_pods(namespace);
        let names = self.without_undecodable(namespace, names);
        self.cache.expect_pods(namespace, names);
    }

    fn without_undecodable(
        &self,
        namespace: &SharedStr,
        mut names: BTreeSet<SharedStr>,
    ) -> BTreeSet<SharedStr> {
        let watch = self.watch(WatchedResource::Pods);
        names.retain(|name| {
            let key = Key::new(namespace.clone(), name.clone());
            !watch.is_some_and(|watch| watch.may_be_undecodable(&key))
        });
        names
    }

    /// A live list of the pods of a namespace, sent after the last list of all pods was complete.
    pub fn apply_pods(&mut self, namespace: &SharedStr, pods: &PodUids) -> ConfirmedPods {
        let epoch = self.epoch_for_reads(WatchedResource::Pods);
        self.cache.apply_live_pods(namespace, pods, epoch)
    }
}
