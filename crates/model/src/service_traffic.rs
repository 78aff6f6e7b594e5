//! How a Service spreads the connections of its clients; most Services leave it at its defaults.

/// The fields of a Service that imports in other clusters take over besides `trafficDistribution`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServiceTraffic {
    pub session_affinity: SessionAffinity,
    pub internal_policy: InternalTrafficPolicy,
}

/// Whether a client stays with one endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SessionAffinity {
    #[default]
    None,
    ClientIp {
        /// The API server's default is three hours.
        timeout_secs: Option<i32>,
    },
}

/// The endpoints that clients within the cluster reach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InternalTrafficPolicy {
    #[default]
    Cluster,
    /// Those on the client's node.
    Local,
}

impl SessionAffinity {
    /// Any other text counts as `None`, which is the API server's default.
    pub fn new(text: &str, timeout_secs: Option<i32>) -> Self {
        if text == "ClientIP" { Self::ClientIp { timeout_secs } } else { Self::None }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "None",
            Self::ClientIp { .. } => "ClientIP",
        }
    }

    pub fn timeout_secs(self) -> Option<i32> {
        match self {
            Self::None => None,
            Self::ClientIp { timeout_secs } => timeout_secs,
        }
    }
}

impl InternalTrafficPolicy {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cluster => "Cluster",
            Self::Local => "Local",
        }
    }
}

/// Any other text counts as `Cluster`, which is the API server's default.
impl From<&str> for InternalTrafficPolicy {
    fn from(text: &str) -> Self {
        if text == "Local" { Self::Local } else { Self::Cluster }
    }
}
