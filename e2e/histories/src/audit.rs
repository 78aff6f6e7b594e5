//! What the API server was asked, by whom: its audit log, read.

use std::collections::BTreeMap;
use std::fs;

use endpointd_control_plane::Cluster;
use serde_json::Value;

use crate::cluster::{ACCOUNT, ACCOUNT_NAMESPACE};

/// The user the daemon is, with the kubeconfig of [`crate::ClusterUnderTest`].
pub fn daemon_user() -> String {
    format!("system:serviceaccount:{ACCOUNT_NAMESPACE}:{ACCOUNT}")
}

/// One answered request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub user: String,
    pub verb: String,
    /// With the subresource after a slash.
    pub resource: String,
    pub path: String,
    pub status: u64,
}

impl Request {
    pub fn is_write(&self) -> bool {
        !matches!(self.verb.as_str(), "get" | "list" | "watch")
    }
}

/// All requests since the log had `from` bytes. Watches appear when they begin and when they end.
pub fn requests_since(cluster: &Cluster, from: usize) -> Vec<Request> {
    let log = fs::read(cluster.audit_log()).unwrap_or_default();
    let log = String::from_utf8_lossy(log.get(from..).unwrap_or_default()).into_owned();
    log.lines().filter_map(|line| request(&serde_json::from_str(line).ok()?)).collect()
}

/// Where the log ends now: for [`requests_since`].
pub fn end(cluster: &Cluster) -> usize {
    fs::metadata(cluster.audit_log()).map_or(0, |file| usize::try_from(file.len()).unwrap_or(0))
}

/// How often each kind of request was made, as text for people.
pub fn counted(requests: &[Request]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for Request { user: _, verb, resource, path: _, status } in requests {
        *counts.entry(format!("{verb} {resource} {status}")).or_default() += 1;
    }
    counts
}

fn request(entry: &Value) -> Option<Request> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let object = &entry["objectRef"];
    let mut resource = text(&object["resource"]);
    if let Some(part) = object["subresource"].as_str() {
        resource = format!("{resource}/{part}");
    }
    Some(Request {
        user: entry["user"]["username"].as_str()?.to_owned(),
        verb: text(&entry["verb"]),
        resource,
        path: text(&entry["requestURI"]),
        status: entry["responseStatus"]["code"].as_u64().unwrap_or(0),
    })
}
