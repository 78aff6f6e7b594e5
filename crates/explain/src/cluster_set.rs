//! Services of several clusters: EPD710 to EPD719. The objects of this cluster say it all: the export
//! and the import with their conditions, a Lease for each other cluster, and slices that name theirs.

use std::collections::{BTreeMap, BTreeSet};

use endpointd_model::{EndpointSlice, Key, Service, Timestamp, derived_name, names};
use serde_json::Value;

use crate::code::{Code, Level};
use crate::facts::{Context, SourceReport};
use crate::fields::{self, counted, text};
use crate::finding::{Finding, ObjectName};

pub const EXPORT: &str = "ServiceExport";
pub const IMPORT: &str = "ServiceImport";
/// Of the Leases that say when a cluster was in contact.
pub const LEASE_PREFIX: &str = "endpointd-source-";
/// endpointd renews such a Lease once a minute.
const SILENT_SECS: i64 = 180;
/// States in which a cluster does not answer.
const LOST: [&str; 4] = ["Lost", "Demoted", "Expired", "Removed"];
const REACHABLE: &str = "endpointd/SourcesReachable";
const OVERLAP: &str = "endpointd/AddressesOverlap";

/// What is known of one Service of several clusters.
pub struct ClusterSetFacts<'a> {
    context: &'a Context<'a>,
    /// Of the export and the import.
    key: Key,
    export: Option<&'a Value>,
    import: Option<&'a Value>,
    /// By the cluster of their endpoints; also of clusters that only the import names.
    slices: BTreeMap<String, Vec<&'a EndpointSlice>>,
}

impl<'a> ClusterSetFacts<'a> {
    /// `None`: no cluster exports a Service of this name, as far as this one knows. The derived Service
    /// of an import belongs to it.
    pub fn of(context: &'a Context<'a>, key: &Key, service: Option<&Service>) -> Option<Self> {
        let objects = context.objects;
        let key = service.and_then(|_| imported_by(context, key)).unwrap_or_else(|| key.clone());
        let export = objects.get(EXPORT, &key.namespace, &key.name);
        let import = objects.get(IMPORT, &key.namespace, &key.name);
        export.or(import)?;
        let mut slices: BTreeMap<String, Vec<_>> = BTreeMap::new();
        for cluster in import.into_iter().flat_map(|one| fields::list(one, "/status/clusters")) {
            slices.entry(text(cluster, "/cluster").to_owned()).or_default();
        }
        let labelled = objects.cluster.slices.values().filter(|slice| {
            slice.meta.namespace == key.namespace
                && slice.meta.labels.has(names::IMPORT_NAME, &key.name)
        });
        for slice in labelled {
            if let Some(cluster) = slice.meta.labels.get(names::SOURCE_CLUSTER) {
                slices.entry(cluster.to_string()).or_default().push(slice);
            }
        }
        Some(Self { context, key, export, import, slices })
    }

    pub fn is_imported(&self) -> bool {
        self.import.is_some()
    }

    /// The Service from which clients get these endpoints, unless the import is headless.
    fn derived(&self) -> Option<String> {
        let import = self.import?;
        let is_headless = text(import, "/spec/type") == "Headless";
        (!is_headless).then(|| derived_name(&self.key).to_string())
    }

    /// Of the derived Service.
    pub fn verdict_of_derived(&self, derived: &Key) -> String {
        format!(
            "Service {derived} has the addresses of ServiceImport {}: {}.",
            self.key,
            endpoints(self.all())
        )
    }

    /// Without a Service of this name in this cluster.
    pub fn verdict_without_service(&self) -> String {
        let Some(derived) = self.derived() else {
            return format!(
                "There is no Service {} here; its import is headless and has {}.",
                self.key,
                endpoints(self.all())
            );
        };
        format!(
            "There is no Service {} here; its import has {}, which clients reach by Service {derived}.",
            self.key,
            endpoints(self.all())
        )
    }

    fn all(&self) -> impl Iterator<Item = &'a EndpointSlice> {
        self.slices.values().flatten().copied()
    }

    pub fn explain(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        if let Some(export) = self.export {
            findings.extend(self.export(export));
        }
        match self.import {
            Some(import) => findings.extend(self.import(import)),
            None => findings.extend(self.no_import()),
        }
        for (cluster, slices) in &self.slices {
            findings.push(self.imported(cluster, slices));
            findings.extend(self.missing_ports(cluster, slices));
            findings.extend(self.lost(cluster));
        }
        findings
    }

    fn finding(&self, code: Code, kind: &str, message: impl Into<String>) -> Finding {
        let object = ObjectName::new(kind, &self.key.namespace, &self.key.name);
        Finding::new(code, object, message)
    }

    /// EPD710 to EPD714.
    fn export(&self, export: &Value) -> Vec<Finding> {
        let of_export = |code, message: String| self.finding(code, EXPORT, message);
        let Some(valid) = fields::condition(export, "Valid") else {
            let message = "nobody has processed the export: multicluster-controller does not run";
            return vec![of_export(Code::ExportNotProcessed, message.to_owned())];
        };
        if text(valid, "/status") != "True" {
            let message = sentence("the export is not valid", valid);
            return vec![of_export(Code::ExportInvalid, message).evidence(reason(valid))];
        }
        let mut findings = Vec::new();
        match fields::condition(export, "Ready") {
            Some(ready) if text(ready, "/status") != "True" => {
                let message = sentence("the export does not take part here", ready);
                findings.push(of_export(Code::ExportNotReady, message).evidence(reason(ready)));
            }
            Some(_) | None => {
                let since = fields::time(export, "/metadata/creationTimestamp");
                let since = since.map_or_else(String::new, |since| {
                    format!(" since {}", fields::age(self.context.now, since))
                });
                let message = format!("this cluster exports the Service{since}");
                findings.push(of_export(Code::Exported, message));
            }
        }
        let conflict = fields::condition(export, "Conflict");
        if let Some(conflict) = conflict.filter(|one| text(one, "/status") == "True") {
            let message = sentence("the clusters do not agree", conflict);
            findings.push(of_export(Code::ExportConflict, message).evidence(reason(conflict)));
        }
        findings
    }

    /// EPD718: an export that nobody imports.
    fn no_import(&self) -> Option<Finding> {
        let export = self.export?;
        let is_known = self.context.objects.is_complete(IMPORT);
        let message = "this cluster exports the Service, and there is no ServiceImport for it yet";
        (is_known && fields::has_condition(export, "Valid"))
            .then(|| self.finding(Code::ImportNotReady, IMPORT, message))
    }

    /// EPD717 to EPD719, as the conditions say it.
    fn import(&self, import: &Value) -> Vec<Finding> {
        let mut findings = Vec::new();
        match fields::condition(import, "Ready") {
            None => {
                let message = "nobody has processed the import: no multi-cluster controller runs";
                findings.push(self.finding(Code::ImportNotReady, IMPORT, message));
            }
            Some(ready) if text(ready, "/status") != "True" => {
                let message = sentence("clients cannot use the import", ready);
                let finding = self.finding(Code::ImportNotReady, IMPORT, message);
                findings.push(finding.evidence(reason(ready)));
            }
            Some(_) => {}
        }
        let is = |about, status: &str| {
            fields::condition(import, about).filter(|one| text(one, "/status") == status)
        };
        if let Some(lost) = is(REACHABLE, "False") {
            let message = sentence("endpoints of clusters that do not answer are not ready", lost);
            findings.push(self.finding(Code::ClusterLost, IMPORT, message));
        }
        if let Some(overlap) = is(OVERLAP, "True") {
            let message = sentence("two clusters have one address", overlap);
            findings.push(self.finding(Code::AddressesOverlap, IMPORT, message));
        }
        findings
    }

    /// EPD715.
    fn imported(&self, cluster: &str, slices: &[&EndpointSlice]) -> Finding {
        let ports: BTreeSet<String> = slices
            .iter()
            .flat_map(|slice| &slice.ports)
            .map(|port| match (port.name.as_deref().unwrap_or_default(), port.port) {
                ("", Some(number)) => number.to_string(),
                (name, _) => name.to_owned(),
            })
            .collect();
        let ports: Vec<String> = ports.into_iter().collect();
        let ports = match ports.as_slice() {
            [] => String::new(),
            [one] => format!(", port {one}"),
            all => format!(", ports {}", fields::names(all)),
        };
        let now = self.context.now;
        let changed = slices.iter().filter_map(|slice| {
            slice.meta.annotations.get(names::TRIGGER_TIME)?.parse::<Timestamp>().ok()
        });
        let changed = changed
            .max()
            .map_or_else(String::new, |at| format!("; newest change {} ago", fields::age(now, at)));
        let contact = self
            .last_contact(cluster)
            .map_or_else(String::new, |at| format!("; last contact {} ago", fields::age(now, at)));
        let state = self.report(cluster).map_or_else(String::new, |report| {
            format!("; endpointd reports it as {}", report.state)
        });
        let found = counted_endpoints(slices.iter().copied());
        let message = format!("cluster {cluster}: {found}{ports}{changed}{contact}{state}");
        let finding = self.finding(Code::ImportedFromCluster, IMPORT, message);
        let slices =
            slices.iter().map(|slice| match slice.meta.annotations.get(names::SOURCE_SLICE) {
                Some(source) => format!("slice {} copies {source}", slice.meta.name),
                None => format!("slice {}", slice.meta.name),
            });
        let finding = slices.fold(finding, Finding::evidence);
        if self.slices.get(cluster).is_some_and(Vec::is_empty) {
            return finding.level(Level::Warning);
        }
        finding
    }

    /// EPD716. Which ports belong together is decided by number and protocol.
    fn missing_ports(&self, cluster: &str, slices: &[&EndpointSlice]) -> Option<Finding> {
        let ports = fields::list(self.import?, "/spec/ports");
        if slices.is_empty() {
            return None;
        }
        let missing: Vec<String> = ports
            .iter()
            .filter(|port| {
                let name = published_name(port, ports.len());
                !slices
                    .iter()
                    .flat_map(|slice| &slice.ports)
                    .any(|one| one.name.as_deref().unwrap_or_default() == name)
            })
            .map(|port| {
                let (number, protocol) =
                    (fields::number(port, "/port").unwrap_or(0), protocol(port));
                match text(port, "/name") {
                    "" => format!("{number}/{protocol}"),
                    name => format!("{name} ({number}/{protocol})"),
                }
            })
            .collect();
        if missing.is_empty() {
            return None;
        }
        let message = format!(
            "cluster {cluster} gets no traffic for {}: its Service has no port of that number and \
             protocol, or no endpoint that serves it",
            fields::names(&missing)
        );
        Some(self.finding(Code::PortNotServed, IMPORT, message))
    }

    /// EPD717, as endpointd reports it, or as the Lease of the cluster says.
    fn lost(&self, cluster: &str) -> Option<Finding> {
        let contact = self.last_contact(cluster);
        let age = |at| fields::age(self.context.now, at);
        let message = match (self.report(cluster), contact) {
            (Some(report), _) if report.is_denied => format!(
                "cluster {cluster} refuses the credentials of endpointd: `endpointd cluster list`"
            ),
            (Some(report), contact) if LOST.contains(&report.state.as_str()) => {
                let since = contact.map_or_else(String::new, |at| format!(" for {}", age(at)));
                format!("cluster {cluster} has not answered{since}: it is {}", report.state)
            }
            (Some(_), _) => return None,
            (None, Some(at)) if self.context.now.as_second() - at.as_second() > SILENT_SECS => {
                format!(
                    "cluster {cluster} was in contact {} ago: since then it does not answer, or no \
                     endpointd runs here",
                    age(at)
                )
            }
            (None, _) => return None,
        };
        Some(self.finding(Code::ClusterLost, IMPORT, message))
    }

    fn report(&self, cluster: &str) -> Option<&SourceReport> {
        self.context.controller?.clusters.iter().find(|one| one.cluster == cluster)
    }

    /// As endpointd reports it, or from the Lease. This cluster has none.
    fn last_contact(&self, cluster: &str) -> Option<Timestamp> {
        if let Some(report) = self.report(cluster) {
            return report.last_contact;
        }
        let name = format!("{LEASE_PREFIX}{cluster}");
        let mut leases = self.context.objects.of_kind_anywhere("Lease");
        let (_, lease) = leases.find(|(lease, _)| lease.name == name)?;
        fields::time(lease, "/spec/renewTime")
    }
}

/// The import from which a Service is derived.
pub fn imported_by(context: &Context, key: &Key) -> Option<Key> {
    let raw = context.objects.get("Service", &key.namespace, &key.name)?;
    let label = fields::labels(raw, "/metadata/labels").get(names::IMPORT_NAME)?.clone();
    let import = Key { namespace: key.namespace.clone(), name: label };
    (derived_name(&import) == key.name).then_some(import)
}

/// The name of a port in the slices of an import; `port-80-tcp` if several are not to have the same.
fn published_name(port: &Value, n_ports: usize) -> String {
    match text(port, "/name") {
        "" if n_ports > 1 => {
            let number = fields::number(port, "/port").unwrap_or(0);
            format!("port-{number}-{}", protocol(port).to_lowercase())
        }
        name => name.to_owned(),
    }
}

fn protocol(port: &Value) -> &str {
    match text(port, "/protocol") {
        "" => "TCP",
        protocol => protocol,
    }
}

/// `3 endpoints of 2 clusters, 2 ready`.
fn endpoints<'a>(slices: impl Iterator<Item = &'a EndpointSlice>) -> String {
    let slices: Vec<&EndpointSlice> = slices.collect();
    let clusters: BTreeSet<_> =
        slices.iter().filter_map(|slice| slice.meta.labels.get(names::SOURCE_CLUSTER)).collect();
    let (n, n_ready) = count(slices.iter().copied());
    if n == 0 {
        return "no endpoints".to_owned();
    }
    let of = counted(clusters.len(), "cluster");
    format!("{} of {of}, {n_ready} ready", counted(n, "endpoint"))
}

/// `2 endpoints in 1 slice, 1 ready`.
fn counted_endpoints<'a>(slices: impl ExactSizeIterator<Item = &'a EndpointSlice>) -> String {
    let n_slices = slices.len();
    if n_slices == 0 {
        return "it exports the Service and has no endpoint".to_owned();
    }
    let (n, n_ready) = count(slices);
    format!("{} in {}, {n_ready} ready", counted(n, "endpoint"), counted(n_slices, "slice"))
}

fn count<'a>(slices: impl Iterator<Item = &'a EndpointSlice>) -> (usize, usize) {
    slices.fold((0, 0), |(n, n_ready), slice| {
        let ready = slice.endpoints.iter().filter(|one| one.is_ready()).count();
        (n + slice.endpoints.len(), n_ready + ready)
    })
}

/// The message of a condition as the end of a sentence.
fn sentence(begin: &str, condition: &Value) -> String {
    match text(condition, "/message").trim_end_matches('.') {
        "" => format!("{begin}: {}", text(condition, "/reason")),
        message => format!("{begin}: {message}"),
    }
}

fn reason(condition: &Value) -> String {
    let field = |name: &str| text(condition, name).to_owned();
    format!("condition {}={}, {}", field("/type"), field("/status"), field("/reason"))
}
