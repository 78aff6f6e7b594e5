//! Encodes EndpointSlices and Endpoints as protobuf, directly from the model. Everything except
//! metadata has the same bytes as the API server's encoding, so that its response can be compared
//! with the request.
//!
//! The last field of each message is written first: see [`ReverseEncoder`].

use endpointd_model::{
    Conditions, Endpoint, EndpointAddress, EndpointPort, EndpointSlice, Endpoints, Hints, Labels,
    Meta, ObjectRef, OwnerRef, SharedStr, Subset, SubsetPort, Uid,
};

use super::reverse_encoder::ReverseEncoder;
use crate::decode::Decoded;
use crate::envelope::MAGIC;
use crate::time::Time;

/// Estimated size of one endpoint or address, and of the rest of an object.
const ROW_BYTES: usize = 224;
const OTHER_BYTES: usize = 768;

/// The body of a create or an update with its envelope.
pub(super) fn slice_body(one: &EndpointSlice) -> Vec<u8> {
    enveloped::<EndpointSlice>(one.endpoints.len(), |to| slice(to, one))
}

/// Likewise.
pub(super) fn endpoints_body(one: &Endpoints) -> Vec<u8> {
    let rows = one.subsets.iter().map(|one| one.addresses.len() + one.not_ready_addresses.len());
    enveloped::<Endpoints>(rows.sum(), |to| endpoints(to, one))
}

fn enveloped<T: Decoded>(n_rows: usize, write: impl FnOnce(&mut ReverseEncoder)) -> Vec<u8> {
    let mut to = ReverseEncoder::with_capacity(OTHER_BYTES + n_rows * ROW_BYTES);
    to.message(2, write);
    to.message(1, |to| {
        to.string(2, T::KIND);
        to.string(1, T::API_VERSION);
    });
    to.bytes(MAGIC);
    to.finish()
}

fn slice(to: &mut ReverseEncoder, slice: &EndpointSlice) {
    let EndpointSlice { meta: metadata, address_type, endpoints, ports } = slice;
    to.string(4, address_type.as_str());
    to.messages(3, ports, slice_port);
    to.messages(2, endpoints, endpoint);
    to.message(1, |to| meta(to, metadata));
}

fn endpoint(to: &mut ReverseEncoder, endpoint: &Endpoint) {
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
            let named = |to: &mut ReverseEncoder, name: &SharedStr| to.string(1, name);
            to.messages(2, for_nodes, named);
            to.messages(1, for_zones, named);
        });
    }
    to.opt_string(7, zone.as_ref());
    to.opt_string(6, node_name.as_ref());
    string_map(to, 5, deprecated_topology);
    target(to, 4, target_ref.as_ref());
    to.opt_string(3, hostname.as_ref());
    to.message(2, |to| {
        let Conditions { ready, serving, terminating } = conditions;
        to.opt_int(3, *terminating);
        to.opt_int(2, *serving);
        to.opt_int(1, *ready);
    });
    addresses.iter().rev().for_each(|address| to.string(1, address));
}

fn slice_port(to: &mut ReverseEncoder, port: &EndpointPort) {
    let EndpointPort { name, port, protocol, app_protocol } = port;
    to.opt_string(4, app_protocol.as_ref());
    to.opt_int(3, *port);
    to.opt_string(2, protocol.as_ref().map(|protocol| protocol.as_str()));
    to.opt_string(1, name.as_ref());
}

fn endpoints(to: &mut ReverseEncoder, endpoints: &Endpoints) {
    let Endpoints { meta: metadata, subsets } = endpoints;
    to.messages(2, subsets, |to, subset| {
        let Subset { addresses, not_ready_addresses, ports } = subset;
        to.messages(3, ports, subset_port);
        to.messages(2, not_ready_addresses, subset_address);
        to.messages(1, addresses, subset_address);
    });
    to.message(1, |to| meta(to, metadata));
}

fn subset_address(to: &mut ReverseEncoder, address: &EndpointAddress) {
    let EndpointAddress { ip, hostname, node_name, target_ref } = address;
    to.opt_string(4, node_name.as_ref());
    to.string(3, hostname.as_deref().unwrap_or_default());
    target(to, 2, target_ref.as_ref());
    to.string(1, ip);
}

fn subset_port(to: &mut ReverseEncoder, port: &SubsetPort) {
    let SubsetPort { name, port, protocol, app_protocol } = port;
    to.opt_string(4, app_protocol.as_ref());
    to.string(3, protocol.as_str());
    to.int(2, *port);
    to.string(1, name);
}

fn target(to: &mut ReverseEncoder, tag: u32, target: Option<&ObjectRef>) {
    let Some(target) = target else { return };
    let ObjectRef { kind, namespace, name, uid, api_version, resource_version, field_path } =
        target;
    to.message(tag, |to| {
        to.string(7, field_path);
        to.string(6, resource_version);
        to.string(5, api_version);
        uid.with_text(|uid| to.string(4, uid));
        to.string(3, name);
        to.string(2, namespace);
        to.string(1, kind);
    });
}

fn meta(to: &mut ReverseEncoder, meta: &Meta) {
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
    finalizers.iter().rev().for_each(|finalizer| to.string(14, finalizer));
    to.messages(13, owners, owner);
    string_map(to, 12, annotations);
    string_map(to, 11, labels);
    to.opt_int(10, *deletion_grace_secs);
    for (tag, at) in [(9, deleted), (8, created)] {
        if let Some(at) = at {
            to.message(tag, |to| to.opt_int(1, Time::from(*at).seconds));
        }
    }
    to.opt_int(7, generation.filter(|generation| *generation != 0));
    to.string_if_nonempty(6, &resource_version.to_string());
    uid_if_nonempty(to, 5, uid);
    to.string_if_nonempty(3, namespace);
    to.string_if_nonempty(2, generate_name.as_deref().unwrap_or_default());
    to.string_if_nonempty(1, name);
}

fn owner(to: &mut ReverseEncoder, owner: &OwnerRef) {
    let OwnerRef { api_version, kind, name, uid, controller, block_owner_deletion } = owner;
    to.opt_int(7, *block_owner_deletion);
    to.opt_int(6, *controller);
    to.string_if_nonempty(5, api_version);
    uid_if_nonempty(to, 4, uid);
    to.string_if_nonempty(3, name);
    to.string_if_nonempty(1, kind);
}

fn uid_if_nonempty(to: &mut ReverseEncoder, tag: u32, uid: &Uid) {
    uid.with_text(|uid| to.string_if_nonempty(tag, uid));
}

/// Sorted by key, as upstream writes maps.
fn string_map(to: &mut ReverseEncoder, tag: u32, labels: &Labels) {
    for (key, value) in labels.iter().rev() {
        to.message(tag, |to| {
            to.string(2, value);
            to.string(1, key);
        });
    }
}
