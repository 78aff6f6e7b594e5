//! Slices and Endpoints as protobuf, straight from the model. What is not metadata is written
//! byte for byte as the API server writes it, so that its answer can be compared with what was sent.
//!
//! The last field of each message comes first: see [`Backwards`].

use endpointd_model::{
    Conditions, Endpoint, EndpointAddress, EndpointPort, EndpointSlice, Endpoints, Hints, Labels,
    Meta, Object, ObjectRef, OwnerRef, SharedStr, Subset, SubsetPort, Uid,
};

use super::backwards::Backwards;
use crate::decode::Decoded;
use crate::envelope::MAGIC;
use crate::time::Time;

/// What an endpoint or an address takes, and what an object takes besides.
const ROW_BYTES: usize = 224;
const OTHER_BYTES: usize = 768;

/// The body of a create or an update, envelope included.
pub(super) fn body(object: &Object) -> Vec<u8> {
    match object {
        Object::Slice(one) => enveloped::<EndpointSlice>(one.endpoints.len(), |to| slice(to, one)),
        Object::Endpoints(one) => {
            let rows =
                one.subsets.iter().map(|one| one.addresses.len() + one.not_ready_addresses.len());
            enveloped::<Endpoints>(rows.sum(), |to| endpoints(to, one))
        }
    }
}

fn enveloped<T: Decoded>(n_rows: usize, write: impl FnOnce(&mut Backwards)) -> Vec<u8> {
    let mut to = Backwards::with_room(OTHER_BYTES + n_rows * ROW_BYTES);
    to.message(2, write);
    to.message(1, |to| {
        to.text(2, T::KIND);
        to.text(1, T::API_VERSION);
    });
    to.bytes(MAGIC);
    to.finish()
}

fn slice(to: &mut Backwards, slice: &EndpointSlice) {
    let EndpointSlice { meta: metadata, address_type, endpoints, ports } = slice;
    to.text(4, address_type.as_str());
    to.messages(3, ports, slice_port);
    to.messages(2, endpoints, endpoint);
    to.message(1, |to| meta(to, metadata));
}

fn endpoint(to: &mut Backwards, endpoint: &Endpoint) {
    let Endpoint {
        addresses,
        conditions,
        hostname,
        node_name,
        target_ref,
        zone,
        hints,
        deprecated_topology,
    } = endpoint;
    if let Some(Hints { for_zones, for_nodes }) = hints {
        to.message(8, |to| {
            let named = |to: &mut Backwards, name: &SharedStr| to.text(1, name);
            to.messages(2, for_nodes, named);
            to.messages(1, for_zones, named);
        });
    }
    to.optional_text(7, zone.as_ref());
    to.optional_text(6, node_name.as_ref());
    pairs(to, 5, deprecated_topology);
    target(to, 4, target_ref.as_ref());
    to.optional_text(3, hostname.as_ref());
    to.message(2, |to| {
        let Conditions { ready, serving, terminating } = conditions;
        to.optional_number(3, *terminating);
        to.optional_number(2, *serving);
        to.optional_number(1, *ready);
    });
    addresses.iter().rev().for_each(|address| to.text(1, address));
}

fn slice_port(to: &mut Backwards, port: &EndpointPort) {
    let EndpointPort { name, port, protocol, app_protocol } = port;
    to.optional_text(4, app_protocol.as_ref());
    to.optional_number(3, *port);
    to.optional_text(2, protocol.as_ref().map(|protocol| protocol.as_str()));
    to.optional_text(1, name.as_ref());
}

fn endpoints(to: &mut Backwards, endpoints: &Endpoints) {
    let Endpoints { meta: metadata, subsets } = endpoints;
    to.messages(2, subsets, |to, subset| {
        let Subset { addresses, not_ready_addresses, ports } = subset;
        to.messages(3, ports, subset_port);
        to.messages(2, not_ready_addresses, subset_address);
        to.messages(1, addresses, subset_address);
    });
    to.message(1, |to| meta(to, metadata));
}

fn subset_address(to: &mut Backwards, address: &EndpointAddress) {
    let EndpointAddress { ip, hostname, node_name, target_ref } = address;
    to.optional_text(4, node_name.as_ref());
    to.text(3, hostname.as_deref().unwrap_or_default());
    target(to, 2, target_ref.as_ref());
    to.text(1, ip);
}

fn subset_port(to: &mut Backwards, port: &SubsetPort) {
    let SubsetPort { name, port, protocol, app_protocol } = port;
    to.optional_text(4, app_protocol.as_ref());
    to.text(3, protocol.as_str());
    to.number(2, *port);
    to.text(1, name);
}

fn target(to: &mut Backwards, tag: u32, target: Option<&ObjectRef>) {
    let Some(target) = target else { return };
    let ObjectRef { kind, namespace, name, uid, api_version, resource_version, field_path } =
        target;
    to.message(tag, |to| {
        to.text(7, field_path);
        to.text(6, resource_version);
        to.text(5, api_version);
        uid.with_text(|uid| to.text(4, uid));
        to.text(3, name);
        to.text(2, namespace);
        to.text(1, kind);
    });
}

fn meta(to: &mut Backwards, meta: &Meta) {
    let Meta {
        namespace,
        name,
        generate_name,
        uid,
        resource_version,
        generation,
        created,
        deleted,
        deletion_grace_secs,
        labels,
        annotations,
        owners,
        finalizers,
    } = meta;
    finalizers.iter().rev().for_each(|finalizer| to.text(14, finalizer));
    to.messages(13, owners, owner);
    pairs(to, 12, annotations);
    pairs(to, 11, labels);
    to.optional_number(10, *deletion_grace_secs);
    for (tag, at) in [(9, deleted), (8, created)] {
        if let Some(at) = at {
            to.message(tag, |to| to.optional_number(1, Time::from(*at).seconds));
        }
    }
    to.optional_number(7, generation.filter(|generation| *generation != 0));
    to.some_text(6, &resource_version.to_string());
    some_uid(to, 5, uid);
    to.some_text(3, namespace);
    to.some_text(2, generate_name.as_deref().unwrap_or_default());
    to.some_text(1, name);
}

fn owner(to: &mut Backwards, owner: &OwnerRef) {
    let OwnerRef { api_version, kind, name, uid, controller, block_owner_deletion } = owner;
    to.optional_number(7, *block_owner_deletion);
    to.optional_number(6, *controller);
    to.some_text(5, api_version);
    some_uid(to, 4, uid);
    to.some_text(3, name);
    to.some_text(1, kind);
}

fn some_uid(to: &mut Backwards, tag: u32, uid: &Uid) {
    uid.with_text(|uid| to.some_text(tag, uid));
}

/// In the order of their keys, as upstream writes a map.
fn pairs(to: &mut Backwards, tag: u32, labels: &Labels) {
    for (key, value) in labels.iter().rev() {
        to.message(tag, |to| {
            to.text(2, value);
            to.text(1, key);
        });
    }
}
