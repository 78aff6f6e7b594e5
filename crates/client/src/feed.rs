//! One kind, for ever: a complete picture, then changes, then again from where the watch broke off.
//!
//! The picture is streamed (`sendInitialEvents`) or, from servers that refuse that, listed page by
//! page; it is always a consistent read, never what some cache had. Trouble is told once and logged
//! once, and tried again for ever.

mod pages;
mod pause;
mod quiet;
mod stream;
mod watched;

use std::time::Duration;

use endpointd_model::{EndpointSlice, Endpoints, Service};
use endpointd_model::{
    Failure, FailureKind, Node, ObjectEvent, Pod, ResourceVersion, WatchSignal, WatchedResource,
};
use endpointd_wire::{Bookmark, Malformed, Status};
use tokio::sync::mpsc;

use crate::answer::failure;
use crate::ask::{ApiRequest, Start};
use crate::client::Client;
use crate::transport::ApiResponse;
use pause::Backoff;
use watched::Watched;

/// A watch that lived this long was worth having: it is opened again without delay.
const HEALTHY_WATCH_MIN: Duration = Duration::from_secs(5);
/// So many that did not are an outage, even if the server answers each time.
const SHORT_WATCHES_MAX: u32 = 4;
/// No refusal says more than this.
const REFUSAL_BYTES_MAX: usize = 1 << 20;
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(10);

pub(crate) async fn run(
    client: Client,
    kind: WatchedResource,
    sender: mpsc::Sender<(WatchedResource, WatchSignal)>,
) {
    let receiver = sender.clone();
    tokio::select! {
        () = receiver.closed() => {}
        () = run_kind(client, kind, sender) => {}
    }
}

async fn run_kind(
    client: Client,
    kind: WatchedResource,
    sender: mpsc::Sender<(WatchedResource, WatchSignal)>,
) {
    match kind {
        WatchedResource::Services => Watcher::new(client, sender).run::<Service>().await,
        WatchedResource::Pods => Watcher::new(client, sender).run::<Pod>().await,
        WatchedResource::Nodes => Watcher::new(client, sender).run::<Node>().await,
        WatchedResource::Endpoints => Watcher::new(client, sender).run::<Endpoints>().await,
        WatchedResource::Slices => Watcher::new(client, sender).run::<EndpointSlice>().await,
    }
}

struct Watcher {
    client: Client,
    sender: mpsc::Sender<(WatchedResource, WatchSignal)>,
    /// Where a watch goes on; without it a picture must be taken.
    position: Option<ResourceVersion>,
    /// What was last told of trouble that has not passed.
    trouble: Option<FailureKind>,
    /// The last watch was given up because nothing came.
    was_silent: bool,
    pause: Backoff,
}

/// How one connection ended.
enum WatchEnd {
    /// By the server, or by a cut, after so long.
    Closed { lived: Duration, reason: String },
    /// What the watch would go on from is no longer kept (410): a picture must be taken.
    Expired { reason: String },
    /// All pages are told; the watch can begin.
    ListDone,
    /// The server does not stream pictures.
    StreamingUnsupported { reason: String },
    /// Nothing came, not even a bookmark. It may be dead, or its kind at rest: some servers send
    /// no bookmarks then. Opening it anew tells which.
    Idle { reason: String },
    /// It did not even begin, or it failed.
    Failed { failure: Failure, after: Duration },
}

/// Nobody listens any more.
struct ReceiverGone;

impl Watcher {
    fn new(client: Client, sender: mpsc::Sender<(WatchedResource, WatchSignal)>) -> Self {
        let pause = Backoff::default();
        Self { client, sender, position: None, trouble: None, was_silent: false, pause }
    }

    async fn run<T: Watched>(mut self) {
        loop {
            let Ok(ended) = self.connect::<T>().await else { return };
            let Ok(pause) = self.react::<T>(ended).await else { return };
            tokio::time::sleep(pause).await;
        }
    }

    async fn connect<T: Watched>(&mut self) -> Result<WatchEnd, ReceiverGone> {
        match self.position {
            Some(version) => self.follow::<T>(Start::After(version)).await,
            None if self.client.streams_lists() => self.follow::<T>(Start::Everything).await,
            None => self.list::<T>().await,
        }
    }

    /// What to tell, and how long to wait before the next connection.
    async fn react<T: Watched>(&mut self, ended: WatchEnd) -> Result<Duration, ReceiverGone> {
        let kind = T::WATCHED.as_str();
        match ended {
            WatchEnd::ListDone => Ok(Duration::ZERO),
            WatchEnd::Closed { lived, reason } => {
                tracing::debug!(kind, ?lived, reason, "the watch is over");
                if lived >= HEALTHY_WATCH_MIN {
                    self.pause.reset();
                    return Ok(self.pause.jitter());
                }
                if self.pause.n_failures() >= SHORT_WATCHES_MAX {
                    let message = format!("watch {kind}: ends as soon as it begins: {reason}");
                    let kind = FailureKind::Unreachable;
                    self.lose::<T>(Failure { kind, message: message.into() }).await?;
                }
                Ok(self.pause.next())
            }
            WatchEnd::Expired { reason } => {
                tracing::info!(kind, reason, "the watch cannot go on: taking a new picture");
                self.position = None;
                Ok(self.pause.next())
            }
            WatchEnd::StreamingUnsupported { reason } => {
                tracing::info!(kind, reason, "the server does not stream lists: asking for pages");
                self.client.disable_streaming_lists();
                Ok(Duration::ZERO)
            }
            WatchEnd::Idle { reason } => {
                tracing::debug!(kind, reason, "the watch is opened anew");
                self.was_silent = true;
                Ok(self.pause.jitter())
            }
            WatchEnd::Failed { failure, after } => {
                self.lose::<T>(failure).await?;
                Ok(self.pause.next().max(after))
            }
        }
    }

    async fn tell<T: Watched>(&self, news: WatchSignal) -> Result<(), ReceiverGone> {
        self.sender.send((T::WATCHED, news)).await.map_err(|_| ReceiverGone)
    }

    /// Tells of trouble once, and again only when it is of another kind.
    async fn lose<T: Watched>(&mut self, failure: Failure) -> Result<(), ReceiverGone> {
        if self.trouble.replace(failure.kind) == Some(failure.kind) {
            return Ok(());
        }
        tracing::warn!(kind = T::WATCHED.as_str(), reason = %failure, "watch lost");
        self.tell::<T>(WatchSignal::Disconnected(failure.message)).await
    }

    /// The head of the answer is there: what comes is a picture, or goes on from where we were.
    async fn begin<T: Watched>(&mut self, start: Start) -> Result<(), ReceiverGone> {
        let had_trouble = self.trouble.take().is_some();
        let was_silent = std::mem::take(&mut self.was_silent);
        match start {
            Start::Everything => self.tell::<T>(WatchSignal::InitStarted).await,
            Start::After(version) if had_trouble => {
                tracing::info!(kind = T::WATCHED.as_str(), %version, "watch resumed");
                self.tell::<T>(WatchSignal::Reconnected).await
            }
            // That it could be opened is a sign of life.
            Start::After(_) if was_silent => self.tell::<T>(WatchSignal::Reconnected).await,
            Start::After(_) => Ok(()),
        }
    }

    async fn complete<T: Watched>(&mut self, version: ResourceVersion) -> Result<(), ReceiverGone> {
        tracing::info!(kind = T::WATCHED.as_str(), %version, "picture complete");
        let listed = WatchSignal::InitDone(version);
        self.position = Some(version);
        self.tell::<T>(listed).await
    }

    async fn see<T: Watched>(&mut self, sight: ObjectEvent<T>) -> Result<(), ReceiverGone> {
        // During a picture objects come in any order: only its end is a position.
        if let Some(position) = &mut self.position {
            let version = sight.object().version();
            *position = version;
        }
        self.tell::<T>(WatchSignal::Event(Box::new(T::change(sight)))).await
    }

    async fn pass<T: Watched>(&mut self, bookmark: Bookmark) -> Result<(), ReceiverGone> {
        let passed = WatchSignal::Bookmark(bookmark.resource_version);
        self.position = Some(bookmark.resource_version);
        self.tell::<T>(passed).await
    }

    async fn give_up_on<T: Watched>(&self, malformed: &Malformed) -> Result<(), ReceiverGone> {
        let identity = &malformed.identity;
        tracing::warn!(kind = T::WATCHED.as_str(), reason = %malformed, "object cannot be read");
        if identity.name.is_empty() {
            return Ok(());
        }
        let key = endpointd_model::Key::new(&*identity.namespace, &*identity.name);
        self.tell::<T>(WatchSignal::DecodeError { key, reason: malformed.to_string().into() }).await
    }
}

/// What a refusal means for a list or a watch.
fn refused(ask: &ApiRequest, start: Start, answer: &ApiResponse) -> WatchEnd {
    let status = answer.status();
    if is_outdated(answer.code, &status) {
        return WatchEnd::Expired { reason: answer.message() };
    }
    if start == Start::Everything && ask.verb == "watch" && matches!(answer.code, 400 | 405 | 422) {
        return WatchEnd::StreamingUnsupported { reason: answer.message() };
    }
    let header = answer.retry_after.as_deref().and_then(|text| text.trim().parse().ok());
    let after = Duration::from_secs(header.unwrap_or(0)).min(pause::PAUSE_MAX);
    WatchEnd::Failed { failure: failure(ask, answer), after }
}

/// The position is too old, or newer than anything this server knows (it was restored).
fn is_outdated(code: u16, status: &Status) -> bool {
    code == 410 || status.code == 410 || status.has_cause("ResourceVersionTooLarge")
}

fn unreadable(ask: &ApiRequest, reason: &str) -> WatchEnd {
    let message = format!("{}: the answer cannot be read: {reason}", ask.words()).into();
    let failure = Failure { kind: FailureKind::Unreadable, message };
    WatchEnd::Failed { failure, after: Duration::ZERO }
}
