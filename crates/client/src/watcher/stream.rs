//! One watch request, from its response head to its end.

use std::time::{Duration, Instant};

use endpointd_model::{Failure, FailureKind, ObjectEvent};
use endpointd_wire::{
    Bytes, Encoding, Frames, Malformed, WatchEvent, decode_deletion, decode_watch_event,
};
use http::Response;
use http_body_util::BodyExt;
use hyper::body::Incoming;

use super::idle_timer::IdleTimer;
use super::watched::Watched;
use super::{
    ERROR_BYTES_MAX, ERROR_TIMEOUT, HEALTHY_WATCH_MIN, ReceiverGone, WatchEnd, Watcher,
    end_of_error, is_expired, undecodable,
};
use crate::config::error_chain;
use crate::request::{ApiRequest, Start};
use crate::transport::{TransportError, encoding_of, generation_of};

/// The `timeoutSeconds` that we ask for, drawn for each watch so that they do not all end at once.
const WATCH_SECS: std::ops::RangeInclusive<u64> = 300..=600;
/// For the response head. A server may first have to catch up with its storage.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// Bookmarks are sent every minute: a watch without data for this long is dead.
const IDLE_MAX: Duration = Duration::from_secs(90);
/// A watch without data for this long is checked: it may have lost its place.
const QUIET_MAX: Duration = Duration::from_secs(30);
/// A watch without data for this long has resumed: that its position is too old is the first thing that
/// a server says.
const RESUMED_AFTER: Duration = Duration::from_millis(500);
/// A server that ignores `sendInitialEvents` never ends the list.
const LIST_IDLE_MAX: Duration = Duration::from_secs(30);

/// Why there is no next frame.
enum StreamEnd {
    Closed,
    /// Not the end, but time for a check.
    Quiet,
    Idle(Duration),
    Broken(String),
}

impl Watcher {
    pub(super) async fn watch<T: Watched>(
        &mut self,
        start: Start,
    ) -> Result<WatchEnd, ReceiverGone> {
        let request = ApiRequest::of_watch(self.location, start, fastrand::u64(WATCH_SECS));
        let request = self.client.with_accept(request.in_scope(T::RESOURCE, &self.client.scope));
        let response = match self.client.transport.open(&request, HEAD_TIMEOUT).await {
            Ok(response) => response,
            Err(TransportError { failure, .. }) => {
                return Ok(WatchEnd::Failed { failure, retry_after: Duration::ZERO });
            }
        };
        if response.status() != 200 {
            return Ok(self.read_error(&request, start, response).await);
        }
        let Some(encoding) = encoding_of(&response) else {
            return Ok(undecodable(&request, "neither JSON nor protobuf"));
        };
        self.on_connected::<T>(start).await?;
        let mut stream = Stream::new(request, response, encoding);
        let end = self.pump::<T>(&mut stream).await?;
        if stream.opened.elapsed() >= HEALTHY_WATCH_MIN {
            self.backoff.reset();
        }
        Ok(end)
    }

    async fn read_error(
        &self,
        request: &ApiRequest,
        start: Start,
        response: Response<Incoming>,
    ) -> WatchEnd {
        let read =
            self.client.transport.read(request, response, ERROR_TIMEOUT, ERROR_BYTES_MAX).await;
        match read {
            Ok(response) => end_of_error(request, start, &response),
            Err(TransportError { failure, .. }) => {
                WatchEnd::Failed { failure, retry_after: Duration::ZERO }
            }
        }
    }

    /// Emits a signal for every frame until the stream ends.
    async fn pump<T: Watched>(&mut self, stream: &mut Stream) -> Result<WatchEnd, ReceiverGone> {
        loop {
            let is_listing = self.position.is_none();
            let idle_max = if is_listing { LIST_IDLE_MAX } else { IDLE_MAX };
            let (transport, generation) = (self.client.transport.clone(), stream.generation);
            let until_resumed = RESUMED_AFTER.saturating_sub(stream.opened.elapsed());
            let frame = tokio::select! {
                biased;
                frame = stream.next(idle_max) => frame,
                () = transport.given_up(generation) => {
                    Err(StreamEnd::Broken("the connection was given up".to_owned()))
                }
                () = tokio::time::sleep(until_resumed), if self.is_resuming => {
                    self.report_resumed::<T>().await?;
                    continue;
                }
            };
            let frame = match frame {
                Ok(frame) => frame,
                Err(StreamEnd::Quiet) if is_listing => continue,
                Err(StreamEnd::Quiet) => match self.check_continuity::<T>().await {
                    Some(end) => return Ok(end),
                    None => continue,
                },
                Err(StreamEnd::Idle(_)) if is_listing => {
                    let reason = "the list did not end".to_owned();
                    return Ok(WatchEnd::StreamingUnsupported { reason });
                }
                Err(end) => return Ok(stream.end(end)),
            };
            self.client.stats().count_received(T::RESOURCE, frame.len());
            let event = self.decode::<T>(stream.encoding, &frame);
            if !matches!(event, Ok(WatchEvent::Error(_))) {
                self.report_resumed::<T>().await?;
            }
            let end = match event {
                Ok(event) => self.on_event::<T>(event, stream).await?,
                Err(malformed) => {
                    self.on_malformed::<T>(&malformed, stream.encoding, &frame).await?
                }
            };
            if let Some(end) = end {
                return Ok(end);
            }
        }
    }

    fn decode<T: Watched>(
        &self,
        encoding: Encoding,
        frame: &Bytes,
    ) -> Result<WatchEvent<T>, Malformed> {
        let sent = T::OF_OBJECT.and_then(|of_object| {
            let sent = self.client.sent_objects.decode_event(T::RESOURCE, encoding, frame)?;
            of_object(sent)
        });
        match sent {
            Some(object) => Ok(WatchEvent::Modified(object)),
            None => decode_watch_event::<T>(encoding, frame),
        }
    }

    /// Returns how the watch ends, if this event ends it.
    async fn on_event<T: Watched>(
        &mut self,
        event: WatchEvent<T>,
        stream: &Stream,
    ) -> Result<Option<WatchEnd>, ReceiverGone> {
        let is_listing = self.position.is_none();
        match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                self.emit_object(ObjectEvent::Applied(object)).await?;
            }
            WatchEvent::Deleted(object) => self.emit_object(ObjectEvent::Deleted(object)).await?,
            WatchEvent::Bookmark(bookmark) if !is_listing => {
                self.emit_bookmark::<T>(bookmark).await?;
            }
            WatchEvent::Bookmark(bookmark) if bookmark.ends_initial_events => {
                self.finish_list::<T>(bookmark.resource_version).await?;
            }
            WatchEvent::Bookmark(_) => {
                let reason = "a bookmark before the end of the list".to_owned();
                return Ok(Some(WatchEnd::StreamingUnsupported { reason }));
            }
            WatchEvent::Error(status) if is_expired(0, &status) => {
                return Ok(Some(WatchEnd::Expired { reason: status.message }));
            }
            WatchEvent::Error(status) => {
                return Ok(Some(stream.failed(FailureKind::ServerError, &status.message)));
            }
        }
        Ok(None)
    }

    /// Returns how the watch ends, if it cannot go on after this frame.
    async fn on_malformed<T: Watched>(
        &mut self,
        malformed: &Malformed,
        encoding: Encoding,
        frame: &Bytes,
    ) -> Result<Option<WatchEnd>, ReceiverGone> {
        self.report_decode_error::<T>(malformed).await?;
        if self.position.is_none() {
            return Ok(None);
        }
        if let Some(deletion) = decode_deletion(encoding, frame) {
            self.emit_object(ObjectEvent::Deleted(T::of_deletion(deletion))).await?;
            return Ok(None);
        }
        // An object without a name cannot be reported: a new list shows what exists.
        let is_lost = malformed.identity.name.is_empty() || is_deletion(encoding, frame);
        Ok(is_lost.then(|| WatchEnd::Undecodable { reason: malformed.to_string() }))
    }
}

/// Whether a frame that could not be decoded is a deletion.
fn is_deletion(encoding: Encoding, frame: &Bytes) -> bool {
    #[derive(serde::Deserialize)]
    struct TypeOnly {
        r#type: String,
    }
    match encoding {
        Encoding::Json => serde_json::from_slice(frame)
            .is_ok_and(|TypeOnly { r#type }: TypeOnly| r#type == "DELETED"),
        // The type is the first field, and field order is fixed.
        Encoding::Protobuf => frame.starts_with(b"\x0a\x07DELETED"),
    }
}

struct Stream {
    request: ApiRequest,
    body: Incoming,
    encoding: Encoding,
    generation: u64,
    frames: Frames,
    idle: IdleTimer,
    /// Since the last data or check.
    quiet: IdleTimer,
    opened: Instant,
}

impl Stream {
    fn new(request: ApiRequest, response: Response<Incoming>, encoding: Encoding) -> Self {
        Self {
            generation: generation_of(&response),
            request,
            body: response.into_body(),
            encoding,
            frames: Frames::new(encoding),
            idle: IdleTimer::start(),
            quiet: IdleTimer::start(),
            opened: Instant::now(),
        }
    }

    async fn next(&mut self, idle_max: Duration) -> Result<Bytes, StreamEnd> {
        loop {
            let frame = self.frames.next_frame();
            if let Some(frame) = frame.map_err(|error| StreamEnd::Broken(error.to_string()))? {
                return Ok(frame);
            }
            let chunk = tokio::select! {
                biased;
                chunk = self.body.frame() => chunk,
                () = self.idle.elapsed(idle_max) => return Err(StreamEnd::Idle(idle_max)),
                () = self.quiet.elapsed(QUIET_MAX) => {
                    self.quiet.reset();
                    return Err(StreamEnd::Quiet);
                }
            };
            let chunk = match chunk {
                None => return Err(StreamEnd::Closed),
                Some(Err(error)) => return Err(StreamEnd::Broken(error_chain(&error))),
                Some(Ok(chunk)) => chunk,
            };
            self.idle.reset();
            self.quiet.reset();
            if let Some(bytes) = chunk.data_ref() {
                self.frames.push(bytes);
            }
        }
    }

    fn end(&self, end: StreamEnd) -> WatchEnd {
        let lived = self.opened.elapsed();
        match end {
            StreamEnd::Closed | StreamEnd::Quiet => {
                WatchEnd::Closed { lived, reason: "closed".to_owned() }
            }
            StreamEnd::Broken(reason) => WatchEnd::Closed { lived, reason },
            StreamEnd::Idle(time) => {
                WatchEnd::Idle { reason: format!("no data for {} s", time.as_secs()) }
            }
        }
    }

    fn failed(&self, kind: FailureKind, reason: &str) -> WatchEnd {
        let message = format!("{}: {reason}", self.request.describe()).into();
        WatchEnd::Failed { failure: Failure { kind, message }, retry_after: Duration::ZERO }
    }
}
