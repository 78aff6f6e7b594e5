//! A response body on its way to the client. Each part of it may be hit by a fault.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming};
use tokio::time::Sleep;

use crate::fault::{Fault, Stage};
use crate::request_info::RequestInfo;
use crate::rules::Rules;

/// hyper flushes while a body is pending, and discards its buffer when a body fails.
const FLUSH: Duration = Duration::from_millis(50);

pub(crate) struct ForwardedBody {
    source: Source,
    request: RequestInfo,
    rules: Arc<Rules>,
}

enum Source {
    Server(Incoming),
    /// `None` when it has been sent.
    Proxy(Option<Bytes>),
    /// Ends with an error, which closes the connection, when the last part has been flushed.
    Cut(Pin<Box<Sleep>>),
    Stalled,
}

impl ForwardedBody {
    pub(crate) fn of_server(body: Incoming, request: RequestInfo, rules: Arc<Rules>) -> Self {
        Self { source: Source::Server(body), request, rules }
    }

    pub(crate) fn of_proxy(body: Bytes, request: RequestInfo, rules: Arc<Rules>) -> Self {
        Self { source: Source::Proxy(Some(body)), request, rules }
    }

    /// The part that the client gets; `None` if it is discarded.
    fn forwarded(&mut self, part: Bytes) -> Option<Bytes> {
        match self.rules.hit(Stage::BodyPart, &self.request) {
            Some(Fault::CutBody) => {
                self.source = Source::Cut(Box::pin(tokio::time::sleep(FLUSH)));
                Some(part.slice(..part.len() / 2))
            }
            Some(Fault::StallBody) => {
                self.source = Source::Stalled;
                None
            }
            Some(_) => None,
            None => Some(part),
        }
    }
}

impl Body for ForwardedBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        loop {
            let part = match &mut self.source {
                Source::Cut(flush) => {
                    let cut = || Some(Err(io::Error::other("cut by a fault")));
                    return flush.as_mut().poll(context).map(|()| cut());
                }
                // The connection ends when its peer or the proxy closes it.
                Source::Stalled => return Poll::Pending,
                Source::Proxy(body) => {
                    return Poll::Ready(body.take().map(|body| Ok(Frame::data(body))));
                }
                Source::Server(body) => match Pin::new(body).poll_frame(context) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(None) => return Poll::Ready(None),
                    Poll::Ready(Some(Err(error))) => {
                        return Poll::Ready(Some(Err(io::Error::other(error))));
                    }
                    Poll::Ready(Some(Ok(frame))) => frame,
                },
            };
            let Ok(part) = part.into_data() else { continue };
            if let Some(part) = self.forwarded(part) {
                return Poll::Ready(Some(Ok(Frame::data(part))));
            }
        }
    }
}
