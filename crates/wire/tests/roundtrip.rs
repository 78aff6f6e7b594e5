//! Encoding and then decoding gives the same object, in both encodings.

use endpointd_model::{
    AddressType, Conditions, Endpoint, EndpointAddress, EndpointPort, EndpointSlice, Endpoints,
    Hints, Labels, Meta, Object, ObjectRef, OwnerRef, Protocol, SharedStr, Subset, SubsetPort,
    Timestamp, Uid,
};
use endpointd_wire::{Encoding, decode, encode, to_json_value};
use proptest::collection::vec;
use proptest::option::of as maybe;
use proptest::prelude::*;

/// Mostly names, sometimes any text.
fn text() -> impl Strategy<Value = SharedStr> {
    prop_oneof![3 => "[a-z0-9.-]{0,8}", 1 => any::<String>()].prop_map(SharedStr::from)
}

/// Fields that are not behind a pointer upstream cannot be present and empty.
fn nonempty_text() -> impl Strategy<Value = Option<SharedStr>> {
    maybe(text()).prop_map(|text| text.filter(|text| !text.is_empty()))
}

fn uid() -> impl Strategy<Value = Uid> {
    prop_oneof![
        text().prop_map(|text| Uid::from(&*text)),
        "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
            .prop_map(|text| Uid::from(text.as_str())),
    ]
}

/// Whole seconds after the zero time, to the end of the year 9998.
fn time() -> impl Strategy<Value = Timestamp> {
    (-62_135_596_799i64..253_370_764_800)
        .prop_map(|seconds| Timestamp::from_second(seconds).expect("within range"))
}

fn labels() -> impl Strategy<Value = Labels> {
    vec((text(), text()), 0..4).prop_map(|pairs| pairs.into_iter().collect())
}

fn protocol() -> impl Strategy<Value = Protocol> {
    prop_oneof!["TCP|UDP|SCTP", "[A-Z]{1,4}"].prop_map(|text| Protocol::from(text.as_str()))
}

fn owner() -> impl Strategy<Value = OwnerRef> {
    (text(), text(), text(), uid(), maybe(any::<bool>()), maybe(any::<bool>())).prop_map(
        |(api_version, kind, name, uid, controller, block_owner_deletion)| OwnerRef {
            api_version,
            kind,
            name,
            uid,
            controller,
            block_owner_deletion,
        },
    )
}

fn object_ref() -> impl Strategy<Value = ObjectRef> {
    (text(), text(), text(), uid(), text(), text(), text()).prop_map(
        |(kind, namespace, name, uid, api_version, resource_version, field_path)| ObjectRef {
            kind,
            namespace,
            name,
            uid,
            api_version,
            resource_version,
            field_path,
        },
    )
}

fn meta() -> impl Strategy<Value = Meta> {
    let names = (text(), text(), nonempty_text(), uid(), any::<u64>());
    let generation = maybe(any::<i64>().prop_filter("absent", |&generation| generation != 0));
    let times = (maybe(time()), maybe(time()), maybe(any::<i64>()));
    let sets = (labels(), labels(), vec(owner(), 0..3), vec(text(), 0..3));
    (names, generation, times, sets).prop_map(|(names, generation, times, sets)| {
        let (namespace, name, generate_name, uid, resource_version) = names;
        let (created, deleted, deletion_grace_secs) = times;
        let (labels, annotations, owners, finalizers) = sets;
        Meta {
            namespace,
            name,
            generate_name,
            uid,
            resource_version: resource_version.into(),
            generation,
            created,
            deleted,
            deletion_grace_secs,
            labels,
            annotations,
            owners,
            finalizers,
        }
    })
}

fn hints() -> impl Strategy<Value = Hints> {
    (vec(text(), 0..3), vec(text(), 0..3))
        .prop_map(|(for_zones, for_nodes)| Hints { for_zones, for_nodes })
}

fn conditions() -> impl Strategy<Value = Conditions> {
    (maybe(any::<bool>()), maybe(any::<bool>()), maybe(any::<bool>()))
        .prop_map(|(ready, serving, terminating)| Conditions { ready, serving, terminating })
}

fn endpoint() -> impl Strategy<Value = Endpoint> {
    let places = (maybe(text()), maybe(text()), maybe(text()), maybe(hints()), labels());
    (vec(text(), 0..3), conditions(), maybe(object_ref()), places).prop_map(
        |(addresses, conditions, target_ref, places)| {
            let (hostname, node_name, zone, hints, deprecated_topology) = places;
            Endpoint {
                addresses,
                conditions,
                hostname,
                node_name,
                target_ref,
                zone,
                hints,
                deprecated_topology,
            }
        },
    )
}

fn endpoint_port() -> impl Strategy<Value = EndpointPort> {
    (maybe(text()), maybe(any::<i32>()), maybe(protocol()), maybe(text())).prop_map(
        |(name, port, protocol, app_protocol)| EndpointPort { name, port, protocol, app_protocol },
    )
}

fn slice() -> impl Strategy<Value = EndpointSlice> {
    (meta(), "IPv4|IPv6|FQDN|[a-z]{0,4}", vec(endpoint(), 0..4), vec(endpoint_port(), 0..3))
        .prop_map(|(meta, address_type, endpoints, ports)| EndpointSlice {
            meta,
            address_type: AddressType::from(address_type.as_str()),
            endpoints,
            ports,
        })
}

fn address() -> impl Strategy<Value = EndpointAddress> {
    (text(), nonempty_text(), maybe(text()), maybe(object_ref())).prop_map(
        |(ip, hostname, node_name, target_ref)| EndpointAddress {
            ip,
            hostname,
            node_name,
            target_ref,
        },
    )
}

fn subset() -> impl Strategy<Value = Subset> {
    let port = (text(), any::<i32>(), protocol(), maybe(text())).prop_map(
        |(name, port, protocol, app_protocol)| SubsetPort { name, port, protocol, app_protocol },
    );
    (vec(address(), 0..3), vec(address(), 0..3), vec(port, 0..3)).prop_map(
        |(addresses, not_ready_addresses, ports)| Subset { addresses, not_ready_addresses, ports },
    )
}

fn endpoints() -> impl Strategy<Value = Endpoints> {
    (meta(), vec(subset(), 0..3)).prop_map(|(meta, subsets)| Endpoints { meta, subsets })
}

const BOTH: [Encoding; 2] = [Encoding::Json, Encoding::Protobuf];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_slice_round_trips(slice in slice()) {
        let object = Object::Slice(slice.clone());
        for encoding in BOTH {
            let read = decode(encoding, &encode(encoding, &object).into());
            prop_assert_eq!(read.as_ref(), Ok(&slice), "{:?}", encoding);
        }
    }

    #[test]
    fn endpoints_round_trip(endpoints in endpoints()) {
        let object = Object::Endpoints(endpoints.clone());
        for encoding in BOTH {
            let read = decode(encoding, &encode(encoding, &object).into());
            prop_assert_eq!(read.as_ref(), Ok(&endpoints), "{:?}", encoding);
        }
    }

    #[test]
    fn a_json_value_equals_the_json_body(slice in slice()) {
        let object = Object::Slice(slice);
        let body: serde_json::Value =
            serde_json::from_slice(&encode(Encoding::Json, &object)).expect("JSON");
        prop_assert_eq!(body, to_json_value(&object));
    }
}

#[test]
fn only_the_lists_of_a_slice_are_encoded_when_empty() {
    let slice = to_json_value(&Object::Slice(EndpointSlice::default()));
    let want = concat!(
        r#"{"addressType":"IPv4","apiVersion":"discovery.k8s.io/v1","endpoints":[],"#,
        r#""kind":"EndpointSlice","metadata":{},"ports":[]}"#
    );
    assert_eq!(slice.to_string(), want);
    let endpoints = to_json_value(&Object::Endpoints(Endpoints::default()));
    assert_eq!(endpoints.to_string(), r#"{"apiVersion":"v1","kind":"Endpoints","metadata":{}}"#);
}
