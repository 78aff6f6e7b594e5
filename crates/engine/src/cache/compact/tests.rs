//! Encoding is lossless, canonical, and small.

use endpointd_model::{
    AddressType, Conditions, Endpoint, EndpointAddress, EndpointPort, Hints, Labels, ObjectRef,
    OwnerRef, Protocol, ResourceVersion, Subset, SubsetPort, Timestamp,
};
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;

use super::*;

/// Strings that share prefixes or are common, and random ones.
fn string() -> impl Strategy<Value = SharedStr> {
    let often = prop::sample::select(vec![
        "",
        "Pod",
        "v1",
        "web-7c9d-abcde",
        "web-7c9d-abcdf",
        "web-é",
        "web-è",
        "zone-a",
        "10.0.0.1",
        "fd00::1",
        "endpointslice.kubernetes.io/managed-by",
    ]);
    prop_oneof![often.prop_map(SharedStr::from), ".{0,200}".prop_map(SharedStr::from)]
}

fn address() -> impl Strategy<Value = SharedStr> {
    let canonical = any::<std::net::IpAddr>().prop_map(|ip| SharedStr::from(ip.to_string()));
    let odd = prop::sample::select(vec![
        "010.0.0.1",
        "FD00::1",
        "fd00:0::1",
        "::ffff:10.0.0.1",
        "::ffff:a00:1",
        "example.com",
    ]);
    prop_oneof![canonical, odd.prop_map(SharedStr::from), string()]
}

fn uid() -> impl Strategy<Value = Uid> {
    let uuid = any::<[u8; 16]>().prop_map(Uid::from);
    prop_oneof![uuid, string().prop_map(|string| Uid::from(&*string))]
}

fn labels() -> impl Strategy<Value = Labels> {
    vec((string(), string()), 0..4).prop_map(|pairs| pairs.into_iter().collect())
}

fn time() -> impl Strategy<Value = Timestamp> {
    let range = Timestamp::MIN.as_nanosecond()..=Timestamp::MAX.as_nanosecond();
    range.prop_map(|time| Timestamp::from_nanosecond(time).expect("in range"))
}

prop_compose! {
    fn owner()(
        api_version in string(), kind in string(), name in string(), uid in uid(),
        controller in any::<Option<bool>>(), block_owner_deletion in any::<Option<bool>>(),
    ) -> OwnerRef {
        OwnerRef { api_version, kind, name, uid, controller, block_owner_deletion }
    }
}

prop_compose! {
    fn meta()(
        (namespace, name, generate_name, uid) in (string(), string(), of(string()), uid()),
        (resource_version, generation) in (any::<u64>().prop_map(ResourceVersion::from), any::<Option<i64>>()),
        (created, deleted) in (of(time()), of(time())),
        deletion_grace_secs in any::<Option<i64>>(),
        (labels, annotations) in (labels(), labels()),
        (owners, finalizers) in (vec(owner(), 0..3), vec(string(), 0..3)),
    ) -> Meta {
        Meta {
            namespace, name, generate_name, uid, resource_version, generation, created, deleted,
            deletion_grace_secs, labels, annotations, owners, finalizers,
        }
    }
}

prop_compose! {
    fn target()(
        (kind, namespace, name, uid) in (string(), string(), string(), uid()),
        (api_version, resource_version, field_path) in (string(), string(), string()),
    ) -> ObjectRef {
        ObjectRef { kind, namespace, name, uid, api_version, resource_version, field_path }
    }
}

/// A target like most targets of one object.
fn usual_target() -> impl Strategy<Value = ObjectRef> {
    (string(), uid()).prop_map(|(name, uid)| ObjectRef {
        kind: "Pod".into(),
        namespace: "shop".into(),
        name,
        uid,
        ..ObjectRef::default()
    })
}

fn any_target() -> impl Strategy<Value = Option<ObjectRef>> {
    of(prop_oneof![usual_target(), target()])
}

fn conditions() -> impl Strategy<Value = Conditions> {
    let conditions = any::<[Option<bool>; 3]>();
    conditions.prop_map(|[ready, serving, terminating]| Conditions { ready, serving, terminating })
}

fn hints() -> impl Strategy<Value = Hints> {
    (vec(string(), 0..3), vec(string(), 0..3))
        .prop_map(|(for_zones, for_nodes)| Hints { for_zones, for_nodes })
}

prop_compose! {
    fn endpoint()(
        addresses in prop_oneof![vec(address(), 1), vec(address(), 0..4)],
        conditions in conditions(),
        (hostname, node_name, zone) in (of(string()), of(string()), of(string())),
        (target_ref, hints, deprecated_topology) in (any_target(), of(hints()), labels()),
    ) -> Endpoint {
        Endpoint {
            addresses, conditions, hostname, node_name, target_ref, zone, hints,
            deprecated_topology,
        }
    }
}

fn protocol() -> impl Strategy<Value = Protocol> {
    prop_oneof![
        Just(Protocol::Tcp),
        Just(Protocol::Udp),
        Just(Protocol::Sctp),
        string().prop_map(Protocol::Other),
    ]
}

fn address_type() -> impl Strategy<Value = AddressType> {
    prop_oneof![
        Just(AddressType::IPv4),
        Just(AddressType::IPv6),
        Just(AddressType::Fqdn),
        string().prop_map(AddressType::Other),
    ]
}

prop_compose! {
    fn port()(
        name in of(string()), port in any::<Option<i32>>(), protocol in of(protocol()),
        app_protocol in of(string()),
    ) -> EndpointPort {
        EndpointPort { name, port, protocol, app_protocol }
    }
}

prop_compose! {
    fn slice()(
        meta in meta(), address_type in address_type(),
        endpoints in vec(endpoint(), 0..6), ports in vec(port(), 0..4),
    ) -> EndpointSlice {
        EndpointSlice { meta, address_type, endpoints, ports }
    }
}

prop_compose! {
    fn subset_address()(
        ip in address(), hostname in of(string()), node_name in of(string()),
        target_ref in any_target(),
    ) -> EndpointAddress {
        EndpointAddress { ip, hostname, node_name, target_ref }
    }
}

prop_compose! {
    fn subset()(
        addresses in vec(subset_address(), 0..5),
        not_ready_addresses in vec(subset_address(), 0..3),
        ports in vec(subset_port(), 0..3),
    ) -> Subset {
        Subset { addresses, not_ready_addresses, ports }
    }
}

prop_compose! {
    fn subset_port()(
        name in string(), port in any::<i32>(), protocol in protocol(), app_protocol in of(string()),
    ) -> SubsetPort {
        SubsetPort { name, port, protocol, app_protocol }
    }
}

prop_compose! {
    fn endpoints()(meta in meta(), subsets in vec(subset(), 0..4)) -> Endpoints {
        Endpoints { meta, subsets }
    }
}

fn identity(meta: &Meta) -> Identity<'_> {
    Identity { namespace: &meta.namespace, name: &meta.name, uid: &meta.uid }
}

/// The metadata after another write of the same content.
fn rewritten(meta: &Meta, resource_version: ResourceVersion, generation: Option<i64>) -> Meta {
    Meta { resource_version, generation, ..meta.clone() }
}

proptest! {
    #[test]
    fn slices_survive_a_round_trip(slice in slice()) {
        let compact = CompactObject::slice(&slice);
        let strings = Interner::default();
        prop_assert_eq!(compact.decode_slice(&identity(&slice.meta), &strings), slice);
    }

    #[test]
    fn endpoints_survive_a_round_trip(endpoints in endpoints()) {
        let compact = CompactObject::endpoints(&endpoints);
        let strings = Interner::default();
        prop_assert_eq!(compact.decode_endpoints(&identity(&endpoints.meta), &strings), endpoints);
    }

    #[test]
    fn version_and_generation_are_not_content(
        slice in slice(), version in any::<u64>(), generation in any::<Option<i64>>(), more in endpoint(),
    ) {
        let meta = rewritten(&slice.meta, version.into(), generation);
        let again = EndpointSlice { meta, ..slice.clone() };
        prop_assert!(CompactObject::slice(&slice).same_content(&CompactObject::slice(&again)));
        let mut other = again;
        other.endpoints.push(more);
        prop_assert!(!CompactObject::slice(&slice).same_content(&CompactObject::slice(&other)));
    }
}

#[test]
fn an_endpoint_has_at_most_40_bytes() {
    let endpoint = |number: u8| Endpoint {
        addresses: vec![format!("10.0.0.{number}").into()],
        conditions: Conditions { ready: Some(true), serving: Some(true), terminating: Some(false) },
        node_name: Some(format!("node-{number:04}").into()),
        zone: Some(format!("zone-{}", number % 3).into()),
        target_ref: Some(ObjectRef {
            kind: "Pod".into(),
            namespace: "shop".into(),
            name: format!("web-7c9d8b6f5-x{number:04}").into(),
            uid: Uid::from([number; 16]),
            ..ObjectRef::default()
        }),
        ..Endpoint::default()
    };
    let slice = EndpointSlice { endpoints: (0..100).map(endpoint).collect(), ..Default::default() };
    let n_bytes = CompactObject::slice(&slice).n_bytes();
    assert!(n_bytes <= 100 * 40, "{n_bytes} bytes");
}

#[test]
fn decoded_strings_are_interned() {
    let mut strings = Interner::default();
    let node = strings.intern(&SharedStr::from("node-1"));
    let endpoint = Endpoint { node_name: Some("node-1".into()), ..Endpoint::default() };
    let slice = EndpointSlice { endpoints: vec![endpoint], ..EndpointSlice::default() };
    let decoded = CompactObject::slice(&slice).decode_slice(&identity(&slice.meta), &strings);
    let found = decoded.endpoints[0].node_name.as_ref().expect("it has a node");
    assert!(std::sync::Arc::ptr_eq(found, &node));
}
