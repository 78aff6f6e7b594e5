//! Sorts answers: what a write or a live read came to, named after what to do next.

use endpointd_model::{
    EndpointSlice, Endpoints, Failure, FailureKind, Found, Lookup, Node, Object, Outcome, Resource,
    Service, Write,
};
use endpointd_wire::{Decoded, Encoding, Sent, Status, decode, decode_stored};

use crate::ask::Ask;
use crate::transport::{Answer, Silence};

/// Longer is not believed.
const RETRY_AFTER_SECS_MAX: u32 = 600;

pub(crate) fn outcome(ask: &Ask, write: &Write, answer: Result<Answer, Silence>) -> Outcome {
    let answer = match answer {
        Ok(answer) => answer,
        Err(Silence { may_have_arrived: true, failure }) => return Outcome::Unknown(failure),
        Err(Silence { may_have_arrived: false, failure }) => return Outcome::Failed(failure),
    };
    match answer.code {
        200..=299 => done(ask, write, &answer),
        404 => missing(ask, write, &answer),
        409 => Outcome::Behind(message(ask, &answer).into()),
        403 if answer.status().has_cause("NamespaceTerminating") => {
            Outcome::Pointless(message(ask, &answer).into())
        }
        429 => Outcome::Throttled { after_secs: retry_after_secs(&answer) },
        // With a time to come back the server says that it did not begin. Without one, or when it
        // began and gave up (500, 504), the write may have been stored.
        503 if answer.retry_after.is_some() => {
            Outcome::Throttled { after_secs: retry_after_secs(&answer) }
        }
        500..=599 => Outcome::Unknown(failure(ask, &answer)),
        _ => Outcome::Failed(failure(ask, &answer)),
    }
}

fn done(ask: &Ask, write: &Write, answer: &Answer) -> Outcome {
    let stored = read_stored(ask, write, answer);
    let is_delete = matches!(write, Write::Delete(_));
    match stored {
        // A server may answer with what it has just removed; only a finalizer keeps an object.
        Ok(object) if is_delete && object.meta().finalizers.is_empty() => Outcome::Deleted,
        Ok(object) => Outcome::Stored(Box::new(object)),
        Err(_) if is_delete && answer.status().status == "Success" => Outcome::Deleted,
        Err(reason) => Outcome::Unknown(unreadable(ask, &reason)),
    }
}

fn missing(ask: &Ask, write: &Write, answer: &Answer) -> Outcome {
    let status = answer.status();
    let is_object = says_absent(&status, &write.key().name);
    match write {
        Write::Create(_) if status.reason == "NotFound" && status.details.kind == "namespaces" => {
            Outcome::Pointless(message(ask, answer).into())
        }
        Write::Update(_) if is_object => Outcome::Behind(message(ask, answer).into()),
        Write::Delete(_) if is_object => Outcome::Deleted,
        // The path itself is unknown: an API that is not served (yet), or no API server at all.
        Write::Create(_) | Write::Update(_) | Write::Delete(_) => {
            Outcome::Failed(failure(ask, answer))
        }
    }
}

/// What a live read found.
pub(crate) fn found(ask: &Ask, lookup: &Lookup, answer: Result<Answer, Silence>) -> Found {
    let answer = match answer {
        Ok(answer) => answer,
        Err(Silence { failure, .. }) => return Found::Failed(failure),
    };
    let name = match lookup {
        Lookup::Service(key) | Lookup::Object(_, key) => &key.name,
        Lookup::Node(name) => name,
    };
    match answer.code {
        200 => {}
        404 if says_absent(&answer.status(), name) => return Found::Absent,
        _ => return Found::Failed(failure(ask, &answer)),
    }
    let read = match lookup {
        Lookup::Service(_) => read::<Service>(&answer).map(|one| Found::Service(Box::new(one))),
        Lookup::Node(_) => read::<Node>(&answer).map(|one| Found::Node(Box::new(one))),
        Lookup::Object(resource, _) => {
            read_object(*resource, &answer).map(|one| Found::Object(Box::new(one)))
        }
    };
    read.unwrap_or_else(|reason| Found::Failed(unreadable(ask, &reason)))
}

/// Of this object, not of the path: a proxy's `404` must not look like a deletion.
pub(crate) fn says_absent(status: &Status, name: &str) -> bool {
    status.reason == "NotFound" && status.details.name == name
}

fn read_stored(ask: &Ask, write: &Write, answer: &Answer) -> Result<Object, String> {
    match (write, &ask.body) {
        (Write::Create(object) | Write::Update(object), Some(body)) => {
            let sent = Sent { object, body: &body.bytes };
            decode_stored(encoding_of(answer)?, &answer.body, sent)
                .map_err(|error| error.to_string())
        }
        (Write::Create(_) | Write::Update(_) | Write::Delete(_), _) => {
            read_object(write.resource(), answer)
        }
    }
}

fn read_object(resource: Resource, answer: &Answer) -> Result<Object, String> {
    match resource {
        Resource::Slices => read::<EndpointSlice>(answer).map(Object::Slice),
        Resource::Endpoints => read::<Endpoints>(answer).map(Object::Endpoints),
    }
}

fn read<T: Decoded>(answer: &Answer) -> Result<T, String> {
    decode(encoding_of(answer)?, &answer.body).map_err(|error| error.to_string())
}

fn encoding_of(answer: &Answer) -> Result<Encoding, &'static str> {
    answer.encoding.ok_or("neither JSON nor protobuf")
}

fn retry_after_secs(answer: &Answer) -> u32 {
    let header = answer.retry_after.as_deref().map(|text| text.trim().parse().unwrap_or(1));
    let secs = header.unwrap_or_else(|| {
        u32::try_from(answer.status().details.retry_after_seconds).unwrap_or_default()
    });
    // None at all would be a tight loop.
    secs.clamp(1, RETRY_AFTER_SECS_MAX)
}

/// A refusal, with verb, resource, key, and the server's own words.
pub(crate) fn failure(ask: &Ask, answer: &Answer) -> Failure {
    let kind = match answer.code {
        401 => FailureKind::Unauthorized,
        403 => FailureKind::Forbidden,
        400 | 405 | 406 | 413 | 415 | 422 => FailureKind::Invalid,
        200..=299 => FailureKind::Unreadable,
        _ => FailureKind::ServerError,
    };
    Failure { kind, message: message(ask, answer).into() }
}

fn message(ask: &Ask, answer: &Answer) -> String {
    format!("{}: {}", ask.words(), answer.message())
}

fn unreadable(ask: &Ask, reason: &str) -> Failure {
    let message = format!("{}: the answer cannot be read: {reason}", ask.words()).into();
    Failure { kind: FailureKind::Unreadable, message }
}

#[cfg(test)]
mod tests;
