//! Small objects for scripted tests: Services select `app=<name>`, and the name of a pod starts with
//! the name of its Service.

use endpointd_engine::Settings;
use endpointd_model::{
    ClusterIp, Endpoint, EndpointAddress, EndpointPort, EndpointSlice, Endpoints, Family, Key,
    Labels, Meta, Node, Object, Pod, PodIp, PodIps, Protocol, PublishedResource, Readiness,
    Service, ServicePort, Subset, TargetPort, Uid, names,
};

use crate::cluster::Cluster;

pub fn key(name: &str) -> Key {
    Key::new("ns", name)
}

pub fn labels(app: &str) -> Labels {
    [("app", app)].into_iter().collect()
}

pub fn service(name: &str) -> Service {
    let port = ServicePort {
        name: "".into(),
        protocol: Protocol::Tcp,
        number: 80,
        app_protocol: None,
        target: TargetPort::Number(80),
    };
    Service {
        namespace: "ns".into(),
        name: name.into(),
        selector: labels(name),
        cluster_ip: ClusterIp::Ip(Family::V4),
        families: vec![Family::V4],
        ports: vec![port],
        ..Service::default()
    }
}

/// `web-3` is a ready pod of Service `web` with address 10.0.0.3 on node `n`.
pub fn pod(name: &str) -> Pod {
    let (app, ordinal) = name.rsplit_once('-').expect("pods are named <service>-<n>");
    let ordinal: u32 = ordinal.parse().expect("pods are named <service>-<n>");
    let ip = PodIp::parse(&format!("10.0.{}.{}", ordinal / 200, 1 + ordinal % 200));
    Pod {
        namespace: "ns".into(),
        name: name.into(),
        uid: Uid::from(format!("pod-{name}").as_str()),
        labels: labels(app),
        node_name: Some("n".into()),
        ips: PodIps { primary: Some(ip.clone()), all: [ip].into() },
        readiness: Some(Readiness { is_ready: true, since: None }),
        ..Pod::default()
    }
}

pub fn node(name: &str) -> Node {
    Node { name: name.into(), is_ready: true, ..Node::default() }
}

/// A slice that the endpointslice controller has written; an address with `!` is not ready.
pub fn slice_of(service: &Key, name: &str, addresses: &[&str]) -> EndpointSlice {
    let endpoint = |address: &&str| {
        let mut endpoint = Endpoint {
            addresses: vec![address.trim_end_matches('!').into()],
            ..Endpoint::default()
        };
        endpoint.conditions.ready = Some(!address.ends_with('!'));
        endpoint
    };
    let labels =
        [(names::SERVICE_NAME, &*service.name), (names::MANAGED_BY, names::MANAGED_BY_SLICES)];
    EndpointSlice {
        meta: Meta {
            namespace: service.namespace.clone(),
            name: name.into(),
            labels: labels.into_iter().collect(),
            ..Meta::default()
        },
        endpoints: addresses.iter().map(endpoint).collect(),
        ports: vec![EndpointPort {
            name: Some("".into()),
            port: Some(80),
            ..EndpointPort::default()
        }],
        ..EndpointSlice::default()
    }
}

pub fn unready(pod: &mut Pod) {
    pod.readiness = Some(Readiness { is_ready: false, since: None });
}

pub fn ready(pod: &mut Pod) {
    pod.readiness = Some(Readiness { is_ready: true, since: None });
}

/// A converged cluster with one node and, for each Service, its pods.
pub fn converged(services: &[(&str, usize)]) -> Cluster {
    let mut cluster = Cluster::new(Settings::default());
    cluster.put_node(node("n"));
    for (name, n_pods) in services {
        cluster.put_service(service(name));
        for n in 0..*n_pods {
            cluster.put_pod(pod(&format!("{name}-{n}")));
        }
    }
    cluster.start();
    cluster.clear_log();
    cluster
}

/// `10.0.0.1 ready` for each endpoint of a Service, sorted.
pub fn endpoints(cluster: &Cluster, service: &str) -> Vec<String> {
    let mut found: Vec<String> = cluster
        .slices()
        .into_iter()
        .filter(|slice| slice.meta.labels.has("kubernetes.io/service-name", service))
        .filter(|slice| !slice.meta.is_deleting())
        .flat_map(|slice| &slice.endpoints)
        .map(|one| {
            let state = if one.is_ready() { "ready" } else { "unready" };
            format!("{} {state}", one.addresses[0])
        })
        .collect();
    found.sort();
    found
}

/// Addresses of the Endpoints object, those that are not ready in parentheses.
pub fn addresses(cluster: &Cluster, service: &str) -> Vec<String> {
    let object = cluster.object(PublishedResource::Endpoints, &key(service));
    let Some(Object::Endpoints(endpoints)) = object else { return Vec::new() };
    let of = |subset: &Subset| {
        let ready = subset.addresses.iter().map(|one| one.ip.to_string());
        let unready = subset.not_ready_addresses.iter().map(|one| format!("({})", one.ip));
        ready.chain(unready).collect::<Vec<_>>()
    };
    endpoints.subsets.iter().flat_map(of).collect()
}

/// Endpoints that a person wrote.
pub fn manual_endpoints(name: &str) -> Object {
    let meta = Meta { namespace: "ns".into(), name: name.into(), ..Meta::default() };
    let address = EndpointAddress { ip: "10.1.0.1".into(), ..EndpointAddress::default() };
    let subset = Subset { addresses: vec![address], ..Subset::default() };
    Object::Endpoints(Endpoints { meta, subsets: vec![subset] })
}
