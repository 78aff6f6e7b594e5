//! Safety rules about other clusters, checked when a write leaves the process.

use std::time::Duration;

use endpointd_model::{
    EndpointSlice, Key, MultiClusterResource, Object, PublishedResource, Write, names,
};

use super::site::{HOME, Site};
use super::{ClusterSet, oracle};
use crate::clock::{Time, secs};
use crate::coverage::Rule;

/// What a plan reads may be so old when its writes leave the process: requests of the same sync come
/// before.
const PLAN_AGE_MAX: Duration = Duration::from_secs(5);
/// What has been so for this time, every plan has seen.
const SETTLED: Duration = Duration::from_secs(30);

impl ClusterSet {
    pub(super) fn check_write(&mut self, write: &Write) {
        let known = self.sites[HOME].api.object(write.resource(), &write.key());
        let before = known.as_ref().and_then(slice_of);
        let after = write.object().and_then(slice_of);
        if let Some(slice) = after {
            self.check_addresses(slice);
        }
        for slice in before.into_iter().chain(after) {
            self.check_unknown(write, slice);
        }
        if let (Write::Delete(_), Some(copy)) = (write, before) {
            self.check_loss(copy);
        }
        let is_import =
            write.resource() == PublishedResource::MultiCluster(MultiClusterResource::Imports);
        if is_import && matches!(write, Write::Delete(_)) {
            self.check_import_loss(&write.key());
        }
    }

    /// Nothing of a cluster is written, changed, or deleted before its lists are complete.
    fn check_unknown(&mut self, write: &Write, slice: &EndpointSlice) {
        let Some(site) = self.site_of(slice).filter(|site| *site != HOME) else { return };
        let (now, one) = (self.now, &self.sites[site]);
        let since = one.complete_since;
        let is_gone = one.kubeconfig_missing.is_some() || self.may_be_expired(site);
        let may_be_recent = now.since(self.started) < PLAN_AGE_MAX && self.incarnation == 1;
        if is_gone || may_be_recent {
            return;
        }
        self.coverage.count_rule(Rule::UnknownStays);
        if since.is_none() && now.since(self.lists_lost(site)) >= PLAN_AGE_MAX {
            let text = format!("{} {} of {}", write.verb(), write.key(), Site::id(site));
            self.violate(Rule::UnknownStays, || text);
        }
    }

    /// When the process began to know nothing of the cluster.
    fn lists_lost(&self, site: usize) -> Time {
        self.sites[site].current_until.unwrap_or(Time::START).max(self.started)
    }

    /// Each slice has the endpoints of one cluster, and no address and condition that this cluster did
    /// not have in some version. Demoted endpoints are not ready.
    fn check_addresses(&mut self, slice: &EndpointSlice) {
        let Some(site) = self.site_of(slice) else {
            let text = format!("{} names no cluster", slice.meta.key());
            return self.violate(Rule::OneClusterPerSlice, || text);
        };
        self.coverage.count_rule(Rule::OneClusterPerSlice);
        self.coverage.count_rule(Rule::NoWrongAddress);
        for endpoint in &slice.endpoints {
            let is_of = |ip: &str| {
                ip.starts_with(&format!("10.{site}."))
                    || ip.starts_with(&format!("fd00:{}:", site + 1))
            };
            if !endpoint.addresses.iter().all(|ip| is_of(ip)) {
                let text = format!("{:?} in a slice of {}", endpoint.addresses, Site::id(site));
                return self.violate(Rule::OneClusterPerSlice, || text);
            }
            let is_demoted = endpoint.conditions.ready == Some(false);
            let is_like = |one: &EndpointSlice| {
                one.endpoints.iter().any(|one| {
                    one.addresses == endpoint.addresses
                        && one.zone == endpoint.zone
                        && one.conditions.serving == endpoint.conditions.serving
                        && one.conditions.terminating == endpoint.conditions.terminating
                        && (one.conditions.ready == endpoint.conditions.ready || is_demoted)
                })
            };
            if !self.sites[site].apis().any(|api| api.slices.ever(is_like)) {
                let text = format!("{:?} was never like this in {}", endpoint, Site::id(site));
                return self.violate(Rule::NoWrongAddress, || text);
            }
            if is_demoted {
                self.check_demotion(site, slice, endpoint);
            }
        }
    }

    /// An endpoint that its cluster calls ready is not ready here only if that cluster is lost for long.
    fn check_demotion(
        &mut self,
        site: usize,
        slice: &EndpointSlice,
        endpoint: &endpointd_model::Endpoint,
    ) {
        let is_like = |one: &EndpointSlice| {
            let mut endpoints = one.endpoints.iter();
            endpoints.any(|one| {
                one.addresses == endpoint.addresses && one.conditions.ready == Some(false)
            })
        };
        let was_unready = self.sites[site].apis().any(|api| api.slices.ever(is_like));
        let age = self.now.since(self.sites[site].current_until.unwrap_or(self.now));
        if !was_unready && age + SETTLED < secs(super::site::limits().demote_after as u64) {
            let text = format!("{} is demoted after {age:?}", slice.meta.key());
            self.violate(Rule::NoLoss, || text);
        }
    }

    /// A copy that is wanted now, and has been since long.
    fn check_loss(&mut self, copy: &EndpointSlice) {
        let Some(name) = copy.meta.labels.get(names::IMPORT_NAME) else { return };
        let key = Key::new(copy.meta.namespace.clone(), name.clone());
        let Some(site) = self.site_of(copy) else { return };
        if !self.is_settled(&key) {
            return;
        }
        self.coverage.count_rule(Rule::NoLoss);
        let id = Site::id(site);
        let merged = oracle::merged(&self.sites, &key);
        let wanted = merged.map(|merged| merged.copies(&self.sites, &key)).unwrap_or_default();
        let n_wanted = wanted.iter().filter(|copy| copy.starts_with(&format!("{id} "))).count();
        let is_copy = |one: &EndpointSlice| {
            one.meta.labels.has(names::SOURCE_CLUSTER, id.as_str())
                && one.meta.labels.has(names::IMPORT_NAME, name)
        };
        let n_stored = self.sites[HOME].api.slices.values().filter(|one| is_copy(one)).count();
        if n_stored <= n_wanted {
            self.violate(Rule::NoLoss, || format!("a copy of {id} for {key} is deleted"));
        }
    }

    fn check_import_loss(&mut self, key: &Key) {
        if !self.is_settled(key) {
            return;
        }
        self.coverage.count_rule(Rule::NoLoss);
        if oracle::merged(&self.sites, key).is_some() {
            self.violate(Rule::NoLoss, || format!("the import of {key} is deleted"));
        }
    }

    /// No cluster has changed for long, and all are known.
    fn is_settled(&self, key: &Key) -> bool {
        let changed = self.changed.get(key).copied().unwrap_or_default();
        let is_known = |site: &Site| {
            site.complete_since.is_some_and(|since| self.now.since(since) >= SETTLED)
                && self.now.since(site.connected) >= SETTLED
                && site.has_kubeconfig
                && site.kubeconfig_missing.is_none()
                && !self.may_be_expired(site.number)
                && site.current_until.is_some_and(|until| changed + SETTLED < until)
        };
        self.now.since(changed) >= SETTLED && self.sites[1..].iter().all(is_known)
    }

    /// Lost for nearly as long as the limit, by any clock that the process had.
    fn may_be_expired(&self, site: usize) -> bool {
        let limit = super::site::limits().expire_after.unwrap_or(i64::MAX).unsigned_abs();
        let until = self.sites[site].current_until.unwrap_or(Time::START);
        self.now.since(until) + SETTLED >= secs(limit)
    }

    fn site_of(&self, slice: &EndpointSlice) -> Option<usize> {
        let label = slice.meta.labels.get(names::SOURCE_CLUSTER)?;
        (0..self.sites.len()).find(|site| Site::id(*site).as_str() == &**label)
    }
}

fn slice_of(object: &Object) -> Option<&EndpointSlice> {
    match object {
        Object::Slice(slice) => Some(slice),
        Object::Endpoints(_) | Object::ServiceStatus(_) | Object::MultiCluster(_) => None,
    }
}
