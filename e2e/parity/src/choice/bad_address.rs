//! B9: an address the API server refuses is left out; its neighbours are published.

use endpointd_model::{Controller, Key, PodIp, is_forbidden_endpoint_ip, parse_ip};
use serde_json::{Value, json};

use super::{Sync, without};
use crate::answer::Answer;
use crate::judge::Aspect;

/// There is a bad address, and all good ones are published alike. Where a limit cuts, a bad
/// address upstream publishes may have cost a good one its place.
pub fn explains(sync: &Sync, aspect: Aspect) -> bool {
    let n_bad = n_bad(sync);
    if n_bad == 0 {
        return false;
    }
    match aspect {
        Aspect::Errors | Aspect::Rest => false,
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
            // What we leave as it is we have found right as upstream would: by the first of several
            // mentions of an address.
            let is_left = sync.controller == Controller::Endpoints && sync.ours.writes.is_empty();
            let is_either = sync.has_app_protocol_twice();
            let detail =
                if is_cut || is_left || is_either { Detail::Identity } else { Detail::All };
            let (upstream, ours) = (good(sync.upstream, detail), good(sync.ours, detail));
            let (more, less) = (without(&ours, &upstream), without(&upstream, &ours));
            let takes_next = more.iter().all(|one| is_of_bad_pod(sync, one));
            // A pod's next address may take the place of another's. Without creates a whole slice
            // may be the price of one address.
            let settings = sync.case.settings();
            let is_deleting = match sync.controller {
                Controller::Slices => {
                    sync.before.services.get(sync.key).is_some_and(|one| one.is_deleting)
                }
                Controller::Endpoints | Controller::Mirror => {
                    sync.before.endpoints.get(sync.key).is_some_and(|one| one.meta.is_deleting())
                }
            };
            let displaced_max = match sync.controller {
                Controller::Endpoints => n_bad,
                Controller::Slices if is_deleting => n_bad * settings.endpoints_per_slice_max,
                Controller::Mirror if is_deleting => n_bad * settings.mirrored_per_subset_max,
                Controller::Slices | Controller::Mirror => 0,
            };
            let n_more_max = n_bad.max(displaced_max);
            (takes_next && less.is_empty())
                || ((is_cut || is_deleting)
                    && more.len() <= n_more_max
                    && less.len() <= displaced_max)
        }
    }
}

/// In Endpoints a pod has one address: we take the first good one, upstream the first.
fn is_of_bad_pod(sync: &Sync, published: &str) -> bool {
    let published: Value = serde_json::from_str(published).unwrap_or_default();
    let pod = published[2]["targetRef"]["name"].as_str().unwrap_or("");
    let pod = sync.before.pods.get(&Key::new(sync.key.namespace.clone(), pod));
    sync.controller == Controller::Endpoints
        && pod.is_some_and(|pod| pod.ips.all.iter().any(is_bad_ip))
}

fn is_bad_ip(ip: &PodIp) -> bool {
    match ip {
        PodIp::Invalid(_) => true,
        PodIp::Ip(ip) => is_forbidden_endpoint_ip(*ip).is_some(),
    }
}

fn n_bad(sync: &Sync) -> usize {
    let before = sync.before;
    match sync.controller {
        Controller::Mirror => {
            let subsets = before.endpoints.values().flat_map(|one| &one.subsets);
            let addresses =
                subsets.flat_map(|one| one.addresses.iter().chain(&one.not_ready_addresses));
            let n_bad = addresses.filter(|address| is_refused(&address.ip)).count();
            // Repacking may put it into a subset of its own for every port.
            let subsets = before.endpoints.values().flat_map(|one| &one.subsets);
            n_bad * subsets.map(|subset| subset.ports.len()).sum::<usize>().max(1)
        }
        Controller::Slices | Controller::Endpoints => {
            let ips = before.pods.values().flat_map(|pod| pod.ips.all.iter());
            ips.filter(|ip| is_bad_ip(ip)).count()
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
    /// Of an address in two spellings one may be cut, which takes its state and target with it;
    /// of one that is mentioned twice only the first mention counts.
    Identity,
}

/// Every good address that is published, with everything said about it but hints, which depend
/// on how many there are.
fn good(answer: &Answer, detail: Detail) -> Vec<String> {
    let mut good = Vec::new();
    // Labels depend on which slices had to be rebuilt, and so on packing.
    // One that is being deleted is as good as gone, whatever a finalizer makes it still say.
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
            // Gone whenever a mirrored slice is rewritten.
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
            // Port by port: a bad neighbour may keep two ports from sharing a subset.
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
