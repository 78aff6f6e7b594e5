//! Decoding of JSON that upstream would not encode: missing, null, or wrong fields.

use endpointd_model::{ClusterIp, EndpointSlice, Endpoints, Family, Node, Phase, Pod, Protocol};
use endpointd_model::{Service, TargetPort, TopologyMode};
use endpointd_wire::{
    AnyObject, Bytes, Decoded, Encoding, Frames, Identity, Malformed, decode, decode_list, flatten,
};
use serde_json::{Value, json};

fn read<T: Decoded>(object: &Value) -> T {
    decode(Encoding::Json, &object.to_string().into())
        .unwrap_or_else(|error| panic!("{error}: {object}"))
}

fn refuse<T: Decoded>(body: &str) -> Malformed {
    decode::<T>(Encoding::Json, &Bytes::copy_from_slice(body.as_bytes()))
        .map(|_| ())
        .expect_err("wrong on purpose")
}

#[test]
fn a_service_is_decoded_with_the_defaults_of_the_api_server() {
    let service: Service = read(&json!({
        "metadata": {"name": "web", "labels": {"a": null}},
        "spec": {"ports": [{"port": 80}, {"port": 81, "targetPort": null, "protocol": null},
            {"port": 82, "targetPort": 0}, {"port": 83, "targetPort": "http"}, null],
            "selector": null, "ipFamilies": ["IPv5", "IPv6"], "trafficDistribution": "Nearby"},
    }));
    let targets: Vec<TargetPort> = service.ports.iter().map(|port| port.target.clone()).collect();
    let number = TargetPort::Number;
    assert_eq!(
        targets,
        [number(80), number(81), number(0), TargetPort::Name("http".into()), number(0)]
    );
    assert!(service.ports.iter().all(|port| port.protocol == Protocol::Tcp));
    assert!(service.selector.is_empty() && service.labels.has("a", ""));
    assert_eq!(service.families, [Family::V6]);
    assert_eq!((service.cluster_ip, service.traffic_distribution), (ClusterIp::Unset, None));
}

#[test]
fn cluster_ips_are_classified() {
    for (text, want) in [
        (json!(null), ClusterIp::Unset),
        (json!(""), ClusterIp::Unset),
        (json!("None"), ClusterIp::Headless),
        (json!("10.0.0.1"), ClusterIp::Ip(Family::V4)),
        (json!("fd00::1"), ClusterIp::Ip(Family::V6)),
        (json!("none of these"), ClusterIp::Ip(Family::V4)),
    ] {
        let service: Service = read(&json!({"spec": {"clusterIP": text}}));
        assert_eq!(service.cluster_ip, want, "{text}");
    }
}

#[test]
fn the_older_topology_annotation_wins() {
    let annotations = json!({"service.kubernetes.io/topology-mode": "Auto"});
    let mut object = json!({"metadata": {"annotations": annotations}});
    assert_eq!(read::<Service>(&object).topology, TopologyMode::Auto);
    object["metadata"]["annotations"]["service.kubernetes.io/topology-aware-hints"] = json!("no");
    assert_eq!(read::<Service>(&object).topology, TopologyMode::Off);
}

#[test]
fn a_pod_is_decoded() {
    let pod: Pod = read(&json!({
        "metadata": {"deletionTimestamp": "0001-01-01T00:00:00Z"},
        "spec": {"nodeName": "", "hostname": "", "containers": [null, {"ports": [
            {"containerPort": 1}, {"name": "x", "containerPort": 2}]}],
            "initContainers": [{"ports": [{"name": "once"}]},
                {"restartPolicy": "Always", "ports": [{"name": "always", "protocol": "QUIC"}]}]},
        "status": {"phase": "Succeeded", "podIP": "", "podIPs": [{"ip": "garbage"}, {}],
            "conditions": [{"type": "Ready", "status": "Unknown",
                "lastTransitionTime": "2026-01-01T01:00:00.9+01:00"}]},
    }));
    assert!(pod.is_terminating && pod.node_name.is_none() && pod.hostname.is_none());
    assert_eq!((pod.ips.primary.is_none(), pod.ips.all.len()), (true, 2));
    assert_eq!(pod.phase, Phase::Succeeded);
    let ports: Vec<&str> = pod.named_ports.iter().map(|port| &*port.name).collect();
    assert_eq!(ports, ["x", "always"]);
    let readiness = pod.readiness.expect("a condition");
    // Whole seconds, as in protobuf.
    assert_eq!(readiness.since.expect("a time").to_string(), "2026-01-01T00:00:00Z");
    assert!(!readiness.is_ready);
}

#[test]
fn a_node_is_decoded() {
    let object = json!({
        "metadata": {"labels": {"topology.kubernetes.io/zone": "",
            "node-role.kubernetes.io/master": ""}},
        "status": {"allocatable": {"cpu": 2, "memory": null}, "conditions": null},
    });
    let node: Node = read(&object);
    assert_eq!((node.zone, node.cpu_nanos), (None, 2_000_000_000));
    assert!(node.is_control_plane && !node.is_ready);
}

#[test]
fn every_form_of_no_creation_time_is_none() {
    for time in [json!(null), json!("0001-01-01T00:00:00Z")] {
        let object = json!({"metadata": {"creationTimestamp": time}});
        assert_eq!(read::<Service>(&object).created, None);
        assert_eq!(read::<EndpointSlice>(&object).meta.created, None);
    }
    assert_eq!(read::<Service>(&json!({})).created, None);
}

#[test]
fn an_object_without_fields_is_empty() {
    for body in [json!({}), json!({"metadata": null, "spec": null, "status": null})] {
        assert_eq!(read::<Pod>(&body), Pod::default());
        assert_eq!(read::<Service>(&body), Service::default());
        assert_eq!(read::<Node>(&body), Node::default());
        assert_eq!(read::<Endpoints>(&body), Endpoints::default());
        assert!(read::<EndpointSlice>(&body).endpoints.is_empty());
    }
}

#[test]
fn a_malformed_object_is_reported_by_name_and_field() {
    let object = json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"namespace": "shop", "name": "web"},
        "spec": {"ports": [{"port": 80}, {"port": "eighty"}]}});
    let want = "malformed Service `shop/web`: `spec.ports[1].port`: \
        invalid type: string \"eighty\", expected i32";
    let by_value = AnyObject::from_value(&object).expect_err("wrong on purpose");
    assert_eq!(by_value.to_string(), want);
    let by_bytes = refuse::<Service>(&object.to_string());
    assert_eq!((by_bytes.path, by_bytes.identity), (by_value.path, by_value.identity));
}

#[test]
fn malformed_objects_give_their_field_and_reason() {
    for (body, path) in [
        (r#"{"metadata": []}"#, "metadata"),
        (r#"{"metadata": {"labels": {"a": 1}}}"#, "metadata.labels.a"),
        (r#"{"metadata": {"creationTimestamp": "yesterday"}}"#, "metadata.creationTimestamp"),
        (r#"{"metadata": {"creationTimestamp": ""}}"#, "metadata.creationTimestamp"),
        (r#"{"spec": {"ports": [{"port": 4294967296}]}}"#, "spec.ports[0].port"),
        (r#"{"spec": {"ports": [{"targetPort": 4294967296}]}}"#, "spec.ports[0].targetPort"),
        (r#"{"spec": {"ports": [{"targetPort": 1.5}]}}"#, "spec.ports[0].targetPort"),
        (r#"{"spec": {"ipFamilies": "IPv4"}}"#, "spec.ipFamilies"),
        (r#"{"spec": {"publishNotReadyAddresses": "yes"}}"#, "spec.publishNotReadyAddresses"),
    ] {
        assert_eq!(refuse::<Service>(body).path, path, "{body}");
    }
    for body in ["", "{", "[]", "{} {}", "nul", "\"text\"", "7"] {
        refuse::<Service>(body);
    }
}

#[test]
fn a_malformed_item_does_not_affect_other_items() {
    let list = json!({"apiVersion": "v1", "kind": "PodList", "items": [
        {"metadata": {"name": "a"}},
        {"metadata": {"name": "b", "namespace": "shop"}, "spec": {"nodeName": 7}},
        {"metadata": {"name": "c"}}]});
    let page = decode_list::<Pod>(Encoding::Json, &list.to_string().into()).expect("a list");
    let names: Vec<&str> = page.items.iter().map(|pod| &*pod.name).collect();
    assert_eq!(names, ["a", "c"]);
    assert_eq!(page.malformed[0].identity.to_string(), "Pod `shop/b`");
    assert_eq!(page.malformed[0].path, "spec.nodeName");
}

#[test]
fn objects_of_any_kind_are_recognized() {
    let kind = |api_version: &str, kind: &str| {
        AnyObject::from_value(&json!({"apiVersion": api_version, "kind": kind}))
            .expect("an object of some kind")
    };
    assert!(matches!(kind("v1", "Pod"), Some(AnyObject::Pod(_))));
    let slice = kind("discovery.k8s.io/v1", "EndpointSlice");
    assert!(matches!(slice, Some(AnyObject::EndpointSlice(_))));
    for (api_version, name) in
        [("v1", "ConfigMap"), ("serving.knative.dev/v1", "Service"), ("v1", "EndpointSlice")]
    {
        assert_eq!(kind(api_version, name), None);
    }
    for (value, path) in [
        (json!(7), ""),
        (json!([]), ""),
        (json!({"kind": "Pod"}), "apiVersion"),
        (json!({"apiVersion": "v1"}), "kind"),
        (json!({"apiVersion": "v1", "kind": 7}), "kind"),
        (json!({"apiVersion": "v1", "kind": "PodList", "items": 7}), "items"),
    ] {
        assert_eq!(AnyObject::from_value(&value).expect_err("no object").path, path, "{value}");
    }
}

#[test]
fn lists_are_flattened_in_order() {
    let item = |name: &str| json!({"metadata": {"name": name}});
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "PodList", "items": [item("a"), item("b")]},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}},
        {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSliceList", "items": [item("d")]},
        {"apiVersion": "v1", "kind": "NodeList", "items": null},
        {"apiVersion": "v1", "kind": "ServiceList", "items": {"not": "a list"}}]});
    let told: Vec<String> =
        flatten(list).iter().map(|value| Identity::of(value).to_string()).collect();
    let want = ["Pod `a`", "Pod `b`", "ConfigMap `c`", "EndpointSlice `d`"];
    assert_eq!(told[..4], want);
    assert_eq!(told[4], "ServiceList without a name");
    assert_eq!(flatten(json!(7)), [json!(7)]);
}

#[test]
fn media_types_are_recognized_with_any_parameters() {
    let of = Encoding::of_media_type;
    assert_eq!(of("application/json; charset=utf-8"), Some(Encoding::Json));
    let stream = "application/vnd.kubernetes.protobuf;stream=watch";
    assert_eq!(of(stream), Some(Encoding::Protobuf));
    assert_eq!(of("text/html"), None);
}

#[test]
fn a_frame_over_the_limit_is_an_error() {
    let mut frames = Frames::new(Encoding::Protobuf);
    frames.push(&[0xff; 8]);
    assert!(frames.next_frame().is_err());
    let mut frames = Frames::new(Encoding::Json);
    frames.push(&vec![b' '; (16 << 20) + 1]);
    assert!(frames.next_frame().is_err());
    let mut frames = Frames::new(Encoding::Json);
    frames.push(b"\n\r\n{}\n{");
    assert_eq!(frames.next_frame().unwrap().as_deref(), Some(&b"{}\n"[..]));
    assert_eq!(frames.next_frame(), Ok(None));
}
