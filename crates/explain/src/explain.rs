//! Explains one object: the findings of all rules, and the verdict.

use endpointd_model::{Key, Selection, names};

use crate::choosing::{self, selector_text};
use crate::cluster_set::ClusterSetFacts;
use crate::code::Code;
use crate::facts::{Context, Mode, PodFacts, PodState, ServiceFacts};
use crate::fields::{self, counted, text};
use crate::finding::{Finding, Findings, ObjectName, ReadyEndpoint};
use crate::near_miss::{NearMiss, compare, nearest};
use crate::{families, imports, mirroring, pods, ports, published, readiness, zones};

/// Why pods are or are not behind a Service.
pub fn service(context: &Context, key: &Key) -> Findings {
    let Some(facts) = ServiceFacts::of(context, key) else { return missing(context, key) };
    if context.objects.is_unreadable("Pod") && !facts.service.selector.is_empty() {
        return without_pods(&facts);
    }
    let findings = service_findings(&facts);
    let mut explained = Findings {
        object: facts.object(),
        verdict: verdict(&facts),
        endpoints: ready_endpoints(&facts),
        findings,
        not_read: context.objects.all_not_read(),
    };
    explained.sort();
    explained
}

/// The pods may not be read: only what is published is known.
fn without_pods(facts: &ServiceFacts) -> Findings {
    let endpoints = facts.published.iter().flat_map(|slice| &slice.endpoints);
    let n_ready = endpoints.filter(|endpoint| endpoint.is_ready()).count();
    let published = match facts.context.objects.is_complete("EndpointSlice") {
        true => format!("its slices have {}", counted(n_ready, "ready endpoint")),
        false => "its slices could not be read either".to_owned(),
    };
    let mut findings = Vec::new();
    findings.extend(choosing::deleting(facts));
    findings.extend(published::two_writers(facts));
    let mut explained = Findings {
        object: facts.object(),
        verdict: format!("The pods of Service {} could not be read; {published}.", facts.key),
        endpoints: Vec::new(),
        findings,
        not_read: facts.context.objects.all_not_read(),
    };
    explained.sort();
    explained
}

fn missing(context: &Context, key: &Key) -> Findings {
    let mut findings: Vec<Finding> = context
        .objects
        .malformed
        .iter()
        .filter(|one| one.identity.kind == "Service" && one.identity.name == *key.name)
        .map(published::decode_error)
        .collect();
    let verdict = match findings.is_empty() {
        true => format!("There is no Service `{}` in namespace `{}`.", key.name, key.namespace),
        false => format!("Service {key} cannot be decoded."),
    };
    let object = ObjectName::new("Service", &key.namespace, &key.name);
    let not_read = context.objects.all_not_read();
    if let (true, Some(set)) = (findings.is_empty(), ClusterSetFacts::of(context, key, None)) {
        return of_other_clusters(context, key, &set, object);
    }
    if findings.is_empty() {
        findings.push(choosing::missing_service(context, key));
    }
    Findings { object, verdict, endpoints: Vec::new(), findings, not_read }
}

/// Only other clusters have the Service, or only an export is here.
fn of_other_clusters(
    context: &Context,
    key: &Key,
    set: &ClusterSetFacts,
    object: ObjectName,
) -> Findings {
    let mut findings = set.explain();
    let verdict = match set.is_imported() {
        true => set.verdict_without_service(),
        false => {
            findings.push(choosing::missing_service(context, key));
            format!("There is no Service {key} to export.")
        }
    };
    let not_read = context.objects.all_not_read();
    let mut explained = Findings { object, verdict, endpoints: Vec::new(), findings, not_read };
    explained.sort();
    explained
}

fn service_findings(facts: &ServiceFacts) -> Vec<Finding> {
    let mut findings = Vec::new();
    choosing::explain(facts, &mut findings);
    findings.extend(facts.pods.iter().filter_map(|pod| pods::explain(facts, pod)));
    findings.extend(pods::shared_addresses(facts));
    findings.extend(readiness::published_not_ready(facts));
    findings.extend(readiness::not_resolvable(facts));
    findings.extend(readiness::tolerate_unready(facts));
    ports::explain(facts, &mut findings);
    families::explain(facts, &mut findings);
    zones::explain(facts, &mut findings);
    mirroring::explain(facts, &mut findings);
    findings.extend(imports::explain(facts));
    findings.extend(facts.cluster_set.iter().flat_map(ClusterSetFacts::explain));
    published::explain(facts, &mut findings);
    let is_well = !findings.iter().any(|one| match one.level {
        crate::Level::Error | crate::Level::Warning => true,
        crate::Level::Info => false,
    });
    let is_current = facts.context.mode == Mode::WhatIf
        || facts.published_ready() == facts.desired_ready()
        || !facts.context.objects.is_complete("EndpointSlice");
    if is_well && is_current && facts.n_ready() > 0 {
        findings.push(all_well(facts));
    }
    findings
}

/// EPD900: the last part of the way is not visible in objects.
fn all_well(facts: &ServiceFacts) -> Finding {
    let times = facts.published.iter().filter_map(|slice| {
        slice.meta.annotations.get(names::TRIGGER_TIME).map(AsRef::<str>::as_ref)
    });
    let published = match times.max() {
        Some(time) => format!("published, last change at {time}"),
        None if facts.published.is_empty() => "nothing here prevents traffic".to_owned(),
        None => "published as it should be".to_owned(),
    };
    let port = facts.desired.iter().flat_map(|slice| &slice.ports).find_map(|port| port.port);
    let listens = match port {
        Some(port) => format!("whether the pod listens on {port} (`kubectl debug`)"),
        None => "whether the pod listens (`kubectl debug`)".to_owned(),
    };
    let message = format!(
        "{published}; if traffic does not arrive, check {listens}, NetworkPolicies, and kube-proxy \
         on the client's node"
    );
    Finding::new(Code::AllWell, facts.object(), message)
}

fn verdict(facts: &ServiceFacts) -> String {
    let name = format!("Service {}", facts.key);
    let n_pods = facts.pods.len();
    let n_ready = facts.n_ready();
    match facts.service.selection() {
        Selection::External => return format!("{name} is a DNS alias and has no endpoints."),
        Selection::Manual => {
            if let Some(verdict) = imports::verdict(facts) {
                return verdict;
            }
            if let (true, Some(set)) = (facts.is_derived, &facts.cluster_set) {
                return set.verdict_of_derived(&facts.key);
            }
            return format!("{name} has no selector, so no controller chooses pods for it.");
        }
        Selection::Pods(selector) if n_pods == 0 => {
            return format!("{name} chooses no pod: its selector is {}.", selector_text(selector));
        }
        Selection::Pods(_) => {}
    }
    let is_published = facts.context.objects.is_complete("EndpointSlice");
    let would = match facts.context.mode {
        Mode::WhatIf => "would send",
        Mode::Observed if !is_published => "should send",
        Mode::Observed => "sends",
    };
    let share = |n: usize| match (n, n_pods) {
        (0, 1) => "no traffic: its only pod is not a ready endpoint".to_owned(),
        (0, _) => format!("no traffic: none of its {} is a ready endpoint", counted(n_pods, "pod")),
        (n, all) if n == all => format!("traffic to {}", whole(all)),
        (n, all) => format!("traffic to {n} of {}", counted(all, "pod")),
    };
    if facts.context.mode == Mode::WhatIf || !is_published {
        return format!("{name} {would} {}.", share(n_ready));
    }
    let published = facts.published_ready();
    let n_published = facts.pods.iter().filter(|pod| published.contains(&pod.pod.name)).count();
    if published == facts.desired_ready() {
        format!("{name} {would} {}.", share(n_ready))
    } else {
        format!(
            "{name} sends traffic to {n_published} of {}, and should to {n_ready}.",
            counted(n_pods, "pod")
        )
    }
}

fn whole(n: usize) -> String {
    if n == 1 { "its only pod".to_owned() } else { format!("all of its {n} pods") }
}

fn ready_endpoints(facts: &ServiceFacts) -> Vec<ReadyEndpoint> {
    let ready = facts.pods.iter().filter(|pod| pod.state == PodState::Ready);
    ready.map(|pod| ready_endpoint(facts, pod)).collect()
}

fn ready_endpoint(facts: &ServiceFacts, pod: &PodFacts) -> ReadyEndpoint {
    let is_pod = |endpoint: &&endpointd_model::Endpoint| {
        endpoint.target_ref.as_ref().is_some_and(|target| target.name == pod.pod.name)
    };
    let mut addresses = Vec::new();
    let mut zone = None;
    for slice in &facts.desired {
        for endpoint in slice.endpoints.iter().filter(is_pod) {
            let ports: Vec<String> =
                slice.ports.iter().filter_map(|port| Some(port.port?.to_string())).collect();
            let ports = ports.join(",");
            for address in &endpoint.addresses {
                let is_v6 = address.contains(':');
                addresses.push(match (ports.is_empty(), is_v6) {
                    (true, _) => address.to_string(),
                    (false, true) => format!("[{address}]:{ports}"),
                    (false, false) => format!("{address}:{ports}"),
                });
            }
            zone = zone.or_else(|| endpoint.zone.as_ref().map(ToString::to_string));
        }
    }
    let has_pod =
        |slice: &&&endpointd_model::EndpointSlice| slice.endpoints.iter().any(|one| is_pod(&one));
    let slices = facts.published.iter().filter(has_pod);
    let slices = slices.map(|slice| slice.meta.name.to_string()).collect();
    ReadyEndpoint { pod: pod.name().to_owned(), addresses, zone, slices }
}

/// Which Services choose a pod, and which nearly do.
pub fn pod(context: &Context, key: &Key) -> Findings {
    let object = ObjectName::new("Pod", &key.namespace, &key.name);
    let not_read = context.objects.all_not_read();
    let objects = context.objects;
    let Some(pod) = objects.cluster.pods.get(key) else {
        let near = nearest(&key.name, objects.pods_in(&key.namespace).map(|pod| &*pod.name));
        let hint = near.map_or_else(String::new, |near| format!(" Did you mean `{near}`?"));
        let verdict =
            format!("There is no pod `{}` in namespace `{}`.{hint}", key.name, key.namespace);
        return Findings { object, verdict, endpoints: Vec::new(), findings: Vec::new(), not_read };
    };
    let services =
        objects.cluster.services.iter().filter(|(one, _)| one.namespace == key.namespace);
    let (mut behind, mut chosen, mut near) = (Vec::new(), Vec::new(), Vec::new());
    let (mut findings, mut endpoints) = (Vec::new(), Vec::new());
    for (service_key, service) in services {
        if service.selector.is_empty() || service.is_external_name {
            continue;
        }
        if !service.selector.selects(&pod.labels) {
            near.extend(compare(&service.selector, &pod.labels).map(|miss| (service_key, miss)));
            continue;
        }
        let Some(facts) = ServiceFacts::of(context, service_key) else { continue };
        let Some(this) = facts.pods.iter().find(|one| one.pod.name == pod.name) else { continue };
        chosen.push(service_key.name.to_string());
        match pods::explain(&facts, this) {
            Some(finding) => findings.push(finding),
            None => {
                behind.push(service_key.name.to_string());
                endpoints.push(ready_endpoint(&facts, this));
            }
        }
    }
    if chosen.is_empty() {
        findings.extend(near.iter().map(|(service, miss)| nearly(&object, service, miss)));
    }
    let verdict = pod_verdict(key, &chosen, &behind);
    let mut explained = Findings { object, verdict, endpoints, findings, not_read };
    explained.sort();
    explained
}

fn pod_verdict(key: &Key, chosen: &[String], behind: &[String]) -> String {
    let services = |names: &[String]| match names {
        [one] => format!("Service {one}"),
        all => format!("Services {}", fields::names(all)),
    };
    match (chosen, behind) {
        ([], _) => format!("No Service in namespace `{}` chooses pod {}.", key.namespace, key.name),
        ([_], []) => {
            format!("Pod {key} gets no traffic, although {} chooses it.", services(chosen))
        }
        (chosen, []) => {
            format!("Pod {key} gets no traffic, although {} choose it.", services(chosen))
        }
        (chosen, behind) if chosen.len() == behind.len() => {
            format!("Pod {key} is behind {}.", services(behind))
        }
        (chosen, behind) => format!(
            "Pod {key} is behind {} of {} that choose it.",
            services(behind),
            counted(chosen.len(), "Service")
        ),
    }
}

fn nearly(object: &ObjectName, service: &Key, miss: &NearMiss) -> Finding {
    let (key, wanted) = miss.suggestion();
    let (code, found) = match miss {
        NearMiss::Typo { found, .. } => {
            (Code::LabelValueTypo, format!("the pod has {key}={found}"))
        }
        NearMiss::Spelling { found, .. } => {
            (Code::LabelSpelling, format!("the pod has {key}={found}"))
        }
        NearMiss::Missing { .. } => (Code::LabelMissing, format!("the pod has no label `{key}`")),
        NearMiss::OtherKey { found_key, .. } => {
            (Code::LabelUnderOtherKey, format!("the pod has it under `{found_key}`"))
        }
    };
    let message =
        format!("Service {} nearly chooses it: it asks for {key}={wanted}, {found}", service.name);
    Finding::new(code, object.clone(), message)
}

/// Why Endpoints are or are not mirrored; for a Service with a selector, the Service.
pub fn endpoints(context: &Context, key: &Key) -> Findings {
    if context.objects.cluster.services.contains_key(key) {
        return service(context, key);
    }
    let object = ObjectName::new("Endpoints", &key.namespace, &key.name);
    let findings = mirroring::without_service(context, key);
    let verdict = match findings.is_empty() {
        true => format!("There are no Endpoints `{}` in namespace `{}`.", key.name, key.namespace),
        false => format!("Endpoints {key} are not mirrored."),
    };
    let not_read = context.objects.all_not_read();
    Findings { object, verdict, endpoints: Vec::new(), findings, not_read }
}

/// The Service of a slice.
pub fn slice(context: &Context, key: &Key) -> Findings {
    let raw = context.objects.get("EndpointSlice", &key.namespace, &key.name);
    let label = raw.map(|raw| fields::labels(raw, "/metadata/labels"));
    let name = label.as_ref().and_then(|labels| labels.get(names::SERVICE_NAME));
    if let Some(name) = name {
        return service(context, &Key { namespace: key.namespace.clone(), name: name.clone() });
    }
    let verdict = match raw {
        None => {
            format!("There is no EndpointSlice `{}` in namespace `{}`.", key.name, key.namespace)
        }
        Some(raw) => format!(
            "EndpointSlice {key} belongs to no Service: it has no label `{}`, and has {} addresses.",
            names::SERVICE_NAME,
            text(raw, "/addressType")
        ),
    };
    let object = ObjectName::new("EndpointSlice", &key.namespace, &key.name);
    let not_read = context.objects.all_not_read();
    Findings { object, verdict, endpoints: Vec::new(), findings: Vec::new(), not_read }
}
