//! Patch: applies a patch to the stored object, then updates it.

use serde_json::Value;

use super::update::Part;
use super::{Target, WriteOptions, WriteOutcome, shown_as};
use crate::patch;
use crate::server::Server;
use crate::status_error::StatusError;

/// How a patch is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchType {
    /// RFC 6902.
    Json,
    /// RFC 7386.
    Merge,
    /// Lists merge by the merge keys of upstream's types.
    Strategic,
}

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
    ) -> Result<WriteOutcome, StatusError> {
        self.patch_part(target, Part::Object, Patch { of: patch_type, given }, options)
    }

    pub(crate) fn patch_part(
        &mut self,
        target: &Target,
        part: Part,
        patch: Patch<'_>,
        options: &WriteOptions,
    ) -> Result<WriteOutcome, StatusError> {
        let stored = self.get(target)?;
        let shown = shown_as(target.kind, stored.value());
        let changed = patch::apply(patch.of, shown, patch.given, target.kind.schema)?;
        self.replace(target, part, changed, options)
    }
}
