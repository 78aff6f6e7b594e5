//! What happens to clusters and to the links to them.

use std::time::Duration;

use endpointd_engine::{KubeconfigFile, SourceInput, SourceState, Zones};

use super::ClusterSet;
use super::site::{HOME, Site, empty_api, limits, resources};
use crate::clock::{millis, monotonic, secs};
use crate::script::ClusterAction;

/// A cluster whose watches are silent is asked so often.
const SILENCE_MAX: Duration = Duration::from_secs(10);
const LOOK_INTERVAL: Duration = Duration::from_secs(5);
const LEASE_RENEWAL: Duration = Duration::from_secs(60);

impl ClusterSet {
    pub(super) fn act(&mut self, site: usize, action: ClusterAction) {
        let is_other = site != HOME;
        match action {
            ClusterAction::Cut(time) if is_other => {
                self.coverage.count_fault("cluster cut off");
                self.cut(site, time);
            }
            ClusterAction::CutAndCompact(time) if is_other => {
                self.coverage.count_fault("cluster cut off");
                self.cut(site, time);
                for resource in resources(site) {
                    self.sites[site].api.compact(*resource);
                }
            }
            ClusterAction::Deny(time) if is_other => {
                self.coverage.count_fault("credentials expired");
                self.sites[site].denied_until = self.now + time;
                self.tell(site, SourceInput::Denied);
                self.disconnect(site);
            }
            ClusterAction::BackUp => self.sites[site].backup = Some(self.sites[site].api.clone()),
            ClusterAction::Restore if is_other => self.restore(site),
            ClusterAction::Replace(shape) if is_other => self.replace(site, shape),
            ClusterAction::RemoveKubeconfig if is_other => {
                self.coverage.count_fault("kubeconfig removed");
                self.sites[site].has_kubeconfig = false;
            }
            ClusterAction::ReturnKubeconfig if is_other => {
                self.sites[site].has_kubeconfig = true;
            }
            ClusterAction::ClockJump(secs) => {
                self.coverage.count_fault("clock jump");
                self.sites[site].api.skew_secs = secs;
            }
            ClusterAction::Cut(_)
            | ClusterAction::CutAndCompact(_)
            | ClusterAction::Deny(_)
            | ClusterAction::Restore
            | ClusterAction::Replace(_)
            | ClusterAction::RemoveKubeconfig
            | ClusterAction::ReturnKubeconfig => {}
            ClusterAction::Service(..)
            | ClusterAction::RemoveService(_)
            | ClusterAction::Export(..)
            | ClusterAction::Unexport(_)
            | ClusterAction::Slice(..)
            | ClusterAction::RemoveSlice(..)
            | ClusterAction::Edit(..) => self.change_objects(site, action),
        }
    }

    pub(super) fn cut(&mut self, site: usize, time: Duration) {
        let until = self.now + time;
        self.sites[site].cut_until = until.max(self.sites[site].cut_until);
        self.disconnect(site);
    }

    /// Only while it is watched: otherwise versions are compared with those of another history.
    fn restore(&mut self, site: usize) {
        let now = self.now;
        let one = &mut self.sites[site];
        if !one.is_live() || one.backup.is_none() {
            return;
        }
        let Some(backup) = one.backup.take() else { return };
        one.former.push(std::mem::replace(&mut one.api, backup));
        one.api.now = now;
        for resource in resources(site) {
            // No watch can go on.
            one.api.compact(*resource);
        }
        one.restart_watches();
        self.coverage.count_fault("cluster restored from backup");
        self.note_changes();
        for resource in resources(site) {
            let reason = "restored".into();
            let signal = endpointd_model::WatchSignal::Disconnected(reason);
            self.tell(site, SourceInput::Watch(*resource, signal));
        }
        self.connect_in(site, millis(20));
    }

    fn replace(&mut self, site: usize, shape: u32) {
        let now = self.now;
        let one = &mut self.sites[site];
        one.identity += 1;
        let skew_secs = one.api.skew_secs;
        one.former.push(std::mem::replace(&mut one.api, empty_api()));
        (one.api.now, one.api.skew_secs) = (now, skew_secs);
        one.backup = None;
        self.coverage.count_fault("cluster replaced");
        self.disconnect(site);
        self.sites[site].watches.values_mut().for_each(|watch| *watch = Default::default());
        self.populate(site, shape);
        self.note_changes();
    }

    /// As the tasks of the runtime: answers of silent clusters, kubeconfigs, and Leases.
    pub(super) fn look_at_clusters(&mut self) {
        for site in 1..self.sites.len() {
            let (now, one) = (self.now, &mut self.sites[site]);
            let is_silent = now.since(one.heard) >= SILENCE_MAX;
            if one.is_live() && is_silent {
                (one.heard, one.current_until) = (now, Some(now));
                self.tell(site, SourceInput::Answered);
            } else if now < one.denied_until && now >= one.cut_until && is_silent {
                one.heard = now;
                self.tell(site, SourceInput::Denied);
            }
            self.look_for_kubeconfig(site);
            self.renew_lease(site);
        }
    }

    fn look_for_kubeconfig(&mut self, site: usize) {
        let now = self.now;
        if !now.since(self.started).as_secs().is_multiple_of(LOOK_INTERVAL.as_secs()) {
            return;
        }
        let missing = self.sites[site].kubeconfig_missing;
        if self.sites[site].has_kubeconfig {
            if missing.is_some() {
                self.sites[site].kubeconfig_missing = None;
                self.configure(site);
                self.sites[site].restart_watches();
                self.connect_in(site, millis(100));
            }
            return;
        }
        let (since, n_looks) = missing.map_or((now, 1), |(since, n)| (since, n + 1));
        self.sites[site].kubeconfig_missing = Some((since, n_looks));
        let since = since.timestamp(self.skew_secs);
        self.tell(site, SourceInput::Kubeconfig(KubeconfigFile::Missing { since, n_looks }));
        if n_looks == 3 {
            self.sites[site].forget();
        }
    }

    pub(super) fn configure(&mut self, site: usize) {
        let (limits, zones, last_contact) = (limits(), Zones::Keep, self.sites[site].lease);
        self.tell(site, SourceInput::Configured { limits, zones, last_contact });
    }

    fn renew_lease(&mut self, site: usize) {
        let now = self.now;
        if now.since(self.sites[site].lease_renewed) < LEASE_RENEWAL {
            return;
        }
        let Some(engine) = &self.engine else { return };
        let id = Site::id(site);
        let statuses = engine.source_statuses(monotonic(now));
        let status = statuses.into_iter().find(|status| status.cluster == id);
        if let Some(status) = status.filter(|status| status.state == SourceState::InSync) {
            self.sites[site].lease = status.last_contact;
            self.sites[site].lease_renewed = now;
        }
    }

    /// All links work, and the process runs.
    pub(super) fn end_faults(&mut self) {
        self.is_quiescent = true;
        for site in &mut self.sites {
            (site.cut_until, site.denied_until) = (self.now, self.now);
            site.has_kubeconfig = true;
        }
        if self.engine.is_none() {
            self.start();
        }
        self.advance(secs(1));
    }
}
