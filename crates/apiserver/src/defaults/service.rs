//! Services, except cluster IPs and node ports, which are in `allocation`.

use serde_json::{Value, json};

use super::{fill, keep_old_status, remove};

pub(crate) fn is_headless(spec: &Value) -> bool {
    spec["clusterIP"] == "None" || spec["clusterIPs"][0] == "None"
}

/// Upstream: `ExternallyAccessible`.
pub(crate) fn is_external(spec: &Value) -> bool {
    spec["type"] == "LoadBalancer"
        || spec["type"] == "NodePort"
        || (spec["type"] == "ClusterIP" && spec["externalIPs"].is_array())
}

pub(crate) fn default_service(object: &mut Value) {
    let spec = &mut object["spec"];
    fill(spec, "sessionAffinity", json!("None"));
    affinity(spec);
    fill(spec, "type", json!("ClusterIP"));
    for port in spec["ports"].as_array_mut().into_iter().flatten() {
        fill(port, "protocol", json!("TCP"));
        if port["targetPort"] == 0 || port["targetPort"] == "" || port["targetPort"].is_null() {
            port["targetPort"] = port["port"].clone();
        }
    }
    if is_external(spec) {
        fill(spec, "externalTrafficPolicy", json!("Cluster"));
    }
    if ["NodePort", "LoadBalancer", "ClusterIP"].iter().any(|one| spec["type"] == *one) {
        fill(spec, "internalTrafficPolicy", json!("Cluster"));
    }
    if spec["type"] == "LoadBalancer" {
        fill(spec, "allocateLoadBalancerNodePorts", json!(true));
        let ingress = object["status"]["loadBalancer"]["ingress"].as_array_mut();
        for entry in ingress.into_iter().flatten().filter(|entry| entry["ip"].is_string()) {
            fill(entry, "ipMode", json!("VIP"));
        }
    }
}

fn affinity(spec: &mut Value) {
    const TIMEOUT_SECS: i64 = 10_800;
    match spec["sessionAffinity"].as_str() {
        Some("None") => remove(spec, "sessionAffinityConfig"),
        Some("ClientIP") => {
            let timeout = &spec["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"];
            if timeout.is_null() {
                spec["sessionAffinityConfig"] =
                    json!({"clientIP": {"timeoutSeconds": TIMEOUT_SECS}});
            }
        }
        _ => {}
    }
}

pub(crate) fn prepare_create(object: &mut Value) {
    object["status"] = json!({"loadBalancer": {}});
}

pub(crate) fn prepare_update(new: &mut Value, old: &Value) {
    keep_old_status(new, old);
    remove_fields_of_old_type(&mut new["spec"], &old["spec"]);
}

/// Removes fields that belong to the old type, if the client did not change them. Upstream:
/// `dropTypeDependentFields`.
fn remove_fields_of_old_type(new: &mut Value, old: &Value) {
    let needs_cluster_ip = |spec: &Value| spec["type"] != "ExternalName";
    if needs_cluster_ip(old) && !needs_cluster_ip(new) {
        for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            if new[field] == old[field] {
                remove(new, field);
            }
        }
    }
    let needs_node_port = |spec: &Value| {
        spec["type"] == "NodePort"
            || (spec["type"] == "LoadBalancer" && spec["allocateLoadBalancerNodePorts"] == true)
    };
    if needs_node_port(old) && !needs_node_port(new) {
        let kept = |port: &Value| port["nodePort"].clone();
        let before: Vec<Value> = old["ports"].as_array().into_iter().flatten().map(kept).collect();
        for port in new["ports"].as_array_mut().into_iter().flatten() {
            if before.contains(&port["nodePort"]) {
                remove(port, "nodePort");
            }
        }
    }
    if old["type"] == "LoadBalancer" && new["type"] != "LoadBalancer" {
        for field in ["allocateLoadBalancerNodePorts", "loadBalancerClass"] {
            if new[field] == old[field] {
                remove(new, field);
            }
        }
    }
    if new["type"] == "ExternalName" && new["internalTrafficPolicy"] == old["internalTrafficPolicy"]
    {
        remove(new, "internalTrafficPolicy");
    }
    if is_external(old) && !is_external(new) {
        let field = "externalTrafficPolicy";
        if new[field] == old[field] {
            remove(new, field);
        }
    }
}
