//! ServiceExports and ServiceImports (`multicluster.x-k8s.io`). The API server sends custom resources only as JSON; the tags exist because one set of
//! structs is decoded from both encodings.

use endpointd_model as model;
use endpointd_model::{
    ImportType, InvalidResourceVersion, MultiClusterVersion, ServiceImportSpec,
    ServiceImportStatus, SliceObjects, TrafficDistribution,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::condition::Condition;
use crate::decode::{Decoded, FromWire};
use crate::encode::{ALWAYS_JSON, Typed};
use crate::lenient::is_default;
use crate::meta::{MapEntry, ObjectMeta, labels, string_map, text};
use crate::service::read_protocol;
use crate::service_traffic::{
    SessionAffinityConfig, affinity_config, distribution, families, read, read_families, texts,
};

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ServiceExport {
    #[prost(message, required, tag = "1")]
    pub metadata: ObjectMeta,
    #[prost(message, required, tag = "2")]
    #[serde(skip_serializing_if = "is_default")]
    pub spec: ServiceExportSpec,
    #[prost(message, required, tag = "3")]
    #[serde(skip_serializing_if = "is_default")]
    pub status: ServiceExportStatus,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ServiceExportSpec {
    #[prost(message, repeated, tag = "1")]
    #[serde(with = "crate::string_map", skip_serializing_if = "is_default")]
    pub exported_labels: Vec<MapEntry>,
    #[prost(message, repeated, tag = "2")]
    #[serde(with = "crate::string_map", skip_serializing_if = "is_default")]
    pub exported_annotations: Vec<MapEntry>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ServiceExportStatus {
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "is_default")]
    pub conditions: Vec<Condition>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ServiceImport {
    #[prost(message, required, tag = "1")]
    pub metadata: ObjectMeta,
    #[prost(message, required, tag = "2")]
    pub spec: ImportSpec,
    #[prost(message, required, tag = "3")]
    #[serde(skip_serializing_if = "is_default")]
    pub status: ImportStatus,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ImportSpec {
    #[prost(message, repeated, tag = "1")]
    pub ports: Vec<ImportPort>,
    #[prost(string, repeated, tag = "2")]
    #[serde(skip_serializing_if = "is_default")]
    pub ips: Vec<String>,
    #[prost(string, tag = "3")]
    #[serde(rename = "type")]
    pub type_: String,
    #[prost(string, tag = "4")]
    #[serde(skip_serializing_if = "is_default")]
    pub session_affinity: String,
    #[prost(message, optional, tag = "5")]
    #[serde(skip_serializing_if = "is_default")]
    pub session_affinity_config: Option<SessionAffinityConfig>,
    #[prost(string, repeated, tag = "6")]
    #[serde(skip_serializing_if = "is_default")]
    pub ip_families: Vec<String>,
    #[prost(string, optional, tag = "7")]
    #[serde(skip_serializing_if = "is_default")]
    pub internal_traffic_policy: Option<String>,
    #[prost(string, optional, tag = "8")]
    #[serde(skip_serializing_if = "is_default")]
    pub traffic_distribution: Option<String>,
}

/// A port of an import or of a derived Service; the targetPort of the latter is never read.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ImportPort {
    #[prost(string, tag = "1")]
    #[serde(skip_serializing_if = "is_default")]
    pub name: String,
    #[prost(string, tag = "2")]
    #[serde(skip_serializing_if = "is_default")]
    pub protocol: String,
    #[prost(int32, tag = "3")]
    pub port: i32,
    #[prost(string, optional, tag = "6")]
    #[serde(skip_serializing_if = "is_default")]
    pub app_protocol: Option<String>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ImportStatus {
    #[prost(string, tag = "1")]
    #[serde(skip_serializing_if = "is_default")]
    pub endpoint_slice_objects: String,
    #[prost(message, repeated, tag = "2")]
    #[serde(skip_serializing_if = "is_default")]
    pub clusters: Vec<ClusterStatus>,
    #[prost(message, repeated, tag = "3")]
    #[serde(skip_serializing_if = "is_default")]
    pub conditions: Vec<Condition>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct ClusterStatus {
    #[prost(string, tag = "1")]
    pub cluster: String,
}

macro_rules! multicluster {
    ($($model:ident $kind:literal;)*) => {$(
        impl FromWire for model::$model {
            type Wire = $model;
        }

        impl Decoded for model::$model {
            /// The version that is stored; both have the same fields.
            const API_VERSION: &'static str = "multicluster.x-k8s.io/v1beta1";
            const KIND: &'static str = $kind;

            fn has_api_version(found: &str) -> bool {
                MultiClusterVersion::ALL.iter().any(|version| version.api_version() == found)
            }
        }
    )*};
}

multicluster! {
    ServiceExport "ServiceExport";
    ServiceImport "ServiceImport";
}

/// The object as JSON in this version, for a request or for people.
pub fn export_to_json(version: MultiClusterVersion, export: &model::ServiceExport) -> Value {
    to_value(version.api_version(), "ServiceExport", &ServiceExport::from(export))
}

/// Likewise.
pub fn import_to_json(version: MultiClusterVersion, import: &model::ServiceImport) -> Value {
    to_value(version.api_version(), "ServiceImport", &ServiceImport::from(import))
}

pub(crate) fn to_value(
    api_version: &'static str,
    kind: &'static str,
    object: &impl Serialize,
) -> Value {
    serde_json::to_value(Typed { api_version, kind, object }).expect(ALWAYS_JSON)
}

impl TryFrom<ServiceExport> for model::ServiceExport {
    type Error = InvalidResourceVersion;

    fn try_from(export: ServiceExport) -> Result<Self, Self::Error> {
        let ServiceExport { metadata, spec, status } = export;
        let ServiceExportSpec { exported_labels, exported_annotations } = spec;
        Ok(Self {
            meta: metadata.try_into()?,
            labels: labels(exported_labels),
            annotations: labels(exported_annotations),
            conditions: status.conditions.into_iter().map(Into::into).collect(),
        })
    }
}

impl From<&model::ServiceExport> for ServiceExport {
    fn from(export: &model::ServiceExport) -> Self {
        let model::ServiceExport { meta, labels, annotations, conditions } = export;
        Self {
            metadata: meta.into(),
            spec: ServiceExportSpec {
                exported_labels: string_map(labels),
                exported_annotations: string_map(annotations),
            },
            status: ServiceExportStatus {
                conditions: conditions.iter().map(Condition::from).collect(),
            },
        }
    }
}

impl TryFrom<ServiceImport> for model::ServiceImport {
    type Error = InvalidResourceVersion;

    fn try_from(import: ServiceImport) -> Result<Self, Self::Error> {
        let ServiceImport { metadata, spec, status } = import;
        let ImportStatus { endpoint_slice_objects, clusters, conditions } = status;
        Ok(Self {
            meta: metadata.try_into()?,
            spec: spec.into(),
            status: ServiceImportStatus {
                slice_objects: SliceObjects::parse(&endpoint_slice_objects),
                clusters: clusters.into_iter().map(|one| text(one.cluster)).collect(),
                conditions: conditions.into_iter().map(Into::into).collect(),
            },
        })
    }
}

impl From<ImportSpec> for ServiceImportSpec {
    fn from(spec: ImportSpec) -> Self {
        let ImportSpec {
            ports,
            ips,
            type_,
            session_affinity,
            session_affinity_config,
            ip_families,
            internal_traffic_policy,
            traffic_distribution,
        } = spec;
        Self {
            import_type: ImportType::from(type_.as_str()),
            ports: ports.into_iter().map(model::ImportPort::from).collect(),
            ips: ips.into_iter().map(text).collect(),
            families: read_families(&ip_families),
            traffic: read(
                &session_affinity,
                session_affinity_config,
                internal_traffic_policy.as_deref(),
            ),
            traffic_distribution: distribution(traffic_distribution.as_deref()),
        }
    }
}

impl From<&model::ServiceImport> for ServiceImport {
    fn from(import: &model::ServiceImport) -> Self {
        let model::ServiceImport { meta, spec, status } = import;
        let ServiceImportStatus { slice_objects, clusters, conditions } = status;
        let clusters = clusters.iter().map(|one| ClusterStatus { cluster: one.to_string() });
        Self {
            metadata: meta.into(),
            spec: spec.into(),
            status: ImportStatus {
                endpoint_slice_objects: slice_objects
                    .map_or_else(String::new, |objects| objects.as_str().to_owned()),
                clusters: clusters.collect(),
                conditions: conditions.iter().map(Condition::from).collect(),
            },
        }
    }
}

impl From<&ServiceImportSpec> for ImportSpec {
    fn from(spec: &ServiceImportSpec) -> Self {
        let ServiceImportSpec {
            import_type,
            ports,
            ips,
            families: of_import,
            traffic,
            traffic_distribution,
        } = spec;
        Self {
            ports: ports.iter().map(ImportPort::from).collect(),
            ips: texts(ips),
            type_: import_type.as_str().to_owned(),
            session_affinity: traffic.session_affinity.as_str().to_owned(),
            session_affinity_config: affinity_config(traffic.session_affinity),
            ip_families: families(of_import),
            internal_traffic_policy: Some(traffic.internal_policy.as_str().to_owned()),
            traffic_distribution: traffic_distribution.map(as_text),
        }
    }
}

impl From<ImportPort> for model::ImportPort {
    fn from(port: ImportPort) -> Self {
        let ImportPort { name, protocol, port, app_protocol } = port;
        Self {
            name: text(name),
            protocol: read_protocol(&protocol),
            app_protocol: app_protocol.map(text),
            number: port,
        }
    }
}

impl From<&model::ImportPort> for ImportPort {
    fn from(port: &model::ImportPort) -> Self {
        let model::ImportPort { name, protocol, app_protocol, number } = port;
        Self {
            name: name.to_string(),
            protocol: protocol.as_str().to_owned(),
            port: *number,
            app_protocol: app_protocol.as_deref().map(str::to_owned),
        }
    }
}

pub(crate) fn as_text(distribution: TrafficDistribution) -> String {
    distribution.as_str().to_owned()
}
