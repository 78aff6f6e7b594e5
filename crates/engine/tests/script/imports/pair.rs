//! A consumer and its source.

use endpointd_engine::{ControllerSettings, Settings};
use endpointd_memory_api::NamespaceState;
use endpointd_model::{
    ClusterIp, Controller, CrossNamespace, EndpointSlice, Family, GrantedFrom, GrantedTo, Key,
    Labels, Object, ReferenceGrant, Service, Uid,
};

use crate::cluster::Cluster;
use crate::objects;

pub fn settings() -> Settings {
    let controllers = vec![ControllerSettings::new(Controller::Import)];
    Settings { controllers, ..Settings::default() }
}

pub fn consumer() -> Key {
    Key::new("shop", "db")
}

pub fn source() -> Key {
    Key::new("data", "postgres")
}

pub fn service(key: &Key, from: Option<&str>, to: Option<&str>) -> Service {
    let cross =
        CrossNamespace { from: from.map(Into::into), to: to.map(Into::into), condition: None };
    let is_set = cross != CrossNamespace::default();
    Service {
        namespace: key.namespace.clone(),
        name: key.name.clone(),
        uid: Uid::from(format!("uid-{key}").as_str()),
        selector: Labels::default(),
        cluster_ip: ClusterIp::Ip(Family::V4),
        families: vec![Family::V4],
        cross_namespace: is_set.then(|| Box::new(cross)),
        ..objects::service("x")
    }
}

/// A slice of the source; an address with `!` is not ready.
pub fn slice(name: &str, addresses: &[&str]) -> EndpointSlice {
    objects::slice_of(&source(), name, addresses)
}

pub fn grant(namespace: &str) -> ReferenceGrant {
    let (group, kind) = ("".into(), "Service".into());
    ReferenceGrant {
        namespace: "data".into(),
        name: "shop-may".into(),
        from: vec![GrantedFrom { group, kind, namespace: namespace.into() }],
        to: vec![GrantedTo { group: "".into(), kind: "Service".into(), name: None }],
        ..ReferenceGrant::default()
    }
}

/// Nothing is started yet.
pub fn cluster_with(to: Option<&str>) -> Cluster {
    let mut cluster = Cluster::new(settings());
    for namespace in ["shop", "data"] {
        cluster.api.namespaces.insert(namespace.into(), NamespaceState::Active);
    }
    cluster.put_service(service(&source(), None, to));
    cluster.put_service(service(&consumer(), Some("data/postgres"), None));
    cluster.put_object(Object::Slice(slice("postgres-a", &["10.0.0.1", "10.0.0.2"])));
    cluster
}

/// A pair at rest.
pub fn pair() -> Cluster {
    let mut cluster = cluster_with(Some("shop"));
    cluster.start();
    cluster
}

/// Changes a Service as `kubectl apply` does: its status stays.
pub fn change(cluster: &mut Cluster, key: &Key, change: impl FnOnce(&mut Service)) {
    let mut service = cluster.service(key).expect("the Service exists").clone();
    change(&mut service);
    cluster.put_service(service);
}

pub fn set_consent(cluster: &mut Cluster, to: Option<&str>) {
    change(cluster, &source(), |service| {
        let cross =
            to.map(|to| CrossNamespace { to: Some(to.into()), ..CrossNamespace::default() });
        service.cross_namespace = cross.map(Box::new);
    });
}

/// The slices of a namespace, each with its addresses.
pub fn published(cluster: &Cluster, namespace: &str) -> Vec<String> {
    let slices = cluster.slices().into_iter().filter(|one| &*one.meta.namespace == namespace);
    let text = |slice: &EndpointSlice| {
        let addresses = slice.endpoints.iter().map(|one| {
            let mark = if one.is_ready() { "" } else { "!" };
            format!("{}{mark}", one.addresses[0])
        });
        addresses.collect::<Vec<_>>().join(" ")
    };
    slices.map(text).collect()
}

pub fn condition(cluster: &Cluster) -> String {
    let service = cluster.service(&consumer()).expect("the consumer exists");
    let cross = service.cross_namespace.as_ref();
    let condition = cross.and_then(|cross| cross.condition.as_ref());
    condition.map_or("none".to_owned(), |one| format!("{} {}", one.status.as_str(), one.reason))
}

/// `verb resource` of what was sent.
pub fn sent(cluster: &Cluster) -> Vec<String> {
    let words = |line: &String| line.rsplit_once(' ').map_or("", |(words, _)| words).to_owned();
    cluster.sent.iter().map(words).collect()
}

pub fn events(cluster: &Cluster) -> Vec<&'static str> {
    cluster.event_records.iter().map(|one| one.reason.as_str()).collect()
}
