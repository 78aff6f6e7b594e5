//! Every answer a server can give to a write or a live read, and what it must come to.

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

fn answer(code: u16, body: &Value) -> ApiResponse {
    let body = body.to_string().into();
    ApiResponse { code, encoding: Some(Encoding::Json), retry_after: None, body }
}

fn status(code: u16, reason: &str, details: &Value) -> ApiResponse {
    let body = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
        "reason": reason, "message": "the server's words", "details": details,
    });
    answer(code, &body)
}

fn outcomes(answer: &ApiResponse) -> [WriteResult; 3] {
    writes().map(|write| {
        outcome(&ApiRequest::of_write(&write, Encoding::Json), &write, Ok(answer.clone()))
    })
}

fn words(answer: &ApiResponse) -> [String; 3] {
    outcomes(answer).map(|outcome| outcome.as_str().to_owned())
}

#[test]
fn an_object_as_answer_is_stored() {
    for encoding in [Encoding::Json, Encoding::Protobuf] {
        let body = encode(encoding, &Object::Slice(slice())).into();
        let answer = ApiResponse { code: 201, encoding: Some(encoding), retry_after: None, body };
        let [create, update, delete] = outcomes(&answer);
        assert_eq!(create, WriteResult::Stored(Box::new(Object::Slice(slice()))));
        assert_eq!(update, create);
        assert_eq!(delete, WriteResult::Deleted, "no finalizer keeps it");
    }
}

#[test]
fn a_delete_that_a_finalizer_holds_up_is_stored() {
    let mut held = slice();
    held.meta.finalizers = vec!["example.com/hold".into()];
    let body = encode(Encoding::Json, &Object::Slice(held.clone())).into();
    let answer = ApiResponse { code: 200, encoding: Some(Encoding::Json), retry_after: None, body };
    let [_, _, delete] = outcomes(&answer);
    assert_eq!(delete, WriteResult::Stored(Box::new(Object::Slice(held))));
}

#[test]
fn a_success_without_object_is_deleted_or_makes_no_sense() {
    let body = json!({"kind": "Status", "apiVersion": "v1", "status": "Success"});
    assert_eq!(words(&answer(200, &body)), ["unknown", "unknown", "deleted"]);
}

#[test]
fn a_success_that_cannot_be_read_may_have_happened() {
    for body in [&b"{\"kind\""[..], b"", b"\xff\xff"] {
        let answer = ApiResponse {
            code: 200,
            encoding: Some(Encoding::Json),
            retry_after: None,
            body: body.to_vec().into(),
        };
        for outcome in outcomes(&answer) {
            let WriteResult::NoResponse(failure) = outcome else { panic!("{outcome:?}") };
            assert_eq!(failure.kind, FailureKind::Unreadable);
        }
    }
}

#[test]
fn an_object_that_is_not_there() {
    let gone = status(404, "NotFound", &json!({"name": "web-1", "kind": "endpointslices"}));
    assert_eq!(words(&gone), ["server_error", "behind", "deleted"]);
    let namespace = status(404, "NotFound", &json!({"name": "shop", "kind": "namespaces"}));
    assert_eq!(words(&namespace)[0], "pointless");
}

#[test]
fn an_unknown_path_is_nobodys_deletion() {
    let page = ApiResponse {
        code: 404,
        encoding: None,
        retry_after: None,
        body: "404 page not found".into(),
    };
    assert_eq!(words(&page), ["server_error"; 3]);
    let resource = status(404, "NotFound", &json!({}));
    assert_eq!(words(&resource), ["server_error"; 3]);
}

#[test]
fn a_conflict_of_any_sort_is_behind() {
    for reason in ["AlreadyExists", "Conflict"] {
        assert_eq!(words(&status(409, reason, &json!({}))), ["behind"; 3]);
    }
}

#[test]
fn a_namespace_that_goes_makes_a_write_pointless() {
    let cause = json!({"causes": [{"reason": "NamespaceTerminating"}]});
    assert_eq!(words(&status(403, "Forbidden", &cause))[0], "pointless");
    assert_eq!(words(&status(403, "Forbidden", &json!({}))), ["forbidden"; 3]);
}

#[test]
fn refusals_are_failures_of_their_kind() {
    for (code, word) in [
        (400, "invalid"),
        (413, "invalid"),
        (415, "invalid"),
        (422, "invalid"),
        (401, "unauthorized"),
        (403, "forbidden"),
        (410, "server_error"),
    ] {
        assert_eq!(words(&status(code, "X", &json!({}))), [word; 3], "{code}");
    }
}

#[test]
fn a_server_in_trouble_may_have_done_it() {
    for code in [500, 502, 503, 504] {
        let [create, ..] = outcomes(&status(code, "X", &json!({"retryAfterSeconds": 2})));
        let WriteResult::NoResponse(failure) = create else { panic!("{code}: {create:?}") };
        assert_eq!(failure.kind, FailureKind::ServerError);
    }
}

#[test]
fn too_many_requests_come_back_later() {
    let with = |code, header: Option<&str>| {
        let mut answer = status(code, "TooManyRequests", &json!({"retryAfterSeconds": 3}));
        answer.retry_after = header.map(str::to_owned);
        let [create, ..] = outcomes(&answer);
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
        assert_eq!(with(429, header), WriteResult::Throttled { after_secs }, "{header:?}");
    }
    assert_eq!(with(503, Some("5")), WriteResult::Throttled { after_secs: 5 });
    assert_eq!(with(504, Some("5")).as_str(), "unknown", "it had begun");
}

#[test]
fn only_a_request_that_cannot_have_arrived_has_failed() {
    let failure = Failure { kind: FailureKind::Unreachable, message: "no".into() };
    for write in writes() {
        let ask = ApiRequest::of_write(&write, Encoding::Json);
        let silence =
            |may_have_arrived| TransportError { may_have_arrived, failure: failure.clone() };
        let lost = outcome(&ask, &write, Err(silence(true)));
        assert_eq!(lost, WriteResult::NoResponse(failure.clone()));
        let unsent = outcome(&ask, &write, Err(silence(false)));
        assert_eq!(unsent, WriteResult::Failed(failure.clone()));
    }
}

#[test]
fn a_failure_names_verb_resource_key_and_the_servers_words() {
    let [_, update, _] = outcomes(&status(403, "Forbidden", &json!({})));
    let WriteResult::Failed(failure) = update else { panic!("{update:?}") };
    assert_eq!(&*failure.message, "update endpointslices shop/web-1: the server's words");
}

#[test]
fn a_live_read_finds_the_object_or_its_absence_or_nothing() {
    let read = LiveRead::Object(PublishedResource::Slices, Key::new("shop", "web-1"));
    let look = |answer: ApiResponse| found(&ApiRequest::of_lookup(&read), &read, Ok(answer));
    let body = encode(Encoding::Protobuf, &Object::Slice(slice())).into();
    let here =
        ApiResponse { code: 200, encoding: Some(Encoding::Protobuf), retry_after: None, body };
    assert_eq!(look(here), LiveReadResult::Object(Box::new(Object::Slice(slice()))));
    let gone = status(404, "NotFound", &json!({"name": "web-1"}));
    assert_eq!(look(gone), LiveReadResult::Absent);

    let kind = |answer| match look(answer) {
        LiveReadResult::Failed(failure) => failure.kind,
        other => panic!("{other:?}"),
    };
    // None of these may look like a deletion.
    assert_eq!(kind(status(404, "NotFound", &json!({}))), FailureKind::ServerError);
    assert_eq!(kind(status(404, "NotFound", &json!({"name": "api"}))), FailureKind::ServerError);
    assert_eq!(kind(status(403, "Forbidden", &json!({}))), FailureKind::Forbidden);
    assert_eq!(kind(status(500, "X", &json!({}))), FailureKind::ServerError);
    assert_eq!(kind(answer(200, &json!({"kind": "Status"}))), FailureKind::Unreadable);
}

#[test]
fn what_is_not_kubernetes_is_quoted_in_part() {
    let page = ApiResponse {
        code: 502,
        encoding: None,
        retry_after: None,
        body: SharedStr::from("x".repeat(1000)).to_string().into(),
    };
    let [create, ..] = outcomes(&page);
    let WriteResult::NoResponse(failure) = create else { panic!("{create:?}") };
    assert!(failure.message.contains("HTTP 502: xxx") && failure.message.len() < 300);
}
