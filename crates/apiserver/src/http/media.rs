//! Which form a client takes, and which it sends. Answers are JSON; bodies may be protobuf.

use axum::http::HeaderMap;
use axum::http::header::{ACCEPT, CONTENT_TYPE};

use crate::refusal::Refusal;
use crate::verbs::PatchType;

/// The shape of an answer.
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

/// 406 when the client takes no JSON at all.
pub(super) fn form(headers: &HeaderMap) -> Result<Form, Refusal> {
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
    Err(Refusal::not_acceptable())
}

/// Whether the client takes discovery in one piece.
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

/// How a body is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    Json,
    Protobuf,
}

/// Without a type a body is taken for JSON, as upstream does.
pub(super) fn encoding(headers: &HeaderMap) -> Result<Encoding, Refusal> {
    match content_type(headers) {
        "" | "application/json" => Ok(Encoding::Json),
        "application/vnd.kubernetes.protobuf" => Ok(Encoding::Protobuf),
        _ => Err(Refusal::unsupported_media_type(
            "application/json, application/vnd.kubernetes.protobuf",
        )),
    }
}

pub(super) fn patch_type(headers: &HeaderMap) -> Result<PatchType, Refusal> {
    const TYPES: &str = "application/json-patch+json, application/merge-patch+json, \
                         application/strategic-merge-patch+json";
    match content_type(headers) {
        "application/json-patch+json" => Ok(PatchType::Json),
        "application/merge-patch+json" => Ok(PatchType::Merge),
        "application/strategic-merge-patch+json" => Ok(PatchType::Strategic),
        "application/apply-patch+yaml" | "application/apply-patch+cbor" => {
            let mut refusal = Refusal::unsupported_media_type(TYPES);
            refusal.message = format!(
                "server-side apply is not supported by this server; use client-side apply, or one \
                 of: {TYPES}"
            );
            Err(refusal)
        }
        _ => Err(Refusal::unsupported_patch_type()),
    }
}
