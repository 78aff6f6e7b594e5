//! The fields of a Service that decide what is published.

use crate::{
    Condition, CrossNamespace, Family, Key, Labels, Protocol, ResourceVersion, ServiceTraffic,
    SharedStr, Timestamp, TolerateUnready, Uid,
};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Service {
    pub namespace: SharedStr,
    pub name: SharedStr,
    pub uid: Uid,
    pub resource_version: ResourceVersion,
    pub labels: Labels,
    pub created: Option<Timestamp>,
    pub is_deleting: bool,
    pub is_external_name: bool,
    /// Empty if the Service has no selector.
    pub selector: Labels,
    pub cluster_ip: ClusterIp,
    pub families: Vec<Family>,
    pub ports: Vec<ServicePort>,
    pub publish_not_ready: bool,
    pub tolerate_unready: TolerateUnready,
    pub topology: TopologyMode,
    pub traffic_distribution: Option<TrafficDistribution>,
    /// None for nearly all Services: the defaults.
    pub traffic: Option<Box<ServiceTraffic>>,
    /// None for nearly all Services.
    pub cross_namespace: Option<Box<CrossNamespace>>,
}

/// Where the endpoints of a Service come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection<'a> {
    /// The Service has a selector: the matching pods are published.
    Pods(&'a Labels),
    /// No selector: a user writes Endpoints, and they are mirrored.
    Manual,
    /// `ExternalName`: nothing is published.
    External,
}

impl Service {
    pub fn key(&self) -> Key {
        Key { namespace: self.namespace.clone(), name: self.name.clone() }
    }

    pub fn selection(&self) -> Selection<'_> {
        if self.is_external_name {
            Selection::External
        } else if self.selector.is_empty() {
            Selection::Manual
        } else {
            Selection::Pods(&self.selector)
        }
    }

    /// The Service whose endpoints this one asks for, if it names one.
    pub fn source(&self) -> Option<Key> {
        self.cross_namespace.as_ref()?.source()?.ok()
    }

    /// Replaces the condition about the source.
    pub fn set_condition(&mut self, condition: Option<Condition>) {
        let cross = self.cross_namespace.take().unwrap_or_default();
        let cross = CrossNamespace { condition, ..*cross };
        let is_set = cross != CrossNamespace::default();
        self.cross_namespace = is_set.then(|| Box::new(cross));
    }

    /// Whether objects get the headless label: the ClusterIP is `None` or not assigned.
    pub fn is_labelled_headless(&self) -> bool {
        !matches!(self.cluster_ip, ClusterIp::Ip(_))
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClusterIp {
    #[default]
    Unset,
    /// `None`.
    Headless,
    /// An address; only its family is used.
    Ip(Family),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServicePort {
    pub name: SharedStr,
    pub protocol: Protocol,
    /// The number that clients use.
    pub number: i32,
    pub app_protocol: Option<SharedStr>,
    pub target: TargetPort,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetPort {
    Number(i32),
    Name(SharedStr),
}

/// The value of the topology annotations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TopologyMode {
    #[default]
    Off,
    Auto,
}

impl TopologyMode {
    /// The older annotation wins if both are set, even if its value is not `Auto`.
    /// Upstream: `hintsEnabled`.
    pub fn of(annotations: &Labels) -> Self {
        let value = annotations
            .get(crate::names::TOPOLOGY_AWARE_HINTS)
            .or_else(|| annotations.get(crate::names::TOPOLOGY_MODE));
        match value.map(AsRef::as_ref) {
            Some("Auto" | "auto") => Self::Auto,
            Some(_) | None => Self::Off,
        }
    }
}

/// The known values of `trafficDistribution`; an unknown value counts as absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrafficDistribution {
    PreferClose,
    PreferSameZone,
    PreferSameNode,
}

impl TrafficDistribution {
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "PreferClose" => Some(Self::PreferClose),
            "PreferSameZone" => Some(Self::PreferSameZone),
            "PreferSameNode" => Some(Self::PreferSameNode),
            _ => None,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::PreferClose => "PreferClose",
            Self::PreferSameZone => "PreferSameZone",
            Self::PreferSameNode => "PreferSameNode",
        }
    }
}
