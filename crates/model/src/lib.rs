//! What endpointd knows and wants. Compact objects it reads (`Service`, `Pod`, `Node`), complete
//! objects it writes (`EndpointSlice`, `Endpoints`), and the values that say what to do with them
//! (`Change`, `Write`, `Outcome`, `Notice`). No behaviour beyond what a value can say about itself.
//!
//! Everything that is absent, null, or empty on the wire is the same here; parsing happens once,
//! in `endpointd-wire`.

mod address;
mod change;
mod endpoints;
mod key;
mod labels;
mod meta;
pub mod names;
mod node;
mod notice;
mod outcome;
mod pod;
mod port;
mod service;
mod slice;
mod uid;
mod version;
mod write;

pub use address::{BadAddress, Family, IpText, parse_ip, refused_by_api_server};
pub use change::{Change, Kind, News, Sight};
pub use endpoints::{EndpointAddress, Endpoints, Subset, SubsetPort};
pub use jiff::Timestamp;
pub use key::{Controller, Key};
pub use labels::{Annotations, Labels};
pub use meta::{Meta, ObjectRef, OwnerRef};
pub use node::Node;
pub use notice::{Notice, NoticeReason, NoticeType, Regarding};
pub use outcome::{Failure, FailureKind, Found, Lookup, Outcome};
pub use pod::{NamedPort, Phase, Pod, PodIp, PodIps, Readiness};
pub use port::{EndpointPort, Protocol};
pub use service::{
    ClusterIp, Selection, Service, ServicePort, TargetPort, TopologyMode, TrafficDistribution,
};
pub use slice::{AddressType, Conditions, Endpoint, EndpointSlice, Hints};
pub use uid::{Uid, UidForm};
pub use version::Version;
pub use write::{Object, Resource, Target, Write};

/// Immutable text that many objects share; cloning it copies a pointer.
pub type Text = std::sync::Arc<str>;
