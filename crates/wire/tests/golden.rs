//! Objects encoded by upstream's code must decode to the same value from both encodings, and our
//! encodings must equal, byte for byte, the ones that upstream decoded correctly.
//! `testdata/README.md` describes the objects and how to generate them again.

use std::fmt::Debug;
use std::fs;
use std::path::PathBuf;

use endpointd_model::{
    ClusterIp, DeleteTarget, EndpointSlice, Endpoints, Family, Key, Meta, NamedPort, Node, Object,
    Phase, Pod, PodIp, Protocol, PublishedResource, Service, TargetPort, TopologyMode,
    TrafficDistribution,
};
use endpointd_wire::{
    Bytes, Decoded, Encoding, Frames, Page, SentObject, Status, WatchEvent, decode, decode_list,
    decode_status, decode_stored, decode_watch_event, encode, encode_delete,
};

fn path(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "testdata", name].iter().collect()
}

fn read(name: &str) -> Bytes {
    fs::read(path(name)).unwrap_or_else(|error| panic!("cannot read {name}: {error}")).into()
}

/// Decodes the object from both encodings with `with` and expects equal results.
fn both<R: Debug + PartialEq>(name: &str, with: impl Fn(Encoding, &Bytes) -> R) -> R {
    let json = with(Encoding::Json, &read(&format!("{name}.json")));
    let protobuf = with(Encoding::Protobuf, &read(&format!("{name}.pb")));
    assert_eq!(json, protobuf, "{name}");
    json
}

fn object<T: Decoded + Debug + PartialEq>(name: &str) -> T {
    both(name, |encoding, body| decode(encoding, body).expect("a golden object"))
}

fn list<T: Decoded + Debug + PartialEq>(name: &str) -> Page<T> {
    both(name, |encoding, body| decode_list(encoding, body).expect("a golden list"))
}

fn check_encoded(name: &str, body: &[u8]) {
    let name = format!("ours/{name}.pb");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(path(&name), body).expect("the folder of golden objects can be written");
    }
    assert_eq!(read(&name), body, "{name}");
}

#[test]
fn unused_fields_of_a_pod_are_skipped() {
    let pod: Pod = object("pod");
    assert_eq!((&*pod.namespace, &*pod.name, pod.resource_version), ("shop", "web-a", 100.into()));
    assert_eq!(pod.uid.to_string(), "5e2cb0a7-91d0-4a5b-8f1e-0123456789ab");
    assert_eq!(pod.labels, [("app", "web"), ("empty", ""), ("zz", "last")].into_iter().collect());
    assert_eq!(pod.node_name.as_deref(), Some("node-a"));
    assert_eq!(pod.hostname.as_deref(), Some("web-a"));
    assert_eq!(pod.subdomain.as_deref(), Some("web"));
    assert_eq!(pod.ips.primary, Some(PodIp::parse("10.0.0.1")));
    assert_eq!(*pod.ips.all, [PodIp::parse("10.0.0.1"), PodIp::parse("fd00::1")]);
    assert_eq!(pod.phase, Phase::Active);
    let since = pod.readiness.as_ref().and_then(|readiness| readiness.since);
    assert_eq!(since.unwrap().to_string(), "2026-01-02T03:02:05Z");
    assert!(pod.is_ready() && !pod.is_terminating);
    let port = |name: &str, protocol, number| NamedPort { name: name.into(), protocol, number };
    let ports = [
        port("http", Protocol::Tcp, 8080),
        port("dns", Protocol::Udp, 53),
        port("odd", Protocol::Tcp, 54),
        port("proxy", Protocol::Tcp, 15001),
    ];
    assert_eq!(*pod.named_ports, ports);
}

#[test]
fn an_empty_pod_is_decoded() {
    assert_eq!(object::<Pod>("pod-bare"), Pod::default());
}

#[test]
fn a_dual_stack_service_is_decoded() {
    let service: Service = object("service");
    assert_eq!(service.cluster_ip, ClusterIp::Ip(Family::V6));
    assert_eq!(service.families, [Family::V6, Family::V4]);
    assert_eq!(service.selector, [("app", "web")].into_iter().collect());
    assert_eq!(service.created.unwrap().to_string(), "2026-01-02T03:00:05Z");
    assert_eq!(service.ports[0].target, TargetPort::Name("http".into()));
    assert_eq!(service.ports[0].app_protocol.as_deref(), Some("kubernetes.io/h2c"));
    assert_eq!(service.ports[1].target, TargetPort::Number(5353));
    assert_eq!(service.ports[1].protocol, Protocol::Udp);
    assert_eq!(service.topology, TopologyMode::Auto);
    assert_eq!(service.traffic_distribution, Some(TrafficDistribution::PreferSameNode));
    assert!(service.publish_not_ready && !service.is_deleting && !service.is_external_name);
}

#[test]
fn a_node_is_decoded() {
    let node: Node = object("node");
    let want = Node {
        name: "node-a".into(),
        resource_version: node.resource_version,
        zone: Some("zone-a".into()),
        is_ready: true,
        is_control_plane: true,
        cpu_nanos: 3_920_000_000,
    };
    assert_eq!(node, want);
    assert!(!node.resource_version.is_none());
}

#[test]
fn endpoints_are_decoded_and_encoded() {
    let endpoints: Endpoints = object("endpoints");
    let [subset, second] = &endpoints.subsets[..] else { panic!("two subsets") };
    let nodes: Vec<_> =
        subset.addresses.iter().map(|address| address.node_name.as_deref()).collect();
    assert_eq!(nodes, [Some("node-a"), Some(""), None]);
    assert_eq!(subset.ports[1].app_protocol.as_deref(), Some(""));
    assert_eq!(second.ports[0].protocol, Protocol::Sctp);
    assert!(endpoints.meta.is_deleting());
    assert_eq!(endpoints.meta.deletion_grace_secs, Some(0));
    check_encoded("endpoints", &encode(Encoding::Protobuf, &Object::Endpoints(endpoints)));
}

#[test]
fn a_slice_is_decoded_and_encoded() {
    let slice: EndpointSlice = object("endpointslice");
    let [full, hollow, bare] = &slice.endpoints[..] else { panic!("three endpoints") };
    assert_eq!(full.hints.as_ref().unwrap().for_zones.len(), 2);
    assert_eq!(full.deprecated_topology.len(), 1);
    assert_eq!(hollow.hints, Some(Default::default()));
    assert_eq!(hollow.node_name.as_deref(), Some(""));
    assert_eq!(hollow.target_ref, Some(Default::default()));
    assert_eq!((&bare.hints, &bare.node_name, &bare.target_ref), (&None, &None, &None));
    assert_eq!(slice.ports[1].name.as_deref(), Some(""));
    assert_eq!((&slice.ports[2].name, slice.ports[2].port), (&None, None));
    assert_eq!(slice.meta.owners.len(), 2);
    assert_eq!(slice.meta.annotations.len(), 2);
    assert_eq!(slice.meta.finalizers.len(), 1);
    check_encoded("endpointslice", &encode(Encoding::Protobuf, &Object::Slice(slice)));
}

/// Content that comes from `witness` was not decoded from the response.
fn stored(name: &str, witness: &Object, sent: &Object) -> Object {
    let answer = read(&format!("{name}.pb"));
    let body = encode(Encoding::Protobuf, sent).into();
    let sent = SentObject { object: witness, body: &body };
    decode_stored(Encoding::Protobuf, &answer, sent).expect("a good answer")
}

#[test]
fn a_slice_stored_as_sent_is_not_decoded_again() {
    let slice: EndpointSlice = object("endpointslice");
    let meta = Meta { name: "witness".into(), ..Meta::default() };
    let witness = Object::Slice(EndpointSlice { meta, ..EndpointSlice::default() });
    let whole = Object::Slice(slice.clone());
    let events = stored("endpointslice", &witness, &whole);
    let expected = EndpointSlice { meta: slice.meta.clone(), ..EndpointSlice::default() };
    assert_eq!(events, Object::Slice(expected), "new metadata, and the rest as it was sent");
    let mut other = slice;
    other.endpoints[1].zone = Some("elsewhere".into());
    assert_eq!(stored("endpointslice", &witness, &Object::Slice(other)), whole);
}

#[test]
fn endpoints_stored_as_sent_are_not_decoded_again() {
    let endpoints: Endpoints = object("endpoints");
    let witness = Object::Endpoints(Endpoints::default());
    let whole = Object::Endpoints(endpoints.clone());
    let events = stored("endpoints", &witness, &whole);
    let expected = Endpoints { meta: endpoints.meta.clone(), ..Endpoints::default() };
    assert_eq!(events, Object::Endpoints(expected), "new metadata, and the rest as it was sent");
    let mut other = endpoints;
    other.subsets.pop();
    assert_eq!(stored("endpoints", &witness, &Object::Endpoints(other)), whole);
}

#[test]
fn a_delete_is_encoded() {
    let target = DeleteTarget {
        resource: PublishedResource::Slices,
        key: Key::new("shop", "web-x7k2p"),
        uid: "9d3c1d3e-57b8-4a59-9a43-9e55a2f6e7f1".into(),
        resource_version: 4711.into(),
    };
    check_encoded("deleteoptions", &encode_delete(Encoding::Protobuf, &target));
    let json = concat!(
        r#"{"apiVersion":"v1","kind":"DeleteOptions","preconditions":"#,
        r#"{"uid":"9d3c1d3e-57b8-4a59-9a43-9e55a2f6e7f1","resourceVersion":"4711"}}"#
    );
    assert_eq!(encode_delete(Encoding::Json, &target), json.as_bytes());
}

#[test]
fn lists_are_decoded() {
    let pods: Page<Pod> = list("podlist");
    assert_eq!((pods.resource_version, pods.continue_token.as_deref()), (200.into(), Some("next")));
    assert_eq!(pods.items[0], object("pod"));
    assert_eq!((pods.items[1].phase, pods.items[1].is_terminating), (Phase::Failed, true));
    assert_eq!((pods.items.len(), pods.malformed.len()), (2, 0));
    let slices: Page<EndpointSlice> = list("endpointslicelist");
    assert_eq!((slices.continue_token, slices.items.len()), (None, 2));
    assert_eq!(slices.items[1], object("endpointslice"));
}

#[test]
fn a_status_is_decoded() {
    let status: Status =
        both("status", |encoding, body| decode_status(encoding, body).expect("a status"));
    assert_eq!((status.code, status.reason.as_str()), (403, "Forbidden"));
    assert!(status.has_cause("NamespaceTerminating"));
    assert_eq!(status.details.retry_after_seconds, 2);
}

/// One line for each event of a stream that is received in pieces of `n_bytes`.
fn events(encoding: Encoding, stream: &[u8], n_bytes: usize) -> Vec<String> {
    let mut frames = Frames::new(encoding);
    let mut events = Vec::new();
    for piece in stream.chunks(n_bytes) {
        frames.push(piece);
        while let Some(frame) = frames.next_frame().expect("short frames") {
            let event = decode_watch_event::<Pod>(encoding, &frame).expect("a golden event");
            events.push(match event {
                WatchEvent::Added(pod) => format!("added {}", pod.resource_version),
                WatchEvent::Modified(pod) => format!("modified {}", pod.resource_version),
                WatchEvent::Deleted(pod) => format!("deleted {}", pod.resource_version),
                WatchEvent::Bookmark(mark) => {
                    format!("bookmark {} {}", mark.resource_version, mark.ends_initial_events)
                }
                WatchEvent::Error(status) => format!("error {} {}", status.code, status.reason),
            });
        }
    }
    events
}

#[test]
fn a_watch_is_decoded_from_pieces_of_any_length() {
    let want = [
        "added 100",
        "bookmark 101 true",
        "modified 102",
        "deleted 103",
        "bookmark 104 false",
        "error 410 Expired",
    ];
    for n_bytes in [1, 7, 1000, usize::MAX] {
        assert_eq!(events(Encoding::Json, &read("watch.jsonl"), n_bytes), want);
        assert_eq!(events(Encoding::Protobuf, &read("watch.pb"), n_bytes), want);
    }
}

#[test]
fn a_response_of_another_kind_is_malformed() {
    for (encoding, name) in [(Encoding::Json, "status.json"), (Encoding::Protobuf, "status.pb")] {
        let error = decode::<Pod>(encoding, &read(name)).unwrap_err();
        let want = "malformed Pod without a name: the object is of another kind: `v1` `Status`";
        assert_eq!(error.to_string(), want);
        assert!(decode_list::<Pod>(encoding, &read(name)).is_err());
    }
}
