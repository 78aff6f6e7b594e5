//! The writes of a multi-cluster plan. All of them concern this cluster.

use endpointd_model::{
    DerivedService, EndpointSlice, Key, Meta, ResourceVersion, ServiceExport, ServiceImport, Uid,
};

/// An update has the resourceVersion it was computed from, a delete has uid and resourceVersion.
#[derive(Clone, Debug, PartialEq)]
pub enum MultiClusterWrite {
    Create(MultiClusterObject),
    Update(MultiClusterObject),
    Delete(MultiClusterTarget),
    /// Only the status, through its subresource.
    ImportStatus(ServiceImport),
    ExportStatus(ServiceExport),
}

#[derive(Clone, Debug, PartialEq)]
pub enum MultiClusterObject {
    Import(ServiceImport),
    Derived(DerivedService),
    Slice(EndpointSlice),
}

/// The object to delete, with uid and resourceVersion as preconditions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MultiClusterTarget {
    pub resource: MultiClusterResource,
    pub key: Key,
    pub uid: Uid,
    pub resource_version: ResourceVersion,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MultiClusterResource {
    Imports,
    Services,
    Slices,
}

impl MultiClusterResource {
    /// The plural name in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Imports => "serviceimports",
            Self::Services => "services",
            Self::Slices => "endpointslices",
        }
    }
}

impl MultiClusterTarget {
    pub fn of(resource: MultiClusterResource, meta: &Meta) -> Self {
        Self {
            resource,
            key: meta.key(),
            uid: meta.uid.clone(),
            resource_version: meta.resource_version,
        }
    }
}

impl MultiClusterObject {
    pub fn meta(&self) -> &Meta {
        match self {
            Self::Import(import) => &import.meta,
            Self::Derived(service) => &service.meta,
            Self::Slice(slice) => &slice.meta,
        }
    }

    pub fn resource(&self) -> MultiClusterResource {
        match self {
            Self::Import(_) => MultiClusterResource::Imports,
            Self::Derived(_) => MultiClusterResource::Services,
            Self::Slice(_) => MultiClusterResource::Slices,
        }
    }
}

impl MultiClusterWrite {
    pub fn verb(&self) -> &'static str {
        match self {
            Self::Create(_) => "create",
            Self::Update(_) => "update",
            Self::Delete(_) => "delete",
            Self::ImportStatus(_) | Self::ExportStatus(_) => "update",
        }
    }

    /// The plural name in the API, with the subresource.
    pub fn resource(&self) -> &'static str {
        match self {
            Self::Create(object) | Self::Update(object) => object.resource().as_str(),
            Self::Delete(target) => target.resource.as_str(),
            Self::ImportStatus(_) => "serviceimports/status",
            Self::ExportStatus(_) => "serviceexports/status",
        }
    }

    pub fn key(&self) -> Key {
        match self {
            Self::Create(object) | Self::Update(object) => object.meta().key(),
            Self::Delete(target) => target.key.clone(),
            Self::ImportStatus(import) => import.meta.key(),
            Self::ExportStatus(export) => export.meta.key(),
        }
    }
}
