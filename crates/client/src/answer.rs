//! Sorts answers: what a write or a live read came to, named after what to do next.

use endpointd_model::{
    EndpointSlice, Endpoints, Failure, FailureKind, LiveRead, LiveReadResult, Node, Object,
    PublishedResource, Service, Write, WriteResult,
};
use endpointd_wire::{Decoded, Encoding, SentObject, Status, decode, decode_stored};

use crate::ask::ApiRequest;
use crate::transport::{ApiResponse, TransportError};

/// Longer is not believed.
const RETRY_AFTER_SECS_MAX: u32 = 600;

pub(crate) fn outcome(
    ask: &ApiRequest,
    write: &Write,
    answer: Result<ApiResponse, TransportError>,
) -> WriteResult {
    let answer = match answer {
        Ok(answer) => answer,
        Err(TransportError { may_have_arrived: true, failure }) => {
            return WriteResult::NoResponse(failure);
        }
        Err(TransportError { may_have_arrived: false, failure }) => {
            return WriteResult::Failed(failure);
        }
    };
    match answer.code {
        200..=299 => done(ask, write, &answer),
        404 => missing(ask, write, &answer),
        409 => WriteResult::Conflict(message(ask, &answer).into()),
        403 if answer.status().has_cause("NamespaceTerminating") => {
            WriteResult::NamespaceTerminating(message(ask, &answer).into())
        }
        429 => WriteResult::Throttled { after_secs: retry_after_secs(&answer) },
        // With a time to come back the server says that it did not begin. Without one, or when it
        // began and gave up (500, 504), the write may have been stored.
        503 if answer.retry_after.is_some() => {
            WriteResult::Throttled { after_secs: retry_after_secs(&answer) }
        }
        500..=599 => WriteResult::NoResponse(failure(ask, &answer)),
        _ => WriteResult::Failed(failure(ask, &answer)),
    }
}

fn done(ask: &ApiRequest, write: &Write, answer: &ApiResponse) -> WriteResult {
    let stored = read_stored(ask, write, answer);
    let is_delete = matches!(write, Write::Delete(_));
    match stored {
        // A server may answer with what it has just removed; only a finalizer keeps an object.
        Ok(object) if is_delete && object.meta().finalizers.is_empty() => WriteResult::Deleted,
        Ok(object) => WriteResult::Stored(Box::new(object)),
        Err(_) if is_delete && answer.status().status == "Success" => WriteResult::Deleted,
        Err(reason) => WriteResult::NoResponse(unreadable(ask, &reason)),
    }
}

fn missing(ask: &ApiRequest, write: &Write, answer: &ApiResponse) -> WriteResult {
    let status = answer.status();
    let is_object = says_absent(&status, &write.key().name);
    match write {
        Write::Create(_) if status.reason == "NotFound" && status.details.kind == "namespaces" => {
            WriteResult::NamespaceTerminating(message(ask, answer).into())
        }
        Write::Update(_) if is_object => WriteResult::Conflict(message(ask, answer).into()),
        Write::Delete(_) if is_object => WriteResult::Deleted,
        // The path itself is unknown: an API that is not served (yet), or no API server at all.
        Write::Create(_) | Write::Update(_) | Write::Delete(_) => {
            WriteResult::Failed(failure(ask, answer))
        }
    }
}

/// What a live read found.
pub(crate) fn found(
    ask: &ApiRequest,
    read: &LiveRead,
    answer: Result<ApiResponse, TransportError>,
) -> LiveReadResult {
    let answer = match answer {
        Ok(answer) => answer,
        Err(TransportError { failure, .. }) => return LiveReadResult::Failed(failure),
    };
    let name = match read {
        LiveRead::Service(key) | LiveRead::Object(_, key) => &key.name,
        LiveRead::Node(name) => name,
    };
    match answer.code {
        200 => {}
        404 if says_absent(&answer.status(), name) => return LiveReadResult::Absent,
        _ => return LiveReadResult::Failed(failure(ask, &answer)),
    }
    let read = match read {
        LiveRead::Service(_) => {
            decode_object::<Service>(&answer).map(|one| LiveReadResult::Service(Box::new(one)))
        }
        LiveRead::Node(_) => {
            decode_object::<Node>(&answer).map(|one| LiveReadResult::Node(Box::new(one)))
        }
        LiveRead::Object(resource, _) => {
            read_object(*resource, &answer).map(|one| LiveReadResult::Object(Box::new(one)))
        }
    };
    read.unwrap_or_else(|reason| LiveReadResult::Failed(unreadable(ask, &reason)))
}

/// Of this object, not of the path: a proxy's `404` must not look like a deletion.
pub(crate) fn says_absent(status: &Status, name: &str) -> bool {
    status.reason == "NotFound" && status.details.name == name
}

fn read_stored(ask: &ApiRequest, write: &Write, answer: &ApiResponse) -> Result<Object, String> {
    match (write, &ask.body) {
        (Write::Create(object) | Write::Update(object), Some(body)) => {
            let sent = SentObject { object, body: &body.bytes };
            decode_stored(encoding_of(answer)?, &answer.body, sent)
                .map_err(|error| error.to_string())
        }
        (Write::Create(_) | Write::Update(_) | Write::Delete(_), _) => {
            read_object(write.resource(), answer)
        }
    }
}

fn read_object(resource: PublishedResource, answer: &ApiResponse) -> Result<Object, String> {
    match resource {
        PublishedResource::Slices => decode_object::<EndpointSlice>(answer).map(Object::Slice),
        PublishedResource::Endpoints => decode_object::<Endpoints>(answer).map(Object::Endpoints),
    }
}

fn decode_object<T: Decoded>(answer: &ApiResponse) -> Result<T, String> {
    decode(encoding_of(answer)?, &answer.body).map_err(|error| error.to_string())
}

fn encoding_of(answer: &ApiResponse) -> Result<Encoding, &'static str> {
    answer.encoding.ok_or("neither JSON nor protobuf")
}

fn retry_after_secs(answer: &ApiResponse) -> u32 {
    let header = answer.retry_after.as_deref().map(|text| text.trim().parse().unwrap_or(1));
    let secs = header.unwrap_or_else(|| {
        u32::try_from(answer.status().details.retry_after_seconds).unwrap_or_default()
    });
    // None at all would be a tight loop.
    secs.clamp(1, RETRY_AFTER_SECS_MAX)
}

/// A refusal, with verb, resource, key, and the server's own words.
pub(crate) fn failure(ask: &ApiRequest, answer: &ApiResponse) -> Failure {
    let kind = match answer.code {
        401 => FailureKind::Unauthorized,
        403 => FailureKind::Forbidden,
        400 | 405 | 406 | 413 | 415 | 422 => FailureKind::Invalid,
        200..=299 => FailureKind::Unreadable,
        _ => FailureKind::ServerError,
    };
    Failure { kind, message: message(ask, answer).into() }
}

fn message(ask: &ApiRequest, answer: &ApiResponse) -> String {
    format!("{}: {}", ask.words(), answer.message())
}

fn unreadable(ask: &ApiRequest, reason: &str) -> Failure {
    let message = format!("{}: the answer cannot be read: {reason}", ask.words()).into();
    Failure { kind: FailureKind::Unreadable, message }
}

#[cfg(test)]
mod tests;
