//! Services and what people do with them.

use endpointd_model::{
    ClusterIp, Family, Labels, Protocol, Service, ServicePort, TargetPort, TopologyMode,
    TrafficDistribution,
};

use super::{Variety, labels, service_key};
use crate::api::Api;
use crate::script::{Place, ServiceAct};

pub fn perform(api: &mut Api, place: Place, what: ServiceAct) {
    let key = service_key(place);
    let Some(old) = api.services.get(&key).map(|one| Service::clone(one)) else {
        if let ServiceAct::Create(variety) | ServiceAct::Recreate(variety) = what
            && api.is_active(&key.namespace)
        {
            create(api, place, variety);
        }
        return;
    };
    match what {
        ServiceAct::Create(_) => {}
        ServiceAct::Remove => api.remove_service(&key),
        ServiceAct::Recreate(variety) => {
            api.remove_service(&key);
            if api.is_active(&key.namespace) {
                create(api, place, variety);
            }
        }
        ServiceAct::Relabel(_)
        | ServiceAct::Ports(_)
        | ServiceAct::Select(_)
        | ServiceAct::Unselect
        | ServiceAct::External
        | ServiceAct::Internal
        | ServiceAct::PublishNotReady
        | ServiceAct::PublishReady
        | ServiceAct::Families(_)
        | ServiceAct::Topology(_)
        | ServiceAct::Delete => {
            let mut new = old.clone();
            change(&mut new, what);
            if new != old {
                api.put_service(new);
            }
        }
    }
}

fn change(service: &mut Service, what: ServiceAct) {
    match what {
        ServiceAct::Relabel(variety) => service.labels = labels_of(&mut Variety(variety)),
        ServiceAct::Ports(variety) => service.ports = ports(&mut Variety(variety)),
        ServiceAct::Select(variety) => {
            service.selector = selector(&service.name, &mut Variety(variety));
        }
        ServiceAct::Unselect => service.selector = Labels::default(),
        ServiceAct::External => service.is_external_name = true,
        ServiceAct::Internal => service.is_external_name = false,
        ServiceAct::PublishNotReady => service.publish_not_ready = true,
        ServiceAct::PublishReady => service.publish_not_ready = false,
        ServiceAct::Families(variety) => addresses(service, &mut Variety(variety)),
        ServiceAct::Topology(variety) => topology(service, &mut Variety(variety)),
        ServiceAct::Delete => service.is_deleting = true,
        ServiceAct::Create(_) | ServiceAct::Remove | ServiceAct::Recreate(_) => {}
    }
}

fn create(api: &mut Api, place: Place, variety: u32) {
    let key = service_key(place);
    let mut variety = Variety(variety);
    let mut service = Service {
        namespace: key.namespace,
        name: key.name.clone(),
        uid: api.new_uid(),
        created: Some(api.now.timestamp(api.skew_secs)),
        selector: selector(&key.name, &mut variety),
        labels: labels_of(&mut variety),
        ports: ports(&mut variety),
        publish_not_ready: variety.pick(6) == 0,
        ..Service::default()
    };
    // Most are as the API server makes them: one family and an address of it.
    (service.families, service.cluster_ip) = (vec![Family::V4], ClusterIp::Ip(Family::V4));
    if variety.pick(4) == 0 {
        addresses(&mut service, &mut variety);
    }
    if variety.pick(3) == 0 {
        topology(&mut service, &mut variety);
    }
    api.put_service(service);
}

/// `old` is the one people write Endpoints for.
fn selector(name: &str, variety: &mut Variety) -> Labels {
    if name == "old" {
        return Labels::default();
    }
    let app = if name.starts_with("svc-") { "web" } else { name };
    match variety.pick(8) {
        0 => labels([("tier", "front")]),
        1 => labels([("app", "web")]),
        2 => labels([("app", app), ("tier", "front")]),
        _ => labels([("app", app)]),
    }
}

fn labels_of(variety: &mut Variety) -> Labels {
    match variety.pick(5) {
        0 => labels([("team", "a")]),
        1 => labels([("team", "b"), ("tier", "gold")]),
        // Reserved, and yet there.
        2 => labels([("team", "a"), ("service.kubernetes.io/headless", "")]),
        _ => Labels::default(),
    }
}

fn ports(variety: &mut Variety) -> Vec<ServicePort> {
    let port = |name: &str, target| ServicePort {
        name: name.into(),
        protocol: Protocol::Tcp,
        app_protocol: None,
        target,
    };
    let named = |name: &str| TargetPort::Name(name.into());
    match variety.pick(8) {
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

fn addresses(service: &mut Service, variety: &mut Variety) {
    let (families, cluster_ip) = match variety.pick(7) {
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

fn topology(service: &mut Service, variety: &mut Variety) {
    let (topology, distribution) = match variety.pick(6) {
        0 | 1 => (TopologyMode::Auto, None),
        2 => (TopologyMode::Off, Some(TrafficDistribution::PreferClose)),
        3 => (TopologyMode::Off, Some(TrafficDistribution::PreferSameNode)),
        4 => (TopologyMode::Auto, Some(TrafficDistribution::PreferSameZone)),
        _ => (TopologyMode::Off, None),
    };
    (service.topology, service.traffic_distribution) = (topology, distribution);
}
