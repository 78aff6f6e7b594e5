//! OpenAPI v3 from the table of Go types: enough for `kubectl explain` and for clients that check
//! whether the server validates fields.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::discovery::{RELEASE, groups};
use crate::kinds::{KINDS, Kind, version_of};
use crate::schema::{Empty, Field, Leaf, Shape, type_named};

/// `/openapi/v3`: the index of the documents.
pub(crate) fn index() -> Value {
    let link = |path: &str| json!({"serverRelativeURL": format!("/openapi/v3/{path}")});
    let mut paths = Map::new();
    paths.insert("api/v1".to_owned(), link("api/v1"));
    for group in groups() {
        let path = format!("apis/{group}/{}", version_of(group));
        paths.insert(path.clone(), link(&path));
    }
    json!({"paths": paths})
}

/// The document of one group.
pub(crate) fn document(group: &str) -> Option<Value> {
    let kinds: Vec<&Kind> = KINDS.iter().copied().filter(|kind| kind.group == group).collect();
    if kinds.is_empty() {
        return None;
    }
    let mut paths = Map::new();
    let mut wanted = BTreeSet::new();
    for kind in &kinds {
        paths.extend(paths_of(kind));
        collect(kind.schema, &mut wanted);
    }
    let mut schemas: Map<String, Value> =
        wanted.iter().map(|name| (name.clone(), schema(name))).collect();
    for kind in &kinds {
        let of = json!([{"group": kind.group, "version": kind.version(), "kind": kind.kind}]);
        schemas[kind.schema]["x-kubernetes-group-version-kind"] = of;
    }
    Some(json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": RELEASE},
        "paths": paths,
        "components": {"schemas": schemas},
    }))
}

/// `kubectl` requests it if it finds no v3; it has no definitions.
pub(crate) fn openapi_v2() -> Value {
    json!({
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": RELEASE},
        "paths": {},
        "definitions": {},
    })
}

fn collect(name: &str, wanted: &mut BTreeSet<String>) {
    if !wanted.insert(name.to_owned()) {
        return;
    }
    fn follow(shape: &Shape, wanted: &mut BTreeSet<String>) {
        match shape {
            Shape::Leaf(_) => {}
            Shape::Array { array: inner } | Shape::Map { map: inner } => follow(inner, wanted),
            Shape::Object { r#ref } => collect(r#ref, wanted),
        }
    }
    for field in &type_named(name).fields {
        follow(&field.shape, wanted);
    }
}

fn schema(name: &str) -> Value {
    let of = type_named(name);
    let mut properties = Map::new();
    for field in &of.fields {
        properties.insert(field.name.clone(), property(field));
    }
    let required: Vec<&str> = of
        .fields
        .iter()
        .filter(|field| field.empty == Empty::Keep && is_required(field))
        .map(|field| field.name.as_str())
        .collect();
    let mut shown = json!({"type": "object", "description": of.doc, "properties": properties});
    if !required.is_empty() {
        shown["required"] = json!(required);
    }
    shown
}

/// Structs are written even if empty, so only for other values is `omitempty` significant.
fn is_required(field: &Field) -> bool {
    !field.pointer && !matches!(field.shape, Shape::Object { .. })
}

fn property(field: &Field) -> Value {
    let mut shown = shape(&field.shape);
    if shown.get("$ref").is_some() {
        // Other keywords next to `$ref` are ignored.
        shown = json!({"allOf": [shown], "default": {}});
    }
    shown["description"] = json!(field.doc);
    for (name, value) in [
        ("x-kubernetes-patch-strategy", &field.strategy),
        ("x-kubernetes-patch-merge-key", &field.merge_key),
    ] {
        if !value.is_empty() {
            shown[name] = json!(value);
        }
    }
    shown
}

fn shape(of: &Shape) -> Value {
    match of {
        Shape::Object { r#ref } => json!({"$ref": format!("#/components/schemas/{}", r#ref)}),
        Shape::Array { array } => json!({"type": "array", "items": item(array)}),
        Shape::Map { map } => json!({"type": "object", "additionalProperties": item(map)}),
        Shape::Leaf(leaf) => match leaf {
            Leaf::String | Leaf::Quantity => json!({"type": "string"}),
            Leaf::Bool => json!({"type": "boolean"}),
            Leaf::Int32 => json!({"type": "integer", "format": "int32"}),
            Leaf::Int64 => json!({"type": "integer", "format": "int64"}),
            Leaf::Time | Leaf::MicroTime => json!({"type": "string", "format": "date-time"}),
            Leaf::IntOrString => json!({"type": "string", "format": "int-or-string"}),
            Leaf::Bytes => json!({"type": "string", "format": "byte"}),
            Leaf::Any => json!({"type": "object"}),
        },
    }
}

fn item(of: &Shape) -> Value {
    let shown = shape(of);
    if shown.get("$ref").is_some() { json!({"allOf": [shown], "default": {}}) } else { shown }
}

fn paths_of(kind: &Kind) -> Vec<(String, Value)> {
    let root = match kind.group {
        "" => "/api/v1".to_owned(),
        group => format!("/apis/{group}/{}", kind.version()),
    };
    let scope = if kind.is_namespaced() { "/namespaces/{namespace}" } else { "" };
    let collection = format!("{root}{scope}/{}", kind.resource);
    let of = json!({"group": kind.group, "version": kind.version(), "kind": kind.kind});
    let checks = json!([
        {"name": "dryRun", "in": "query", "schema": {"type": "string", "uniqueItems": true}},
        {"name": "fieldManager", "in": "query", "schema": {"type": "string", "uniqueItems": true}},
        {"name": "fieldValidation", "in": "query",
         "schema": {"type": "string", "uniqueItems": true}},
    ]);
    let body = json!({"content": {"application/json": {
        "schema": {"$ref": format!("#/components/schemas/{}", kind.schema)}}}});
    let answer = json!({"200": {"description": "OK", "content": {"application/json": {
        "schema": {"$ref": format!("#/components/schemas/{}", kind.schema)}}}}});
    let operation = |action: &str, writes: bool| {
        let mut shown = json!({
            "x-kubernetes-action": action, "x-kubernetes-group-version-kind": of,
            "responses": answer,
        });
        if writes {
            shown["parameters"] = checks.clone();
            shown["requestBody"] = body.clone();
        }
        shown
    };
    let many = json!({"get": operation("list", false), "post": operation("post", true)});
    let one = json!({
        "get": operation("get", false), "put": operation("put", true),
        "patch": operation("patch", true), "delete": operation("delete", false),
    });
    vec![(format!("{collection}/{{name}}"), one), (collection, many)]
}
