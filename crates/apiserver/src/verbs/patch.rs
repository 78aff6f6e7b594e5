//! Patch: the stored object, changed as the patch says, then an update like any other.

use serde_json::Value;

use super::update::Part;
use super::{Outcome, Target, WriteOptions, shown_as};
use crate::patch;
use crate::refusal::Refusal;
use crate::server::Server;

/// How a patch is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchType {
    /// RFC 6902.
    Json,
    /// RFC 7386.
    Merge,
    /// Lists merge by the keys that upstream's types name.
    Strategic,
}

/// A patch as it came.
#[derive(Clone, Copy)]
pub(crate) struct Patch<'a> {
    pub of: PatchType,
    pub given: &'a Value,
}

impl Server {
    pub fn patch(
        &mut self,
        target: &Target,
        patch_type: PatchType,
        given: &Value,
        options: &WriteOptions,
    ) -> Result<Outcome, Refusal> {
        self.patch_part(target, Part::Object, Patch { of: patch_type, given }, options)
    }

    pub(crate) fn patch_part(
        &mut self,
        target: &Target,
        part: Part,
        patch: Patch<'_>,
        options: &WriteOptions,
    ) -> Result<Outcome, Refusal> {
        let stored = self.get(target)?;
        let shown = shown_as(target.kind, stored.value());
        let changed = patch::apply(patch.of, shown, patch.given, target.kind.schema)?;
        self.replace(target, part, changed, options)
    }
}
