//! The stream of server-sent events for one reader.

use std::convert::Infallible;

use axum::body::Body;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;

use crate::hub::Reader;
use crate::messages::{Position, Read};

/// Messages of one write to the connection.
const MESSAGES_AT_ONCE: usize = 16;
/// After this time a browser whose stream was cut connects again, with the last id it has seen.
const RETRY_MILLIS: u32 = 1000;

/// From a position, or from now on.
pub fn response(reader: Reader, after: Option<Position>) -> Response {
    let position = after.unwrap_or_else(|| reader.position());
    let hello = Bytes::from(format!("retry: {RETRY_MILLIS}\nid: {position}\n\n"));
    let state = (reader, position, Some(hello));
    let messages = stream::unfold(state, |(mut reader, mut position, hello)| async move {
        let text = match hello {
            Some(hello) => hello,
            None => next(&mut reader, &mut position).await?,
        };
        Some((Ok::<Bytes, Infallible>(text), (reader, position, None)))
    });
    ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(messages)).into_response()
}

/// `None`: the process stops.
async fn next(reader: &mut Reader, position: &mut Position) -> Option<Bytes> {
    let read = reader.read(position, MESSAGES_AT_ONCE).await?;
    Some(match read {
        Read::Messages(messages) => match messages.as_slice() {
            // What nearly every reader gets, and all share.
            [one] => one.clone(),
            several => several.concat().into(),
        },
        Read::Lost(n) => {
            format!("event: lost\nid: {position}\ndata: {{\"messages\":{n}}}\n\n").into()
        }
        Read::OtherRun | Read::Nothing => {
            format!("event: reset\nid: {position}\ndata: {{}}\n\n").into()
        }
    })
}
