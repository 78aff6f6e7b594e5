//! Namespaces end in two steps: the phase `Terminating`, in which nothing new comes in, and the end,
//! when nothing is left. Upstream: core/namespace/storage.

use std::sync::Arc;

use serde_json::{Value, json};

use super::delete::{check_preconditions, mark_as_deleting};
use super::{DeleteOptions, Deletion, Shown};
use crate::kinds::NAMESPACES;
use crate::refusal::Refusal;
use crate::server::Server;
use crate::store::Stored;

/// Upstream: `immortalNamespaces` of the admission plugin `NamespaceLifecycle`.
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

impl Server {
    pub(super) fn delete_namespace(
        &mut self,
        stored: &Arc<Stored>,
        options: &DeleteOptions,
    ) -> Result<Deletion, Refusal> {
        let name = stored.key.name();
        if IMMORTAL.contains(&name) {
            return Err(Refusal::forbidden(&NAMESPACES, name, "this namespace may not be deleted"));
        }
        check_preconditions(&NAMESPACES, stored, options)?;
        let old = stored.value();
        let mut new = old.clone();
        if !stored.is_deleting {
            mark_as_deleting(&mut new, self.stamps.now());
            if let Value::Object(meta) = &mut new["metadata"] {
                meta.remove("deletionGracePeriodSeconds");
            }
            new["status"]["phase"] = json!("Terminating");
        }
        if options.dry_run {
            return Ok(Deletion::Pending(Shown::Value(new)));
        }
        if new["spec"]["finalizers"].is_null() && new["metadata"]["finalizers"].is_null() {
            let removed = self.remove(&NAMESPACES, &stored.key);
            let shown = removed.map_or(Shown::Value(new), Shown::Stored);
            return Ok(Deletion::Removed(shown));
        }
        if new == old {
            return Ok(Deletion::Pending(Shown::Stored(stored.clone())));
        }
        let stored = self.put(&NAMESPACES, stored.key.clone(), new);
        Ok(Deletion::Pending(Shown::Stored(stored)))
    }
}
