//! What the condition `endpointd/EndpointsFrom` of a consumer says.

use std::fmt;

use endpointd_model::{InvalidReference, Key, ServicePort, SharedStr, SourceReason, names};

/// Why a consumer has endpoints of its source, or has none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ImportState {
    /// The Service asks for no endpoints: it has no condition.
    #[default]
    NotRequested,
    InvalidReference(InvalidReference),
    HasSelector,
    ExternalName,
    /// The text is the same whether the source exists or not.
    NotPermitted {
        source: Key,
        namespace: SharedStr,
    },
    /// Only a namespace that a ReferenceGrant permits, or the same namespace, learns this.
    SourceNotFound {
        source: Key,
    },
    ChainNotAllowed {
        source: Key,
    },
    /// The source has no such ports. Those that it has are published.
    PortNotFound {
        source: Key,
        ports: Vec<PortLabel>,
    },
    Mirrored {
        source: Key,
        n_endpoints: usize,
        n_slices: usize,
    },
}

/// A port of the consumer as people write it: its name, or number and protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortLabel(String);

impl PortLabel {
    pub(super) fn of(port: &ServicePort) -> Self {
        Self(match port.name.is_empty() {
            true => format!("{}/{}", port.number, port.protocol),
            false => port.name.to_string(),
        })
    }
}

impl ImportState {
    /// The status of the condition: all ports of the consumer are served. A Service that asks for
    /// nothing has none.
    pub fn is_true(&self) -> Option<bool> {
        self.reason().map(|reason| reason == SourceReason::Mirrored)
    }

    /// The reason of the condition.
    pub fn reason(&self) -> Option<SourceReason> {
        match self {
            Self::NotRequested => None,
            Self::InvalidReference(_) => Some(SourceReason::InvalidReference),
            Self::HasSelector => Some(SourceReason::HasSelector),
            Self::ExternalName => Some(SourceReason::ExternalName),
            Self::NotPermitted { .. } => Some(SourceReason::RefNotPermitted),
            Self::SourceNotFound { .. } => Some(SourceReason::SourceNotFound),
            Self::ChainNotAllowed { .. } => Some(SourceReason::ChainNotAllowed),
            Self::PortNotFound { .. } => Some(SourceReason::PortNotFound),
            Self::Mirrored { .. } => Some(SourceReason::Mirrored),
        }
    }

    /// The message of the condition: without numbers, which change all the time.
    pub fn condition_message(&self) -> String {
        match self {
            Self::Mirrored { source, .. } => format!("has the endpoints of {source}"),
            Self::NotRequested
            | Self::InvalidReference(_)
            | Self::HasSelector
            | Self::ExternalName
            | Self::NotPermitted { .. }
            | Self::SourceNotFound { .. }
            | Self::ChainNotAllowed { .. }
            | Self::PortNotFound { .. } => self.to_string(),
        }
    }
}

/// What the state means, with its numbers.
impl fmt::Display for ImportState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, to) = (names::ENDPOINTS_FROM, names::ENDPOINTS_TO);
        match self {
            Self::NotRequested => write!(f, "the annotation {from} is not set"),
            Self::InvalidReference(invalid) => write!(f, "{from}: {invalid}"),
            Self::HasSelector => write!(f, "the Service has a selector, so {from} is ignored"),
            Self::ExternalName => write!(f, "an ExternalName Service has no endpoints"),
            Self::NotPermitted { source, namespace } => write!(
                f,
                "{source} does not permit it: the annotation {to} of that Service must list \
                 {namespace}, or a ReferenceGrant in {} must name it",
                source.namespace
            ),
            Self::SourceNotFound { source } => write!(f, "there is no Service {source}"),
            Self::ChainNotAllowed { source } => {
                write!(f, "{source} has endpoints from elsewhere itself; name their source instead")
            }
            Self::PortNotFound { source, ports } => {
                let names: Vec<&str> = ports.iter().map(|PortLabel(name)| name.as_str()).collect();
                let (noun, names) =
                    (if names.len() == 1 { "port" } else { "ports" }, names.join(", "));
                write!(f, "{source} has nothing for {noun} {names}")
            }
            Self::Mirrored { source, n_endpoints, n_slices } => write!(
                f,
                "{} in {} from {source}",
                counted(*n_endpoints, "endpoint"),
                counted(*n_slices, "slice")
            ),
        }
    }
}

fn counted(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}
