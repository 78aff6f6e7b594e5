//! The types that all crates share: compact objects that endpointd reads (`Service`, `Pod`,
//! `Node`), complete objects that it writes (`EndpointSlice`, `Endpoints`), and the values that the
//! engine receives and returns (`ResourceEvent`, `Write`, `WriteResult`, `EventRecord`). No I/O.
//!
//! Absent, null, and empty fields are one value, unless Kubernetes distinguishes them.
//! `endpointd-wire` parses objects once, when it decodes them.

mod address;
mod condition;
mod cross_namespace;
mod derived_name;
mod endpoints;
mod event_record;
mod key;
mod label_selector;
mod labels;
mod meta;
mod multicluster;
pub mod names;
mod namespace;
mod node;
mod pod;
mod port;
mod reference_grant;
mod resource_version;
mod scope;
mod service;
mod service_traffic;
mod slice;
mod slice_managers;
mod tolerate_unready;
mod uid;
mod watch;
mod write;
mod write_result;

pub use address::{BadAddress, Family, IpStr, is_forbidden_endpoint_ip, parse_ip};
pub use condition::{Condition, ConditionStatus};
pub use cross_namespace::{CrossNamespace, InvalidReference, SourceReason};
pub use derived_name::derived_name;
pub use endpoints::{EndpointAddress, Endpoints, Subset, SubsetPort};
pub use event_record::{EventReason, EventRecord, EventType, InvolvedKind};
pub use jiff::Timestamp;
pub use key::{Controller, Key};
pub use label_selector::{InvalidSelector, LabelSelector};
pub use labels::{Annotations, Labels};
pub use meta::{Meta, ObjectRef, OwnerRef};
pub use multicluster::{
    ClusterId, DerivedService, ImportPort, ImportType, InvalidClusterId, MultiClusterVersion,
    ServiceExport, ServiceImport, ServiceImportSpec, ServiceImportStatus, SliceObjects,
};
pub use namespace::Namespace;
pub use node::Node;
pub use pod::{NamedPort, Phase, Pod, PodIp, PodIps, Readiness};
pub use port::{EndpointPort, Protocol};
pub use reference_grant::{GrantedFrom, GrantedTo, ReferenceGrant};
pub use resource_version::{InvalidResourceVersion, ResourceVersion};
pub use scope::{NamespaceScope, SHARDS_MAX, Scope, Shard};
pub use service::{
    ClusterIp, Selection, Service, ServicePort, TargetPort, TopologyMode, TrafficDistribution,
};
pub use service_traffic::{InternalTrafficPolicy, ServiceTraffic, SessionAffinity};
pub use slice::{AddressType, Conditions, Endpoint, EndpointSlice, Hints};
pub use slice_managers::{InvalidControllerName, SliceManagers, is_imported_copy};
pub use tolerate_unready::TolerateUnready;
pub use uid::{Uid, UidRepr};
pub use watch::{ObjectEvent, ResourceEvent, WatchSignal, WatchedResource};
pub use write::{
    DeleteTarget, MultiClusterObject, MultiClusterResource, Object, PublishedResource,
    ServiceStatus, Write,
};
pub use write_result::{Failure, FailureKind, LiveRead, LiveReadResult, PodUids, WriteResult};

/// Immutable text that many objects share; cloning it copies a pointer.
pub type SharedStr = std::sync::Arc<str>;

/// Compiles and runs the example in the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
