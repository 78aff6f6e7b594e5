//! ServiceExports, ServiceImports, and derived Services: what is decoded, that what we write is read
//! as the same object, and a fuzz target of their decoders.

use std::fs;

use endpointd_fuzz::{Format, Target, fuzz, outcome_of};
use endpointd_model::{
    ClusterIp, Condition, ConditionStatus, DerivedService, Family, ImportPort, ImportType,
    InternalTrafficPolicy, Labels, Meta, MultiClusterVersion, Protocol, Service, ServiceExport,
    ServiceImport, ServiceImportSpec, ServiceImportStatus, ServiceTraffic, SessionAffinity,
    SharedStr, SliceObjects, Timestamp, TrafficDistribution,
};
use endpointd_wire::{
    Bytes, Decoded, Encoding, decode, decode_list, decode_value, decode_watch_event,
    derived_service_to_json, export_to_json, flatten, import_to_json,
};
use proptest::collection::vec;
use proptest::option::of as maybe;
use proptest::prelude::*;
use serde_json::{Value, json};

fn recorded(name: &str) -> Vec<u8> {
    let path = format!("{}/testdata/{name}.json", env!("CARGO_MANIFEST_DIR"));
    fs::read(path).expect("a recorded object")
}

fn read<T: Decoded>(name: &str) -> T {
    decode(Encoding::Json, &recorded(name).into()).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn an_export_is_decoded() {
    let export: ServiceExport = read("serviceexport");
    assert_eq!(export.meta.key().to_string(), "shop/web");
    assert_eq!(export.meta.created.expect("set").to_string(), "2026-01-02T03:00:05Z");
    assert_eq!(export.labels, [("team", "shop")].into_iter().collect());
    assert_eq!(export.annotations, [("owner", "shop@example.com")].into_iter().collect());
    let [conflict] = &export.conditions[..] else { panic!("one condition") };
    assert_eq!((&*conflict.condition_type, conflict.status), ("Conflict", ConditionStatus::True));
    assert_eq!(&*conflict.reason, "PortConflict,TypeConflict");
    assert_eq!(conflict.observed_generation, Some(2));
    assert_eq!(conflict.last_transition.expect("set").to_string(), "2026-01-02T03:04:05Z");
}

#[test]
fn an_import_is_decoded() {
    let import: ServiceImport = read("serviceimport");
    let [http, dns] = &import.spec.ports[..] else { panic!("two ports") };
    assert_eq!(
        (&*http.name, http.number, http.app_protocol.as_deref()),
        ("http", 80, Some("kubernetes.io/h2c"))
    );
    assert_eq!((&*dns.name, dns.number, &dns.protocol), ("", 53, &Protocol::Udp));
    assert_eq!(import.spec.import_type, ImportType::ClusterSetIp);
    assert_eq!(import.spec.families, [Family::V4, Family::V6]);
    assert_eq!(import.spec.ips, ["10.96.0.10".into(), "fd00::10".into()]);
    let affinity = SessionAffinity::ClientIp { timeout_secs: Some(60) };
    assert_eq!(import.spec.traffic.session_affinity, affinity);
    assert_eq!(import.spec.traffic.internal_policy, InternalTrafficPolicy::Local);
    assert_eq!(import.spec.traffic_distribution, Some(TrafficDistribution::PreferSameZone));
    assert_eq!(import.status.clusters, ["eu1".into(), "us1".into()]);
    assert_eq!(import.status.slice_objects, Some(SliceObjects::Present));
}

#[test]
fn a_service_is_decoded_with_what_imports_take_over() {
    let traffic = |spec: Value| {
        let service: Service = decode_value(&json!({"spec": spec})).expect("a Service");
        service.traffic.map(|traffic| *traffic)
    };
    let defaults = json!({"sessionAffinity": "None", "internalTrafficPolicy": "Cluster"});
    assert_eq!((traffic(json!({})), traffic(defaults)), (None, None));
    let timeout = json!({"clientIP": {"timeoutSeconds": 60}});
    assert_eq!(
        traffic(json!({"sessionAffinity": "ClientIP", "sessionAffinityConfig": timeout})),
        Some(ServiceTraffic {
            session_affinity: SessionAffinity::ClientIp { timeout_secs: Some(60) },
            ..ServiceTraffic::default()
        })
    );
    assert_eq!(
        traffic(json!({"internalTrafficPolicy": "Local"})),
        Some(ServiceTraffic {
            internal_policy: InternalTrafficPolicy::Local,
            ..ServiceTraffic::default()
        })
    );
}

#[test]
fn the_addresses_of_a_derived_service_are_decoded() {
    let ips = |spec: Value| {
        let service: DerivedService = decode_value(&json!({"spec": spec})).expect("a Service");
        service.cluster_ips
    };
    assert_eq!(ips(json!({"clusterIP": "10.0.0.1"})), ["10.0.0.1".into()]);
    assert_eq!(ips(json!({"clusterIPs": ["10.0.0.1", "fd00::1"]})).len(), 2);
    assert_eq!(ips(json!({"clusterIP": "None", "clusterIPs": ["None"]})), [""; 0].map(Into::into));
    assert_eq!(ips(json!({})), [""; 0].map(Into::into));
}

#[test]
fn both_versions_are_decoded_and_other_ones_refused() {
    for (version, is_known) in [("v1beta1", true), ("v1alpha1", true), ("v2", false)] {
        let api_version = format!("multicluster.x-k8s.io/{version}");
        let object = json!({"apiVersion": api_version, "kind": "ServiceExport"});
        assert_eq!(decode_value::<ServiceExport>(&object).is_ok(), is_known, "{version}");
        let list = json!({"apiVersion": api_version, "kind": "ServiceExportList", "items": [{}]});
        let page = decode_list::<ServiceExport>(Encoding::Json, &list.to_string().into());
        assert_eq!(page.is_ok(), is_known, "{version}");
        // A list in a file loses its items, each with the version of the list.
        let flat = flatten(list);
        assert_eq!(flat[0]["kind"] == "ServiceExport", is_known, "{version}");
        assert_eq!(flat[0]["apiVersion"], api_version, "{version}");
    }
    let other = json!({"apiVersion": "v1", "kind": "ServiceExport"});
    decode_value::<ServiceExport>(&other).expect_err("it has the group of a Service");
}

/// Each value of a recorded object, replaced in turn.
fn each_replaced(name: &str, with: &Value, mut check: impl FnMut(&Value)) {
    fn places(value: &Value, pointer: &str, found: &mut Vec<String>) {
        let mut inner = |key: &str, value: &Value| {
            let pointer = format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"));
            found.push(pointer.clone());
            places(value, &pointer, found);
        };
        match value {
            Value::Object(fields) => fields.iter().for_each(|(key, value)| inner(key, value)),
            Value::Array(items) => {
                (0..).zip(items).for_each(|(at, value): (usize, _)| inner(&at.to_string(), value));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let object: Value = serde_json::from_slice(&recorded(name)).expect("JSON");
    let mut found = Vec::new();
    places(&object, "", &mut found);
    for pointer in found.iter().filter(|pointer| !["/kind", "/apiVersion"].contains(&&***pointer)) {
        let mut changed = object.clone();
        *changed.pointer_mut(pointer).expect("a place that was found") = with.clone();
        check(&changed);
    }
}

#[test]
fn null_is_accepted_everywhere_and_a_wrong_type_names_the_object() {
    each_replaced("serviceexport", &Value::Null, |object| {
        decode_value::<ServiceExport>(object).unwrap_or_else(|error| panic!("{error}: {object}"));
    });
    each_replaced("serviceimport", &Value::Null, |object| {
        decode_value::<ServiceImport>(object).unwrap_or_else(|error| panic!("{error}: {object}"));
    });
    let mut n_refused = 0;
    for wrong in [json!(-1.5), json!(true), json!([[]]), json!({"a": {}})] {
        each_replaced("serviceimport", &wrong, |object| {
            let Err(error) = decode_value::<ServiceImport>(object) else { return };
            n_refused += 1;
            assert_eq!(error.identity.kind, "ServiceImport", "{error}");
        });
    }
    assert!(n_refused > 60, "{n_refused}");
}

#[test]
fn fuzz_wire_multicluster() {
    let mut list = b"{\"apiVersion\": \"v1\", \"kind\": \"List\", \"items\": [".to_vec();
    list.extend(recorded("serviceexport"));
    list.extend(b"]}");
    let recorded = vec![recorded("serviceexport"), recorded("serviceimport"), list];
    fuzz(&Target { name: "wire_multicluster", format: Format::Json, recorded }, |input| {
        let body = Bytes::copy_from_slice(input);
        [
            check_read::<ServiceExport>(&body, |one| {
                export_to_json(MultiClusterVersion::V1Beta1, one)
            }),
            check_read::<ServiceImport>(&body, |one| {
                import_to_json(MultiClusterVersion::V1Alpha1, one)
            }),
            check_read::<DerivedService>(&body, derived_service_to_json),
        ]
        .concat()
    });
}

/// What is decoded from any bytes is written as an object that is decoded to the same.
fn check_read<T: Decoded + PartialEq + std::fmt::Debug>(
    body: &Bytes,
    to_json: impl Fn(&T) -> Value,
) -> String {
    let _ = decode_list::<T>(Encoding::Json, body);
    let _ = decode_watch_event::<T>(Encoding::Json, body);
    match decode::<T>(Encoding::Json, body) {
        Ok(object) => {
            let written = to_json(&object);
            assert_eq!(decode_value::<T>(&written).as_ref(), Ok(&object), "{written}");
            "ok".to_owned()
        }
        Err(error) => format!("{} {}", outcome_of(&error.path), outcome_of(&error.reason)),
    }
}

fn text() -> impl Strategy<Value = SharedStr> {
    prop_oneof![3 => "[a-z0-9.-]{0,8}", 1 => any::<String>()].prop_map(SharedStr::from)
}

fn labels() -> impl Strategy<Value = Labels> {
    vec((text(), text()), 0..4).prop_map(|pairs| pairs.into_iter().collect())
}

fn meta() -> impl Strategy<Value = Meta> {
    (text(), text(), labels(), labels(), 1..9u64).prop_map(
        |(namespace, name, labels, annotations, version)| Meta {
            namespace,
            name,
            labels,
            annotations,
            resource_version: version.into(),
            ..Meta::default()
        },
    )
}

fn condition() -> impl Strategy<Value = Condition> {
    let status = prop_oneof![
        Just(ConditionStatus::True),
        Just(ConditionStatus::False),
        Just(ConditionStatus::Unknown)
    ];
    let since = maybe(
        (0..4_000_000_000i64)
            .prop_map(|second| Timestamp::from_second(second).expect("a second of this century")),
    );
    (text(), status, text(), text(), maybe(1..9i64), since).prop_map(
        |(condition_type, status, reason, message, observed_generation, last_transition)| {
            Condition {
                condition_type,
                status,
                reason,
                message,
                observed_generation,
                last_transition,
            }
        },
    )
}

fn port() -> impl Strategy<Value = ImportPort> {
    (text(), "TCP|UDP|SCTP", maybe(text()), any::<i32>()).prop_map(
        |(name, protocol, app_protocol, number)| ImportPort {
            name,
            protocol: protocol.as_str().into(),
            app_protocol,
            number,
        },
    )
}

fn traffic() -> impl Strategy<Value = ServiceTraffic> {
    let affinity = prop_oneof![
        Just(SessionAffinity::None),
        maybe(any::<i32>()).prop_map(|timeout_secs| SessionAffinity::ClientIp { timeout_secs }),
    ];
    let policy =
        prop_oneof![Just(InternalTrafficPolicy::Cluster), Just(InternalTrafficPolicy::Local)];
    (affinity, policy).prop_map(|(session_affinity, internal_policy)| ServiceTraffic {
        session_affinity,
        internal_policy,
    })
}

fn distribution() -> impl Strategy<Value = Option<TrafficDistribution>> {
    maybe("PreferClose|PreferSameZone|PreferSameNode")
        .prop_map(|text| text.as_deref().and_then(TrafficDistribution::parse))
}

fn families() -> impl Strategy<Value = Vec<Family>> {
    vec(prop_oneof![Just(Family::V4), Just(Family::V6)], 0..3)
}

fn import() -> impl Strategy<Value = ServiceImport> {
    let import_type = prop_oneof![Just(ImportType::ClusterSetIp), Just(ImportType::Headless)];
    let spec =
        (import_type, vec(port(), 0..3), vec(text(), 0..3), families(), traffic(), distribution());
    let slice_objects = maybe(prop_oneof![Just(SliceObjects::Present), Just(SliceObjects::Absent)]);
    let status = (slice_objects, vec(text(), 0..3), vec(condition(), 0..3));
    (meta(), spec, status).prop_map(|(meta, spec, status)| {
        let (import_type, ports, ips, families, traffic, traffic_distribution) = spec;
        let (slice_objects, clusters, conditions) = status;
        ServiceImport {
            meta,
            spec: ServiceImportSpec {
                import_type,
                ports,
                ips,
                families,
                traffic,
                traffic_distribution,
            },
            status: ServiceImportStatus { slice_objects, clusters, conditions },
        }
    })
}

proptest! {
    #[test]
    fn an_import_reads_back_as_it_was_written(import in import()) {
        for version in MultiClusterVersion::ALL {
            let written = import_to_json(version, &import);
            prop_assert_eq!(written["apiVersion"].as_str(), Some(version.api_version()));
            prop_assert_eq!(decode_value(&written), Ok(import.clone()));
        }
    }

    #[test]
    fn an_export_reads_back_as_it_was_written(
        meta in meta(), labels in labels(), annotations in labels(), conditions in vec(condition(), 0..3),
    ) {
        let export = ServiceExport { meta, labels, annotations, conditions };
        for version in MultiClusterVersion::ALL {
            prop_assert_eq!(decode_value(&export_to_json(version, &export)), Ok(export.clone()));
        }
    }

    /// The complete Service and the one that is planned with agree, too.
    #[test]
    fn a_derived_service_reads_back_as_it_was_written(
        meta in meta(), ports in vec(port(), 0..3), families in families(), traffic in traffic(),
        traffic_distribution in distribution(), n_ips in 0..3usize,
    ) {
        let cluster_ips = ["10.0.0.1".into(), "fd00::1".into()][..n_ips.min(2)].to_vec();
        let service =
            DerivedService { meta, ports, families, cluster_ips, traffic, traffic_distribution };
        let written = derived_service_to_json(&service);
        prop_assert_eq!(decode_value(&written), Ok(service.clone()));
        let planned: Service = decode_value(&written).expect("a Service");
        prop_assert!(planned.selector.is_empty() && !planned.is_external_name);
        prop_assert_eq!(planned.families, service.families);
        prop_assert_eq!(planned.traffic.map_or_else(Default::default, |traffic| *traffic), traffic);
        prop_assert_eq!(planned.cluster_ip == ClusterIp::Unset, n_ips == 0);
    }
}
