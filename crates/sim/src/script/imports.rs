//! Actions about endpoints of other namespaces, in runs with the import controller.

use super::{Place, ServiceAction};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportAction {
    /// A change of a consumer, as of any Service. A new one asks for endpoints, too.
    Consumer(Place, ServiceAction),
    /// The consumer asks for the endpoints of another Service, or of none.
    Ask(Place, u32),
    /// The consumer gets a selector.
    Select(Place),
    /// The owner of a Service permits some namespaces, or none.
    Permit(Place, u32),
    /// A ReferenceGrant is written in this namespace.
    Grant(u8, u32),
    /// One of the ReferenceGrants of this namespace is deleted.
    Revoke(u8, u32),
    /// A user writes a slice of a Service that may be a source.
    WriteSlice(Place, u32),
    /// Another client edits one of the copies.
    EditCopy(u32, CopyEdit),
    /// Another client edits the condition of a consumer.
    EditCondition(Place),
}

/// What another client does to a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyEdit {
    Delete,
    /// No label names its Service.
    DropName,
    /// The label names another Service of the namespace.
    OtherName,
    DropManager,
    /// It looks like a slice of the endpointslice controller.
    OtherManager,
    OtherNameAndManager,
    DropOwner,
    /// Another Service of the namespace owns it.
    OtherOwner,
    Endpoints,
    Ports,
}

impl CopyEdit {
    pub const ALL: [Self; 10] = [
        Self::Delete,
        Self::DropName,
        Self::OtherName,
        Self::DropManager,
        Self::OtherManager,
        Self::OtherNameAndManager,
        Self::DropOwner,
        Self::OtherOwner,
        Self::Endpoints,
        Self::Ports,
    ];
}
