//! Turns responses into results of writes and live reads, which say what to do next.

use endpointd_model::{
    EndpointSlice, Endpoints, Failure, FailureKind, LiveRead, LiveReadResult, MultiClusterObject,
    MultiClusterResource, Node, Object, PublishedResource, Service, Write, WriteResult,
};
use endpointd_wire::{
    Decoded, Encoding, PodUidPage, SentObject, Status, decode, decode_field_manager,
    decode_pod_uids, decode_stored,
};

use crate::request::ApiRequest;
use crate::transport::{ApiResponse, TransportError};

/// Ours: the API server takes it from the `User-Agent`.
const FIELD_MANAGER: &str = "endpointd";
/// Longer values are capped.
const RETRY_AFTER_SECS_MAX: u32 = 600;

pub(crate) fn write_result(
    request: &ApiRequest,
    write: &Write,
    response: Result<ApiResponse, TransportError>,
) -> WriteResult {
    let response = match response {
        Ok(response) => response,
        Err(TransportError { may_have_arrived: true, failure }) => {
            return WriteResult::NoResponse(failure);
        }
        Err(TransportError { may_have_arrived: false, failure }) => {
            return WriteResult::Failed(failure);
        }
    };
    match response.code {
        200..=299 => applied(request, write, &response),
        404 => missing(request, write, &response),
        409 => WriteResult::Conflict(message(request, &response).into()),
        403 if response.status().has_cause("NamespaceTerminating") => {
            WriteResult::NamespaceTerminating(message(request, &response).into())
        }
        429 => WriteResult::Throttled { after_secs: retry_after_secs(&response) },
        // With Retry-After the server rejected the request before it began. Without it, or when it
        // gave up (500, 504), the write may have been stored.
        503 if response.retry_after.is_some() => {
            WriteResult::Throttled { after_secs: retry_after_secs(&response) }
        }
        500..=599 => WriteResult::NoResponse(failure(request, &response)),
        _ => WriteResult::Failed(failure(request, &response)),
    }
}

/// The lease was lost after the request had begun: it may have been received and applied.
pub(crate) fn lease_lost(write: &Write) -> WriteResult {
    let (verb, resource, key) = (write.verb(), write.resource().as_str(), write.key());
    let message = format!("{verb} {resource} {key}: the lease was lost before the response");
    let kind = FailureKind::Unreachable;
    WriteResult::NoResponse(Failure { kind, message: message.into() })
}

fn applied(request: &ApiRequest, write: &Write, response: &ApiResponse) -> WriteResult {
    let stored = decode_written(request, write, response);
    let is_delete = matches!(write, Write::Delete(_));
    match stored {
        // The response may be the deleted object; only finalizers keep an object.
        Ok(object) if is_delete && object.meta().finalizers.is_empty() => WriteResult::Deleted,
        Ok(object) => WriteResult::Stored(Box::new(object)),
        Err(_) if is_delete && response.status().status == "Success" => WriteResult::Deleted,
        Err(reason) => WriteResult::NoResponse(undecodable(request, &reason)),
    }
}

fn missing(request: &ApiRequest, write: &Write, response: &ApiResponse) -> WriteResult {
    let status = response.status();
    let is_object = is_absent(&status, &write.key().name);
    match write {
        Write::Create(_) if status.reason == "NotFound" && status.details.kind == "namespaces" => {
            WriteResult::NamespaceTerminating(message(request, response).into())
        }
        Write::Update(_) if is_object => WriteResult::Conflict(message(request, response).into()),
        Write::Delete(_) if is_object => WriteResult::Deleted,
        // The path itself is unknown: the API is not served (yet), or this is no API server.
        Write::Create(_) | Write::Update(_) | Write::Delete(_) => {
            WriteResult::Failed(failure(request, response))
        }
    }
}

pub(crate) fn live_read_result(
    request: &ApiRequest,
    read: &LiveRead,
    response: Result<ApiResponse, TransportError>,
) -> LiveReadResult {
    let response = match response {
        Ok(response) => response,
        Err(TransportError { failure, .. }) => return LiveReadResult::Failed(failure),
    };
    let name = match read {
        LiveRead::Service(key) | LiveRead::Object(_, key) | LiveRead::FieldManager(_, key) => {
            &key.name
        }
        LiveRead::Node(name) => name,
        LiveRead::Pods(namespace) => namespace,
        LiveRead::Source(_, read) => return live_read_result(request, read, Ok(response)),
    };
    match response.code {
        200 => {}
        404 if is_absent(&response.status(), name) => return LiveReadResult::Absent,
        _ => return LiveReadResult::Failed(failure(request, &response)),
    }
    let read =
        match read {
            LiveRead::Service(_) => decode_object::<Service>(&response)
                .map(|one| LiveReadResult::Service(Box::new(one))),
            LiveRead::Node(_) => {
                decode_object::<Node>(&response).map(|one| LiveReadResult::Node(Box::new(one)))
            }
            LiveRead::Object(resource, _) => decode_published(*resource, &response)
                .map(|one| LiveReadResult::Object(Box::new(one))),
            LiveRead::FieldManager(..) => decode_field_manager(&response.body, FIELD_MANAGER)
                .map(LiveReadResult::FieldManager)
                .map_err(|error| error.to_string()),
            LiveRead::Pods(_) => decode_pod_uids(&response.body)
                .map(|page| LiveReadResult::Pods(page.pods))
                .map_err(|error| error.to_string()),
            LiveRead::Source(..) => Err("it was read from the wrong cluster".to_owned()),
        };
    read.unwrap_or_else(|reason| LiveReadResult::Failed(undecodable(request, &reason)))
}

/// One page of the pods of a namespace.
pub(crate) fn pods_page(
    request: &ApiRequest,
    response: Result<ApiResponse, TransportError>,
) -> Result<PodUidPage, Failure> {
    let response = response.map_err(|error| error.failure)?;
    if response.code != 200 {
        return Err(failure(request, &response));
    }
    decode_pod_uids(&response.body).map_err(|error| undecodable(request, &error.to_string()))
}

/// Whether a 404 is about this object. The `404` of a proxy must not look like a deletion.
pub(crate) fn is_absent(status: &Status, name: &str) -> bool {
    status.reason == "NotFound" && status.details.name == name
}

fn decode_written(
    request: &ApiRequest,
    write: &Write,
    response: &ApiResponse,
) -> Result<Object, String> {
    match (write, &request.body) {
        (Write::Create(object) | Write::Update(object), Some(body)) => {
            let sent = SentObject { object, body: &body.bytes };
            decode_stored(encoding_of(response)?, &response.body, sent)
                .map_err(|error| error.to_string())
        }
        (Write::Create(_) | Write::Update(_) | Write::Delete(_), _) => {
            decode_published(write.resource(), response)
        }
    }
}

fn decode_published(resource: PublishedResource, response: &ApiResponse) -> Result<Object, String> {
    match resource {
        PublishedResource::Slices => decode_object::<EndpointSlice>(response).map(Object::Slice),
        PublishedResource::Endpoints => decode_object::<Endpoints>(response).map(Object::Endpoints),
        PublishedResource::ServiceStatus => {
            decode_object::<Service>(response).map(|one| Object::ServiceStatus(one.into()))
        }
        PublishedResource::MultiCluster(resource) => {
            let object = match resource {
                MultiClusterResource::Imports => {
                    MultiClusterObject::Import(decode_object(response)?)
                }
                MultiClusterResource::ImportStatus => {
                    MultiClusterObject::ImportStatus(decode_object(response)?)
                }
                MultiClusterResource::ExportStatus => {
                    MultiClusterObject::ExportStatus(decode_object(response)?)
                }
                MultiClusterResource::Derived => {
                    MultiClusterObject::Derived(decode_object(response)?)
                }
            };
            Ok(Object::MultiCluster(object))
        }
    }
}

fn decode_object<T: Decoded>(response: &ApiResponse) -> Result<T, String> {
    decode(encoding_of(response)?, &response.body).map_err(|error| error.to_string())
}

fn encoding_of(response: &ApiResponse) -> Result<Encoding, &'static str> {
    response.encoding.ok_or("neither JSON nor protobuf")
}

fn retry_after_secs(response: &ApiResponse) -> u32 {
    let header = response.retry_after.as_deref().map(|text| text.trim().parse().unwrap_or(1));
    let secs = header.unwrap_or_else(|| {
        u32::try_from(response.status().details.retry_after_seconds).unwrap_or_default()
    });
    // Zero would be a tight loop.
    secs.clamp(1, RETRY_AFTER_SECS_MAX)
}

/// The failure for an error response: verb, resource, key, and the server's message.
pub(crate) fn failure(request: &ApiRequest, response: &ApiResponse) -> Failure {
    let kind = match response.code {
        401 => FailureKind::Unauthorized,
        403 => FailureKind::Forbidden,
        400 | 405 | 406 | 413 | 415 | 422 => FailureKind::Invalid,
        200..=299 => FailureKind::Unreadable,
        _ => FailureKind::ServerError,
    };
    Failure { kind, message: message(request, response).into() }
}

fn message(request: &ApiRequest, response: &ApiResponse) -> String {
    format!("{}: {}", request.describe(), response.message())
}

fn undecodable(request: &ApiRequest, reason: &str) -> Failure {
    let message = format!("{}: cannot decode the response: {reason}", request.describe()).into();
    Failure { kind: FailureKind::Unreadable, message }
}

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;
