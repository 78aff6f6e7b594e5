//! No input makes decoding panic: random bytes, objects with one value replaced, deep nesting. Null
//! is accepted everywhere.

use std::fs;

use endpointd_model::{EndpointSlice, Endpoints, Node, Pod, Service};
use endpointd_wire::{
    AnyObject, Bytes, Decoded, Encoding, Frames, decode, decode_list, decode_status,
    decode_watch_event, flatten,
};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::{Value, json};

const KINDS: [&str; 5] = ["pod", "service", "node", "endpoints", "endpointslice"];

fn golden(name: &str) -> Vec<u8> {
    fs::read(format!("{}/testdata/{name}", env!("CARGO_MANIFEST_DIR"))).expect("a golden object")
}

/// Calls every decoding function; only a panic fails.
fn read_every_way(encoding: Encoding, body: &Bytes) {
    fn read<T: Decoded>(encoding: Encoding, body: &Bytes) {
        let _ = decode::<T>(encoding, body);
        let _ = decode_list::<T>(encoding, body);
        let _ = decode_watch_event::<T>(encoding, body);
    }
    read::<Pod>(encoding, body);
    read::<Service>(encoding, body);
    read::<Node>(encoding, body);
    read::<Endpoints>(encoding, body);
    read::<EndpointSlice>(encoding, body);
    let _ = decode_status(encoding, body);
    let mut frames = Frames::new(encoding);
    frames.push(body);
    while let Ok(Some(_)) = frames.next_frame() {}
}

/// An envelope without apiVersion and kind, which every function accepts.
fn enveloped(raw: &[u8]) -> Bytes {
    let mut length = raw.len();
    let mut body = b"k8s\0\x12".to_vec();
    while length >= 0x80 {
        body.push(u8::try_from(length & 0x7f).expect("seven bits") | 0x80);
        length >>= 7;
    }
    body.push(u8::try_from(length).expect("seven bits"));
    body.extend_from_slice(raw);
    body.into()
}

/// JSON of any shape, with some field names that are decoded.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-zA-Z0-9:.-]{0,10}".prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    let key = prop_oneof![
        "metadata|spec|status|items|kind|apiVersion|object|type|ports|endpoints|subsets|addresses",
        "labels|conditions|containers|allocatable|cpu|podIPs|targetPort|hints|ownerReferences",
        "[a-z]{0,4}",
    ];
    leaf.prop_recursive(6, 64, 6, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Value::from),
            btree_map(key.clone(), inner, 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn random_bytes_do_not_panic(noise in vec(any::<u8>(), 0..200)) {
        read_every_way(Encoding::Json, &noise.clone().into());
        read_every_way(Encoding::Protobuf, &enveloped(&noise));
        read_every_way(Encoding::Protobuf, &noise.into());
    }

    #[test]
    fn damaged_protobuf_does_not_panic(
        kind in 0..KINDS.len(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        cut in any::<bool>(),
    ) {
        let mut body = golden(&format!("{}.pb", KINDS[kind]));
        let at = at.index(body.len());
        body[at] = byte;
        if cut {
            body.truncate(at);
        }
        read_every_way(Encoding::Protobuf, &body.into());
    }

    #[test]
    fn any_json_does_not_panic(value in any_json(), kind in 0..5usize) {
        read_every_way(Encoding::Json, &value.to_string().into());
        let (api_version, kind) = [
            ("v1", "Pod"), ("v1", "Service"), ("v1", "Node"), ("v1", "Endpoints"),
            ("discovery.k8s.io/v1", "EndpointSlice"),
        ][kind];
        let mut object = value.clone();
        if let Some(fields) = object.as_object_mut() {
            fields.insert("apiVersion".into(), api_version.into());
            fields.insert("kind".into(), kind.into());
        }
        let by_value = AnyObject::from_value(&object);
        let _ = by_value.map_err(|error| error.to_string());
        for item in flatten(value) {
            let _ = AnyObject::from_value(&item);
        }
    }
}

/// Every value in `value`, as a JSON pointer and as a path.
fn places(value: &Value, pointer: &str, path: &str, found: &mut Vec<(String, String)>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                let pointer = format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"));
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                found.push((pointer.clone(), path.clone()));
                places(value, &pointer, &path, found);
            }
        }
        Value::Array(items) => {
            for (at, value) in items.iter().enumerate() {
                let (pointer, path) = (format!("{pointer}/{at}"), format!("{path}[{at}]"));
                found.push((pointer.clone(), path.clone()));
                places(value, &pointer, &path, found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Each golden object with each of its values replaced in turn.
fn each_replaced(with: &Value, mut check: impl FnMut(&Value, &str)) {
    for kind in KINDS {
        let object: Value = serde_json::from_slice(&golden(&format!("{kind}.json"))).expect("JSON");
        let mut found = Vec::new();
        places(&object, "", "", &mut found);
        for (pointer, path) in found {
            if path == "kind" || path == "apiVersion" {
                continue;
            }
            let mut changed = object.clone();
            *changed.pointer_mut(&pointer).expect("a place that was found") = with.clone();
            check(&changed, &path);
        }
    }
}

#[test]
fn null_is_accepted_everywhere() {
    each_replaced(&Value::Null, |object, path| {
        let read = AnyObject::from_value(object);
        assert!(matches!(read, Ok(Some(_))), "{path}: {read:?}");
    });
}

#[test]
fn a_wrong_type_is_reported_with_its_field() {
    let deep = (0..100).fold(json!([]), |inner, _| json!([inner]));
    let replacements =
        [json!(7), json!(-1.5), json!("text"), json!(true), json!([{}]), json!({"a": 1}), deep];
    let mut n_reported = 0;
    for replacement in replacements {
        each_replaced(&replacement, |object, path| {
            let by_value = AnyObject::from_value(object);
            let Err(error) = &by_value else { return };
            assert!(error.path.starts_with(path), "{path}: {error}");
            n_reported += 1;
            assert!(!error.identity.kind.is_empty());
            read_every_way(Encoding::Json, &object.to_string().into());
        });
    }
    assert!(n_reported > 500, "{n_reported}");
}

#[test]
fn deep_nesting_does_not_panic() {
    let deep = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
    for body in [
        deep(200_000),
        format!(r#"{{"metadata": {{"labels": {{"a": {}}}}}}}"#, deep(200_000)),
        format!(r#"{{"spec": {}, "type": "ADDED", "object": {}}}"#, deep(200_000), deep(200_000)),
        "{\"items\":[".repeat(100_000),
    ] {
        read_every_way(Encoding::Json, &body.into());
    }
    // A field that is not decoded may have any depth.
    let ignored: Bytes = format!(r#"{{"spec": {{"volumes": {}}}}}"#, deep(200_000)).into();
    assert!(decode::<Pod>(Encoding::Json, &ignored).is_ok());
    // Groups are the only nesting that prost follows in unknown fields.
    let groups: Bytes = enveloped(&vec![0xa3; 200_000]);
    read_every_way(Encoding::Protobuf, &groups);
}

#[test]
fn a_malformed_item_of_a_protobuf_list_does_not_affect_other_items() {
    let mut body = golden("podlist.pb");
    let at = body.windows(6).position(|window| window == b"node-a").expect("the first pod's node");
    body[at] = 0xff;
    let page = decode_list::<Pod>(Encoding::Protobuf, &body.into()).expect("a list");
    assert_eq!((page.items.len(), &*page.items[0].name), (1, "web-b"));
    let error = page.malformed[0].to_string();
    assert!(error.starts_with("malformed Pod `shop/web-a`: "), "{error}");
    assert!(error.contains("PodSpec.node_name"), "{error}");
}
