//! Removes what lost its owner or its namespace: what the garbage collector and the namespace
//! controller of kube-controller-manager do. Each sweep follows reasons, it never scans.

use serde_json::Value;

use super::Target;
use super::delete::{DeleteOptions, FOREGROUND, ORPHAN, Propagation};
use crate::defaults::remove;
use crate::kinds::{self, KINDS, Kind, NAMESPACES, Scope};
use crate::server::{Server, Sweep};
use crate::store::{Key, OwnerRef, Place, Stored};

/// What became of one owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    There,
    /// In the foreground: it waits for its dependents to go first.
    Waiting,
    Gone,
}

impl Server {
    /// Does all there is to do, and what follows from it.
    pub fn sweep(&mut self) {
        while let Some(reason) = self.to_sweep.pop_front() {
            match reason {
                Sweep::Dependents { uid } => self.sweep_dependents(&uid),
                Sweep::Owners(place) => self.sweep_without_owner(&place),
                Sweep::Owner(place) => self.sweep_owner(&place),
                Sweep::Namespace(name) => self.sweep_namespace(&name),
            }
        }
    }

    fn sweep_dependents(&mut self, uid: &str) {
        for place in self.store.dependents(uid) {
            self.sweep_without_owner(&place);
        }
        // An owner that waits in the foreground may be the one that can go now.
        if let Some(place) = self.foreground.get(uid).cloned() {
            self.sweep_owner(&place);
        }
    }

    /// Deletes an object none of whose owners are left. Upstream: `attemptToDeleteItem`.
    fn sweep_without_owner(&mut self, place: &Place) {
        let Some(stored) = self.store.get(place.shelf, &place.key).cloned() else { return };
        if stored.owners.is_empty() || stored.is_deleting {
            return;
        }
        let fates: Vec<Fate> =
            stored.owners.iter().map(|owner| self.fate(owner, &stored.key)).collect();
        if fates.contains(&Fate::There) {
            return;
        }
        let waits_for_us = fates.contains(&Fate::Waiting);
        let propagation = if waits_for_us && !self.store.dependents(&stored.uid).is_empty() {
            Propagation::Foreground
        } else {
            Propagation::Background
        };
        self.delete_quietly(place, propagation);
    }

    fn fate(&self, owner: &OwnerRef, dependent: &Key) -> Fate {
        let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
        let kind = KINDS.iter().find(|kind| kind.kind == owner.kind && kind.group == group);
        // Of kinds we do not have nobody knows; such owners live for ever.
        let Some(kind) = kind else { return Fate::There };
        let namespace = match kind.scope {
            Scope::Namespaced => dependent.namespace(),
            Scope::Cluster => "",
        };
        match self.store.get(kind.shelf, &Key::new(namespace, &owner.name)) {
            Some(found) if found.uid == owner.uid => {
                if found.is_deleting && has_finalizer(found, FOREGROUND) {
                    Fate::Waiting
                } else {
                    Fate::There
                }
            }
            _ => Fate::Gone,
        }
    }

    /// Does for an object that is being deleted what its finalizers ask of the collector.
    fn sweep_owner(&mut self, place: &Place) {
        let Some(stored) = self.store.get(place.shelf, &place.key).cloned() else { return };
        if !stored.is_deleting || !stored.has_finalizers {
            return;
        }
        if has_finalizer(&stored, ORPHAN) {
            for dependent in self.store.dependents(&stored.uid) {
                self.disown(&dependent, &stored.uid);
            }
            self.drop_finalizer(place, ORPHAN);
        } else if has_finalizer(&stored, FOREGROUND) {
            self.foreground.insert(stored.uid.clone(), place.clone());
            for dependent in self.store.dependents(&stored.uid) {
                self.sweep_without_owner(&dependent);
            }
            let blocks = |dependent: &Place| {
                let found = self.store.get(dependent.shelf, &dependent.key);
                let owners = found.into_iter().flat_map(|found| &found.owners);
                owners.into_iter().any(|owner| owner.uid == stored.uid && owner.blocks_deletion)
            };
            if !self.store.dependents(&stored.uid).iter().any(blocks) {
                self.foreground.remove(&stored.uid);
                self.drop_finalizer(place, FOREGROUND);
            }
        }
    }

    fn disown(&mut self, place: &Place, uid: &str) {
        let Some(stored) = self.store.get(place.shelf, &place.key) else { return };
        let mut object = stored.value();
        let meta = &mut object["metadata"];
        if let Some(owners) = meta["ownerReferences"].as_array_mut() {
            owners.retain(|owner| owner["uid"] != uid);
            if owners.is_empty() {
                remove(meta, "ownerReferences");
            }
        }
        self.rewrite(kinds::of_shelf(place.shelf), &place.key, object);
    }

    fn drop_finalizer(&mut self, place: &Place, finalizer: &str) {
        let Some(stored) = self.store.get(place.shelf, &place.key) else { return };
        let mut object = stored.value();
        let meta = &mut object["metadata"];
        if let Some(finalizers) = meta["finalizers"].as_array_mut() {
            finalizers.retain(|one| one != finalizer);
            if finalizers.is_empty() {
                remove(meta, "finalizers");
            }
        }
        let kind = kinds::of_shelf(place.shelf);
        let is_due = meta["deletionGracePeriodSeconds"].as_i64().unwrap_or(0) == 0;
        if meta["finalizers"].is_null() && is_due {
            self.remove(kind, &place.key);
        } else {
            self.rewrite(kind, &place.key, without_null(object));
        }
    }

    fn delete_quietly(&mut self, place: &Place, propagation: Propagation) {
        let kind = kinds::of_shelf(place.shelf);
        let target = Target::object(kind, place.key.namespace(), place.key.name());
        let options = DeleteOptions { propagation: Some(propagation), ..DeleteOptions::default() };
        // Only a missing object can refuse this, and then there is nothing to do.
        let _ = self.delete_one(&target, &options);
    }

    /// Empties a namespace that is being deleted, and ends it when it is empty.
    fn sweep_namespace(&mut self, name: &str) {
        let key = Key::new("", name);
        let is_deleting = self.store.get("namespaces", &key).is_some_and(|it| it.is_deleting);
        if !is_deleting {
            return;
        }
        // Pods go first, so that what guards them outlives them. Upstream: `OrderedNamespaceDeletion`.
        let (pods, others): (Vec<&'static Kind>, Vec<&'static Kind>) =
            kinds::stored_namespaced().partition(|kind| kind.shelf == "pods");
        if self.empties(name, &pods) && self.empties(name, &others) {
            self.finish_namespace(&key);
        }
    }

    /// Deletes all of these kinds in a namespace; whether nothing is left of them.
    fn empties(&mut self, namespace: &str, kinds: &[&'static Kind]) -> bool {
        let mut is_empty = true;
        for kind in kinds {
            for object in self.store.list(kind.shelf, Some(namespace)).objects {
                if !object.is_deleting {
                    let place = Place { shelf: kind.shelf, key: object.key.clone() };
                    self.delete_quietly(&place, Propagation::Background);
                }
                is_empty &= self.store.get(kind.shelf, &object.key).is_none();
            }
        }
        is_empty
    }

    fn finish_namespace(&mut self, key: &Key) {
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

/// Looking at a missing field of a `Value` mutably leaves a null behind.
fn without_null(mut object: Value) -> Value {
    if let Value::Object(meta) = &mut object["metadata"] {
        meta.retain(|_, value| !value.is_null());
    }
    object
}
