//! What follows from changes of the cache: keys to sync, and state that they make void.

use super::Engine;
use crate::MonotonicTime;
use crate::cache::{Changes, ObjectChange};

impl Engine {
    pub(super) fn apply_changes(&mut self, changes: Changes, now: MonotonicTime) {
        let Changes { mut dirty, objects } = changes;
        for change in &objects {
            self.syncs.requests_mut().on_change(change, &mut dirty);
            self.controllers.on_change(change, now);
        }
        self.controllers.enqueue(dirty, now);
        for change in &objects {
            self.controllers.record_deletion(change, self.observed.cache());
            if let Some(key) = change.removed_endpoints() {
                self.on_endpoints_gone(key);
            }
            if let ObjectChange::EndpointsDeleted(key, _) = change {
                self.drop_key_if_gone(key, now);
            }
            if let ObjectChange::Published { resource, key, .. } = change {
                self.note_edit(*resource, key, now);
            }
            if let ObjectChange::NamespaceChanged(namespace) = change {
                self.enqueue_namespace(namespace, now);
            }
        }
    }
}
