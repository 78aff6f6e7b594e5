//! Generates pods: every phase, address, readiness, port, and node that a controller distinguishes.

use serde_json::{Value, json};

use super::{NAMESPACE, Rng};

/// Parameters of all pods of one case.
#[derive(Clone, Copy)]
pub struct PodParams<'a> {
    pub service_name: &'a str,
    pub n_nodes: usize,
    /// The percentage of pods that are ready and ordinary, so that rules about numbers are covered.
    pub percent_plain: usize,
}

pub fn pod(rng: &mut Rng, at: usize, pod_params: PodParams) -> Value {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": format!("pod-{at}"), "namespace": NAMESPACE, "uid": format!("pu-{at}"),
                     "resourceVersion": format!("{}", 2000 + at)},
        "spec": {}, "status": {"phase": "Running"},
    });
    let is_plain = rng.percent(pod_params.percent_plain);
    if is_plain {
        pod["metadata"]["labels"] = json!({"app": "web", "role": "front"});
        set_plain_ips(at, &mut pod);
        let condition =
            json!({"type": "Ready", "status": "True", "lastTransitionTime": rng.time()});
        pod["status"]["conditions"] = json!([condition]);
        pod["spec"]["nodeName"] = format!("node-{}", at % pod_params.n_nodes.max(1)).into();
    } else {
        set_labels(rng, &mut pod);
        set_phase(rng, &mut pod);
        set_ips(rng, at, &mut pod);
        set_readiness(rng, &mut pod);
        set_node(rng, pod_params, &mut pod);
        set_hostname(rng, at, pod_params, &mut pod);
        if rng.percent(12) {
            terminate(rng, &mut pod);
        }
    }
    set_ports(rng, &mut pod);
    pod
}

fn set_labels(rng: &mut Rng, pod: &mut Value) {
    pod["metadata"]["labels"] = match rng.below(40) {
        0 => json!({"app": "other", "role": "front"}),
        1..3 => json!({"app": "web"}),
        3 => json!({"role": "front"}),
        4 => Value::Null,
        5 => json!({"app": "", "role": "front"}),
        _ => json!({"app": "web", "role": "front", "extra": "e"}),
    };
    // A pod with the same labels in another namespace does not match.
    if rng.percent(2) {
        pod["metadata"]["namespace"] = "ns2".into();
    }
}

fn set_phase(rng: &mut Rng, pod: &mut Value) {
    let phase = rng.weighted(&[
        (80, "Running"),
        (8, "Pending"),
        (4, "Failed"),
        (4, "Succeeded"),
        (2, "Unknown"),
        (2, ""),
    ]);
    pod["status"]["phase"] = phase.into();
}

fn v4(at: usize) -> String {
    format!("10.0.{}.{}", at / 250, at % 250 + 1)
}

fn v6(at: usize) -> String {
    format!("fd00:1::{:x}", at + 1)
}

fn set_plain_ips(at: usize, pod: &mut Value) {
    put_ips(pod, &[v4(at), v6(at)]);
}

fn put_ips(pod: &mut Value, ips: &[String]) {
    pod["status"]["podIP"] = ips.first().cloned().into();
    pod["status"]["podIPs"] = ips.iter().map(|ip| json!({"ip": ip})).collect();
}

pub fn set_ips(rng: &mut Rng, at: usize, pod: &mut Value) {
    let other = at + 500;
    let ips = match rng.below(100) {
        0..36 => vec![v4(at)],
        36..58 => vec![v4(at), v6(at)],
        58..68 => vec![v6(at), v4(at)],
        68..80 => vec![v6(at)],
        80..83 => vec![],
        83 => vec![v4(at), v4(other)],
        84 => vec![v6(at), v6(other)],
        85 => vec![v4(other), v4(at), v6(at)],
        86..91 => vec![odd_spelling(rng, at)],
        91 if rng.percent(60) => {
            vec![rng.pick(&["not-an-ip", "10.0.0.256", "fe80::1%eth0"]).to_owned()]
        }
        92 => special(rng, at),
        _ => vec![v4(0), v6(0)],
    };
    put_ips(pod, &ips);
    match rng.below(100) {
        0..3 => pod["status"]["podIPs"] = Value::Null,
        3 => pod["status"]["podIP"] = Value::Null,
        4 => pod["status"]["podIP"] = v6(at).into(),
        _ => {}
    }
}

fn odd_spelling(rng: &mut Rng, at: usize) -> String {
    let low = at % 250 + 1;
    match rng.below(5) {
        0 => format!("010.000.0.{low:03}"),
        1 => format!("::ffff:10.0.0.{low}"),
        2 => format!("FD00:0001:0::{low:X}"),
        3 => format!("fd00:1:0:0::10.0.0.{low}"),
        _ => format!("::FFFF:0a00:{low:04x}"),
    }
}

/// Valid addresses that the API server rejects for endpoints.
fn special(rng: &mut Rng, at: usize) -> Vec<String> {
    let bad = rng.pick(&[
        "127.0.0.1",
        "169.254.1.1",
        "224.0.0.1",
        "0.0.0.0",
        "::1",
        "fe80::1",
        "ff02::1",
        "::",
    ]);
    let mut ips = vec![bad.to_owned()];
    if rng.percent(50) {
        ips.push(v4(at));
    }
    ips
}

pub fn set_readiness(rng: &mut Rng, pod: &mut Value) {
    let status = rng.weighted(&[(60, "True"), (25, "False"), (3, "Unknown"), (12, "")]);
    let mut conditions = Vec::new();
    if rng.percent(20) {
        conditions.push(json!({"type": "Initialized", "status": "True"}));
    }
    if !status.is_empty() {
        let mut condition = json!({"type": "Ready", "status": status});
        if rng.percent(80) {
            condition["lastTransitionTime"] = rng.time().into();
        }
        conditions.push(condition);
    }
    pod["status"]["conditions"] = conditions.into();
}

pub fn set_node(rng: &mut Rng, pod_params: PodParams, pod: &mut Value) {
    pod["spec"]["nodeName"] = match rng.below(100) {
        0..4 => "node-gone".into(),
        4..7 => Value::Null,
        _ if pod_params.n_nodes == 0 => "node-0".into(),
        _ => format!("node-{}", rng.below(pod_params.n_nodes)).into(),
    };
}

pub fn set_hostname(rng: &mut Rng, at: usize, pod_params: PodParams, pod: &mut Value) {
    let host = format!("host-{at}");
    let (hostname, subdomain) = match rng.below(100) {
        0..15 => (Some(host.as_str()), Some(pod_params.service_name)),
        15..19 => (Some(host.as_str()), Some("elsewhere")),
        19..22 => (Some(host.as_str()), None),
        22..24 => (None, Some(pod_params.service_name)),
        _ => (None, None),
    };
    pod["spec"]["hostname"] = hostname.into();
    pod["spec"]["subdomain"] = subdomain.into();
}

pub fn terminate(rng: &mut Rng, pod: &mut Value) {
    pod["metadata"]["deletionTimestamp"] = rng.time().into();
    pod["metadata"]["deletionGracePeriodSeconds"] = 30.into();
}

fn port(name: &str, number: usize, protocol: &str) -> Value {
    json!({"name": name, "containerPort": number, "protocol": protocol})
}

/// Mostly one template for all pods, as in real clusters; sometimes another template or protocol.
fn set_ports(rng: &mut Rng, pod: &mut Value) {
    let (http, protocol) = rng.weighted(&[
        (80, (8080, "TCP")),
        (8, (9000, "TCP")),
        (8, (8080, "UDP")),
        (4, (9090, "SCTP")),
    ]);
    let mut first = vec![port("http", http, protocol)];
    if rng.percent(8) {
        first.push(port("http", 8081, "UDP"));
    }
    if rng.percent(4) {
        first.clear();
    }
    let mut containers = vec![json!({"name": "c", "ports": first})];
    if rng.percent(80) {
        containers.push(json!({"name": "d", "ports": [port("metrics", 9090, "TCP")]}));
    }
    if rng.percent(6) {
        containers.push(json!({"name": "e", "ports": [port("http", 7070, "TCP")]}));
    }
    pod["spec"]["containers"] = containers.into();
    let mut first = Vec::new();
    if rng.percent(20) {
        first.push(json!({"name": "i", "ports": [port("init", 5050, "TCP")]}));
    }
    if rng.percent(30) {
        let ports = json!([port("side", 6060, "TCP"), port("http", 6061, "TCP")]);
        first.push(json!({"name": "s", "restartPolicy": "Always", "ports": ports}));
    }
    pod["spec"]["initContainers"] = first.into();
}

/// Makes one change to a pod.
pub fn change(rng: &mut Rng, at: usize, pod_params: PodParams, pod: &mut Value) {
    match rng.below(14) {
        0..4 => set_readiness(rng, pod),
        4..6 => terminate(rng, pod),
        6 => set_phase(rng, pod),
        7 => set_ips(rng, at, pod),
        8 => set_node(rng, pod_params, pod),
        // Recreated under the same name.
        9 => pod["metadata"]["uid"] = format!("pu-{at}-again").into(),
        10 => set_labels(rng, pod),
        11 => set_hostname(rng, at, pod_params, pod),
        12 => set_ports(rng, pod),
        _ => pod["metadata"]["resourceVersion"] = "2999".into(),
    }
}
