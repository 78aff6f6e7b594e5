//! The Lease object: the fields of the election, and all others preserved as they are.

use endpointd_model::{Failure, FailureKind, Key, Scope, SharedStr, Timestamp, names};
use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::client::Client;
use crate::http_service::Pool;
use crate::request::{Accept, ApiRequest, Body, object_path, objects_path};
use crate::response::{failure, is_absent};
use crate::transport::{ApiResponse, TransportError};

const RESOURCE: &str = "leases";

/// A Lease as stored, or as it should be stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Lease {
    pub key: Key,
    /// Empty if it does not exist yet.
    pub resource_version: SharedStr,
    pub record: LeaderElectionRecord,
    /// Labels, annotations, and fields of newer API versions.
    preserved_fields: PreservedFields,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct PreservedFields {
    metadata: Map<String, Value>,
    spec: Map<String, Value>,
}

/// Holder, times, and transitions. Upstream: `LeaderElectionRecord` in client-go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaderElectionRecord {
    /// Empty: no holder.
    pub holder: String,
    pub duration_secs: u32,
    pub acquired: Option<Timestamp>,
    pub renewed: Option<Timestamp>,
    pub n_transitions: u32,
}

/// Why a Lease was not written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseWriteError {
    /// Another process has written it since it was read (409).
    Conflict,
    Failed(Failure),
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WireLease {
    api_version: String,
    kind: String,
    metadata: WireMeta,
    spec: WireSpec,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WireMeta {
    namespace: String,
    name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    resource_version: String,
    #[serde(flatten)]
    preserved: Map<String, Value>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WireSpec {
    holder_identity: Option<String>,
    lease_duration_seconds: Option<i64>,
    acquire_time: Option<String>,
    renew_time: Option<String>,
    lease_transitions: Option<i64>,
    #[serde(flatten)]
    preserved: Map<String, Value>,
}

impl Lease {
    pub fn new(key: Key, record: LeaderElectionRecord) -> Self {
        Self {
            key,
            resource_version: SharedStr::default(),
            record,
            preserved_fields: PreservedFields::default(),
        }
    }

    /// The same Lease with another record, and the resourceVersion that it was read at.
    #[must_use]
    pub fn with(&self, record: LeaderElectionRecord) -> Self {
        Self { record, ..self.clone() }
    }

    #[must_use]
    pub fn labelled(mut self, key: &str, value: &str) -> Self {
        let labels = self.preserved_fields.metadata.entry("labels").or_insert_with(|| json!({}));
        labels[key] = value.into();
        self
    }

    /// Says what the candidates for this Lease look at, and the name of their instance.
    fn annotated(&self, scope: &Scope, controller_name: Option<&str>) -> Self {
        let mut lease = self.clone();
        let scope = (!scope.is_everything()).then(|| scope.to_string());
        lease.annotate(names::SCOPE, scope.as_deref());
        lease.annotate(names::CONTROLLER_NAME, controller_name);
        lease
    }

    /// An earlier holder can have set what does not hold any more.
    fn annotate(&mut self, key: &str, value: Option<&str>) {
        let metadata = &mut self.preserved_fields.metadata;
        match value {
            Some(value) => {
                let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
                annotations[key] = value.into();
            }
            None => {
                let annotations = metadata.get_mut("annotations").and_then(Value::as_object_mut);
                annotations.and_then(|annotations| annotations.remove(key));
            }
        }
    }

    fn to_json(&self) -> Vec<u8> {
        let Self { key, resource_version, record, preserved_fields } = self;
        let LeaderElectionRecord { holder, duration_secs, acquired, renewed, n_transitions } =
            record;
        let wire = WireLease {
            api_version: "coordination.k8s.io/v1".to_owned(),
            kind: "Lease".to_owned(),
            metadata: WireMeta {
                namespace: key.namespace.to_string(),
                name: key.name.to_string(),
                resource_version: resource_version.to_string(),
                preserved: preserved_fields.metadata.clone(),
            },
            spec: WireSpec {
                holder_identity: Some(holder.clone()),
                lease_duration_seconds: Some(i64::from(*duration_secs)),
                acquire_time: acquired.map(micro_time),
                renew_time: renewed.map(micro_time),
                lease_transitions: Some(i64::from(*n_transitions)),
                preserved: preserved_fields.spec.clone(),
            },
        };
        serde_json::to_vec(&wire).expect("keys are strings and no field fails to serialize")
    }

    fn from_json(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        let WireLease { metadata, spec, .. } = serde_json::from_slice(bytes)?;
        let time = |text: Option<String>| text.and_then(|text| text.parse().ok());
        let number = |number: Option<i64>| u32::try_from(number.unwrap_or(0)).unwrap_or(0);
        let record = LeaderElectionRecord {
            holder: spec.holder_identity.unwrap_or_default(),
            duration_secs: number(spec.lease_duration_seconds),
            acquired: time(spec.acquire_time),
            renewed: time(spec.renew_time),
            n_transitions: number(spec.lease_transitions),
        };
        Ok(Self {
            key: Key::new(metadata.namespace, metadata.name),
            resource_version: metadata.resource_version.into(),
            record,
            preserved_fields: PreservedFields {
                metadata: metadata.preserved,
                spec: spec.preserved,
            },
        })
    }
}

/// `metav1.MicroTime`.
fn micro_time(time: Timestamp) -> String {
    format!("{time:.6}")
}

impl Client {
    /// A consistent read. `None`: there is no such Lease.
    pub async fn read_lease(&self, key: &Key) -> Result<Option<Lease>, Failure> {
        let path = object_path(RESOURCE, key);
        let request = request(Method::GET, "get", key, path, None);
        match self.request(&request).await {
            Ok(response) if response.code == 200 => decode(&request, &response).map(Some),
            Ok(response) if response.code == 404 && is_absent(&response.status(), &key.name) => {
                Ok(None)
            }
            Ok(response) => Err(failure(&request, &response)),
            Err(TransportError { failure, .. }) => Err(failure),
        }
    }

    pub async fn create_lease(&self, lease: &Lease) -> Result<Lease, LeaseWriteError> {
        let path = objects_path(RESOURCE, &lease.key.namespace);
        let lease = &self.annotated(lease);
        self.write_lease(&request(Method::POST, "create", &lease.key, path, Some(lease))).await
    }

    /// A conflict unless the Lease is still at the resourceVersion that `lease` was read at.
    pub async fn replace_lease(&self, lease: &Lease) -> Result<Lease, LeaseWriteError> {
        let path = object_path(RESOURCE, &lease.key);
        let lease = &self.annotated(lease);
        self.write_lease(&request(Method::PUT, "update", &lease.key, path, Some(lease))).await
    }

    fn annotated(&self, lease: &Lease) -> Lease {
        lease.annotated(&self.scope, self.controller_name.as_deref())
    }

    async fn write_lease(&self, request: &ApiRequest) -> Result<Lease, LeaseWriteError> {
        match self.request(request).await {
            Ok(response) if matches!(response.code, 200 | 201) => {
                decode(request, &response).map_err(LeaseWriteError::Failed)
            }
            Ok(response) if response.code == 409 => Err(LeaseWriteError::Conflict),
            Ok(response) => Err(LeaseWriteError::Failed(failure(request, &response))),
            Err(TransportError { failure, .. }) => Err(LeaseWriteError::Failed(failure)),
        }
    }
}

fn request(
    method: Method,
    verb: &'static str,
    key: &Key,
    path: String,
    lease: Option<&Lease>,
) -> ApiRequest {
    let body =
        lease.map(|lease| Body { content_type: "application/json", bytes: lease.to_json().into() });
    let name = key.to_string();
    let (accept, pool) = (Accept::Json, Pool::Leases);
    ApiRequest { name, path, body, accept, pool, ..ApiRequest::new(method, verb, RESOURCE) }
}

fn decode(request: &ApiRequest, response: &ApiResponse) -> Result<Lease, Failure> {
    Lease::from_json(&response.body).map_err(|error| Failure {
        kind: FailureKind::Unreadable,
        message: format!("{}: cannot decode the response: {error}", request.describe()).into(),
    })
}

#[cfg(test)]
mod fuzz;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_other_writers_are_preserved() {
        let text = r#"{"metadata":{"name":"l","namespace":"n","resourceVersion":"7",
            "labels":{"a":"b"}},"spec":{"holderIdentity":"x","leaseDurationSeconds":15,
            "renewTime":"2026-01-02T03:04:05.678901Z","strategy":"OldestEmulationVersion"}}"#;
        let lease = Lease::from_json(text.as_bytes()).unwrap();
        assert_eq!(lease.record.holder, "x");
        let written: Value = serde_json::from_slice(&lease.to_json()).unwrap();
        assert_eq!(written["metadata"]["labels"]["a"], "b");
        assert_eq!(written["metadata"]["resourceVersion"], "7");
        assert_eq!(written["spec"]["strategy"], "OldestEmulationVersion");
        assert_eq!(written["spec"]["renewTime"], "2026-01-02T03:04:05.678901Z");
    }

    #[test]
    fn lease_without_holder_has_a_default_record() {
        let text = r#"{"metadata":{"name":"l","namespace":"n"},"spec":{"holderIdentity":null}}"#;
        assert_eq!(
            Lease::from_json(text.as_bytes()).unwrap().record,
            LeaderElectionRecord::default()
        );
    }
}
