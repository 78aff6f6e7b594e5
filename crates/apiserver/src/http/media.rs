//! Content negotiation. Responses are JSON; request bodies may be protobuf.

use axum::http::HeaderMap;
use axum::http::header::{ACCEPT, CONTENT_TYPE};

use crate::status_error::StatusError;
use crate::verbs::PatchType;

/// The representation of objects in a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Object,
    Table,
    PartialMetadata,
}

/// The media types of `Accept`, in the client's order, with their parameters.
fn accepted(headers: &HeaderMap) -> Vec<String> {
    let all = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    all.flat_map(|value| value.split(',')).map(|one| one.replace(' ', "")).collect()
}

fn is_json(media_type: &str) -> bool {
    let plain = media_type.split(';').next().unwrap_or_default();
    ["application/json", "*/*", "application/*", ""].contains(&plain)
}

/// 406 if the client does not accept JSON.
pub(super) fn form(headers: &HeaderMap) -> Result<Form, StatusError> {
    let accepted = accepted(headers);
    if accepted.is_empty() {
        return Ok(Form::Object);
    }
    for media_type in accepted.iter().filter(|one| is_json(one)) {
        let parameters: Vec<&str> = media_type.split(';').skip(1).collect();
        let is_v1 = parameters.contains(&"v=v1");
        let shape = parameters.iter().find_map(|one| one.strip_prefix("as="));
        match shape {
            None => return Ok(Form::Object),
            Some("Table") if is_v1 => return Ok(Form::Table),
            Some("PartialObjectMetadata" | "PartialObjectMetadataList") if is_v1 => {
                return Ok(Form::PartialMetadata);
            }
            Some(_) => {}
        }
    }
    Err(StatusError::not_acceptable())
}

/// Whether the client accepts aggregated discovery.
pub(super) fn takes_aggregated(headers: &HeaderMap) -> bool {
    accepted(headers).iter().find(|one| is_json(one)).is_some_and(|one| {
        one.contains("g=apidiscovery.k8s.io") && one.contains("v=v2;") || one.ends_with("v=v2")
    }) || accepted(headers).iter().any(|one| {
        is_json(one) && one.contains("as=APIGroupDiscoveryList") && one.contains("v=v2;")
    })
}

fn content_type(headers: &HeaderMap) -> &str {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    value.unwrap_or_default().split(';').next().unwrap_or_default().trim()
}

/// The encoding of a request body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    Json,
    Protobuf,
}

/// A body without a content type is JSON, as upstream.
pub(super) fn encoding(headers: &HeaderMap) -> Result<Encoding, StatusError> {
    match content_type(headers) {
        "" | "application/json" => Ok(Encoding::Json),
        "application/vnd.kubernetes.protobuf" => Ok(Encoding::Protobuf),
        _ => Err(StatusError::unsupported_media_type(
            "application/json, application/vnd.kubernetes.protobuf",
        )),
    }
}

pub(super) fn patch_type(headers: &HeaderMap) -> Result<PatchType, StatusError> {
    const TYPES: &str = "application/json-patch+json, application/merge-patch+json, \
                         application/strategic-merge-patch+json";
    match content_type(headers) {
        "application/json-patch+json" => Ok(PatchType::Json),
        "application/merge-patch+json" => Ok(PatchType::Merge),
        "application/strategic-merge-patch+json" => Ok(PatchType::Strategic),
        "application/apply-patch+yaml" | "application/apply-patch+cbor" => {
            let mut error = StatusError::unsupported_media_type(TYPES);
            error.message = format!(
                "server-side apply is not supported by this server; use client-side apply, or one \
                 of: {TYPES}"
            );
            Err(error)
        }
        _ => Err(StatusError::unsupported_patch_type()),
    }
}
