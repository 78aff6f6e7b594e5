//! Checks that a watch still continues the history that it has reported. After etcd was restored from
//! a backup, versions are lower than before, and a watch receives nothing until they have passed its
//! position; then it has missed events. One small list shows both.

use std::time::Duration;

use endpointd_model::{Key, ObjectEvent, ResourceVersion};
use endpointd_wire::{Page, decode_list};

use super::watched::Watched;
use super::{ERROR_BYTES_MAX, WatchEnd, Watcher};
use crate::request::ApiRequest;

const CHECK_TIMEOUT: Duration = Duration::from_secs(5);

/// The newest event of a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NewestEvent {
    key: Key,
    version: ResourceVersion,
    is_deleted: bool,
    /// The last check found a change of this object that the watch has not reported.
    is_behind: bool,
}

/// What a check shows.
enum Continuity {
    /// Or unknown: the check itself failed.
    Continues,
    /// There is a change that the watch has not reported; it may be on its way.
    Behind,
    RolledBack {
        evidence: String,
    },
}

impl Watcher {
    pub(super) fn note_newest<T: Watched>(&mut self, event: &ObjectEvent<T>) {
        let (object, is_deleted) = match event {
            ObjectEvent::Applied(object) => (object, false),
            ObjectEvent::Deleted(object) => (object, true),
        };
        let version = object.version();
        if self.newest.as_ref().is_none_or(|newest| newest.version < version) {
            let key = object.key();
            self.newest = Some(NewestEvent { key, version, is_deleted, is_behind: false });
        }
    }

    /// Returns how the watch must end, if it does not continue.
    pub(super) async fn check_continuity<T: Watched>(&mut self) -> Option<WatchEnd> {
        let position = self.position?;
        let evidence = match self.compare_with_server::<T>(position).await {
            Continuity::Continues => return None,
            Continuity::Behind => {
                let newest = self.newest.as_mut()?;
                let was_behind = std::mem::replace(&mut newest.is_behind, true);
                let reason = || format!("the watch has not reported a change of {}", newest.key);
                return was_behind.then(|| WatchEnd::Expired { reason: reason() });
            }
            Continuity::RolledBack { evidence } => evidence,
        };
        self.client.report_rollback(&evidence);
        self.newest = None;
        Some(WatchEnd::Expired { reason: evidence })
    }

    /// A consistent list of the newest object alone: its version is that of the whole resource.
    async fn compare_with_server<T: Watched>(&self, position: ResourceVersion) -> Continuity {
        let newest = self.newest.as_ref();
        let request = ApiRequest::of_check(self.location, newest.map(|newest| &newest.key));
        let request = self.client.with_accept(request.in_scope(T::RESOURCE, &self.client.scope));
        let read = self.client.transport.request(&request, CHECK_TIMEOUT, ERROR_BYTES_MAX).await;
        let Ok(response) = read else { return Continuity::Continues };
        let decoded = response.encoding.filter(|_| response.code == 200);
        let decoded = decoded.and_then(|encoding| decode_list(encoding, &response.body).ok());
        let Some(page): Option<Page<T>> = decoded else { return Continuity::Continues };
        let resource = T::RESOURCE.as_str();
        if page.resource_version < position {
            let found = page.resource_version;
            let evidence = format!("{resource} are at {found}, and were at {position}");
            return Continuity::RolledBack { evidence };
        }
        match (newest, page.items.first()) {
            (Some(newest), Some(found)) if found.version() < newest.version => {
                let (key, known) = (&newest.key, newest.version);
                let evidence =
                    format!("{resource} {key} is at {}, and was at {known}", found.version());
                Continuity::RolledBack { evidence }
            }
            (Some(newest), Some(found)) if found.version() > newest.version => Continuity::Behind,
            (Some(newest), None) if !newest.is_deleted && page.malformed.is_empty() => {
                Continuity::Behind
            }
            _ => Continuity::Continues,
        }
    }
}
