//! The fields of a namespace that decide whether something can be imported into it.

use crate::{ResourceVersion, SharedStr};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Namespace {
    pub name: SharedStr,
    pub resource_version: ResourceVersion,
    /// Nothing can be created in it any more.
    pub is_terminating: bool,
}
