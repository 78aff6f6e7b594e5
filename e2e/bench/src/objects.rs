//! The objects of a [`Layout`] as decoded model objects, without shared memory.

use endpointd_model::{
    ClusterIp, Family, Labels, NamedPort, Node, Pod, PodIp, PodIps, Protocol, Readiness, Service,
    ServicePort, TargetPort, Timestamp, Uid,
};

use crate::load::{Layout, PodNumber, layout};

pub fn service(of: &Layout, number: usize, version: u64) -> Service {
    let port = |name: &str| ServicePort {
        name: name.into(),
        protocol: Protocol::Tcp,
        number: 80,
        app_protocol: None,
        target: TargetPort::Name(name.into()),
    };
    let name = layout::service(number);
    Service {
        namespace: of.namespace_of(number).into(),
        name: name.as_str().into(),
        uid: uid(1, number),
        resource_version: version.into(),
        labels: [("app.kubernetes.io/name", &*name), ("tier", "frontend")].into_iter().collect(),
        selector: [("app.kubernetes.io/name", &*name)].into_iter().collect(),
        cluster_ip: ClusterIp::Ip(Family::V4),
        families: vec![Family::V4],
        ports: vec![port("http"), port("metrics")],
        ..Service::default()
    }
}

pub fn node(number: usize, version: u64) -> Node {
    Node {
        name: layout::node(number).into(),
        resource_version: version.into(),
        zone: Some(layout::zone(number).into()),
        is_ready: true,
        ..Node::default()
    }
}

pub fn pod(of: &Layout, number: PodNumber, version: u64, is_ready: bool) -> Pod {
    let service = of.service_of(number);
    let ip = PodIp::parse(&layout::ip(number));
    let port =
        |name: &str, number| NamedPort { name: name.into(), protocol: Protocol::Tcp, number };
    Pod {
        namespace: of.namespace_of(service).into(),
        name: layout::pod(service, number).into(),
        uid: uid(2, number),
        resource_version: version.into(),
        labels: labels(&layout::service(service)),
        node_name: Some(layout::node(number % of.n_nodes).into()),
        ips: PodIps { primary: Some(ip.clone()), all: [ip].into() },
        readiness: Some(Readiness { is_ready, since: Some(since(version)) }),
        named_ports: [port("http", 8080), port("metrics", 9080)].into(),
        ..Pod::default()
    }
}

/// Differs for each version, like the last transition time of a pod that toggles.
fn since(version: u64) -> Timestamp {
    let seconds = i64::try_from(version).unwrap_or_default();
    Timestamp::from_second(1_767_225_600 + seconds % 1_000_000).expect("within this century")
}

fn labels(app: &str) -> Labels {
    let all = [
        ("app.kubernetes.io/name", app),
        ("app.kubernetes.io/part-of", "shop"),
        ("pod-template-hash", "7c9d8b6f5"),
        ("tier", "frontend"),
    ];
    all.into_iter().collect()
}

/// A uid in the API server's format.
pub fn uid(kind: u8, number: usize) -> Uid {
    format!("{kind:08x}-0000-4000-8000-{number:012x}").as_str().into()
}
