//! What can happen in a simulation, and the order in which it happens.

use endpointd_engine::{Input, RequestId};
use endpointd_model::{Controller, LiveRead, WatchedResource, Write};

use super::PointFault;
use crate::process::ObservedRevisions;
use crate::script::RequestFault;

#[derive(Debug)]
pub(crate) enum Event {
    /// The next event of a watch is due.
    Deliver {
        process: usize,
        resource: WatchedResource,
        connection: u32,
    },
    /// A watch reconnects.
    Connect {
        process: usize,
        resource: WatchedResource,
        connection: u32,
    },
    /// The second half of a list.
    FinishList {
        process: usize,
        resource: WatchedResource,
        connection: u32,
    },
    /// A write has waited in the client and is about to leave.
    Leave(Box<Request>),
    Arrive(Box<Request>),
    Read {
        process: usize,
        incarnation: u32,
        id: RequestId,
        read: LiveRead,
    },
    Response {
        process: usize,
        incarnation: u32,
        input: Box<Input>,
    },
    Wake {
        process: usize,
        incarnation: u32,
    },
    TryLease {
        process: usize,
        incarnation: u32,
    },
    Start {
        process: usize,
    },
    CollectGarbage,
}

/// A write on its way to the API server.
#[derive(Debug)]
pub(crate) struct Request {
    pub process: usize,
    pub incarnation: u32,
    pub id: RequestId,
    pub controller: Controller,
    pub write: Box<Write>,
    /// What the engine had observed when it planned.
    pub observed: ObservedRevisions,
    pub fault: Option<RequestFault>,
    pub point_fault: Option<PointFault>,
    /// The client has timed out.
    pub is_given_up: bool,
}

impl Event {
    /// The process that must be awake for it.
    pub fn process(&self) -> Option<usize> {
        match self {
            Self::Deliver { process, .. }
            | Self::Connect { process, .. }
            | Self::FinishList { process, .. }
            | Self::Response { process, .. }
            | Self::Wake { process, .. }
            | Self::TryLease { process, .. } => Some(*process),
            Self::Leave(request) => Some(request.process),
            Self::Arrive(_) | Self::Read { .. } | Self::Start { .. } | Self::CollectGarbage => None,
        }
    }
}
