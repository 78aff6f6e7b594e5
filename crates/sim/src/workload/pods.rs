//! Changes of pods by users and kubelets.

use std::net::IpAddr;
use std::sync::Arc;

use endpointd_model::{
    Labels, NamedPort, Phase, Pod, PodIp, PodIps, Protocol, Readiness, SharedStr,
};

use super::{SERVICES, ShapeSeed, labels, pod_key};
use crate::script::{Place, PodAction};
use endpointd_memory_api::MemoryApi;

/// Few, so that addresses are reused.
const ADDRESSES: u32 = 24;

pub fn apply(api: &mut MemoryApi, place: Place, what: PodAction) {
    let key = pod_key(place);
    let Some(old) = api.pods.get(&key).map(|pod| Pod::clone(pod)) else {
        if let PodAction::Create(shape) = what
            && api.is_active(&key.namespace)
        {
            create(api, place, shape);
        }
        return;
    };
    match what {
        PodAction::Create(_) => {}
        PodAction::Remove => api.remove_pod(&key),
        PodAction::Replace(shape) => {
            api.remove_pod(&key);
            if api.is_active(&key.namespace) {
                create(api, place, shape);
            }
        }
        PodAction::Ready
        | PodAction::Unready
        | PodAction::Terminate
        | PodAction::Fail
        | PodAction::Succeed
        | PodAction::Relabel(_)
        | PodAction::ChangeAddress(_)
        | PodAction::Move(_)
        | PodAction::Rename(_) => {
            let mut new = old.clone();
            change(api, &mut new, what);
            if new != old {
                api.put_pod(new);
            }
        }
    }
}

fn change(api: &MemoryApi, pod: &mut Pod, what: PodAction) {
    let since = Some(api.now.timestamp(api.skew_secs));
    match what {
        PodAction::Ready if !pod.is_ready() => {
            pod.readiness = Some(Readiness { is_ready: true, since });
        }
        PodAction::Unready if pod.is_ready() => {
            pod.readiness = Some(Readiness { is_ready: false, since });
        }
        PodAction::Terminate => pod.is_terminating = true,
        PodAction::Fail => pod.phase = Phase::Failed,
        PodAction::Succeed => pod.phase = Phase::Succeeded,
        PodAction::Relabel(shape) => pod.labels = labels_of(&mut ShapeSeed(shape)),
        PodAction::ChangeAddress(shape) => pod.ips = addresses(&mut ShapeSeed(shape)),
        // The scheduler sets the node once.
        PodAction::Move(shape) if pod.node_name.is_none() => {
            pod.node_name = node(&mut ShapeSeed(shape));
        }
        PodAction::Rename(shape) => {
            (pod.hostname, pod.subdomain) = names(&mut ShapeSeed(shape));
        }
        PodAction::Ready
        | PodAction::Unready
        | PodAction::Move(_)
        | PodAction::Create(_)
        | PodAction::Remove
        | PodAction::Replace(_) => {}
    }
}

fn create(api: &mut MemoryApi, place: Place, shape: u32) {
    let key = pod_key(place);
    let uid = api.new_uid();
    let mut shape = ShapeSeed(shape);
    let labels = labels_of(&mut shape);
    let ips = addresses(&mut shape);
    let node_name = node(&mut shape);
    let is_ready = shape.pick(3) > 0;
    let since = Some(api.now.timestamp(api.skew_secs));
    let named_ports = named_ports(&mut shape);
    let (hostname, subdomain) = names(&mut shape);
    api.put_pod(Pod {
        namespace: key.namespace,
        name: key.name,
        uid,
        labels,
        node_name,
        hostname,
        subdomain,
        ips,
        readiness: Some(Readiness { is_ready, since }),
        named_ports,
        ..Pod::default()
    });
}

/// Labels that mostly match `web`.
fn labels_of(shape: &mut ShapeSeed) -> Labels {
    let app = shape.one_of(&["web", "web", "web", SERVICES[1], SERVICES[2], "none"]);
    match shape.pick(3) {
        0 => labels([("app", app), ("tier", "front")]),
        _ => labels([("app", app)]),
    }
}

fn addresses(shape: &mut ShapeSeed) -> PodIps {
    let number = shape.pick(ADDRESSES) as u8;
    let v4 = PodIp::Ip(IpAddr::from([10, 0, 0, number + 1]));
    let v6 = PodIp::parse(&format!("fd00::{:x}", number + 1));
    let (primary, all) = match shape.pick(12) {
        0 => return PodIps::default(),
        1 => (v4.clone(), vec![v4, PodIp::parse("127.0.0.1")]),
        2 => (PodIp::parse("169.254.1.1"), vec![PodIp::parse("169.254.1.1")]),
        3 => (PodIp::parse("nonsense"), vec![PodIp::parse("nonsense")]),
        4 => (v6.clone(), vec![v6, v4]),
        5..=7 => (v4.clone(), vec![v4, v6]),
        _ => (v4.clone(), vec![v4]),
    };
    PodIps { primary: Some(primary), all: all.into() }
}

fn node(shape: &mut ShapeSeed) -> Option<SharedStr> {
    let name = shape.one_of(&["node-0", "node-1", "node-2", "node-3", "node-0", "node-1", ""]);
    (!name.is_empty()).then(|| name.into())
}

fn named_ports(shape: &mut ShapeSeed) -> Arc<[NamedPort]> {
    let port =
        |name: &str, number| NamedPort { name: name.into(), protocol: Protocol::Tcp, number };
    match shape.pick(4) {
        0 => [port("http", 8080)].into(),
        1 => [port("http", 9090), port("metrics", 9100)].into(),
        2 => [].into(),
        _ => [port("http", 8080), port("metrics", 9100)].into(),
    }
}

fn names(shape: &mut ShapeSeed) -> (Option<SharedStr>, Option<SharedStr>) {
    match shape.pick(6) {
        0 => (Some("host".into()), Some("web".into())),
        1 => (Some("host".into()), None),
        _ => (None, None),
    }
}
