//! The text form of a multi-cluster plan, in stable order: one line per write, and under it what it
//! says. Tests compare it.

use std::fmt;

use endpointd_model::{
    Condition, DerivedService, EndpointSlice, ImportPort, ImportType, MultiClusterObject, Object,
    ServiceImport, ServiceImportSpec, SessionAffinity, Write, names,
};

use super::MultiClusterPlan;
use crate::text::{slice_head, slice_text};

impl fmt::Display for MultiClusterPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.writes.iter().map(write_line).collect();
        f.write_str(&lines.join("\n"))
    }
}

fn write_line(write: &Write) -> String {
    let name = match write {
        // The derived part of a name carries no information for a reader.
        Write::Create(Object::Slice(slice)) => source(slice),
        Write::Create(_) | Write::Update(_) | Write::Delete(_) => write.key().name.to_string(),
    };
    let content = write.object().map(content).unwrap_or_default();
    format!("{} {} {name}{content}", write.verb(), write.resource().as_str())
}

/// What a write of such a plan says, in one line; nothing for a delete.
pub fn write_summary(write: &Write) -> String {
    let states = |conditions: &[Condition]| {
        let of = |one: &Condition| format!("{}={}", one.condition_type, one.status.as_str());
        conditions.iter().map(of).collect::<Vec<_>>().join(", ")
    };
    match write.object() {
        Some(Object::Slice(slice)) => {
            let cluster = slice.meta.labels.get(names::SOURCE_CLUSTER).map_or("?", AsRef::as_ref);
            let n_ready = slice.endpoints.iter().filter(|one| one.is_ready()).count();
            let n = slice.endpoints.len();
            let noun = if n == 1 { "endpoint" } else { "endpoints" };
            format!("{cluster}: {}: {n} {noun}, {n_ready} ready", slice_head(slice))
        }
        Some(Object::MultiCluster(MultiClusterObject::ImportStatus(import))) => {
            states(&import.status.conditions)
        }
        Some(Object::MultiCluster(MultiClusterObject::ExportStatus(export))) => {
            states(&export.conditions)
        }
        Some(object) => content(object).trim().to_owned(),
        None => String::new(),
    }
}

/// The cluster and the slice that a slice is a copy of.
fn source(slice: &EndpointSlice) -> String {
    let cluster = slice.meta.labels.get(names::SOURCE_CLUSTER).map_or("?", AsRef::as_ref);
    let name = slice.meta.annotations.get(names::SOURCE_SLICE).map_or("?", AsRef::as_ref);
    format!("{cluster}:{name}")
}

fn content(object: &Object) -> String {
    match object {
        Object::Slice(slice) => slice_text(slice),
        Object::MultiCluster(object) => multicluster_text(object),
        // No plan of this controller has them.
        Object::Endpoints(_) | Object::ServiceStatus(_) => String::new(),
    }
}

pub fn multicluster_text(object: &MultiClusterObject) -> String {
    match object {
        MultiClusterObject::Import(import) => import_text(&import.spec),
        MultiClusterObject::ImportStatus(import) => import_status(import),
        MultiClusterObject::ExportStatus(export) => conditions(&export.conditions),
        MultiClusterObject::Derived(service) => derived_text(service),
    }
}

fn import_text(spec: &ServiceImportSpec) -> String {
    let ServiceImportSpec { import_type, ports, ips, families, traffic, traffic_distribution } =
        spec;
    let mut words = vec![import_type.as_str().to_owned(), ports_text(ports)];
    words.extend(families.iter().map(ToString::to_string));
    words.extend(ips.iter().map(ToString::to_string));
    if *import_type == ImportType::ClusterSetIp {
        words.extend(traffic_words(*traffic));
        words.extend(traffic_distribution.map(|one| one.as_str().to_owned()));
    }
    format!(" {}", words.join(" "))
}

fn derived_text(service: &DerivedService) -> String {
    let DerivedService { meta: _, ports, families, cluster_ips, traffic, traffic_distribution } =
        service;
    let mut words = vec![ports_text(ports)];
    words.extend(families.iter().map(ToString::to_string));
    words.extend(cluster_ips.iter().map(ToString::to_string));
    words.extend(traffic_words(*traffic));
    words.extend(traffic_distribution.map(|one| one.as_str().to_owned()));
    format!(" {}", words.join(" "))
}

fn traffic_words(traffic: endpointd_model::ServiceTraffic) -> Vec<String> {
    let endpointd_model::ServiceTraffic { session_affinity, internal_policy } = traffic;
    let affinity = match session_affinity {
        SessionAffinity::None => None,
        SessionAffinity::ClientIp { timeout_secs } => {
            Some(format!("ClientIP:{}s", timeout_secs.unwrap_or_default()))
        }
    };
    let policy = (internal_policy != endpointd_model::InternalTrafficPolicy::Cluster)
        .then(|| internal_policy.as_str().to_owned());
    affinity.into_iter().chain(policy).collect()
}

fn ports_text(ports: &[ImportPort]) -> String {
    let text = |port: &ImportPort| {
        let name = if port.name.is_empty() { String::new() } else { format!("{}:", port.name) };
        let app = port.app_protocol.as_ref().map_or(String::new(), |app| format!("({app})"));
        format!("{name}{}/{}{app}", port.number, port.protocol)
    };
    let texts: Vec<String> = ports.iter().map(text).collect();
    if texts.is_empty() { "no ports".to_owned() } else { texts.join(",") }
}

fn import_status(import: &ServiceImport) -> String {
    let status = &import.status;
    let slices = status.slice_objects.map_or("", |objects| objects.as_str());
    let clusters: Vec<&str> = status.clusters.iter().map(AsRef::as_ref).collect();
    format!(" {slices} [{}]{}", clusters.join(" "), conditions(&status.conditions))
}

fn conditions(conditions: &[Condition]) -> String {
    let line = |one: &Condition| {
        let Condition { condition_type, status, reason, message, .. } = one;
        format!("\n  {condition_type}={}/{reason}: {message}", status.as_str())
    };
    conditions.iter().map(line).collect()
}
