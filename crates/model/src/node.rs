//! The part of a node that matters to topology.

use crate::{ResourceVersion, SharedStr};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    pub name: SharedStr,
    pub resource_version: ResourceVersion,
    pub zone: Option<SharedStr>,
    pub is_ready: bool,
    pub is_control_plane: bool,
    /// Allocatable CPU in billionths of a core, the finest a Kubernetes quantity can say.
    pub cpu_nanos: i128,
}
