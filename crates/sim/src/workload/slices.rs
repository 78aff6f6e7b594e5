//! Other writers of slices: people, other controllers, impostors.

use endpointd_model::{
    Endpoint, EndpointSlice, Key, Labels, Meta, Object, PublishedResource, SharedStr, names,
};

use super::{SERVICES, Variety, namespace, pick};
use crate::api::Api;
use crate::script::SliceAct;

/// A controller that is not ours.
pub const FOREIGN_MANAGER: &str = "other.example.com";
const FINALIZER: &str = "example.com/hold";

pub fn perform(api: &mut Api, index: u32, what: SliceAct) {
    match what {
        SliceAct::AddForeign(variety) => return add(api, &mut Variety(variety), FOREIGN_MANAGER),
        SliceAct::AddImpostor(variety) => {
            return add(api, &mut Variety(variety), names::MANAGED_BY_SLICES);
        }
        SliceAct::Delete
        | SliceAct::DropEndpoint
        | SliceAct::Readdress
        | SliceAct::Unhint
        | SliceAct::Relabel
        | SliceAct::Disown
        | SliceAct::GiveAway
        | SliceAct::SetFinalizer
        | SliceAct::DropFinalizer => {}
    }
    let Some(key) = pick(&api.slices.keys(), index).cloned() else { return };
    if what == SliceAct::Delete {
        api.remove(PublishedResource::Slices, &key);
        return;
    }
    let Some(old) = api.slices.get(&key).map(|one| EndpointSlice::clone(one)) else { return };
    let mut new = old.clone();
    change(&mut new, what);
    if new.meta.is_deleting() && new.meta.finalizers.is_empty() {
        let_go(api, &key);
    } else if new != old {
        api.force(Object::Slice(new));
    }
}

/// The last finalizer of a slice that is being deleted is dropped.
fn let_go(api: &mut Api, key: &Key) {
    if let Some(slice) = api.slices.get(key) {
        let mut slice = EndpointSlice::clone(slice);
        slice.meta.finalizers.clear();
        api.write(&endpointd_model::Write::Update(Object::Slice(slice)));
    }
}

fn change(slice: &mut EndpointSlice, what: SliceAct) {
    let meta = &mut slice.meta;
    match what {
        SliceAct::DropEndpoint => drop(slice.endpoints.pop()),
        SliceAct::Readdress => {
            if let Some(endpoint) = slice.endpoints.first_mut() {
                endpoint.conditions.ready = Some(endpoint.conditions.ready != Some(true));
                endpoint.zone = Some("nowhere".into());
            }
        }
        SliceAct::Unhint => slice.endpoints.iter_mut().for_each(|endpoint| endpoint.hints = None),
        SliceAct::Relabel => meta.labels = meta.labels.with("team", Some("strangers")),
        SliceAct::Disown => meta.owners.clear(),
        SliceAct::GiveAway => {
            meta.labels = meta.labels.with(names::MANAGED_BY, Some(FOREIGN_MANAGER));
        }
        SliceAct::SetFinalizer if !meta.is_deleting() => meta.finalizers = vec![FINALIZER.into()],
        SliceAct::DropFinalizer => meta.finalizers.clear(),
        SliceAct::SetFinalizer
        | SliceAct::Delete
        | SliceAct::AddForeign(_)
        | SliceAct::AddImpostor(_) => {}
    }
}

fn add(api: &mut Api, variety: &mut Variety, manager: &str) {
    let namespace: SharedStr = namespace(variety.pick(2) as u8);
    let service = variety.one_of(&SERVICES);
    let name = format!("{service}-by-hand-{}", variety.pick(3));
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
