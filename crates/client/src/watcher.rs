//! Lists and watches one resource: a complete list, then events, then a new watch from the last
//! version. Upstream: client-go's `Reflector`.
//!
//! The list is streamed (`sendInitialEvents`) or, if the server rejects that, requested in pages;
//! it is always a consistent read, never served from a stale cache. Each kind of failure is reported
//! and logged once, and retried until it ends.

mod backoff;
mod continuity;
mod idle_timer;
mod optional;
mod pages;
mod stream;
mod watched;

use std::time::Duration;

use endpointd_model::{
    DerivedService, EndpointSlice, Endpoints, Namespace, Node, Pod, ReferenceGrant, Service,
    ServiceExport, ServiceImport,
};
use endpointd_model::{
    Failure, FailureKind, Key, ObjectEvent, ResourceVersion, WatchSignal, WatchedResource,
};
use endpointd_wire::{Bookmark, Malformed, Status};
use tokio::sync::mpsc;

use crate::client::Client;
use crate::request::{ApiRequest, Location, Start};
use crate::response::failure;
use crate::transport::ApiResponse;
use backoff::Backoff;
use continuity::NewestEvent;
use watched::Watched;

/// A watch that lived this long is reopened without back-off.
const HEALTHY_WATCH_MIN: Duration = Duration::from_secs(5);
/// More consecutive shorter ones count as a disconnection, even if each was accepted.
const SHORT_WATCHES_MAX: u32 = 4;
/// For the body of a response other than 200.
const ERROR_BYTES_MAX: usize = 1 << 20;
const ERROR_TIMEOUT: Duration = Duration::from_secs(10);

/// A client that writes such objects could otherwise make us list without end.
const UNDECODABLE_DELAY: Duration = Duration::from_secs(10);

type SignalSender = mpsc::Sender<(WatchedResource, WatchSignal)>;

pub(crate) async fn run(client: Client, resource: WatchedResource, sender: SignalSender) {
    let receiver = sender.clone();
    tokio::select! {
        () = receiver.closed() => {}
        _ = run_resource(client, resource, sender) => {}
    }
}

async fn run_resource(client: Client, resource: WatchedResource, sender: SignalSender) -> Stop {
    let watcher = Watcher::new(client.clone(), sender.clone(), resource.into());
    match resource {
        WatchedResource::Services => watcher.run::<Service>().await,
        WatchedResource::Pods => watcher.run::<Pod>().await,
        WatchedResource::Nodes => watcher.run::<Node>().await,
        WatchedResource::Endpoints => watcher.run::<Endpoints>().await,
        WatchedResource::Slices => watcher.run::<EndpointSlice>().await,
        WatchedResource::Namespaces => watcher.run::<Namespace>().await,
        WatchedResource::DerivedServices => watcher.run::<DerivedService>().await,
        WatchedResource::ReferenceGrants => optional::run::<ReferenceGrant>(client, sender).await,
        WatchedResource::ServiceExports => optional::run::<ServiceExport>(client, sender).await,
        WatchedResource::ServiceImports => optional::run::<ServiceImport>(client, sender).await,
    }
}

struct Watcher {
    client: Client,
    sender: SignalSender,
    location: Location,
    /// The version that the next watch starts after; without one, a list comes first.
    position: Option<ResourceVersion>,
    newest: Option<NewestEvent>,
    /// The last failure that was reported and has not ended.
    reported: Option<FailureKind>,
    /// The last watch was closed because it was idle for too long.
    was_idle: bool,
    /// The server has accepted a watch after a disconnection; its first frame can still say that the
    /// position is too old.
    is_resuming: bool,
    backoff: Backoff,
    /// Objects per page of a list; fewer if they are large.
    n_page_objects: u32,
}

/// How one connection ended.
enum WatchEnd {
    /// By the server or by the network.
    Closed {
        lived: Duration,
        reason: String,
    },
    /// The position is too old (410): a new list is needed.
    Expired {
        reason: String,
    },
    /// An event is lost because it cannot be decoded: a new list is needed, but not at any rate.
    Undecodable {
        reason: String,
    },
    /// The last page of a list was received.
    ListDone,
    StreamingUnsupported {
        reason: String,
    },
    /// No data, not even a bookmark. The connection may be dead, or nothing changes and the server
    /// sends no bookmarks. Reconnecting shows which.
    Idle {
        reason: String,
    },
    /// The server does not know a resource that not every cluster has.
    NotServed,
    /// It was not accepted, or the server reported an error.
    Failed {
        failure: Failure,
        retry_after: Duration,
    },
}

struct ReceiverGone;

/// Why a watcher ends.
enum Stop {
    ReceiverGone,
    NotServed,
}

impl From<ReceiverGone> for Stop {
    fn from(_: ReceiverGone) -> Self {
        Self::ReceiverGone
    }
}

impl Watcher {
    fn new(client: Client, sender: SignalSender, location: Location) -> Self {
        let backoff = Backoff::default();
        let (position, newest, reported, was_idle) = (None, None, None, false);
        let n_page_objects = pages::OBJECTS_MAX;
        Self {
            client,
            sender,
            location,
            position,
            newest,
            reported,
            was_idle,
            is_resuming: false,
            backoff,
            n_page_objects,
        }
    }

    async fn run<T: Watched>(mut self) -> Stop {
        loop {
            let end = match self.connect::<T>().await {
                Ok(end) => end,
                Err(gone) => return gone.into(),
            };
            match self.handle_end::<T>(end).await {
                Ok(delay) => tokio::time::sleep(delay).await,
                Err(stop) => return stop,
            }
        }
    }

    async fn connect<T: Watched>(&mut self) -> Result<WatchEnd, ReceiverGone> {
        if (self.reported.is_some() || self.was_idle)
            && let Some(end) = self.check_continuity::<T>().await
        {
            return Ok(end);
        }
        match self.position {
            Some(version) => self.watch::<T>(Start::After(version)).await,
            None if self.client.supports_streaming_lists() => {
                self.watch::<T>(Start::Everything).await
            }
            None => self.list::<T>().await,
        }
    }

    /// Reports what has to be reported; returns how long to wait before the next connection.
    async fn handle_end<T: Watched>(&mut self, end: WatchEnd) -> Result<Duration, Stop> {
        let resource = T::RESOURCE.as_str();
        match end {
            WatchEnd::ListDone => Ok(Duration::ZERO),
            WatchEnd::NotServed => Err(Stop::NotServed),
            WatchEnd::Closed { lived, reason } => {
                tracing::debug!(resource, ?lived, reason, "watch closed");
                if lived >= HEALTHY_WATCH_MIN {
                    self.backoff.reset();
                    return Ok(self.backoff.jitter());
                }
                if self.backoff.n_failures() >= SHORT_WATCHES_MAX {
                    let message = format!("watch {resource}: closed repeatedly: {reason}");
                    let kind = FailureKind::Unreachable;
                    let failure = Failure { kind, message: message.into() };
                    self.report_disconnect::<T>(failure).await?;
                }
                Ok(self.backoff.next())
            }
            WatchEnd::Expired { reason } => {
                tracing::info!(resource, reason, "watch expired (410), relisting");
                self.position = None;
                Ok(self.backoff.next())
            }
            WatchEnd::Undecodable { reason } => {
                tracing::info!(resource, reason, "event lost, relisting");
                self.position = None;
                Ok(UNDECODABLE_DELAY)
            }
            WatchEnd::StreamingUnsupported { reason } => {
                tracing::info!(resource, reason, "no streaming lists, listing in pages");
                self.client.disable_streaming_lists();
                Ok(Duration::ZERO)
            }
            WatchEnd::Idle { reason } => {
                tracing::debug!(resource, reason, "watch idle, reconnecting");
                self.was_idle = true;
                Ok(self.backoff.jitter())
            }
            WatchEnd::Failed { failure, retry_after } => {
                self.report_disconnect::<T>(failure).await?;
                Ok(self.backoff.next().max(retry_after))
            }
        }
    }

    async fn emit<T: Watched>(&self, signal: WatchSignal) -> Result<(), ReceiverGone> {
        self.sender.send((T::RESOURCE, signal)).await.map_err(|_| ReceiverGone)
    }

    /// Reports a failure once, and again only when its kind changes.
    async fn report_disconnect<T: Watched>(
        &mut self,
        failure: Failure,
    ) -> Result<(), ReceiverGone> {
        if self.reported.replace(failure.kind) == Some(failure.kind) {
            return Ok(());
        }
        tracing::warn!(resource = T::RESOURCE.as_str(), reason = %failure, "watch disconnected");
        self.emit::<T>(WatchSignal::Disconnected(failure.message)).await
    }

    /// The server has accepted the request.
    async fn on_connected<T: Watched>(&mut self, start: Start) -> Result<(), ReceiverGone> {
        let was_reported = self.reported.take().is_some();
        let was_idle = std::mem::take(&mut self.was_idle);
        match start {
            Start::Everything => {
                self.newest = None;
                self.is_resuming = false;
                self.emit::<T>(WatchSignal::InitStarted).await
            }
            Start::After(version) => {
                self.is_resuming = was_reported || was_idle;
                if was_reported {
                    tracing::info!(resource = T::RESOURCE.as_str(), %version, "watch accepted");
                }
                Ok(())
            }
        }
    }

    /// The watch goes on where it was.
    async fn report_resumed<T: Watched>(&mut self) -> Result<(), ReceiverGone> {
        match std::mem::take(&mut self.is_resuming) {
            true => self.emit::<T>(WatchSignal::Reconnected).await,
            false => Ok(()),
        }
    }

    async fn finish_list<T: Watched>(
        &mut self,
        version: ResourceVersion,
    ) -> Result<(), ReceiverGone> {
        tracing::info!(resource = T::RESOURCE.as_str(), %version, "initial list complete");
        self.position = Some(version);
        self.emit::<T>(WatchSignal::InitDone(version)).await
    }

    async fn emit_object<T: Watched>(&mut self, event: ObjectEvent<T>) -> Result<(), ReceiverGone> {
        self.note_newest(&event);
        // The objects of a list have no order by version: only its end is a position.
        if let Some(position) = &mut self.position {
            *position = event.object().version();
        }
        if !self.is_in_scope::<T>(&event.object().key().namespace) {
            return Ok(());
        }
        self.emit::<T>(WatchSignal::Event(Box::new(T::resource_event(event)))).await
    }

    /// A server that cannot filter sends objects of other namespaces, too.
    fn is_in_scope<T: Watched>(&self, namespace: &str) -> bool {
        self.client.scope.contains(T::RESOURCE, namespace)
    }

    async fn emit_bookmark<T: Watched>(&mut self, bookmark: Bookmark) -> Result<(), ReceiverGone> {
        self.position = Some(bookmark.resource_version);
        self.emit::<T>(WatchSignal::Bookmark(bookmark.resource_version)).await
    }

    async fn report_decode_error<T: Watched>(
        &self,
        malformed: &Malformed,
    ) -> Result<(), ReceiverGone> {
        let resource = T::RESOURCE.as_str();
        tracing::warn!(resource, reason = %malformed, "failed to decode object");
        let identity = &malformed.identity;
        if identity.name.is_empty() && self.position.is_some() {
            return Ok(());
        }
        if !identity.namespace.is_empty() && !self.is_in_scope::<T>(&identity.namespace) {
            return Ok(());
        }
        let key = Key::new(&*identity.namespace, &*identity.name);
        let reason = malformed.to_string().into();
        self.emit::<T>(WatchSignal::DecodeError { key, reason }).await
    }
}

/// The end of a list or watch request that was answered with an error.
fn end_of_error(request: &ApiRequest, start: Start, response: &ApiResponse) -> WatchEnd {
    let status = response.status();
    if is_expired(response.code, &status) {
        return WatchEnd::Expired { reason: response.message() };
    }
    if response.code == 404 && optional::is_optional(request.resource) {
        return WatchEnd::NotServed;
    }
    let is_streaming = start == Start::Everything && request.verb == "watch";
    if is_streaming && matches!(response.code, 400 | 405 | 422) {
        return WatchEnd::StreamingUnsupported { reason: response.message() };
    }
    let header = response.retry_after.as_deref().and_then(|text| text.trim().parse().ok());
    let retry_after = Duration::from_secs(header.unwrap_or(0)).min(backoff::DELAY_MAX);
    WatchEnd::Failed { failure: failure(request, response), retry_after }
}

/// The position is too old, or newer than the newest version of a server that was restored.
fn is_expired(code: u16, status: &Status) -> bool {
    code == 410 || status.code == 410 || status.has_cause("ResourceVersionTooLarge")
}

fn undecodable(request: &ApiRequest, reason: &str) -> WatchEnd {
    let message = format!("{}: cannot decode the response: {reason}", request.describe()).into();
    let failure = Failure { kind: FailureKind::Unreadable, message };
    WatchEnd::Failed { failure, retry_after: Duration::ZERO }
}
