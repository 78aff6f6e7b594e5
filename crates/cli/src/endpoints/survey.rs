//! What the Endpoints of a cluster are for, and who wrote them.

use std::collections::BTreeMap;

use endpointd_client::{Client, ListOptions, ReadError};
use endpointd_model::{Timestamp, names};
use serde_json::Value;

use crate::cli_error::CliError;
use crate::cluster::{ENDPOINTS, Resource, SERVICES, Scope, unreachable};

/// One Endpoints object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub namespace: String,
    pub name: String,
    pub uid: String,
    pub resource_version: String,
    pub purpose: Purpose,
    pub is_truncated: bool,
    /// The object as JSON.
    pub n_bytes: usize,
    /// Of its Service: by them, and by its namespace, an instance of endpointd can be limited to it.
    pub service_labels: BTreeMap<String, String>,
    /// When each client last wrote it.
    pub writers: BTreeMap<String, Option<Timestamp>>,
}

/// Why an Endpoints object exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purpose {
    /// An endpoints controller publishes the pods of a Service.
    Published,
    /// A controller wrote it while the Service had a selector.
    LeftBehind,
    /// A controller wrote it, and there is no Service.
    WithoutService,
    /// Written by somebody else, for a Service without selector: mirrored into slices.
    Manual,
    /// Its Service has a selector, and it has no label: a controller before Kubernetes 1.33, or a
    /// user.
    Unlabelled,
    /// Written by somebody else, and there is no Service.
    Unknown,
    LeaderElectionLock,
}

impl Purpose {
    pub const ALL: [Self; 7] = [
        Self::Published,
        Self::LeftBehind,
        Self::WithoutService,
        Self::Manual,
        Self::Unlabelled,
        Self::Unknown,
        Self::LeaderElectionLock,
    ];

    /// One word for programs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Published => "published",
            Self::LeftBehind => "leftBehind",
            Self::WithoutService => "withoutService",
            Self::Manual => "manual",
            Self::Unlabelled => "unlabelled",
            Self::Unknown => "unknown",
            Self::LeaderElectionLock => "leaderElectionLock",
        }
    }

    pub fn describe(self) -> &'static str {
        match self {
            Self::Published => "of Services with a selector, written by an endpoints controller",
            Self::LeftBehind => "left behind by Services that had a selector before (EPD113)",
            Self::WithoutService => "written by an endpoints controller for Services that are gone",
            Self::Manual => "written by others for Services without selector, and mirrored",
            Self::Unlabelled => {
                "of Services with a selector, without the label of an endpoints controller"
            }
            Self::Unknown => "written by others, without a Service",
            Self::LeaderElectionLock => "leader election locks",
        }
    }

    /// Nobody updates it.
    pub fn is_stale(self) -> bool {
        match self {
            Self::LeftBehind | Self::WithoutService => true,
            Self::Published
            | Self::Manual
            | Self::Unlabelled
            | Self::Unknown
            | Self::LeaderElectionLock => false,
        }
    }
}

impl Entry {
    pub fn key(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

/// All Endpoints of the scope, by namespace and name.
pub async fn read(client: &Client, scope: &Scope) -> Result<Vec<Entry>, CliError> {
    let services = list(client, SERVICES, scope).await?;
    let endpoints = list(client, ENDPOINTS, scope).await?;
    Ok(survey(&endpoints, &services))
}

async fn list(client: &Client, resource: Resource, scope: &Scope) -> Result<Vec<Value>, CliError> {
    let path = resource.path(scope.namespace());
    let listed = client.list_values(&path, &ListOptions::default()).await;
    listed.map(|list| list.items).map_err(|error: ReadError| {
        if error.is_about_connection() {
            return unreachable(client, &error);
        }
        CliError::new(
            format!("cannot list {}: {error}", resource.plural),
            format!("`kubectl auth can-i list {}`; `-n` chooses a namespace", resource.plural),
        )
    })
}

pub fn survey(endpoints: &[Value], services: &[Value]) -> Vec<Entry> {
    let by_key: BTreeMap<(&str, &str), &Value> = services
        .iter()
        .map(|one| ((text(one, "/metadata/namespace"), text(one, "/metadata/name")), one))
        .collect();
    let entry = |object: &Value| {
        let key = (text(object, "/metadata/namespace"), text(object, "/metadata/name"));
        Entry {
            namespace: key.0.to_owned(),
            name: key.1.to_owned(),
            uid: text(object, "/metadata/uid").to_owned(),
            resource_version: text(object, "/metadata/resourceVersion").to_owned(),
            purpose: purpose(object, by_key.get(&key).copied()),
            service_labels: by_key.get(&key).map(|service| labels(service)).unwrap_or_default(),
            is_truncated: metadata(object, "annotations", names::OVER_CAPACITY)
                == Some(names::TRUNCATED),
            n_bytes: object.to_string().len(),
            writers: writers(object),
        }
    };
    let mut entries: Vec<Entry> = endpoints.iter().map(entry).collect();
    entries.sort_by_key(|one| (one.namespace.clone(), one.name.clone()));
    entries
}

fn labels(object: &Value) -> BTreeMap<String, String> {
    let labels = object.pointer("/metadata/labels").and_then(Value::as_object);
    let pair = |(key, value): (&String, &Value)| Some((key.clone(), value.as_str()?.to_owned()));
    labels.into_iter().flatten().filter_map(pair).collect()
}

fn purpose(endpoints: &Value, service: Option<&Value>) -> Purpose {
    if metadata(endpoints, "annotations", names::LEADER).is_some() {
        return Purpose::LeaderElectionLock;
    }
    let is_labelled = metadata(endpoints, "labels", names::ENDPOINTS_MANAGED_BY)
        == Some(names::MANAGED_BY_ENDPOINTS);
    match (service.map(publishes_pods), is_labelled) {
        (Some(true), true) => Purpose::Published,
        (Some(true), false) => Purpose::Unlabelled,
        (Some(false), true) => Purpose::LeftBehind,
        (Some(false), false) => Purpose::Manual,
        (None, true) => Purpose::WithoutService,
        (None, false) => Purpose::Unknown,
    }
}

fn publishes_pods(service: &Value) -> bool {
    let selector = service.pointer("/spec/selector").and_then(Value::as_object);
    text(service, "/spec/type") != "ExternalName"
        && selector.is_some_and(|selector| !selector.is_empty())
}

fn writers(object: &Value) -> BTreeMap<String, Option<Timestamp>> {
    let mut writers: BTreeMap<String, Option<Timestamp>> = BTreeMap::new();
    let entries = object.pointer("/metadata/managedFields").and_then(Value::as_array);
    for entry in entries.into_iter().flatten() {
        let time: Option<Timestamp> = text(entry, "/time").parse().ok();
        let newest = writers.entry(text(entry, "/manager").to_owned()).or_default();
        *newest = time.max(*newest);
    }
    writers
}

fn metadata<'a>(object: &'a Value, field: &str, key: &str) -> Option<&'a str> {
    object.get("metadata")?.get(field)?.get(key)?.as_str()
}

pub fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn endpoints(labels: &Value, annotations: &Value) -> Value {
        json!({"metadata": {"namespace": "shop", "name": "web", "labels": labels,
            "annotations": annotations}})
    }

    #[test]
    fn purpose_follows_label_and_service() {
        let ours = json!({names::ENDPOINTS_MANAGED_BY: names::MANAGED_BY_ENDPOINTS});
        let with = json!({"spec": {"selector": {"app": "web"}}});
        let without = json!({"spec": {"selector": {}}});
        let external = json!({"spec": {"type": "ExternalName", "selector": {"app": "web"}}});
        let (labelled, other) =
            (endpoints(&ours, &Value::Null), endpoints(&Value::Null, &Value::Null));
        assert_eq!(purpose(&labelled, Some(&with)), Purpose::Published);
        assert_eq!(purpose(&other, Some(&with)), Purpose::Unlabelled);
        assert_eq!(purpose(&labelled, Some(&without)), Purpose::LeftBehind);
        assert_eq!(purpose(&labelled, Some(&external)), Purpose::LeftBehind);
        assert_eq!(purpose(&other, Some(&without)), Purpose::Manual);
        assert_eq!(purpose(&labelled, None), Purpose::WithoutService);
        assert_eq!(purpose(&other, None), Purpose::Unknown);
        let lock = endpoints(&ours, &json!({names::LEADER: "{}"}));
        assert_eq!(purpose(&lock, Some(&with)), Purpose::LeaderElectionLock);
    }

    #[test]
    fn the_newest_write_of_each_client_counts() {
        let fields = json!([
            {"manager": "a", "time": "2026-01-01T12:00:00Z"},
            {"manager": "a", "time": "2026-01-01T12:00:05Z"},
            {"manager": "b"},
        ]);
        let object = json!({"metadata": {"managedFields": fields}});
        let found = writers(&object);
        assert_eq!(found["a"], "2026-01-01T12:00:05Z".parse().ok());
        assert_eq!(found["b"], None);
    }
}
