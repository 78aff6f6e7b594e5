//! One create, update, or delete of one object.

use crate::{
    Condition, DerivedService, EndpointSlice, Endpoints, Key, Meta, ResourceVersion, Service,
    ServiceExport, ServiceImport, Uid,
};

/// An update has the resourceVersion it was computed from, a delete has uid and resourceVersion. If
/// the stored object is another version, the API server rejects the write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    Create(Object),
    Update(Object),
    Delete(DeleteTarget),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Object {
    Slice(EndpointSlice),
    Endpoints(Endpoints),
    /// Only updated: the rest of the Service and its other conditions stay as they are.
    ServiceStatus(ServiceStatus),
    MultiCluster(MultiClusterObject),
}

/// What the controller of Services of several clusters writes, besides slices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MultiClusterObject {
    Import(ServiceImport),
    /// Only the status is updated, like that of the export.
    ImportStatus(ServiceImport),
    ExportStatus(ServiceExport),
    Derived(DerivedService),
}

/// A Service with the condition that the import controller maintains.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceStatus {
    /// Only the identity and the version.
    pub meta: Meta,
    /// None: the Service has no such condition.
    pub condition: Option<Condition>,
}

/// The object to delete, with uid and resourceVersion as preconditions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeleteTarget {
    pub resource: PublishedResource,
    pub key: Key,
    pub uid: Uid,
    pub resource_version: ResourceVersion,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PublishedResource {
    Endpoints,
    Slices,
    ServiceStatus,
    MultiCluster(MultiClusterResource),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MultiClusterResource {
    Imports,
    ImportStatus,
    ExportStatus,
    Derived,
}

impl PublishedResource {
    /// The plural name in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Endpoints => "endpoints",
            Self::Slices => "endpointslices",
            Self::ServiceStatus => "services/status",
            Self::MultiCluster(MultiClusterResource::Imports) => "serviceimports",
            Self::MultiCluster(MultiClusterResource::ImportStatus) => "serviceimports/status",
            Self::MultiCluster(MultiClusterResource::ExportStatus) => "serviceexports/status",
            Self::MultiCluster(MultiClusterResource::Derived) => "services",
        }
    }
}

impl From<Service> for ServiceStatus {
    fn from(service: Service) -> Self {
        let Service { namespace, name, uid, resource_version, cross_namespace, .. } = service;
        let meta = Meta { namespace, name, uid, resource_version, ..Meta::default() };
        Self { meta, condition: cross_namespace.and_then(|cross| cross.condition) }
    }
}

impl DeleteTarget {
    pub fn of(resource: PublishedResource, meta: &Meta) -> Self {
        Self {
            resource,
            key: meta.key(),
            uid: meta.uid.clone(),
            resource_version: meta.resource_version,
        }
    }
}

impl Object {
    pub fn meta(&self) -> &Meta {
        match self {
            Self::Slice(slice) => &slice.meta,
            Self::Endpoints(endpoints) => &endpoints.meta,
            Self::ServiceStatus(status) => &status.meta,
            Self::MultiCluster(object) => object.meta(),
        }
    }

    pub fn resource(&self) -> PublishedResource {
        match self {
            Self::Slice(_) => PublishedResource::Slices,
            Self::Endpoints(_) => PublishedResource::Endpoints,
            Self::ServiceStatus(_) => PublishedResource::ServiceStatus,
            Self::MultiCluster(object) => PublishedResource::MultiCluster(object.resource()),
        }
    }
}

impl MultiClusterObject {
    pub fn meta(&self) -> &Meta {
        match self {
            Self::Import(import) | Self::ImportStatus(import) => &import.meta,
            Self::ExportStatus(export) => &export.meta,
            Self::Derived(service) => &service.meta,
        }
    }

    pub fn meta_mut(&mut self) -> &mut Meta {
        match self {
            Self::Import(import) | Self::ImportStatus(import) => &mut import.meta,
            Self::ExportStatus(export) => &mut export.meta,
            Self::Derived(service) => &mut service.meta,
        }
    }

    pub fn resource(&self) -> MultiClusterResource {
        match self {
            Self::Import(_) => MultiClusterResource::Imports,
            Self::ImportStatus(_) => MultiClusterResource::ImportStatus,
            Self::ExportStatus(_) => MultiClusterResource::ExportStatus,
            Self::Derived(_) => MultiClusterResource::Derived,
        }
    }
}

impl Write {
    pub fn verb(&self) -> &'static str {
        match self {
            Self::Create(_) => "create",
            Self::Update(_) => "update",
            Self::Delete(_) => "delete",
        }
    }

    pub fn resource(&self) -> PublishedResource {
        match self {
            Self::Create(object) | Self::Update(object) => object.resource(),
            Self::Delete(target) => target.resource,
        }
    }

    pub fn key(&self) -> Key {
        match self {
            Self::Create(object) | Self::Update(object) => object.meta().key(),
            Self::Delete(target) => target.key.clone(),
        }
    }

    /// The object to send; a delete has none.
    pub fn object(&self) -> Option<&Object> {
        match self {
            Self::Create(object) | Self::Update(object) => Some(object),
            Self::Delete(_) => None,
        }
    }
}
