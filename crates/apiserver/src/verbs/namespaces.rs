//! A namespace is deleted in two steps: in the phase `Terminating` it accepts no new objects, and
//! it is removed when it is empty. Upstream: core/namespace/storage.

use std::sync::Arc;

use serde_json::{Value, json};

use super::delete::{check_preconditions, mark_as_deleting};
use super::{DeleteOptions, Deletion, ResponseObject};
use crate::kinds::NAMESPACES;
use crate::server::Server;
use crate::status_error::StatusError;
use crate::store::Stored;

/// Upstream: `immortalNamespaces` of the admission plugin `NamespaceLifecycle`.
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

impl Server {
    pub(super) fn delete_namespace(
        &mut self,
        stored: &Arc<Stored>,
        options: &DeleteOptions,
    ) -> Result<Deletion, StatusError> {
        let name = stored.key.name();
        if IMMORTAL.contains(&name) {
            return Err(StatusError::forbidden(
                &NAMESPACES,
                name,
                "this namespace may not be deleted",
            ));
        }
        check_preconditions(&NAMESPACES, stored, options)?;
        let old = stored.value();
        let mut new = old.clone();
        if !stored.is_deleting {
            mark_as_deleting(&mut new, self.clock_and_ids.now());
            if let Value::Object(meta) = &mut new["metadata"] {
                meta.remove("deletionGracePeriodSeconds");
            }
            new["status"]["phase"] = json!("Terminating");
        }
        if options.dry_run {
            return Ok(Deletion::Pending(ResponseObject::Value(new)));
        }
        if new["spec"]["finalizers"].is_null() && new["metadata"]["finalizers"].is_null() {
            let removed = self.remove(&NAMESPACES, &stored.key);
            let shown = removed.map_or(ResponseObject::Value(new), ResponseObject::Stored);
            return Ok(Deletion::Removed(shown));
        }
        if new == old {
            return Ok(Deletion::Pending(ResponseObject::Stored(stored.clone())));
        }
        let stored = self.put(&NAMESPACES, stored.key.clone(), new);
        Ok(Deletion::Pending(ResponseObject::Stored(stored)))
    }
}
