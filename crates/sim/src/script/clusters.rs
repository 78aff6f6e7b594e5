//! Actions about several clusters, in runs with the controller for Services of several clusters.

use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterAction {
    /// The Service with this number exists, as its shape says. Slices of other families go.
    Service(u16, u32),
    RemoveService(u16),
    Export(u16, u32),
    Unexport(u16),
    /// One of the slices of the Service is written.
    Slice(u16, u32),
    RemoveSlice(u16, u32),
    /// Another client edits, or deletes, an object of the import with this number.
    Edit(u16, u32),
    /// The link from the home cluster does not work for this time.
    Cut(Duration),
    /// Then the watches cannot continue: they begin with lists.
    CutAndCompact(Duration),
    /// Its etcd is saved, and later restored.
    BackUp,
    Restore,
    /// Another cluster has the name.
    Replace(u32),
    RemoveKubeconfig,
    ReturnKubeconfig,
    /// It answers with status 401 for this time.
    Deny(Duration),
    /// Its wall clock is so many seconds ahead.
    ClockJump(i64),
}
