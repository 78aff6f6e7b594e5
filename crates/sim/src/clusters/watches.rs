//! The watches of each cluster: connections, lists, and events, each with its own delay.

use std::time::Duration;

use endpointd_engine::{Input, SourceInput};
use endpointd_model::{ClusterId, ResourceVersion, WatchSignal, WatchedResource};

use super::site::{HOME, Site, Watch, WatchState, resources};
use super::{ClusterSet, Event};
use crate::clock::millis;

impl ClusterSet {
    pub(super) fn connect_in(&mut self, site: usize, wait: Duration) {
        let link = self.sites[site].link;
        self.schedule(wait, Event::Connect { site, link });
    }

    /// The link works: watches go on, or begin with lists.
    pub(super) fn connect(&mut self, site: usize, link: u32) {
        let now = self.now;
        let one = &mut self.sites[site];
        if one.link != link || self.engine.is_none() || one.is_connected {
            return;
        }
        if site != HOME && !one.is_reachable(now) {
            // The back-off of the client.
            let wait = millis(self.rng.between(800, 5000));
            return self.connect_in(site, wait);
        }
        one.is_connected = true;
        (one.heard, one.connected) = (now, now);
        let (identity, known) = (one.identity, one.known_identity.replace(one.identity));
        if known.is_some_and(|known| known != identity) {
            one.complete_since = None;
            one.watches.values_mut().for_each(|watch| *watch = Watch::default());
            self.tell(site, SourceInput::Replaced);
        }
        for resource in resources(site) {
            let (floor, watch) =
                (self.sites[site].api.floor(*resource), self.watch(site, *resource));
            watch.is_scheduled = false;
            if watch.state == WatchState::Live && watch.delivered >= floor {
                self.signal(site, *resource, WatchSignal::Reconnected);
            } else {
                watch.state = WatchState::Down;
                let most = if self.is_quiescent { 50 } else { 3000 };
                let wait = millis(self.rng_up_to(most));
                self.schedule(wait, Event::List { site, resource: *resource, link });
            }
        }
        self.note_currency(site);
        self.schedule_deliveries();
    }

    /// The link does not work: the client notices, one watch after the other.
    pub(super) fn disconnect(&mut self, site: usize) {
        let one = &mut self.sites[site];
        one.link += 1;
        one.is_connected = false;
        for watch in one.watches.values_mut() {
            if matches!(watch.state, WatchState::Listing(_)) {
                watch.state = WatchState::Down;
            }
        }
        for resource in resources(site) {
            self.signal(site, *resource, WatchSignal::Disconnected("cut off".into()));
        }
        let wait = millis(self.rng.between(800, 3000));
        self.connect_in(site, wait);
    }

    pub(super) fn begin_list(&mut self, site: usize, resource: WatchedResource, link: u32) {
        if !self.is_current(site, link) {
            return;
        }
        let revision = self.sites[site].api.revision();
        self.watch(site, resource).state = WatchState::Listing(revision);
        self.signal(site, resource, WatchSignal::InitStarted);
        let list = self.sites[site].api.list_at(resource, revision);
        for signal in list.into_iter().take(1) {
            self.signal(site, resource, signal);
        }
        let most = if self.is_quiescent { 20 } else { 2000 };
        let wait = millis(self.rng_up_to(most));
        self.schedule(wait, Event::FinishList { site, resource, link });
    }

    pub(super) fn finish_list(&mut self, site: usize, resource: WatchedResource, link: u32) {
        let WatchState::Listing(revision) = self.watch(site, resource).state else { return };
        if !self.is_current(site, link) {
            return;
        }
        let list = self.sites[site].api.list_at(resource, revision);
        for signal in list.into_iter().skip(1) {
            self.signal(site, resource, signal);
        }
        let delivered = revision;
        *self.watch(site, resource) =
            Watch { state: WatchState::Live, delivered, is_scheduled: false };
        self.note_currency(site);
        self.signal(site, resource, WatchSignal::InitDone(ResourceVersion::from(revision)));
        self.schedule_deliveries();
    }

    pub(super) fn deliver(&mut self, site: usize, resource: WatchedResource, link: u32) {
        if !self.is_current(site, link) {
            return;
        }
        let watch = self.watch(site, resource);
        watch.is_scheduled = false;
        let delivered = watch.delivered;
        let next = self.sites[site].api.next_signal(resource, delivered);
        let Some((revision, _, signal)) = next else { return };
        self.watch(site, resource).delivered = revision;
        self.signal(site, resource, signal);
        self.schedule_deliveries();
    }

    pub(super) fn schedule_deliveries(&mut self) {
        if self.engine.is_none() {
            return;
        }
        for site in 0..self.sites.len() {
            if !self.sites[site].is_connected {
                continue;
            }
            for resource in resources(site) {
                let Watch { state, delivered, is_scheduled } = *self.watch(site, *resource);
                let has_next = || self.sites[site].api.next_change(*resource, delivered).is_some();
                if state == WatchState::Live && !is_scheduled && has_next() {
                    self.watch(site, *resource).is_scheduled = true;
                    let (wait, link) = (self.latency(), self.sites[site].link);
                    self.schedule(wait, Event::Deliver { site, resource: *resource, link });
                }
            }
        }
    }

    /// The engine asks for lists. If versions went back, it has forgotten the cluster.
    pub(super) fn relist_source(&mut self, cluster: &ClusterId, resource: Option<WatchedResource>) {
        let Some(site) = (0..self.sites.len()).find(|site| Site::id(*site) == *cluster) else {
            return;
        };
        self.sites[site].restart_watches();
        if resource.is_none() {
            self.sites[site].complete_since = None;
        }
        let wait = millis(self.rng_up_to(1000));
        self.connect_in(site, wait);
    }

    fn is_current(&self, site: usize, link: u32) -> bool {
        self.engine.is_some() && self.sites[site].link == link && self.sites[site].is_connected
    }

    fn watch(&mut self, site: usize, resource: WatchedResource) -> &mut Watch {
        self.sites[site].watches.entry(resource).or_default()
    }

    /// All lists of the cluster are complete, and nothing is lost.
    fn note_currency(&mut self, site: usize) {
        let now = self.now;
        let one = &mut self.sites[site];
        if one.is_live() {
            one.complete_since.get_or_insert(now);
            one.current_until = Some(now);
        }
    }

    fn signal(&mut self, site: usize, resource: WatchedResource, signal: WatchSignal) {
        self.sites[site].heard = self.now;
        match site {
            HOME => self.handle(Input::Watch(resource, signal)),
            _ => self.tell(site, SourceInput::Watch(resource, signal)),
        }
    }

    pub(super) fn tell(&mut self, site: usize, input: SourceInput) {
        self.handle(Input::Source(Site::id(site), input));
    }
}
