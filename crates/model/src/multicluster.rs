//! The objects of the Multi-Cluster Services API (KEP-1645), `multicluster.x-k8s.io`: what clusters
//! export, and what they import.

use std::fmt;

use crate::cross_namespace::is_dns_label;
use crate::{
    Annotations, Condition, Family, Labels, Meta, Protocol, ServiceTraffic, SharedStr,
    TrafficDistribution,
};

/// The name of a cluster in its clusterset: one DNS label, because CoreDNS reads exactly one, and
/// because it is the value of a label.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClusterId(SharedStr);

/// The text is not a DNS label.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a DNS label: at most 63 lower-case letters, digits, and `-` between them")]
pub struct InvalidClusterId(pub String);

impl ClusterId {
    pub fn parse(text: &str) -> Result<Self, InvalidClusterId> {
        match is_dns_label(text) {
            true => Ok(Self(text.into())),
            false => Err(InvalidClusterId(text.to_owned())),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Exports the Service of the same namespace and name to all clusters of the set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceExport {
    pub meta: Meta,
    /// Labels of the imports. Those of the Service and of the export are not exported.
    pub labels: Labels,
    pub annotations: Annotations,
    pub conditions: Vec<Condition>,
}

/// A Service that clusters of the set export, as one cluster sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceImport {
    pub meta: Meta,
    pub spec: ServiceImportSpec,
    pub status: ServiceImportStatus,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceImportSpec {
    pub import_type: ImportType,
    pub ports: Vec<ImportPort>,
    /// As many as `families`, in their order; none if headless.
    pub ips: Vec<SharedStr>,
    pub families: Vec<Family>,
    pub traffic: ServiceTraffic,
    pub traffic_distribution: Option<TrafficDistribution>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ImportType {
    /// Clients reach the Service by the addresses of the import.
    #[default]
    ClusterSetIp,
    /// DNS names the endpoints.
    Headless,
}

impl ImportType {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ClusterSetIp => "ClusterSetIP",
            Self::Headless => "Headless",
        }
    }
}

/// The API server accepts no other texts.
impl From<&str> for ImportType {
    fn from(text: &str) -> Self {
        if text == "Headless" { Self::Headless } else { Self::ClusterSetIp }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ImportPort {
    pub name: SharedStr,
    pub protocol: Protocol,
    pub app_protocol: Option<SharedStr>,
    /// The number that clients use.
    pub number: i32,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceImportStatus {
    pub slice_objects: Option<SliceObjects>,
    /// The ids of the exporting clusters.
    pub clusters: Vec<SharedStr>,
    pub conditions: Vec<Condition>,
}

/// Whether there are EndpointSlices for an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SliceObjects {
    Present,
    Absent,
}

impl SliceObjects {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Present => "Present",
            Self::Absent => "Absent",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "Present" => Some(Self::Present),
            "Absent" => Some(Self::Absent),
            _ => None,
        }
    }
}

/// The Service without selector that gives an import its addresses, with all fields that are written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DerivedService {
    pub meta: Meta,
    pub ports: Vec<ImportPort>,
    pub families: Vec<Family>,
    /// The API server assigns them.
    pub cluster_ips: Vec<SharedStr>,
    pub traffic: ServiceTraffic,
    pub traffic_distribution: Option<TrafficDistribution>,
}

/// A version of the group `multicluster.x-k8s.io`. Both have the same fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MultiClusterVersion {
    #[default]
    V1Beta1,
    V1Alpha1,
}

impl MultiClusterVersion {
    pub const ALL: [Self; 2] = [Self::V1Beta1, Self::V1Alpha1];

    pub fn api_version(self) -> &'static str {
        match self {
            Self::V1Beta1 => "multicluster.x-k8s.io/v1beta1",
            Self::V1Alpha1 => "multicluster.x-k8s.io/v1alpha1",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_id_is_one_dns_label() {
        for text in ["eu1", "a", "1", "a-b", &"a".repeat(63)] {
            assert_eq!(ClusterId::parse(text).expect(text).as_str(), text);
        }
        for text in ["", "EU1", "eu.1", "-eu", "eu-", "eu_1", "eu 1", &"a".repeat(64)] {
            let error = ClusterId::parse(text).expect_err(text);
            assert!(error.to_string().contains(text));
        }
    }
}
