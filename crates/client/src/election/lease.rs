//! The Lease object: the fields an election needs, and the others kept as they are.

use endpointd_model::{Failure, FailureKind, Key, SharedStr, Timestamp};
use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::answer::{failure, says_absent};
use crate::ask::{Accept, ApiRequest, Body, object_path, objects_path};
use crate::client::Client;
use crate::transport::{ApiResponse, TransportError};

const RESOURCE: &str = "leases";

/// A lease as the API server has it, or as it should.
#[derive(Clone, Debug, PartialEq)]
pub struct Lease {
    pub key: Key,
    /// Empty for one that does not exist yet.
    pub resource_version: SharedStr,
    pub record: LeaderElectionRecord,
    /// What others have set: labels, annotations, fields of newer versions.
    kept: Kept,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Kept {
    metadata: Map<String, Value>,
    spec: Map<String, Value>,
}

/// Who holds it, since when, and how often it changed hands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaderElectionRecord {
    /// Empty: nobody.
    pub holder: String,
    pub duration_secs: u32,
    pub acquired: Option<Timestamp>,
    pub renewed: Option<Timestamp>,
    pub n_transitions: u32,
}

/// Why a lease was not written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseWriteError {
    /// It is not what we thought it was: somebody else wrote it.
    Behind,
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
    kept: Map<String, Value>,
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
    kept: Map<String, Value>,
}

impl Lease {
    pub fn new(key: Key, record: LeaderElectionRecord) -> Self {
        Self { key, resource_version: SharedStr::default(), record, kept: Kept::default() }
    }

    /// The same lease with other contents; still guarded by the version it was read at.
    #[must_use]
    pub fn with(&self, record: LeaderElectionRecord) -> Self {
        Self { record, ..self.clone() }
    }

    fn to_json(&self) -> Vec<u8> {
        let Self { key, resource_version, record, kept } = self;
        let LeaderElectionRecord { holder, duration_secs, acquired, renewed, n_transitions } =
            record;
        let wire = WireLease {
            api_version: "coordination.k8s.io/v1".to_owned(),
            kind: "Lease".to_owned(),
            metadata: WireMeta {
                namespace: key.namespace.to_string(),
                name: key.name.to_string(),
                resource_version: resource_version.to_string(),
                kept: kept.metadata.clone(),
            },
            spec: WireSpec {
                holder_identity: Some(holder.clone()),
                lease_duration_seconds: Some(i64::from(*duration_secs)),
                acquire_time: acquired.map(micro_time),
                renew_time: renewed.map(micro_time),
                lease_transitions: Some(i64::from(*n_transitions)),
                kept: kept.spec.clone(),
            },
        };
        serde_json::to_vec(&wire).expect("text keys and no failing fields")
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
            kept: Kept { metadata: metadata.kept, spec: spec.kept },
        })
    }
}

/// `metav1.MicroTime`.
fn micro_time(time: Timestamp) -> String {
    format!("{time:.6}")
}

impl Client {
    /// `None`: there is none. A consistent read.
    pub async fn read_lease(&self, key: &Key) -> Result<Option<Lease>, Failure> {
        let path = object_path(RESOURCE, key);
        let ask = ask(Method::GET, "get", key, path, None);
        match self.ask(&ask).await {
            Ok(answer) if answer.code == 200 => read(&ask, &answer).map(Some),
            Ok(answer) if answer.code == 404 && says_absent(&answer.status(), &key.name) => {
                Ok(None)
            }
            Ok(answer) => Err(failure(&ask, &answer)),
            Err(TransportError { failure, .. }) => Err(failure),
        }
    }

    pub async fn create_lease(&self, lease: &Lease) -> Result<Lease, LeaseWriteError> {
        let path = objects_path(RESOURCE, &lease.key.namespace);
        self.write_lease(&ask(Method::POST, "create", &lease.key, path, Some(lease))).await
    }

    /// Refused unless the lease is still at the version that `lease` was read at.
    pub async fn replace_lease(&self, lease: &Lease) -> Result<Lease, LeaseWriteError> {
        let path = object_path(RESOURCE, &lease.key);
        self.write_lease(&ask(Method::PUT, "update", &lease.key, path, Some(lease))).await
    }

    async fn write_lease(&self, ask: &ApiRequest) -> Result<Lease, LeaseWriteError> {
        match self.ask(ask).await {
            Ok(answer) if matches!(answer.code, 200 | 201) => {
                read(ask, &answer).map_err(LeaseWriteError::Failed)
            }
            Ok(answer) if answer.code == 409 => Err(LeaseWriteError::Behind),
            Ok(answer) => Err(LeaseWriteError::Failed(failure(ask, &answer))),
            Err(TransportError { failure, .. }) => Err(LeaseWriteError::Failed(failure)),
        }
    }
}

fn ask(
    method: Method,
    verb: &'static str,
    key: &Key,
    path: String,
    lease: Option<&Lease>,
) -> ApiRequest {
    let body =
        lease.map(|lease| Body { content_type: "application/json", bytes: lease.to_json().into() });
    let name = key.to_string();
    ApiRequest { name, path, body, accept: Accept::Json, ..ApiRequest::new(method, verb, RESOURCE) }
}

fn read(ask: &ApiRequest, answer: &ApiResponse) -> Result<Lease, Failure> {
    Lease::from_json(&answer.body).map_err(|error| Failure {
        kind: FailureKind::Unreadable,
        message: format!("{}: the answer cannot be read: {error}", ask.words()).into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_have_set_survives() {
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
    fn a_lease_that_nobody_ever_held_has_null_everywhere() {
        let text = r#"{"metadata":{"name":"l","namespace":"n"},"spec":{"holderIdentity":null}}"#;
        assert_eq!(
            Lease::from_json(text.as_bytes()).unwrap().record,
            LeaderElectionRecord::default()
        );
    }
}
