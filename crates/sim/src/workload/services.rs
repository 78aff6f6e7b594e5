//! Changes of Services.

use endpointd_model::{
    ClusterIp, Family, Key, Labels, Protocol, Service, ServicePort, TargetPort, TolerateUnready,
    TopologyMode, TrafficDistribution,
};

use super::{CONSUMERS, ShapeSeed, labels, remove_endpoints};
use crate::script::ServiceAction;
use endpointd_memory_api::MemoryApi;

pub fn apply(api: &mut MemoryApi, key: &Key, what: ServiceAction) {
    let Some(old) = api.services.get(key).map(|one| Service::clone(one)) else {
        if let ServiceAction::Create(shape) | ServiceAction::Recreate(shape) = what
            && api.is_active(&key.namespace)
        {
            create(api, key, shape);
        }
        return;
    };
    match what {
        ServiceAction::Create(_) => {}
        ServiceAction::Remove => remove(api, key),
        ServiceAction::RemoveOnly => api.remove_service(key),
        ServiceAction::Recreate(shape) => {
            remove(api, key);
            if api.is_active(&key.namespace) {
                create(api, key, shape);
            }
        }
        ServiceAction::Relabel(_)
        | ServiceAction::Ports(_)
        | ServiceAction::Select(_)
        | ServiceAction::Unselect
        | ServiceAction::External
        | ServiceAction::Internal
        | ServiceAction::PublishNotReady
        | ServiceAction::PublishReady
        | ServiceAction::Tolerate(_)
        | ServiceAction::Families(_)
        | ServiceAction::Topology(_)
        | ServiceAction::Delete => {
            let mut new = old.clone();
            change(&mut new, what);
            if new != old {
                api.put_service(new);
            }
        }
    }
}

fn change(service: &mut Service, what: ServiceAction) {
    match what {
        ServiceAction::Relabel(shape) => service.labels = labels_of(&mut ShapeSeed(shape)),
        ServiceAction::Ports(shape) => service.ports = ports(&mut ShapeSeed(shape)),
        ServiceAction::Select(shape) => {
            service.selector = selector(&service.name, &mut ShapeSeed(shape));
        }
        ServiceAction::Unselect => service.selector = Labels::default(),
        ServiceAction::External => service.is_external_name = true,
        ServiceAction::Internal => service.is_external_name = false,
        ServiceAction::PublishNotReady => service.publish_not_ready = true,
        ServiceAction::PublishReady => service.publish_not_ready = false,
        ServiceAction::Tolerate(shape) => service.tolerate_unready = tolerate(shape),
        ServiceAction::Families(shape) => addresses(service, &mut ShapeSeed(shape)),
        ServiceAction::Topology(shape) => topology(service, &mut ShapeSeed(shape)),
        ServiceAction::Delete => service.is_deleting = true,
        ServiceAction::Create(_)
        | ServiceAction::Remove
        | ServiceAction::RemoveOnly
        | ServiceAction::Recreate(_) => {}
    }
}

/// Upstream: `afterDelete` in `pkg/registry/core/service/storage`.
fn remove(api: &mut MemoryApi, key: &Key) {
    api.remove_service(key);
    remove_endpoints(api, key);
}

fn create(api: &mut MemoryApi, key: &Key, shape: u32) {
    let mut shape = ShapeSeed(shape);
    let mut service = Service {
        namespace: key.namespace.clone(),
        name: key.name.clone(),
        uid: api.new_uid(),
        created: Some(api.now.timestamp(api.skew_secs)),
        selector: selector(&key.name, &mut shape),
        labels: labels_of(&mut shape),
        ports: ports(&mut shape),
        publish_not_ready: shape.pick(6) == 0,
        ..Service::default()
    };
    // Most have the defaults of the API server: one family and an address of it.
    (service.families, service.cluster_ip) = (vec![Family::V4], ClusterIp::Ip(Family::V4));
    if shape.pick(4) == 0 {
        addresses(&mut service, &mut shape);
    }
    if shape.pick(3) == 0 {
        topology(&mut service, &mut shape);
    }
    api.put_service(service);
}

/// `old` has no selector: users write its Endpoints. Consumers get their endpoints from elsewhere.
fn selector(name: &str, shape: &mut ShapeSeed) -> Labels {
    if name == "old" || CONSUMERS.contains(&name) {
        return Labels::default();
    }
    let app = if name.starts_with("svc-") { "web" } else { name };
    match shape.pick(8) {
        0 => labels([("tier", "front")]),
        1 => labels([("app", "web")]),
        2 => labels([("app", app), ("tier", "front")]),
        _ => labels([("app", app)]),
    }
}

fn labels_of(shape: &mut ShapeSeed) -> Labels {
    match shape.pick(5) {
        0 => labels([("team", "a")]),
        1 => labels([("team", "b"), ("tier", "gold")]),
        // Reserved, but set by a user.
        2 => labels([("team", "a"), ("service.kubernetes.io/headless", "")]),
        _ => Labels::default(),
    }
}

fn ports(shape: &mut ShapeSeed) -> Vec<ServicePort> {
    let port = |name: &str, target| ServicePort {
        name: name.into(),
        protocol: Protocol::Tcp,
        number: 80,
        app_protocol: None,
        target,
    };
    let named = |name: &str| TargetPort::Name(name.into());
    match shape.pick(8) {
        0 => vec![port("", TargetPort::Number(80))],
        1 => vec![port("http", named("http"))],
        2 => vec![port("http", named("http")), port("metrics", named("metrics"))],
        3 => vec![],
        4 => {
            let app_protocol = Some("kubernetes.io/h2c".into());
            vec![ServicePort { app_protocol, ..port("h2", TargetPort::Number(8443)) }]
        }
        5 => vec![ServicePort { protocol: Protocol::Udp, ..port("dns", TargetPort::Number(53)) }],
        _ => vec![port("http", TargetPort::Number(8080))],
    }
}

fn addresses(service: &mut Service, shape: &mut ShapeSeed) {
    let (families, cluster_ip) = match shape.pick(7) {
        0 => (vec![Family::V4, Family::V6], ClusterIp::Ip(Family::V4)),
        1 => (vec![Family::V6], ClusterIp::Ip(Family::V6)),
        2 => (vec![Family::V4], ClusterIp::Headless),
        3 => (vec![], ClusterIp::Headless),
        4 => (vec![], ClusterIp::Unset),
        5 => (vec![], ClusterIp::Ip(Family::V6)),
        _ => (vec![Family::V4], ClusterIp::Ip(Family::V4)),
    };
    (service.families, service.cluster_ip) = (families, cluster_ip);
}

fn tolerate(shape: u32) -> TolerateUnready {
    match ShapeSeed(shape).pick(4) {
        0 => TolerateUnready::Unset,
        1 => TolerateUnready::Known(false),
        2 => TolerateUnready::Invalid("maybe".into()),
        _ => TolerateUnready::Known(true),
    }
}

fn topology(service: &mut Service, shape: &mut ShapeSeed) {
    let (topology, distribution) = match shape.pick(6) {
        0 | 1 => (TopologyMode::Auto, None),
        2 => (TopologyMode::Off, Some(TrafficDistribution::PreferClose)),
        3 => (TopologyMode::Off, Some(TrafficDistribution::PreferSameNode)),
        4 => (TopologyMode::Auto, Some(TrafficDistribution::PreferSameZone)),
        _ => (TopologyMode::Off, None),
    };
    (service.topology, service.traffic_distribution) = (topology, distribution);
}
