//! Results of writes and live reads, for every kind of response.

use endpointd_model::{DeleteTarget, Key, Meta, SharedStr, Uid};
use endpointd_wire::{Encoding, encode};
use serde_json::{Value, json};

use super::*;

fn slice() -> EndpointSlice {
    let meta = Meta {
        namespace: "shop".into(),
        name: "web-1".into(),
        uid: Uid::from("u"),
        resource_version: 7.into(),
        ..Default::default()
    };
    EndpointSlice {
        meta,
        address_type: endpointd_model::AddressType::IPv4,
        endpoints: Vec::new(),
        ports: Vec::new(),
    }
}

fn writes() -> [Write; 3] {
    let target = DeleteTarget::of(PublishedResource::Slices, &slice().meta);
    [
        Write::Create(Object::Slice(slice())),
        Write::Update(Object::Slice(slice())),
        Write::Delete(target),
    ]
}

fn response(code: u16, body: &Value) -> ApiResponse {
    let body = body.to_string().into();
    ApiResponse { code, encoding: Some(Encoding::Json), retry_after: None, body }
}

fn status(code: u16, reason: &str, details: &Value) -> ApiResponse {
    let body = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
        "reason": reason, "message": "the server's message", "details": details,
    });
    response(code, &body)
}

fn results(response: &ApiResponse) -> [WriteResult; 3] {
    writes().map(|write| {
        let request = ApiRequest::of_write(&write, Encoding::Json);
        write_result(&request, &write, Ok(response.clone()))
    })
}

fn labels(response: &ApiResponse) -> [String; 3] {
    results(response).map(|result| result.as_str().to_owned())
}

#[test]
fn object_in_the_response_is_stored() {
    for encoding in [Encoding::Json, Encoding::Protobuf] {
        let body = encode(encoding, &Object::Slice(slice())).into();
        let response = ApiResponse { code: 201, encoding: Some(encoding), retry_after: None, body };
        let [create, update, delete] = results(&response);
        assert_eq!(create, WriteResult::Stored(Box::new(Object::Slice(slice()))));
        assert_eq!(update, create);
        assert_eq!(delete, WriteResult::Deleted, "it has no finalizer");
    }
}

#[test]
fn delete_of_an_object_with_finalizer_is_stored() {
    let mut kept = slice();
    kept.meta.finalizers = vec!["example.com/finalizer".into()];
    let body = encode(Encoding::Json, &Object::Slice(kept.clone())).into();
    let response =
        ApiResponse { code: 200, encoding: Some(Encoding::Json), retry_after: None, body };
    let [_, _, delete] = results(&response);
    assert_eq!(delete, WriteResult::Stored(Box::new(Object::Slice(kept))));
}

#[test]
fn success_without_object_is_deleted_or_no_response() {
    let body = json!({"kind": "Status", "apiVersion": "v1", "status": "Success"});
    assert_eq!(labels(&response(200, &body)), ["unreadable", "unreadable", "deleted"]);
}

#[test]
fn undecodable_success_is_no_response() {
    for body in [&b"{\"kind\""[..], b"", b"\xff\xff"] {
        let response = ApiResponse {
            code: 200,
            encoding: Some(Encoding::Json),
            retry_after: None,
            body: body.to_vec().into(),
        };
        for result in results(&response) {
            let WriteResult::NoResponse(failure) = result else { panic!("{result:?}") };
            assert_eq!(failure.kind, FailureKind::Unreadable);
        }
    }
}

#[test]
fn missing_object_is_a_conflict_of_updates() {
    let absent = status(404, "NotFound", &json!({"name": "web-1", "kind": "endpointslices"}));
    assert_eq!(labels(&absent), ["server_error", "conflict", "deleted"]);
    let namespace = status(404, "NotFound", &json!({"name": "shop", "kind": "namespaces"}));
    assert_eq!(labels(&namespace)[0], "namespace_terminating");
}

#[test]
fn unknown_path_is_a_failure() {
    let page = ApiResponse {
        code: 404,
        encoding: None,
        retry_after: None,
        body: "404 page not found".into(),
    };
    assert_eq!(labels(&page), ["server_error"; 3]);
    let resource = status(404, "NotFound", &json!({}));
    assert_eq!(labels(&resource), ["server_error"; 3]);
}

#[test]
fn status_409_is_a_conflict() {
    for reason in ["AlreadyExists", "Conflict"] {
        assert_eq!(labels(&status(409, reason, &json!({}))), ["conflict"; 3]);
    }
}

#[test]
fn terminating_namespace_has_a_result_of_its_own() {
    let cause = json!({"causes": [{"reason": "NamespaceTerminating"}]});
    assert_eq!(labels(&status(403, "Forbidden", &cause))[0], "namespace_terminating");
    assert_eq!(labels(&status(403, "Forbidden", &json!({}))), ["forbidden"; 3]);
}

#[test]
fn client_errors_are_failures_by_code() {
    for (code, label) in [
        (400, "invalid"),
        (413, "invalid"),
        (415, "invalid"),
        (422, "invalid"),
        (401, "unauthorized"),
        (403, "forbidden"),
        (410, "server_error"),
    ] {
        assert_eq!(labels(&status(code, "X", &json!({}))), [label; 3], "{code}");
    }
}

#[test]
fn server_errors_are_no_response() {
    for code in [500, 502, 503, 504] {
        let [create, ..] = results(&status(code, "X", &json!({"retryAfterSeconds": 2})));
        let WriteResult::NoResponse(failure) = create else { panic!("{code}: {create:?}") };
        assert_eq!(failure.kind, FailureKind::ServerError);
    }
}

#[test]
fn status_429_is_throttled_for_retry_after() {
    let create = |code, header: Option<&str>| {
        let mut response = status(code, "TooManyRequests", &json!({"retryAfterSeconds": 3}));
        response.retry_after = header.map(str::to_owned);
        let [create, ..] = results(&response);
        create
    };
    for (header, after_secs) in [
        (Some("0"), 1),
        (Some("1"), 1),
        (Some(" 30 "), 30),
        (Some("soon"), 1),
        (Some("Wed, 21 Oct 2026 07:28:00 GMT"), 1),
        (Some("99999"), 600),
        (None, 3),
    ] {
        assert_eq!(create(429, header), WriteResult::Throttled { after_secs }, "{header:?}");
    }
    assert_eq!(create(503, Some("5")), WriteResult::Throttled { after_secs: 5 });
    assert_eq!(create(504, Some("5")).as_str(), "server_error", "the server may have begun");
}

#[test]
fn missing_response_is_a_failure_only_if_the_request_was_not_sent() {
    let failure = Failure { kind: FailureKind::Unreachable, message: "no".into() };
    for write in writes() {
        let request = ApiRequest::of_write(&write, Encoding::Json);
        let error =
            |may_have_arrived| TransportError { may_have_arrived, failure: failure.clone() };
        let lost = write_result(&request, &write, Err(error(true)));
        assert_eq!(lost, WriteResult::NoResponse(failure.clone()));
        let unsent = write_result(&request, &write, Err(error(false)));
        assert_eq!(unsent, WriteResult::Failed(failure.clone()));
    }
}

#[test]
fn failure_names_verb_resource_key_and_the_server_message() {
    let [_, update, _] = results(&status(403, "Forbidden", &json!({})));
    let WriteResult::Failed(failure) = update else { panic!("{update:?}") };
    assert_eq!(&*failure.message, "update endpointslices shop/web-1: the server's message");
}

#[test]
fn live_read_is_object_absent_or_failed() {
    let read = LiveRead::Object(PublishedResource::Slices, Key::new("shop", "web-1"));
    let request = ApiRequest::of_live_read(&read);
    let result = |response| live_read_result(&request, &read, Ok(response));
    let body = encode(Encoding::Protobuf, &Object::Slice(slice())).into();
    let found =
        ApiResponse { code: 200, encoding: Some(Encoding::Protobuf), retry_after: None, body };
    assert_eq!(result(found), LiveReadResult::Object(Box::new(Object::Slice(slice()))));
    let absent = status(404, "NotFound", &json!({"name": "web-1"}));
    assert_eq!(result(absent), LiveReadResult::Absent);

    let kind = |response| match result(response) {
        LiveReadResult::Failed(failure) => failure.kind,
        other => panic!("{other:?}"),
    };
    // None of these may look like a deletion.
    assert_eq!(kind(status(404, "NotFound", &json!({}))), FailureKind::ServerError);
    assert_eq!(kind(status(404, "NotFound", &json!({"name": "api"}))), FailureKind::ServerError);
    assert_eq!(kind(status(403, "Forbidden", &json!({}))), FailureKind::Forbidden);
    assert_eq!(kind(status(500, "X", &json!({}))), FailureKind::ServerError);
    assert_eq!(kind(response(200, &json!({"kind": "Status"}))), FailureKind::Unreadable);
}

#[test]
fn long_body_without_status_is_truncated() {
    let page = ApiResponse {
        code: 502,
        encoding: None,
        retry_after: None,
        body: SharedStr::from("x".repeat(1000)).to_string().into(),
    };
    let [create, ..] = results(&page);
    let WriteResult::NoResponse(failure) = create else { panic!("{create:?}") };
    assert!(failure.message.contains("HTTP 502: xxx") && failure.message.len() < 300);
}
