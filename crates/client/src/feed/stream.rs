//! One watch, from the head of its answer to its end.

use std::time::{Duration, Instant};

use endpointd_model::{Failure, FailureKind, ObjectEvent};
use endpointd_wire::{
    Bookmark, Bytes, Encoding, Frames, WatchEvent, decode_watch_event, peek_key_and_version,
};
use http::Response;
use http_body_util::BodyExt;
use hyper::body::Incoming;

use super::quiet::IdleTimer;
use super::watched::Watched;
use super::{
    HEALTHY_WATCH_MIN, REFUSAL_BYTES_MAX, REFUSAL_TIMEOUT, ReceiverGone, WatchEnd, Watcher,
    is_outdated, refused, unreadable,
};
use crate::ask::{ApiRequest, Start};
use crate::client::Client;
use crate::config::chain;
use crate::transport::{TransportError, encoding_of};

/// How long the server keeps a watch, by our wish: not all of them end at once.
const WATCH_SECS: std::ops::RangeInclusive<u64> = 300..=600;
/// For the head of the answer. A server may first have to catch up with its storage.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// Bookmarks come every minute: a watch without a byte for this long is dead.
const SILENCE_MAX: Duration = Duration::from_secs(90);
/// A server that ignores `sendInitialEvents` never says that the picture is complete.
const PICTURE_SILENCE_MAX: Duration = Duration::from_secs(30);

/// Why there is no next frame.
enum StreamEnd {
    Closed,
    Silent(Duration),
    Broken(String),
}

impl Watcher {
    pub(super) async fn follow<T: Watched>(
        &mut self,
        start: Start,
    ) -> Result<WatchEnd, ReceiverGone> {
        let ask = ApiRequest::of_watch(T::WATCHED, start, fastrand::u64(WATCH_SECS));
        let ask = self.client.accepting(ask);
        let response = match self.client.transport.open(&ask, HEAD_TIMEOUT).await {
            Ok(response) => response,
            Err(TransportError { failure, .. }) => {
                return Ok(WatchEnd::Failed { failure, after: Duration::ZERO });
            }
        };
        if response.status() != 200 {
            let read =
                self.client.transport.read(&ask, response, REFUSAL_TIMEOUT, REFUSAL_BYTES_MAX);
            return Ok(match read.await {
                Ok(answer) => refused(&ask, start, &answer),
                Err(TransportError { failure, .. }) => {
                    WatchEnd::Failed { failure, after: Duration::ZERO }
                }
            });
        }
        let Some(encoding) = encoding_of(&response) else {
            return Ok(unreadable(&ask, "neither JSON nor protobuf"));
        };
        self.begin::<T>(start).await?;
        let opened = Instant::now();
        let stream = Stream::new(self.client.clone(), ask, response, encoding);
        let ended = self.tell_all::<T>(stream).await?;
        if opened.elapsed() >= HEALTHY_WATCH_MIN {
            self.pause.reset();
        }
        Ok(ended)
    }

    async fn tell_all<T: Watched>(&mut self, mut stream: Stream) -> Result<WatchEnd, ReceiverGone> {
        loop {
            let is_picture = self.position.is_none();
            let silence_max = if is_picture { PICTURE_SILENCE_MAX } else { SILENCE_MAX };
            let frame = match stream.next(silence_max).await {
                Ok(frame) => frame,
                Err(StreamEnd::Silent(_)) if is_picture => {
                    return Ok(WatchEnd::StreamingUnsupported {
                        reason: "no end of the picture".to_owned(),
                    });
                }
                Err(cut) => return Ok(stream.ended(cut)),
            };
            if !is_picture && let Some(echo) = self.echo::<T>(stream.encoding, &frame).await {
                self.pass::<T>(echo).await?;
                continue;
            }
            let told = decode_watch_event::<T>(stream.encoding, &frame);
            match told {
                Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) => {
                    self.see(ObjectEvent::Applied(object)).await?;
                }
                Ok(WatchEvent::Deleted(object)) => self.see(ObjectEvent::Deleted(object)).await?,
                Ok(WatchEvent::Bookmark(bookmark)) if !is_picture => {
                    self.pass::<T>(bookmark).await?;
                }
                Ok(WatchEvent::Bookmark(bookmark)) if bookmark.ends_initial_events => {
                    self.complete::<T>(bookmark.resource_version).await?;
                }
                Ok(WatchEvent::Bookmark(_)) => {
                    return Ok(WatchEnd::StreamingUnsupported {
                        reason: "a plain watch".to_owned(),
                    });
                }
                Ok(WatchEvent::Error(status)) if is_outdated(0, &status) => {
                    return Ok(WatchEnd::Expired { reason: status.message });
                }
                Ok(WatchEvent::Error(status)) => {
                    return Ok(stream.failed(FailureKind::ServerError, &status.message));
                }
                Err(malformed) => {
                    self.give_up_on::<T>(&malformed).await?;
                    // What cannot be read cannot be told as deleted either, and without a name not
                    // even as unreadable: only a new picture can say what is there.
                    let is_hidden = malformed.identity.name.is_empty();
                    if !is_picture && (is_hidden || is_deletion(stream.encoding, &frame)) {
                        return Ok(WatchEnd::Expired { reason: malformed.to_string() });
                    }
                }
            }
        }
    }
}

impl Watcher {
    /// What a frame passes that only repeats the answer to a write.
    async fn echo<T: Watched>(&self, encoding: Encoding, frame: &Bytes) -> Option<Bookmark> {
        let resource = T::WRITTEN?;
        let (key, resource_version) = peek_key_and_version(encoding, frame)?;
        let known = &self.client.known;
        // Often an echo is a little faster than its answer.
        known.settled(resource, &key).await;
        let is_known = known.take(resource, resource_version);
        is_known.then_some(Bookmark { resource_version, ends_initial_events: false })
    }
}

/// Whether a frame that could not be read as a whole is a deletion.
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
    client: Client,
    ask: ApiRequest,
    body: Incoming,
    encoding: Encoding,
    frames: Frames,
    quiet: IdleTimer,
    opened: Instant,
}

impl Stream {
    fn new(
        client: Client,
        ask: ApiRequest,
        response: Response<Incoming>,
        encoding: Encoding,
    ) -> Self {
        let (frames, quiet) = (Frames::new(encoding), IdleTimer::begin());
        let body = response.into_body();
        Self { client, ask, body, encoding, frames, quiet, opened: Instant::now() }
    }

    async fn next(&mut self, silence_max: Duration) -> Result<Bytes, StreamEnd> {
        loop {
            let frame = self.frames.next_frame();
            if let Some(frame) = frame.map_err(|error| StreamEnd::Broken(error.to_string()))? {
                return Ok(frame);
            }
            let piece = tokio::select! {
                biased;
                piece = self.body.frame() => piece,
                () = self.quiet.lasts(silence_max) => return Err(StreamEnd::Silent(silence_max)),
            };
            let piece = match piece {
                None => return Err(StreamEnd::Closed),
                Some(Err(error)) => return Err(StreamEnd::Broken(chain(&error))),
                Some(Ok(piece)) => piece,
            };
            self.quiet.begin_again();
            if let Some(bytes) = piece.data_ref() {
                self.client.transport.stats.received(&self.ask, 200, bytes.len());
                self.frames.push(bytes);
            }
        }
    }

    fn ended(&self, cut: StreamEnd) -> WatchEnd {
        let lived = self.opened.elapsed();
        match cut {
            StreamEnd::Closed => WatchEnd::Closed { lived, reason: "closed".to_owned() },
            StreamEnd::Broken(reason) => WatchEnd::Closed { lived, reason },
            StreamEnd::Silent(time) => {
                WatchEnd::Idle { reason: format!("not a byte for {} seconds", time.as_secs()) }
            }
        }
    }

    fn failed(&self, kind: FailureKind, reason: &str) -> WatchEnd {
        let message = format!("{}: {reason}", self.ask.words()).into();
        WatchEnd::Failed { failure: Failure { kind, message }, after: Duration::ZERO }
    }
}
