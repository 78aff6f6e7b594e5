//! Strategic merge patch. Upstream: `apimachinery/pkg/util/strategicpatch`. Lists of objects merge
//! by the merge key of their type; lists of scalars merge as sets if the type says so; `$patch`,
//! `$retainKeys`, `$setElementOrder/…`, and `$deleteFromPrimitiveList/…` are supported.

use serde_json::{Map, Value};

use crate::schema::{Field, Shape, Type, type_named};

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const SET_ORDER: &str = "$setElementOrder/";
const DELETE_FROM_SET: &str = "$deleteFromPrimitiveList/";

pub(super) fn merge(object: &mut Value, patch: &Value, schema: &str) -> Result<(), String> {
    merge_object(object, patch, Some(type_named(schema)))
}

fn merge_object(object: &mut Value, patch: &Value, of: Option<&Type>) -> Result<(), String> {
    let (Some(patch), true) = (patch.as_object(), object.is_object()) else {
        *object = cleaned(patch);
        return Ok(());
    };
    match patch.get(DIRECTIVE).and_then(Value::as_str) {
        Some("replace") => {
            *object = cleaned(&without_directive(patch));
            return Ok(());
        }
        Some("delete") => {
            *object = Value::Object(Map::new());
            return Ok(());
        }
        Some("merge") | None => {}
        Some(other) => return Err(format!("invalid value for special key: {DIRECTIVE}: {other}")),
    }
    retain_keys(object, patch);
    for (name, value) in patch {
        let fields = object.as_object_mut().expect("checked at the top");
        if let Some(list) = name.strip_prefix(DELETE_FROM_SET) {
            delete_from_set(fields, list, value);
        } else if !name.starts_with('$') {
            merge_field(fields, name, value, of)?;
        }
    }
    for (name, order) in patch {
        if let Some(list) = name.strip_prefix(SET_ORDER) {
            let field = of.and_then(|of| of.field(list));
            let key = field.map(|field| field.merge_key.as_str()).unwrap_or_default();
            let fields = object.as_object_mut().expect("checked at the top");
            if let Some(items) = fields.get_mut(list) {
                set_order(items, order, key);
            }
        }
    }
    Ok(())
}

fn merge_field(
    fields: &mut Map<String, Value>,
    name: &str,
    value: &Value,
    of: Option<&Type>,
) -> Result<(), String> {
    if value.is_null() {
        fields.remove(name);
        return Ok(());
    }
    let field = of.and_then(|of| of.field(name));
    let merges = field.is_some_and(|field| field.strategy.split(',').any(|one| one == "merge"));
    let replaces = field.is_some_and(|field| field.strategy.split(',').any(|one| one == "replace"));
    let inner = field.and_then(inner_type);
    match (fields.get_mut(name), value) {
        (Some(found), Value::Object(_)) if !replaces => merge_object(found, value, inner),
        (Some(found), Value::Array(items)) if merges => {
            let key = field.map(|field| field.merge_key.as_str()).unwrap_or_default();
            merge_list(found, items, key, inner)
        }
        (None, Value::Array(items)) if merges => {
            let key = field.map(|field| field.merge_key.as_str()).unwrap_or_default();
            let mut fresh = Value::Array(Vec::new());
            merge_list(&mut fresh, items, key, inner)?;
            fields.insert(name.to_owned(), fresh);
            Ok(())
        }
        (_, value) => {
            fields.insert(name.to_owned(), cleaned(value));
            Ok(())
        }
    }
}

fn inner_type(field: &Field) -> Option<&'static Type> {
    fn of(shape: &Shape) -> Option<&'static Type> {
        match shape {
            Shape::Leaf(_) => None,
            Shape::Array { array: inner } | Shape::Map { map: inner } => of(inner),
            Shape::Object { r#ref } => Some(type_named(r#ref)),
        }
    }
    // The keys of a map are data, not fields.
    if matches!(field.shape, Shape::Map { .. }) { None } else { of(&field.shape) }
}

/// Merges lists of objects by key, lists of scalars as sets.
fn merge_list(
    found: &mut Value,
    items: &[Value],
    key: &str,
    inner: Option<&Type>,
) -> Result<(), String> {
    if items.iter().any(|item| item[DIRECTIVE] == "replace") {
        let kept = items.iter().filter(|item| item[DIRECTIVE] != "replace").map(cleaned);
        *found = Value::Array(kept.collect());
        return Ok(());
    }
    if !found.is_array() {
        *found = Value::Array(Vec::new());
    }
    let list = found.as_array_mut().expect("made one two lines above");
    for item in items {
        if key.is_empty() {
            if !list.contains(item) {
                list.push(item.clone());
            }
            continue;
        }
        let Some(value) = item.get(key) else {
            return Err(format!("map: {item} does not contain declared merge key: {key}"));
        };
        let position = list.iter().position(|one| one.get(key) == Some(value));
        match (item[DIRECTIVE].as_str(), position) {
            (Some("delete"), _) => list.retain(|one| one.get(key) != Some(value)),
            (_, Some(position)) => merge_object(&mut list[position], item, inner)?,
            (_, None) => list.push(cleaned(item)),
        }
    }
    Ok(())
}

/// `$retainKeys`: of a union only the named members stay.
fn retain_keys(object: &mut Value, patch: &Map<String, Value>) {
    let Some(keep) = patch.get(RETAIN_KEYS).and_then(Value::as_array) else { return };
    if let Some(fields) = object.as_object_mut() {
        fields.retain(|name, _| keep.iter().any(|one| one == name));
    }
}

fn delete_from_set(fields: &mut Map<String, Value>, list: &str, gone: &Value) {
    let gone = gone.as_array().cloned().unwrap_or_default();
    if let Some(items) = fields.get_mut(list).and_then(Value::as_array_mut) {
        items.retain(|item| !gone.contains(item));
    }
}

/// Items in the patch's order list follow it; the others stay before their old successors.
/// Upstream: `normalizeElementOrder`.
fn set_order(items: &mut Value, order: &Value, key: &str) {
    let (Some(items), Some(order)) = (items.as_array_mut(), order.as_array()) else { return };
    let rank = |item: &Value| {
        order.iter().position(|one| {
            if key.is_empty() { one == item } else { one.get(key) == item.get(key) }
        })
    };
    let mut ordered: Vec<Value> = items.iter().filter(|one| rank(one).is_some()).cloned().collect();
    ordered.sort_by_key(|one| rank(one));
    let mut ordered = ordered.into_iter().peekable();
    let mut merged = Vec::with_capacity(items.len());
    for item in items.drain(..) {
        if rank(&item).is_some() {
            merged.extend(ordered.next());
        } else {
            merged.push(item);
        }
    }
    merged.extend(ordered);
    *items = merged;
}

fn without_directive(patch: &Map<String, Value>) -> Value {
    let mut patch = patch.clone();
    patch.remove(DIRECTIVE);
    Value::Object(patch)
}

/// A new value without nulls and directives.
fn cleaned(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept =
                fields.iter().filter(|(name, value)| !value.is_null() && !name.starts_with('$'));
            Value::Object(kept.map(|(name, value)| (name.clone(), cleaned(value))).collect())
        }
        Value::Array(items) => {
            let kept = items.iter().filter(|item| item[DIRECTIVE] != "delete");
            Value::Array(kept.map(cleaned).collect())
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(mut object: Value, patch: &Value) -> Value {
        merge(&mut object, patch, "io.k8s.api.core.v1.Pod").unwrap();
        object
    }

    #[test]
    fn containers_merge_by_name_and_keep_their_order() {
        let before = json!({"spec": {"containers": [
            {"name": "a", "image": "1"}, {"name": "b", "image": "1"}]}});
        let patch = json!({"spec": {
            "$setElementOrder/containers": [{"name": "b"}, {"name": "a"}],
            "containers": [{"name": "b", "image": "2"}, {"name": "c", "image": "3"}],
        }});
        assert_eq!(
            pod(before, &patch)["spec"]["containers"],
            json!([{"name": "b", "image": "2"}, {"name": "a", "image": "1"},
                   {"name": "c", "image": "3"}])
        );
    }

    #[test]
    fn a_delete_directive_removes_an_item_by_key() {
        let before = json!({"spec": {"containers": [{"name": "a"}, {"name": "b"}]}});
        let patch = json!({"spec": {"containers": [{"name": "a", "$patch": "delete"}]}});
        assert_eq!(pod(before, &patch), json!({"spec": {"containers": [{"name": "b"}]}}));
    }

    #[test]
    fn finalizers_merge_as_a_set() {
        let before = json!({"metadata": {"finalizers": ["x/a", "x/b"]}});
        let patch = json!({"metadata": {
            "finalizers": ["x/c"], "$deleteFromPrimitiveList/finalizers": ["x/a"]}});
        assert_eq!(pod(before, &patch), json!({"metadata": {"finalizers": ["x/b", "x/c"]}}));
    }

    #[test]
    fn null_removes_a_field_and_replace_replaces_a_map() {
        let before = json!({"metadata": {"labels": {"a": "1", "b": "2"}}, "spec": {"x": 1}});
        let patch =
            json!({"metadata": {"labels": {"a": null}}, "spec": {"$patch": "replace", "y": 2}});
        assert_eq!(
            pod(before, &patch),
            json!({"metadata": {"labels": {"b": "2"}}, "spec": {"y": 2}})
        );
    }

    #[test]
    fn a_list_without_a_key_is_replaced() {
        let before = json!({"spec": {"containers": [{"name": "a", "command": ["x"]}]}});
        let patch = json!({"spec": {"containers": [{"name": "a", "command": ["y"]}]}});
        assert_eq!(pod(before, &patch)["spec"]["containers"][0]["command"], json!(["y"]));
    }

    #[test]
    fn service_ports_merge_by_port() {
        let mut service = json!({"spec": {"ports": [{"port": 80, "name": "a"}]}});
        let patch =
            json!({"spec": {"ports": [{"port": 80, "name": "b"}, {"port": 81, "name": "c"}]}});
        merge(&mut service, &patch, "io.k8s.api.core.v1.Service").unwrap();
        let ports = json!([{"port": 80, "name": "b"}, {"port": 81, "name": "c"}]);
        assert_eq!(service["spec"]["ports"], ports);
    }
}
