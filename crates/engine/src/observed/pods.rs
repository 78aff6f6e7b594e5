//! Live lists of the pods of a namespace.

use endpointd_model::{PodUids, SharedStr, WatchedResource};

use super::Observed;
use crate::cache::ConfirmedPods;

impl Observed {
    /// A live list of the pods of a namespace, sent after the last list of all pods was complete.
    pub fn apply_pods(&mut self, namespace: &SharedStr, pods: &PodUids) -> ConfirmedPods {
        let epoch = self.epoch_for_reads(WatchedResource::Pods);
        self.cache.apply_live_pods(namespace, pods, epoch)
    }
}
