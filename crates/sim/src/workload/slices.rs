//! Writes to slices by users and other controllers.

use endpointd_model::{
    Endpoint, EndpointSlice, Key, Labels, Meta, Object, PublishedResource, SharedStr, names,
};

use super::{SERVICES, ShapeSeed, namespace, pick};
use crate::script::SliceAction;
use endpointd_memory_api::MemoryApi;

/// The managed-by value of another controller.
pub const FOREIGN_MANAGER: &str = "other.example.com";
const FINALIZER: &str = "example.com/hold";

pub fn apply(api: &mut MemoryApi, index: u32, what: SliceAction) {
    match what {
        SliceAction::AddForeign(shape) => return add(api, &mut ShapeSeed(shape), FOREIGN_MANAGER),
        SliceAction::AddMislabelled(shape) => {
            return add(api, &mut ShapeSeed(shape), names::MANAGED_BY_SLICES);
        }
        SliceAction::Delete
        | SliceAction::DropEndpoint
        | SliceAction::ChangeAddress
        | SliceAction::DropHints
        | SliceAction::Relabel
        | SliceAction::DropOwners
        | SliceAction::ChangeManager
        | SliceAction::SetFinalizer
        | SliceAction::DropFinalizer => {}
    }
    let Some(key) = pick(&api.slices.keys(), index).cloned() else { return };
    if what == SliceAction::Delete {
        api.remove(PublishedResource::Slices, &key);
        return;
    }
    let Some(old) = api.slices.get(&key).map(|one| EndpointSlice::clone(one)) else { return };
    let mut new = old.clone();
    change(&mut new, what);
    if new.meta.is_deleting() && new.meta.finalizers.is_empty() {
        drop_finalizers(api, &key);
    } else if new != old {
        api.force(Object::Slice(new));
    }
}

/// Adds a label to a slice, unless it has it.
pub fn relabel(api: &mut MemoryApi, key: &Key) {
    let Some(old) = api.slices.get(key).map(|one| EndpointSlice::clone(one)) else { return };
    let mut new = old.clone();
    change(&mut new, SliceAction::Relabel);
    if new != old {
        api.force(Object::Slice(new));
    }
}

/// Drops the last finalizer of a slice that is being deleted.
fn drop_finalizers(api: &mut MemoryApi, key: &Key) {
    if let Some(slice) = api.slices.get(key) {
        let mut slice = EndpointSlice::clone(slice);
        slice.meta.finalizers.clear();
        api.write(&endpointd_model::Write::Update(Object::Slice(slice)));
    }
}

fn change(slice: &mut EndpointSlice, what: SliceAction) {
    let meta = &mut slice.meta;
    match what {
        SliceAction::DropEndpoint => drop(slice.endpoints.pop()),
        SliceAction::ChangeAddress => {
            if let Some(endpoint) = slice.endpoints.first_mut() {
                endpoint.conditions.ready = Some(endpoint.conditions.ready != Some(true));
                endpoint.zone = Some("nowhere".into());
            }
        }
        SliceAction::DropHints => {
            slice.endpoints.iter_mut().for_each(|endpoint| endpoint.hints = None)
        }
        SliceAction::Relabel => meta.labels = meta.labels.with("team", Some("strangers")),
        SliceAction::DropOwners => meta.owners.clear(),
        SliceAction::ChangeManager => {
            meta.labels = meta.labels.with(names::MANAGED_BY, Some(FOREIGN_MANAGER));
        }
        SliceAction::SetFinalizer if !meta.is_deleting() => {
            meta.finalizers = vec![FINALIZER.into()]
        }
        SliceAction::DropFinalizer => meta.finalizers.clear(),
        SliceAction::SetFinalizer
        | SliceAction::Delete
        | SliceAction::AddForeign(_)
        | SliceAction::AddMislabelled(_) => {}
    }
}

fn add(api: &mut MemoryApi, shape: &mut ShapeSeed, manager: &str) {
    let namespace: SharedStr = namespace(shape.pick(2) as u8);
    let service = shape.one_of(&SERVICES);
    let name = format!("{service}-by-hand-{}", shape.pick(3));
    let key = Key::new(namespace.clone(), name.as_str());
    if !api.is_active(&namespace) || api.slices.contains(&key) {
        return;
    }
    let labels: Labels =
        [(names::SERVICE_NAME, service), (names::MANAGED_BY, manager)].into_iter().collect();
    let meta = Meta { namespace, name: name.into(), labels, ..Meta::default() };
    let endpoint = Endpoint { addresses: vec!["192.0.2.7".into()], ..Endpoint::default() };
    let slice = EndpointSlice { meta, endpoints: vec![endpoint], ..EndpointSlice::default() };
    api.force(Object::Slice(slice));
}
