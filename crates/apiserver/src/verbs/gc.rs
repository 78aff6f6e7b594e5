//! Deletes objects whose owners or namespace are gone, as the garbage collector and the namespace
//! controller of kube-controller-manager do. Driven by a queue of tasks; it never scans the store.

use serde_json::Value;

use super::Target;
use super::delete::{DeleteOptions, FOREGROUND, ORPHAN, Propagation};
use crate::defaults::remove;
use crate::kinds::{self, KINDS, Kind, NAMESPACES, Scope};
use crate::server::{GcTask, Server};
use crate::store::{Key, ObjectRef, OwnerRef, Stored};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OwnerState {
    Exists,
    /// In foreground deletion: its dependents are deleted first.
    DeletingForeground,
    Absent,
}

impl Server {
    /// Runs until the queue is empty, including the tasks that its own deletions add.
    pub fn collect_garbage(&mut self) {
        while let Some(reason) = self.gc_queue.pop_front() {
            match reason {
                GcTask::Dependents { uid } => self.collect_dependents(&uid),
                GcTask::Owners(object_ref) => self.collect_if_unowned(&object_ref),
                GcTask::Owner(object_ref) => self.run_gc_finalizers(&object_ref),
                GcTask::Namespace(name) => self.empty_namespace(&name),
            }
        }
    }

    fn collect_dependents(&mut self, uid: &str) {
        for object_ref in self.store.dependents(uid) {
            self.collect_if_unowned(&object_ref);
        }
        // The owner may have waited for its last dependent.
        if let Some(object_ref) = self.foreground.get(uid).cloned() {
            self.run_gc_finalizers(&object_ref);
        }
    }

    /// Deletes an object if none of its owners exists. Upstream: `attemptToDeleteItem`.
    fn collect_if_unowned(&mut self, object_ref: &ObjectRef) {
        let Some(stored) = self.store.get(object_ref.storage, &object_ref.key).cloned() else {
            return;
        };
        if stored.owners.is_empty() || stored.is_deleting {
            return;
        }
        let states: Vec<OwnerState> =
            stored.owners.iter().map(|owner| self.owner_state(owner, &stored.key)).collect();
        if states.contains(&OwnerState::Exists) {
            return;
        }
        let is_awaited = states.contains(&OwnerState::DeletingForeground);
        let propagation = if is_awaited && !self.store.dependents(&stored.uid).is_empty() {
            Propagation::Foreground
        } else {
            Propagation::Background
        };
        self.delete_dependent(object_ref, propagation);
    }

    fn owner_state(&self, owner: &OwnerRef, dependent: &Key) -> OwnerState {
        let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
        let kind = KINDS.iter().find(|kind| kind.kind == owner.kind && kind.group == group);
        // Owners of a kind that this server does not have count as existing.
        let Some(kind) = kind else { return OwnerState::Exists };
        let namespace = match kind.scope {
            Scope::Namespaced => dependent.namespace(),
            Scope::Cluster => "",
        };
        match self.store.get(kind.storage, &Key::new(namespace, &owner.name)) {
            Some(found) if found.uid == owner.uid => {
                if found.is_deleting && has_finalizer(found, FOREGROUND) {
                    OwnerState::DeletingForeground
                } else {
                    OwnerState::Exists
                }
            }
            _ => OwnerState::Absent,
        }
    }

    /// Orphans or deletes the dependents of an object in deletion, as its finalizers say.
    fn run_gc_finalizers(&mut self, object_ref: &ObjectRef) {
        let Some(stored) = self.store.get(object_ref.storage, &object_ref.key).cloned() else {
            return;
        };
        if !stored.is_deleting || !stored.has_finalizers {
            return;
        }
        if has_finalizer(&stored, ORPHAN) {
            for dependent in self.store.dependents(&stored.uid) {
                self.remove_owner_reference(&dependent, &stored.uid);
            }
            self.remove_finalizer(object_ref, ORPHAN);
        } else if has_finalizer(&stored, FOREGROUND) {
            self.foreground.insert(stored.uid.clone(), object_ref.clone());
            for dependent in self.store.dependents(&stored.uid) {
                self.collect_if_unowned(&dependent);
            }
            let blocks = |dependent: &ObjectRef| {
                let found = self.store.get(dependent.storage, &dependent.key);
                let owners = found.into_iter().flat_map(|found| &found.owners);
                owners.into_iter().any(|owner| owner.uid == stored.uid && owner.blocks_deletion)
            };
            if !self.store.dependents(&stored.uid).iter().any(blocks) {
                self.foreground.remove(&stored.uid);
                self.remove_finalizer(object_ref, FOREGROUND);
            }
        }
    }

    fn remove_owner_reference(&mut self, object_ref: &ObjectRef, uid: &str) {
        let Some(stored) = self.store.get(object_ref.storage, &object_ref.key) else { return };
        let mut object = stored.value();
        let meta = &mut object["metadata"];
        if let Some(owners) = meta["ownerReferences"].as_array_mut() {
            owners.retain(|owner| owner["uid"] != uid);
            if owners.is_empty() {
                remove(meta, "ownerReferences");
            }
        }
        self.rewrite(kinds::of_storage(object_ref.storage), &object_ref.key, object);
    }

    fn remove_finalizer(&mut self, object_ref: &ObjectRef, finalizer: &str) {
        let Some(stored) = self.store.get(object_ref.storage, &object_ref.key) else { return };
        let mut object = stored.value();
        let meta = &mut object["metadata"];
        if let Some(finalizers) = meta["finalizers"].as_array_mut() {
            finalizers.retain(|one| one != finalizer);
            if finalizers.is_empty() {
                remove(meta, "finalizers");
            }
        }
        let kind = kinds::of_storage(object_ref.storage);
        let is_due = meta["deletionGracePeriodSeconds"].as_i64().unwrap_or(0) == 0;
        if meta["finalizers"].is_null() && is_due {
            self.remove(kind, &object_ref.key);
        } else {
            self.rewrite(kind, &object_ref.key, without_null(object));
        }
    }

    fn delete_dependent(&mut self, object_ref: &ObjectRef, propagation: Propagation) {
        let kind = kinds::of_storage(object_ref.storage);
        let target = Target::object(kind, object_ref.key.namespace(), object_ref.key.name());
        let options = DeleteOptions { propagation: Some(propagation), ..DeleteOptions::default() };
        // Fails only if the object does not exist any more.
        let _ = self.delete_one(&target, &options);
    }

    /// Deletes the objects of a terminating namespace, then the namespace.
    fn empty_namespace(&mut self, name: &str) {
        let key = Key::new("", name);
        let is_deleting = self.store.get("namespaces", &key).is_some_and(|it| it.is_deleting);
        if !is_deleting {
            return;
        }
        // Pods first, before the objects that protect them. Upstream: `OrderedNamespaceDeletion`.
        let (pods, others): (Vec<&'static Kind>, Vec<&'static Kind>) =
            kinds::stored_namespaced().partition(|kind| kind.storage == "pods");
        if self.delete_all(name, &pods) && self.delete_all(name, &others) {
            self.finalize_namespace(&key);
        }
    }

    /// Deletes all objects of these kinds in a namespace; true if none is left.
    fn delete_all(&mut self, namespace: &str, kinds: &[&'static Kind]) -> bool {
        let mut is_empty = true;
        for kind in kinds {
            for object in self.store.list(kind.storage, Some(namespace)).objects {
                if !object.is_deleting {
                    let object_ref = ObjectRef { storage: kind.storage, key: object.key.clone() };
                    self.delete_dependent(&object_ref, Propagation::Background);
                }
                is_empty &= self.store.get(kind.storage, &object.key).is_none();
            }
        }
        is_empty
    }

    fn finalize_namespace(&mut self, key: &Key) {
        let Some(stored) = self.store.get("namespaces", key) else { return };
        let mut object = stored.value();
        let finalizers = object["spec"]["finalizers"].as_array().cloned().unwrap_or_default();
        let others: Vec<Value> = finalizers.into_iter().filter(|one| one != "kubernetes").collect();
        if others.is_empty() && object["metadata"]["finalizers"].is_null() {
            self.remove(&NAMESPACES, key);
        } else if object["spec"]["finalizers"].as_array().map(Vec::len) != Some(others.len()) {
            object["spec"]["finalizers"] = Value::Array(others);
            self.rewrite(&NAMESPACES, key, object);
        }
    }
}

fn has_finalizer(stored: &Stored, finalizer: &str) -> bool {
    let finalizers = stored.value()["metadata"]["finalizers"].clone();
    finalizers.as_array().is_some_and(|all| all.iter().any(|one| one == finalizer))
}

/// Indexing a missing field of a mutable `Value` inserts a null.
fn without_null(mut object: Value) -> Value {
    if let Value::Object(meta) = &mut object["metadata"] {
        meta.retain(|_, value| !value.is_null());
    }
    object
}
