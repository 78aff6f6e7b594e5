//! B9: an address that the API server rejects is excluded; the others are published.

use endpointd_model::{Controller, Key, PodIp, is_forbidden_endpoint_ip, parse_ip};
use serde_json::{Value, json};

use super::{Sync, without};
use crate::answer::Answer;
use crate::judge::Aspect;

/// The case has an invalid address, and both sides publish the same valid ones. Where a limit cuts,
/// an invalid address that upstream publishes can displace a valid one.
pub fn explains(sync: &Sync, aspect: Aspect) -> bool {
    let n_invalid = n_invalid(sync);
    if n_invalid == 0 {
        return false;
    }
    match aspect {
        Aspect::Errors | Aspect::Idempotence => false,
        Aspect::Events => {
            let mut differing = without(&sync.upstream.events, &sync.ours.events);
            differing.extend(without(&sync.ours.events, &sync.upstream.events));
            let depends = |event: &String| {
                ["\"InvalidIPAddress\"", "\"TooManyAddressesToMirror\"", "\"TopologyAwareHints"]
                    .iter()
                    .any(|reason| event.contains(reason))
            };
            differing.iter().all(depends)
        }
        Aspect::Writes
        | Aspect::WriteCounts
        | Aspect::End
        | Aspect::EndShape
        | Aspect::EndUnion
        | Aspect::EndUnionWithHints => {
            let is_cut = sync.upstream.events.iter().any(|event| event.contains("\"TooMany"))
                || sync.ours.endpoints.to_string().contains("over-capacity");
            // Of an address that occurs several times, the comparison uses the first occurrence.
            let is_left = sync.controller == Controller::Endpoints && sync.ours.writes.is_empty();
            let is_either = sync.has_app_protocol_twice();
            let detail =
                if is_cut || is_left || is_either { Detail::Identity } else { Detail::All };
            let (upstream, ours) = (good(sync.upstream, detail), good(sync.ours, detail));
            let (more, less) = (without(&ours, &upstream), without(&upstream, &ours));
            let takes_next = more.iter().all(|one| is_of_pod_with_invalid_address(sync, one));
            // A pod's next address can take the place of another pod's. While creates are dropped,
            // one address can cost a whole slice.
            let settings = sync.case.settings();
            let is_deleting = match sync.controller {
                Controller::Slices => {
                    sync.before.services.get(sync.key).is_some_and(|one| one.is_deleting)
                }
                Controller::Endpoints
                | Controller::Mirror
                | Controller::Import
                | Controller::MultiCluster => {
                    sync.before.endpoints.get(sync.key).is_some_and(|one| one.meta.is_deleting())
                }
            };
            let displaced_max = match sync.controller {
                Controller::Endpoints => n_invalid,
                Controller::Slices if is_deleting => n_invalid * settings.endpoints_per_slice_max,
                Controller::Mirror if is_deleting => n_invalid * settings.mirrored_per_subset_max,
                Controller::Slices
                | Controller::Mirror
                | Controller::Import
                | Controller::MultiCluster => 0,
            };
            let n_more_max = n_invalid.max(displaced_max);
            (takes_next && less.is_empty())
                || ((is_cut || is_deleting)
                    && more.len() <= n_more_max
                    && less.len() <= displaced_max)
        }
    }
}

/// In Endpoints a pod has one address: the first valid one here, the first one upstream.
fn is_of_pod_with_invalid_address(sync: &Sync, published: &str) -> bool {
    let published: Value = serde_json::from_str(published).unwrap_or_default();
    let pod = published[2]["targetRef"]["name"].as_str().unwrap_or("");
    let pod = sync.before.pods.get(&Key::new(sync.key.namespace.clone(), pod));
    sync.controller == Controller::Endpoints
        && pod.is_some_and(|pod| pod.ips.all.iter().any(is_invalid_ip))
}

fn is_invalid_ip(ip: &PodIp) -> bool {
    match ip {
        PodIp::Invalid(_) => true,
        PodIp::Ip(ip) => is_forbidden_endpoint_ip(*ip).is_some(),
    }
}

fn n_invalid(sync: &Sync) -> usize {
    let before = sync.before;
    match sync.controller {
        Controller::Mirror => {
            let subsets = before.endpoints.values().flat_map(|one| &one.subsets);
            let addresses =
                subsets.flat_map(|one| one.addresses.iter().chain(&one.not_ready_addresses));
            let n_invalid = addresses.filter(|address| is_refused(&address.ip)).count();
            // Repacking can put it into a separate subset for every port.
            let subsets = before.endpoints.values().flat_map(|one| &one.subsets);
            n_invalid * subsets.map(|subset| subset.ports.len()).sum::<usize>().max(1)
        }
        Controller::Slices
        | Controller::Endpoints
        | Controller::Import
        | Controller::MultiCluster => {
            let ips = before.pods.values().flat_map(|pod| pod.ips.all.iter());
            ips.filter(|ip| is_invalid_ip(ip)).count()
        }
    }
}

fn is_refused(text: &str) -> bool {
    parse_ip(text).is_none_or(|ip| is_forbidden_endpoint_ip(ip).is_some())
}

/// How much of a published address is compared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Detail {
    All,
    /// Only the address: truncation can drop one of two spellings with its state and target, and of
    /// an address that occurs twice only the first occurrence counts.
    Identity,
}

/// Every published valid address with all its fields except hints, which depend on the number of
/// endpoints.
fn good(answer: &Answer, detail: Detail) -> Vec<String> {
    let mut good = Vec::new();
    // Labels depend on which slices are rebuilt, and so on packing. Slices that are being deleted
    // are ignored.
    let live = |slice: &&Value| slice["metadata"]["deletionTimestamp"].is_null();
    for slice in answer.slices.iter().filter(live) {
        let group = json!([slice["addressType"], slice["ports"]]);
        for endpoint in slice["endpoints"].as_array().into_iter().flatten() {
            let mut rest = endpoint.clone();
            let addresses = rest["addresses"].take();
            rest["hints"] = Value::Null;
            if let Some(target) = rest["targetRef"].as_object_mut() {
                target.remove("resourceVersion");
            }
            // Rewriting a mirrored slice removes it.
            rest["deprecatedTopology"] = Value::Null;
            if detail == Detail::Identity {
                rest = Value::Null;
            }
            let addresses = addresses.as_array().into_iter().flatten();
            let addresses = addresses.filter(|ip| !is_refused(ip.as_str().unwrap_or("")));
            good.extend(addresses.map(|ip| json!([group, ip, rest]).to_string()));
        }
    }
    for subset in answer.endpoints["subsets"].as_array().into_iter().flatten() {
        for list in ["addresses", "notReadyAddresses"] {
            let addresses = subset[list].as_array().into_iter().flatten();
            let addresses =
                addresses.filter(|address| !is_refused(address["ip"].as_str().unwrap_or("")));
            // Port by port: an invalid address can keep two ports from sharing a subset.
            let ports = subset["ports"].as_array().cloned().unwrap_or_else(|| vec![Value::Null]);
            for address in addresses {
                let mut address = address.clone();
                if let Some(target) = address["targetRef"].as_object_mut() {
                    target.remove("resourceVersion");
                }
                if detail == Detail::Identity {
                    address = json!({"ip": address["ip"], "targetRef": address["targetRef"]});
                }
                good.extend(ports.iter().map(|port| json!([port, list, address]).to_string()));
            }
        }
    }
    good.sort_unstable();
    good
}
