//! Fuzz targets of all decoders. Beyond panics they check that decoders agree: an object that is
//! decoded, encoded, and decoded again is the same; JSON gives the same by bytes and by value; the
//! short cut for stored objects gives what the full decoding gives; and frames do not depend on how
//! the stream is cut.

use std::cell::Cell;
use std::fmt::Debug;
use std::fs;

use endpointd_fuzz::{Format, Target, fuzz, outcome_of};
use endpointd_model::{EndpointSlice, Endpoints, Node, Object, Pod, Service};
use endpointd_wire::{
    AnyObject, Bytes, Decoded, Encoding, Frames, Malformed, SentContent, SentObject, decode,
    decode_deletion, decode_event_of_sent, decode_list, decode_status, decode_stored,
    decode_watch_event, encode, flatten,
};
use prost::encoding::encode_varint;
use serde_json::Value;

const OBJECTS: [&str; 8] = [
    "pod",
    "pod-bare",
    "service",
    "node",
    "endpoints",
    "endpointslice",
    "podlist",
    "endpointslicelist",
];

fn recorded(names: &[&str], extension: &str) -> Vec<Vec<u8>> {
    let path = |name| format!("{}/testdata/{name}.{extension}", env!("CARGO_MANIFEST_DIR"));
    names.iter().map(|name| fs::read(path(name)).expect("a recorded object")).collect()
}

fn outcome<T>(result: Result<T, Malformed>) -> String {
    match result {
        Ok(_) => "ok".to_owned(),
        Err(error) => format!("{} {}", outcome_of(&error.path), outcome_of(&error.reason)),
    }
}

/// Decodes as one object, as a list, and as a watch event.
fn read<T: Decoded>(encoding: Encoding, body: &Bytes) -> String {
    [
        outcome(decode::<T>(encoding, body)),
        outcome(decode_list::<T>(encoding, body)),
        outcome(decode_watch_event::<T>(encoding, body)),
    ]
    .concat()
}

fn read_all(encoding: Encoding, body: &Bytes) -> String {
    [
        read::<Pod>(encoding, body),
        read::<Service>(encoding, body),
        read::<Node>(encoding, body),
        read::<Endpoints>(encoding, body),
        read::<EndpointSlice>(encoding, body),
        outcome(decode_status(encoding, body)),
    ]
    .concat()
}

/// What was decoded is encoded and decoded to the same object, in both encodings.
fn check_round_trip<T: Decoded + Clone + PartialEq + Debug>(
    encoding: Encoding,
    body: &Bytes,
    object_of: fn(T) -> Object,
) {
    let Ok(decoded) = decode::<T>(encoding, body) else { return };
    let object = object_of(decoded.clone());
    for encoding in [Encoding::Json, Encoding::Protobuf] {
        let again: T = decode(encoding, &encode(encoding, &object).into())
            .unwrap_or_else(|error| panic!("our own {encoding:?}: {error}"));
        assert_eq!(again, decoded, "{encoding:?}");
    }
}

fn check_round_trips(encoding: Encoding, body: &Bytes) {
    check_round_trip(encoding, body, Object::Slice);
    check_round_trip(encoding, body, Object::Endpoints);
}

#[test]
fn fuzz_wire_json() {
    let recorded = recorded(&[&OBJECTS[..], &["status"]].concat(), "json");
    fuzz(&Target { name: "wire_json", format: Format::Json, recorded }, |input| {
        let body = Bytes::copy_from_slice(input);
        check_round_trips(Encoding::Json, &body);
        if let Ok(value) = serde_json::from_slice::<Value>(input) {
            check_by_value(&value);
        }
        read_all(Encoding::Json, &body)
    });
}

/// By value, as from a file, an object is the same as by bytes.
fn check_by_value(value: &Value) {
    for item in flatten(value.clone()) {
        let Ok(Some(object)) = AnyObject::from_value(&item) else { continue };
        let body: Bytes = item.to_string().into();
        let by_bytes = match &object {
            AnyObject::Service(_) => decode(Encoding::Json, &body).map(AnyObject::Service),
            AnyObject::Pod(_) => decode(Encoding::Json, &body).map(AnyObject::Pod),
            AnyObject::Node(_) => decode(Encoding::Json, &body).map(AnyObject::Node),
            AnyObject::Endpoints(_) => decode(Encoding::Json, &body).map(AnyObject::Endpoints),
            AnyObject::EndpointSlice(_) => {
                decode(Encoding::Json, &body).map(AnyObject::EndpointSlice)
            }
            AnyObject::ReferenceGrant(_) => {
                decode(Encoding::Json, &body).map(AnyObject::ReferenceGrant)
            }
        };
        assert_eq!(by_bytes, Ok(object));
    }
}

#[test]
fn fuzz_wire_protobuf() {
    let recorded = recorded(&[&OBJECTS[..], &["status"]].concat(), "pb");
    fuzz(&Target { name: "wire_protobuf", format: Format::Protobuf, recorded }, |input| {
        let body = Bytes::copy_from_slice(input);
        check_round_trips(Encoding::Protobuf, &body);
        read_all(Encoding::Protobuf, &body)
    });
}

/// The response to a write that stored the sent object, its event, and mutations of them.
#[test]
fn fuzz_wire_stored() {
    let recorded = recorded(&["endpointslice", "endpoints"], "pb");
    let slice: EndpointSlice =
        decode(Encoding::Protobuf, &recorded[0].clone().into()).expect("recorded");
    let endpoints: Endpoints =
        decode(Encoding::Protobuf, &recorded[1].clone().into()).expect("recorded");
    let sent = [Object::Slice(slice), Object::Endpoints(endpoints)];
    let sent = sent.map(|object| (Bytes::from(encode(Encoding::Protobuf, &object)), object));
    let mut all = recorded;
    all.extend(sent.iter().map(|(body, _)| body.to_vec()));
    let target = Target { name: "wire_stored", format: Format::Protobuf, recorded: all };
    let n_repeated = Cell::new(0);
    fuzz(&target, |input| {
        let answer = Bytes::copy_from_slice(input);
        let mut outcomes = String::new();
        for (body, object) in &sent {
            let short = decode_stored(Encoding::Protobuf, &answer, SentObject { object, body });
            let full = match object {
                Object::Slice(_) => decode(Encoding::Protobuf, &answer).map(Object::Slice),
                Object::Endpoints(_) => decode(Encoding::Protobuf, &answer).map(Object::Endpoints),
                Object::ServiceStatus(_) => decode::<Service>(Encoding::Protobuf, &answer)
                    .map(|service| Object::ServiceStatus(service.into())),
                Object::MultiCluster(_) => continue,
            };
            assert_eq!(short, full);
            let content = SentContent::new(SentObject { object, body }).expect("protobuf");
            for (type_, is_applied) in [("MODIFIED", true), ("DELETED", false)] {
                let event = event(type_, &answer);
                let repeated = decode_event_of_sent(&event, |_| Some(content.clone()));
                assert!(
                    repeated.is_none() || is_applied && repeated.as_ref() == full.as_ref().ok()
                );
                n_repeated.set(n_repeated.get() + u32::from(repeated.is_some()));
            }
            outcomes += &outcome(full);
        }
        outcomes
    });
    assert!(n_repeated.get() >= 2, "the events of what was sent");
}

/// A protobuf event of the object.
fn event(type_: &str, object: &[u8]) -> Bytes {
    let field = |number: u8, value: &[u8]| {
        let mut field = vec![number << 3 | 2];
        encode_varint(value.len() as u64, &mut field);
        field.extend(value);
        field
    };
    [field(1, type_.as_bytes()), field(2, &field(1, object))].concat().into()
}

#[test]
fn fuzz_watch_json() {
    let recorded = recorded(&["watch"], "jsonl");
    fuzz(&Target { name: "watch_json", format: Format::JsonLines, recorded }, |input| {
        check_stream(Encoding::Json, input)
    });
}

#[test]
fn fuzz_watch_protobuf() {
    let recorded = recorded(&["watch"], "pb");
    fuzz(&Target { name: "watch_protobuf", format: Format::ProtobufFrames, recorded }, |input| {
        check_stream(Encoding::Protobuf, input)
    });
}

/// The frames of a stream, cut into pieces of these sizes in turn; what remains is no frame. The
/// error is one about the length.
fn frames(encoding: Encoding, input: &[u8], sizes: &[usize]) -> (Vec<Bytes>, bool) {
    let (mut frames, mut found) = (Frames::new(encoding), Vec::new());
    let (mut rest, mut sizes) = (input, sizes.iter().cycle());
    while !rest.is_empty() {
        let (piece, after) = rest.split_at((*sizes.next().expect("a cycle")).min(rest.len()));
        rest = after;
        frames.push(piece);
        loop {
            match frames.next_frame() {
                Ok(Some(frame)) => found.push(frame),
                Ok(None) => break,
                Err(_) => return (found, true),
            }
        }
    }
    (found, false)
}

/// The frame as an event of two resources.
fn read_events(encoding: Encoding, frame: &Bytes) -> String {
    [
        outcome(decode_watch_event::<Pod>(encoding, frame)),
        outcome(decode_watch_event::<EndpointSlice>(encoding, frame)),
        if decode_deletion(encoding, frame).is_some() {
            "deletion".to_owned()
        } else {
            String::new()
        },
    ]
    .concat()
}

fn check_stream(encoding: Encoding, input: &[u8]) -> String {
    let whole = frames(encoding, input, &[input.len().max(1)]);
    for sizes in [&[1][..], &[3, 1, 64], &[1000]] {
        assert_eq!(frames(encoding, input, sizes), whole, "in pieces of {sizes:?}");
    }
    let (frames, is_too_long) = whole;
    let mut outcomes = is_too_long.to_string();
    for frame in frames.iter().take(8) {
        outcomes += &read_events(encoding, frame);
    }
    outcomes
}
