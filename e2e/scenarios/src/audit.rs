//! Reads the audit log of the API server: which user made which request.

use std::collections::BTreeMap;
use std::fs;

use endpointd_control_plane::Cluster;
use serde_json::Value;

use crate::cluster::{ACCOUNT, ACCOUNT_NAMESPACE};

/// The user name of a daemon that uses the kubeconfig of [`crate::ClusterUnderTest`].
pub fn daemon_user() -> String {
    format!("system:serviceaccount:{ACCOUNT_NAMESPACE}:{ACCOUNT}")
}

/// One request that got a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub user: String,
    pub verb: String,
    /// `resource` or `resource/subresource`.
    pub resource: String,
    pub path: String,
    pub status: u64,
}

impl Request {
    pub fn is_write(&self) -> bool {
        !matches!(self.verb.as_str(), "get" | "list" | "watch")
    }
}

/// All requests after the first `from` bytes of the log. A watch appears when it begins and when it
/// ends.
pub fn requests_since(cluster: &Cluster, from: usize) -> Vec<Request> {
    let log = fs::read(cluster.audit_log()).unwrap_or_default();
    let log = String::from_utf8_lossy(log.get(from..).unwrap_or_default()).into_owned();
    log.lines().filter_map(|line| request(&serde_json::from_str(line).ok()?)).collect()
}

/// The current length of the log, for [`requests_since`].
pub fn end(cluster: &Cluster) -> usize {
    fs::metadata(cluster.audit_log()).map_or(0, |file| usize::try_from(file.len()).unwrap_or(0))
}

/// Number of requests by verb, resource, and status, for error messages.
pub fn count_by_kind(requests: &[Request]) -> BTreeMap<String, usize> {
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
