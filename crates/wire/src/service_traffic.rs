//! How clients of a Service are spread, as a Service and a ServiceImport say it.

use endpointd_model::{
    Family, InternalTrafficPolicy, ServiceTraffic, SessionAffinity, SharedStr, TrafficDistribution,
};
use serde::{Deserialize, Serialize};

use crate::lenient::is_default;

/// `corev1.SessionAffinityConfig`.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SessionAffinityConfig {
    #[prost(message, optional, tag = "1")]
    #[serde(rename = "clientIP", skip_serializing_if = "is_default")]
    pub client_ip: Option<ClientIpConfig>,
}

/// `corev1.ClientIPConfig`.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClientIpConfig {
    #[prost(int32, optional, tag = "1")]
    #[serde(skip_serializing_if = "is_default")]
    pub timeout_seconds: Option<i32>,
}

pub(crate) fn read(
    affinity: &str,
    config: Option<SessionAffinityConfig>,
    internal_policy: Option<&str>,
) -> ServiceTraffic {
    let timeout_secs = config.and_then(|config| config.client_ip?.timeout_seconds);
    ServiceTraffic {
        session_affinity: SessionAffinity::new(affinity, timeout_secs),
        internal_policy: InternalTrafficPolicy::from(internal_policy.unwrap_or_default()),
    }
}

/// None if there is nothing to configure.
pub(crate) fn affinity_config(affinity: SessionAffinity) -> Option<SessionAffinityConfig> {
    let timeout_seconds = Some(affinity.timeout_secs()?);
    Some(SessionAffinityConfig { client_ip: Some(ClientIpConfig { timeout_seconds }) })
}

pub(crate) fn distribution(text: Option<&str>) -> Option<TrafficDistribution> {
    text.and_then(TrafficDistribution::parse)
}

pub(crate) fn read_families(texts: &[String]) -> Vec<Family> {
    texts.iter().filter_map(|text| read_family(text)).collect()
}

pub(crate) fn families(families: &[Family]) -> Vec<String> {
    families.iter().map(ToString::to_string).collect()
}

pub(crate) fn texts(texts: &[SharedStr]) -> Vec<String> {
    texts.iter().map(ToString::to_string).collect()
}

fn read_family(text: &str) -> Option<Family> {
    match text {
        "IPv4" => Some(Family::V4),
        "IPv6" => Some(Family::V6),
        _ => None,
    }
}
