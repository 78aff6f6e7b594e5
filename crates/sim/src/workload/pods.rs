//! Pods and what kubelets do with them.

use std::net::IpAddr;
use std::sync::Arc;

use endpointd_model::{
    Labels, NamedPort, Phase, Pod, PodIp, PodIps, Protocol, Readiness, SharedStr,
};

use super::{SERVICES, Variety, labels, pod_key};
use crate::api::Api;
use crate::script::{Place, PodAct};

/// Few enough that addresses come around.
const ADDRESSES: u32 = 24;

pub fn perform(api: &mut Api, place: Place, what: PodAct) {
    let key = pod_key(place);
    let Some(old) = api.pods.get(&key).map(|pod| Pod::clone(pod)) else {
        if let PodAct::Create(variety) = what
            && api.is_active(&key.namespace)
        {
            create(api, place, variety);
        }
        return;
    };
    match what {
        PodAct::Create(_) => {}
        PodAct::Remove => api.remove_pod(&key),
        PodAct::Replace(variety) => {
            api.remove_pod(&key);
            if api.is_active(&key.namespace) {
                create(api, place, variety);
            }
        }
        PodAct::Ready
        | PodAct::Unready
        | PodAct::Terminate
        | PodAct::Fail
        | PodAct::Succeed
        | PodAct::Relabel(_)
        | PodAct::Readdress(_)
        | PodAct::Move(_)
        | PodAct::Rename(_) => {
            let mut new = old.clone();
            change(api, &mut new, what);
            if new != old {
                api.put_pod(new);
            }
        }
    }
}

fn change(api: &Api, pod: &mut Pod, what: PodAct) {
    let since = Some(api.now.timestamp(api.skew_secs));
    match what {
        PodAct::Ready if !pod.is_ready() => {
            pod.readiness = Some(Readiness { is_ready: true, since });
        }
        PodAct::Unready if pod.is_ready() => {
            pod.readiness = Some(Readiness { is_ready: false, since });
        }
        PodAct::Terminate => pod.is_terminating = true,
        PodAct::Fail => pod.phase = Phase::Failed,
        PodAct::Succeed => pod.phase = Phase::Succeeded,
        PodAct::Relabel(variety) => pod.labels = labels_of(&mut Variety(variety)),
        PodAct::Readdress(variety) => pod.ips = addresses(&mut Variety(variety)),
        // A pod gets its node once.
        PodAct::Move(variety) if pod.node_name.is_none() => {
            pod.node_name = node(&mut Variety(variety));
        }
        PodAct::Rename(variety) => {
            (pod.hostname, pod.subdomain) = names(&mut Variety(variety));
        }
        PodAct::Ready
        | PodAct::Unready
        | PodAct::Move(_)
        | PodAct::Create(_)
        | PodAct::Remove
        | PodAct::Replace(_) => {}
    }
}

fn create(api: &mut Api, place: Place, variety: u32) {
    let key = pod_key(place);
    let uid = api.new_uid();
    let mut variety = Variety(variety);
    let labels = labels_of(&mut variety);
    let ips = addresses(&mut variety);
    let node_name = node(&mut variety);
    let is_ready = variety.pick(3) > 0;
    let since = Some(api.now.timestamp(api.skew_secs));
    let named_ports = named_ports(&mut variety);
    let (hostname, subdomain) = names(&mut variety);
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

/// Mostly behind `web`.
fn labels_of(variety: &mut Variety) -> Labels {
    let app = variety.one_of(&["web", "web", "web", SERVICES[1], SERVICES[2], "none"]);
    match variety.pick(3) {
        0 => labels([("app", app), ("tier", "front")]),
        _ => labels([("app", app)]),
    }
}

fn addresses(variety: &mut Variety) -> PodIps {
    let number = variety.pick(ADDRESSES) as u8;
    let v4 = PodIp::Ip(IpAddr::from([10, 0, 0, number + 1]));
    let v6 = PodIp::parse(&format!("fd00::{:x}", number + 1));
    let (primary, all) = match variety.pick(12) {
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

fn node(variety: &mut Variety) -> Option<SharedStr> {
    let name = variety.one_of(&["node-0", "node-1", "node-2", "node-3", "node-0", "node-1", ""]);
    (!name.is_empty()).then(|| name.into())
}

fn named_ports(variety: &mut Variety) -> Arc<[NamedPort]> {
    let port =
        |name: &str, number| NamedPort { name: name.into(), protocol: Protocol::Tcp, number };
    match variety.pick(4) {
        0 => [port("http", 8080)].into(),
        1 => [port("http", 9090), port("metrics", 9100)].into(),
        2 => [].into(),
        _ => [port("http", 8080), port("metrics", 9100)].into(),
    }
}

fn names(variety: &mut Variety) -> (Option<SharedStr>, Option<SharedStr>) {
    match variety.pick(6) {
        0 => (Some("host".into()), Some("web".into())),
        1 => (Some("host".into()), None),
        _ => (None, None),
    }
}
