//! The fields of a node that zones and topology hints need.

use crate::{ResourceVersion, SharedStr};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    pub name: SharedStr,
    pub resource_version: ResourceVersion,
    pub zone: Option<SharedStr>,
    pub is_ready: bool,
    pub is_control_plane: bool,
    /// Allocatable CPU in billionths of a core, the resolution of a Kubernetes quantity.
    pub cpu_nanos: i128,
}
