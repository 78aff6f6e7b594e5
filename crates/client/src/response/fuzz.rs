//! Fuzz target: any response to a write or a live read gives a result. A write counts as done, and an
//! object as absent, only if the response says so.

use endpointd_fuzz::{Format, Target, fuzz, outcome_of};
use endpointd_model::{DeleteTarget, Key};
use endpointd_wire::{Bytes, encode};

use super::*;

const CODES: [u16; 18] =
    [200, 201, 202, 301, 400, 401, 403, 404, 405, 409, 410, 413, 422, 429, 500, 503, 504, 599];

fn recorded() -> Vec<Vec<u8>> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../wire/testdata");
    let names = ["endpointslice", "endpoints", "service", "node", "status", "pod-bare"];
    let path = |name, extension| format!("{folder}/{name}.{extension}");
    let files = names.into_iter().flat_map(|name| [path(name, "json"), path(name, "pb")]);
    files.map(|path| std::fs::read(path).expect("a recorded response")).collect()
}

fn response(code: u16, body: &[u8]) -> ApiResponse {
    let encoding = match body {
        [] => None,
        [b'k', ..] => Some(Encoding::Protobuf),
        [..] => Some(Encoding::Json),
    };
    let retry_after = body.first().map(|byte| char::from(*byte).to_string());
    ApiResponse { code, encoding, retry_after, body: Bytes::copy_from_slice(body) }
}

/// The objects of the recorded responses, as writes.
fn writes() -> Vec<Write> {
    let read = |extension: &str| {
        let path = format!("{}/../wire/testdata/{extension}", env!("CARGO_MANIFEST_DIR"));
        Bytes::from(std::fs::read(path).expect("a recorded object"))
    };
    let slice = decode(Encoding::Json, &read("endpointslice.json")).map(Object::Slice);
    let endpoints = decode(Encoding::Json, &read("endpoints.json")).map(Object::Endpoints);
    let objects = [slice, endpoints].map(|one| one.expect("a recorded object"));
    let of = |object: Object| {
        let target = DeleteTarget::of(object.resource(), object.meta());
        [Write::Create(object.clone()), Write::Update(object), Write::Delete(target)]
    };
    objects.into_iter().flat_map(of).collect()
}

fn reads() -> Vec<LiveRead> {
    let key = Key::new("shop", "web");
    vec![
        LiveRead::Service(key.clone()),
        LiveRead::Node("node-a".into()),
        LiveRead::Object(PublishedResource::Slices, key.clone()),
        LiveRead::FieldManager(PublishedResource::Slices, key.clone()),
        LiveRead::Pods(key.namespace.clone()),
        LiveRead::Object(PublishedResource::Endpoints, key),
    ]
}

#[test]
fn fuzz_responses() {
    let (writes, reads) = (writes(), reads());
    let requests: Vec<ApiRequest> =
        writes.iter().map(|write| ApiRequest::of_write(write, Encoding::Protobuf)).collect();
    let mut all = recorded();
    all.push(br#"{"kind":"PartialObjectMetadataList","metadata":{"continue":"c"},"items":[{"metadata":{"name":"a","uid":"u"}}]}"#.to_vec());
    all.push(
        br#"{"metadata":{"managedFields":[{"manager":"kubectl","time":"2026-01-01T00:00:00Z"}]}}"#
            .to_vec(),
    );
    for write in &writes {
        all.extend(write.object().map(|object| encode(Encoding::Protobuf, object)));
    }
    let is_protobuf = |body: &Vec<u8>| body.starts_with(b"k8s");
    let (protobuf, json): (Vec<_>, Vec<_>) = all.into_iter().partition(is_protobuf);
    for (format, recorded) in [(Format::Json, json), (Format::Protobuf, protobuf)] {
        fuzz(&Target { name: "responses", format, recorded }, |input| {
            let code = CODES[input.len() % CODES.len()];
            let mut outcomes = code.to_string();
            for code in [code, 200, 404] {
                let response = response(code, input);
                for (write, request) in writes.iter().zip(&requests) {
                    let result = write_result(request, write, Ok(response.clone()));
                    check_write(&response, write, &result);
                    outcomes += result.as_str();
                }
                for read in &reads {
                    let result = live_read_result(&requests[0], read, Ok(response.clone()));
                    check_read(&response, &result);
                    outcomes += &read_outcome(&result);
                }
            }
            outcomes
        });
    }
}

fn check_write(response: &ApiResponse, write: &Write, result: &WriteResult) {
    let is_success = (200..300).contains(&response.code);
    match result {
        WriteResult::Stored(object) => {
            assert!(is_success);
            assert_eq!(object.resource(), write.resource());
        }
        WriteResult::Deleted => {
            assert!(matches!(write, Write::Delete(_)) && (is_success || response.code == 404));
        }
        WriteResult::Throttled { after_secs } => assert!(*after_secs > 0),
        WriteResult::Failed(_) => assert!(!is_success, "it may have been applied"),
        WriteResult::Conflict(_)
        | WriteResult::NamespaceTerminating(_)
        | WriteResult::NoResponse(_)
        | WriteResult::NotLeader => assert!(!matches!(result, WriteResult::NotLeader)),
    }
}

fn check_read(response: &ApiResponse, result: &LiveReadResult) {
    match result {
        LiveReadResult::Absent => assert_eq!(response.code, 404),
        LiveReadResult::Service(_)
        | LiveReadResult::Node(_)
        | LiveReadResult::Object(_)
        | LiveReadResult::FieldManager(_)
        | LiveReadResult::Pods(_) => assert_eq!(response.code, 200),
        LiveReadResult::Failed(_) => {}
    }
}

fn read_outcome(result: &LiveReadResult) -> String {
    match result {
        LiveReadResult::Failed(failure) => outcome_of(&failure.message),
        LiveReadResult::Absent => "absent".to_owned(),
        LiveReadResult::Service(_) | LiveReadResult::Node(_) | LiveReadResult::Object(_) => {
            "found".to_owned()
        }
        LiveReadResult::FieldManager(manager) => format!("manager {}", manager.is_some()),
        LiveReadResult::Pods(pods) => format!("{} pods", pods.len().min(3)),
    }
}
