//! B16: which addresses truncation drops from Endpoints of more than 1000 addresses.

use std::collections::BTreeMap;

use endpointd_model::names;
use serde_json::Value;

/// Both sides have the same number of addresses, and of each subset one side contains the other.
pub fn is_same_but_rounding(upstream: &Value, ours: &Value) -> bool {
    let is_cut = |object: &Value| {
        object["metadata"]["annotations"][names::OVER_CAPACITY] == names::TRUNCATED
    };
    let (upstream_by_ports, ours_by_ports) = (by_ports(upstream), by_ports(ours));
    let total = |lists: &BTreeMap<String, Vec<String>>| lists.values().map(Vec::len).sum::<usize>();
    let n_subsets = |object: &Value| object["subsets"].as_array().map_or(0, Vec::len);
    let n_subsets = n_subsets(upstream).max(n_subsets(ours));
    let keys = upstream_by_ports.keys().chain(ours_by_ports.keys());
    let mut pairs = keys.map(|key| {
        let list =
            |lists: &BTreeMap<String, Vec<String>>| lists.get(key).cloned().unwrap_or_default();
        (list(&upstream_by_ports), list(&ours_by_ports))
    });
    is_cut(upstream)
        && is_cut(ours)
        && n_subsets > 1
        && total(&upstream_by_ports) == total(&ours_by_ports)
        && pairs.all(|(a, b)| {
            let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
            long.len() - short.len() < n_subsets && short.iter().all(|one| long.contains(one))
        })
}

/// Addresses by ports and readiness.
fn by_ports(endpoints: &Value) -> BTreeMap<String, Vec<String>> {
    let mut found = BTreeMap::new();
    for subset in endpoints["subsets"].as_array().into_iter().flatten() {
        for list in ["addresses", "notReadyAddresses"] {
            let addresses = subset[list].as_array().into_iter().flatten();
            let texts: Vec<String> = addresses.map(Value::to_string).collect();
            found.insert(format!("{list} {}", subset["ports"]), texts);
        }
    }
    found
}
