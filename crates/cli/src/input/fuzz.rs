//! Fuzz target: files that people give to `plan` and `explain`. JSON as `kubectl` prints it has the
//! same value when it is read as YAML.

use endpointd_fuzz::{Format, Target, fuzz, outcome_of};
use serde_json::{Value, json};

use super::document::{Document, ParseError};
use super::{json as json_input, yaml};
use crate::input::DecodedObject;

const YAML: &str = r#"# Two documents, with everything that YAML has.
apiVersion: v1
kind: Service
metadata: &meta
  name: web
  namespace: "shop"
  labels: {app: web, 'quoted': "a\tb", empty: ""}
spec:
  ports:
  - {name: http, port: 80, targetPort: http}
  - name: dns
    port: 0x35
    protocol: UDP
  selector: &selector
    app: web
---
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Pod
  metadata:
    <<: *meta
    name: web-1
    labels: *selector
    annotations:
      note: |
        several
        lines
      folded: >-
        more
        lines
  status: {phase: Running, podIPs: [{ip: 10.0.0.1}, {ip: "fd00::1"}]}
- !!map
  apiVersion: v1
  kind: Node
  metadata: {name: !!str 12}
...
"#;

fn recorded_json() -> Vec<Vec<u8>> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../wire/testdata");
    let names = ["service", "pod", "endpointslicelist", "endpoints", "node"];
    let path = |name| format!("{folder}/{name}.json");
    names.iter().map(|name| std::fs::read(path(name)).expect("a recorded object")).collect()
}

type Read<T> = Result<Vec<Document<T>>, ParseError>;

fn outcome(documents: Read<DecodedObject>) -> String {
    let documents = match documents {
        Ok(documents) => documents,
        Err(error) => return outcome_of(&error.reason),
    };
    let objects = documents.into_iter().map(|document| match document.objects() {
        Ok(objects) => objects.iter().take(3).map(object_outcome).collect(),
        Err(reason) => outcome_of(&reason),
    });
    objects.collect::<Vec<String>>().join(" ")
}

fn object_outcome(object: &DecodedObject) -> String {
    match object {
        DecodedObject::Known(_) => "known".to_owned(),
        DecodedObject::Ignored(_) => "ignored".to_owned(),
        DecodedObject::Malformed(malformed) => {
            format!("{} {}", outcome_of(&malformed.path), outcome_of(&malformed.reason))
        }
    }
}

#[test]
fn fuzz_yaml() {
    let mut recorded = vec![YAML.as_bytes().to_vec()];
    recorded.extend(recorded_json());
    fuzz(&Target { name: "yaml", format: Format::Text, recorded }, |input| {
        outcome(yaml::documents(&String::from_utf8_lossy(input)))
    });
}

#[test]
fn fuzz_json_as_yaml() {
    let recorded = recorded_json();
    fuzz(&Target { name: "json_as_yaml", format: Format::Json, recorded }, |input| {
        let Ok(documents) = json_input::documents::<DecodedObject>(input) else {
            return "no JSON".to_owned();
        };
        if let Ok(value) = serde_json::from_slice::<Value>(input) {
            check_as_yaml(&value);
        }
        outcome(Ok(documents))
    });
}

/// Keys of more than 1,024 characters are no keys in YAML, and `<<` is a key with a meaning.
fn is_yaml(value: &Value) -> bool {
    match value {
        Value::Object(fields) => {
            let is_key = |key: &String| key.len() < 1000 && key != "<<";
            fields.iter().all(|(key, value)| is_key(key) && is_yaml(value))
        }
        Value::Array(items) => items.iter().all(is_yaml),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

fn check_as_yaml(value: &Value) {
    let object = json!({"apiVersion": "v1", "kind": "Any", "spec": value});
    if !is_yaml(value) {
        return;
    }
    let read: Read<Value> = yaml::documents(&object.to_string());
    let mut documents = match read {
        Ok(documents) => documents,
        // YAML counts the same nesting as deeper.
        Err(error) if error.reason.starts_with("nested") => return,
        Err(error) => panic!("not YAML: {error}"),
    };
    let objects = documents.pop().expect("one document").objects().expect("an object");
    assert_eq!(objects, [object]);
}
