//! Why a running pod is not ready: EPD301 to EPD306, EPD308, and EPD309.

use endpointd_model::{ClusterIp, TargetPort, TolerateUnready, names};
use endpointd_plan::AnnotationPolicy;
use serde_json::Value;

use crate::code::{Code, Level};
use crate::facts::{PodFacts, PodState, ServiceFacts};
use crate::fields::{self, counted, list, text};
use crate::finding::Finding;
use crate::objects::event_time;

/// Owners of readiness gates that are not set for a known reason.
const GATE_OWNERS: &[(&str, &str)] = &[
    (
        "target-health.elbv2.k8s.aws/",
        "the AWS load balancer controller sets it: is there a \
      TargetGroupBinding?",
    ),
    (
        "cloud.google.com/load-balancer-neg-ready",
        "the GKE NEG controller sets it: is there a \
      ServiceNetworkEndpointGroup?",
    ),
];

/// A pod that is in a slice, not ready, and not terminating.
pub fn explain(facts: &ServiceFacts, pod: &PodFacts) -> Finding {
    not_running(facts, pod)
        .or_else(|| node_not_ready(facts, pod))
        .or_else(|| startup_probe(facts, pod))
        .or_else(|| container_not_ready(facts, pod))
        .or_else(|| readiness_gate(pod))
        .unwrap_or_else(|| condition_only(pod))
}

/// Containers and, because a sidecar counts for readiness, init containers that restart.
fn containers(pod: &Value) -> impl Iterator<Item = (&Value, &Value)> {
    let lists = [
        ("/spec/containers", "/status/containerStatuses"),
        ("/spec/initContainers", "/status/initContainerStatuses"),
    ];
    lists.into_iter().flat_map(move |(specs, statuses)| {
        let statuses = list(pod, statuses);
        list(pod, specs).iter().filter_map(move |spec| {
            let is_sidecar =
                specs == "/spec/containers" || text(spec, "/restartPolicy") == "Always";
            let status = statuses.iter().find(|one| one["name"] == spec["name"])?;
            is_sidecar.then_some((spec, status))
        })
    })
}

fn not_ready(pod: &Value) -> impl Iterator<Item = (&Value, &Value)> {
    containers(pod).filter(|(_, status)| !fields::is_true(status, "/ready"))
}

/// EPD303.
fn not_running(facts: &ServiceFacts, pod: &PodFacts) -> Option<Finding> {
    let (spec, status) = not_ready(pod.raw).find(|(_, status)| {
        status.pointer("/state/waiting").is_some() || status.pointer("/state/terminated").is_some()
    })?;
    let container = fields::text(spec, "/name");
    let waiting = text(status, "/state/waiting/reason");
    let state = if waiting.is_empty() { text(status, "/state/terminated/reason") } else { waiting };
    let last = ["/lastState/terminated", "/state/terminated"]
        .iter()
        .find_map(|pointer| status.pointer(pointer));
    let ended = last.map_or_else(String::new, |last| {
        let code = fields::number(last, "/exitCode").unwrap_or_default();
        let reason = text(last, "/reason");
        let reason = if reason.is_empty() { String::new() } else { format!(" ({reason})") };
        let n = fields::number(status, "/restartCount").unwrap_or_default();
        let n = counted(usize::try_from(n).unwrap_or_default(), "restart");
        format!(": exit code {code}{reason}, {n}")
    });
    let said = text(status, "/state/waiting/message");
    let said = if ended.is_empty() && !said.is_empty() { format!(": {said}") } else { ended };
    let state = if state.is_empty() { "not running" } else { state };
    let message = format!("{}'s container `{container}` is in {state}{said}", pod.name());
    let logs =
        format!("kubectl -n {} logs {} -c {container} --previous", pod.pod.namespace, pod.name());
    let has_logs = last.is_some();
    let finding = Finding::new(Code::ContainerNotRunning, pod.object(), message);
    let event = facts.context.objects.event(&pod.object(), &["Failed", "BackOff"]);
    let finding = match event {
        Some(event) => finding.evidence(text(event, "/message")),
        None => finding,
    };
    Some(finding.command(has_logs.then_some(logs)))
}

/// EPD305. See kubernetes/kubernetes#84979.
fn node_not_ready(facts: &ServiceFacts, pod: &PodFacts) -> Option<Finding> {
    let name = pod.pod.node_name.as_deref()?;
    let node = facts.context.objects.get("Node", "", name)?;
    let ready = fields::condition(node, "Ready")?;
    if text(ready, "/status") == "True" {
        return None;
    }
    let since = fields::time(ready, "/lastTransitionTime");
    let age = since.map_or_else(String::new, |since| {
        format!(" for {}", fields::age(facts.context.now, since))
    });
    let what = match text(ready, "/status") {
        "Unknown" => format!("has not reported{age}"),
        _ => format!("has not been ready{age}"),
    };
    let message = format!(
        "{} cannot be ready: its node `{name}` {what}, so Kubernetes marks all its pods not ready",
        pod.name()
    );
    Some(Finding::new(Code::NodeNotReady, pod.object(), message).evidence(text(ready, "/message")))
}

/// EPD302.
fn startup_probe(facts: &ServiceFacts, pod: &PodFacts) -> Option<Finding> {
    let (spec, status) = not_ready(pod.raw).find(|(spec, status)| {
        spec.get("startupProbe").is_some() && !fields::is_true(status, "/started")
    })?;
    let number = |pointer, default| fields::number(spec, pointer).unwrap_or(default);
    let most_secs = number("/startupProbe/initialDelaySeconds", 0)
        + number("/startupProbe/periodSeconds", 10) * number("/startupProbe/failureThreshold", 3);
    let started = fields::time(status, "/state/running/startedAt");
    let age = started.map_or_else(String::new, |started| {
        let secs = (facts.context.now.as_second() - started.as_second()).max(0);
        format!(": {secs} s of at most {most_secs} s")
    });
    let container = text(spec, "/name");
    let message = format!(
        "{}'s container `{container}` has not passed its startup probe yet{age}",
        pod.name()
    );
    Some(Finding::new(Code::StartupProbe, pod.object(), message))
}

/// EPD301 and EPD306.
fn container_not_ready(facts: &ServiceFacts, pod: &PodFacts) -> Option<Finding> {
    let (spec, _) = not_ready(pod.raw).next()?;
    let container = text(spec, "/name");
    let serving = containers(pod.raw).find(|(other, status)| {
        fields::is_true(status, "/ready") && serves(facts, other) && !serves(facts, spec)
    });
    if let Some((serving, _)) = serving {
        let message = format!(
            "{}'s container `{}` is ready, but `{container}` is not: a pod is ready when all its \
             containers are",
            pod.name(),
            text(serving, "/name")
        );
        return Some(Finding::new(Code::SidecarNotReady, pod.object(), message));
    }
    Some(probe_fails(facts, pod, spec))
}

/// Whether a container declares a port of the Service.
fn serves(facts: &ServiceFacts, container: &Value) -> bool {
    facts.service.ports.iter().any(|port| {
        list(container, "/ports").iter().any(|declared| match &port.target {
            TargetPort::Number(number) => {
                fields::number(declared, "/containerPort") == Some(i64::from(*number))
            }
            TargetPort::Name(name) => text(declared, "/name") == name.as_ref(),
        })
    })
}

fn probe_fails(facts: &ServiceFacts, pod: &PodFacts, container: &Value) -> Finding {
    let name = text(container, "/name");
    let since = ["ContainersReady", "Ready"]
        .iter()
        .find_map(|one| fields::time(fields::condition(pod.raw, one)?, "/lastTransitionTime"));
    let age = since.map_or_else(String::new, |since| {
        format!(" for {}", fields::age(facts.context.now, since))
    });
    let probe = container.get("readinessProbe");
    let Some(probe) = probe else {
        let message = format!("{}'s container `{name}` has not been ready{age}", pod.name());
        return Finding::new(Code::ReadinessProbe, pod.object(), message);
    };
    let event = facts.context.objects.event(&pod.object(), &["Unhealthy"]);
    let said = event.map_or_else(String::new, |event| {
        let what = text(event, "/message").trim_start_matches("Readiness probe failed: ").trim();
        let n = fields::number(event, "/count").filter(|n| *n > 1);
        let times = n.map_or_else(String::new, |n| format!(" ({n} times)"));
        format!(": {what}{times}")
    });
    let message =
        format!("{}'s container `{name}` has failed its readiness probe{age}{said}", pod.name());
    let mut finding = Finding::new(Code::ReadinessProbe, pod.object(), message)
        .evidence(format!("readinessProbe: {}", probe_text(probe)))
        .near_miss(other_port(facts, container, probe));
    if let Some(time) = event.and_then(event_time) {
        let age = fields::age(facts.context.now, time);
        finding = finding.evidence(format!("last failure {age} ago"));
    }
    finding
}

fn probe_text(probe: &Value) -> String {
    let port = |pointer: &str| match probe.pointer(pointer) {
        Some(Value::String(name)) => name.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    };
    if let Some(get) = probe.get("httpGet") {
        return format!("HTTP GET :{}{}", port("/httpGet/port"), text(get, "/path"));
    }
    if probe.get("tcpSocket").is_some() {
        return format!("TCP :{}", port("/tcpSocket/port"));
    }
    if probe.get("grpc").is_some() {
        return format!("gRPC :{}", port("/grpc/port"));
    }
    let command = list(probe, "/exec/command").iter().filter_map(Value::as_str);
    format!("exec {}", command.collect::<Vec<_>>().join(" "))
}

/// The probe asks a port that the Service does not use.
fn other_port(facts: &ServiceFacts, container: &Value, probe: &Value) -> Option<String> {
    let port = ["/httpGet/port", "/tcpSocket/port"].iter().find_map(|at| probe.pointer(at))?;
    let declared = list(container, "/ports");
    let resolve = |name: &str| {
        let named = declared.iter().find(|one| text(one, "/name") == name)?;
        fields::number(named, "/containerPort")
    };
    let probed = port.as_i64().or_else(|| resolve(port.as_str()?))?;
    let targets: Vec<i64> = facts
        .service
        .ports
        .iter()
        .filter_map(|port| match &port.target {
            TargetPort::Number(number) => Some(i64::from(*number)),
            TargetPort::Name(name) => resolve(name),
        })
        .collect();
    let [target] = targets.as_slice() else { return None };
    (*target != probed).then(|| {
        format!("the Service's target port is {target}: does the probe ask the right port?")
    })
}

/// EPD304: `kubectl get pods` shows such a pod as `1/1`.
fn readiness_gate(pod: &PodFacts) -> Option<Finding> {
    let gates = list(pod.raw, "/spec/readinessGates").iter();
    let gate = gates
        .map(|gate| text(gate, "/conditionType"))
        .find(|gate| !fields::has_condition(pod.raw, gate))?;
    let state = match fields::condition(pod.raw, gate) {
        None => "is missing: no controller has set it".to_owned(),
        Some(condition) => {
            let why =
                fields::joined(&[text(condition, "/reason"), text(condition, "/message")], ": ");
            let why = if why.is_empty() { String::new() } else { format!(" ({why})") };
            format!("is {}{why}", text(condition, "/status"))
        }
    };
    let message =
        format!("{}'s containers are ready, but its readiness gate `{gate}` {state}", pod.name());
    let near = GATE_OWNERS.iter().find(|(prefix, _)| gate.starts_with(prefix));
    let near = near.map(|(_, text)| (*text).to_owned());
    Some(Finding::new(Code::ReadinessGate, pod.object(), message).near_miss(near))
}

/// Nothing but the condition says that the pod is not ready.
fn condition_only(pod: &PodFacts) -> Finding {
    let Some(ready) = fields::condition(pod.raw, "Ready") else {
        let node = pod.pod.node_name.as_deref().unwrap_or_default();
        let message =
            format!("{} has no Ready condition yet: node `{node}` has to set it", pod.name());
        return Finding::new(Code::NodeNotReady, pod.object(), message);
    };
    let why = fields::joined(&[text(ready, "/reason"), text(ready, "/message")], ": ");
    let why = if why.is_empty() { String::new() } else { format!(" ({why})") };
    let message = format!("{}'s Ready condition is {}{why}", pod.name(), text(ready, "/status"));
    Finding::new(Code::ReadinessProbe, pod.object(), message)
}

/// EPD308. See kubernetes/kubernetes#127234.
pub fn published_not_ready(facts: &ServiceFacts) -> Option<Finding> {
    if !facts.publishes_not_ready() {
        return None;
    }
    let pods = facts.pods.iter().filter(|pod| pod.state == PodState::Ready && !pod.pod.is_ready());
    let pods: Vec<String> = pods.map(|pod| pod.name().to_owned()).collect();
    let (is, gets) = match pods.len() {
        0 => return None,
        1 => ("is", "gets"),
        _ => ("are", "get"),
    };
    let message = format!(
        "{} {is} not ready and {gets} traffic, because the Service has {}",
        fields::names(&pods),
        if facts.service.publish_not_ready { "publishNotReadyAddresses" } else { "an annotation" }
    );
    Some(Finding::new(Code::NotReadyPublished, facts.object(), message))
}

/// EPD309. See kubernetes/kubernetes#92559.
pub fn not_resolvable(facts: &ServiceFacts) -> Option<Finding> {
    let service = facts.service;
    if service.cluster_ip != ClusterIp::Headless || facts.publishes_not_ready() {
        return None;
    }
    let waiting = facts.pods.iter().filter(|pod| {
        pod.pod.subdomain.as_ref() == Some(&service.name)
            && match pod.state {
                PodState::NotReady(_) => !pod.pod.is_terminating,
                PodState::Excluded(_)
                | PodState::Ready
                | PodState::WithoutPort
                | PodState::ServiceDeleting => false,
            }
    });
    let waiting: Vec<String> = waiting.map(|pod| pod.name().to_owned()).collect();
    if waiting.is_empty() {
        return None;
    }
    let message = format!(
        "{} cannot be resolved by name before being ready; peers that have to meet earlier need \
         publishNotReadyAddresses",
        fields::names(&waiting)
    );
    Some(Finding::new(Code::NotResolvable, facts.object(), message))
}

/// EPD310.
pub fn tolerate_unready(facts: &ServiceFacts) -> Option<Finding> {
    let honored = match facts.context.settings.tolerate_unready_annotation {
        AnnotationPolicy::Honor => Some(facts.publishes_not_ready()),
        AnnotationPolicy::Ignore => None,
    };
    let field = facts.service.publish_not_ready;
    let (level, rest) = match (&facts.service.tolerate_unready, honored) {
        (TolerateUnready::Unset, _) => return None,
        (TolerateUnready::Invalid(value), Some(_)) => (
            Level::Warning,
            format!("has the value {value:?}, which is not a boolean, so it has no effect"),
        ),
        (TolerateUnready::Known(value), Some(_)) => {
            (Level::Info, format!("is honoured: it counts as `publishNotReadyAddresses: {value}`"))
        }
        // It asks for nothing that is not so already.
        (TolerateUnready::Known(value), None) if *value == field => return None,
        (TolerateUnready::Known(_) | TolerateUnready::Invalid(_), None) => (
            Level::Warning,
            format!("has no effect: `publishNotReadyAddresses` decides, and is {field}"),
        ),
    };
    let message = format!("the annotation `{}` {rest}", names::TOLERATE_UNREADY);
    Some(Finding::new(Code::TolerateUnready, facts.object(), message).level(level))
}
