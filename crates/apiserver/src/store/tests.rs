//! Tests of the store: one revision counter, bounded history, selectors in watches.

use serde_json::json;

use super::*;

const PODS: &str = "pods";

fn store() -> Store {
    Store::new(Limits::default())
}

fn put(store: &mut Store, key: &str, colour: &str) -> u64 {
    let (namespace, name) = key.split_once('/').unwrap();
    let object = json!({"metadata": {"name": name, "labels": {"colour": colour}}});
    store.put(PODS, Key::new(namespace, name), object).revision
}

fn names(snapshot: &Snapshot) -> Vec<String> {
    snapshot.objects.iter().map(|object| object.key.to_string()).collect()
}

fn cursor(revision: u64, colour: &'static str) -> Cursor {
    let matches = move |object: &Stored| {
        colour.is_empty() || object.labels.get("colour").is_some_and(|it| it == colour)
    };
    Cursor { storage: PODS, namespace: None, matches: Box::new(matches), revision }
}

fn describe(events: &[WatchEvent]) -> Vec<String> {
    let word = |one: &WatchEvent| format!("{} {}", one.kind.as_str(), one.object.key);
    events.iter().map(word).collect()
}

#[test]
fn every_write_takes_the_next_revision() {
    let mut store = store();
    assert_eq!(put(&mut store, "a/x", "red"), 1);
    assert_eq!(put(&mut store, "a/x", "blue"), 2);
    let removed = store.remove(PODS, &Key::new("a", "x")).unwrap();
    assert_eq!(removed.revision, 3);
    assert_eq!(removed.value()["metadata"]["resourceVersion"], "3");
    assert_eq!(store.revision(), 3);
    assert!(store.remove(PODS, &Key::new("a", "x")).is_none());
    assert_eq!(store.revision(), 3);
}

#[test]
fn keys_are_ordered_as_etcd_orders_them() {
    let mut store = store();
    for key in ["a/z", "a-b/y", "b/x"] {
        put(&mut store, key, "red");
    }
    assert_eq!(names(&store.list(PODS, None)), ["a-b/y", "a/z", "b/x"]);
    assert_eq!(names(&store.list(PODS, Some("a"))), ["a/z"]);
}

#[test]
fn list_at_an_old_revision_works_down_to_the_floor() {
    let mut store = store();
    put(&mut store, "a/x", "red");
    put(&mut store, "a/y", "red");
    store.remove(PODS, &Key::new("a", "x"));
    put(&mut store, "a/y", "blue");
    let at = |store: &Store, revision| store.list_at(PODS, None, revision);
    assert_eq!(names(&at(&store, 2).unwrap()), ["a/x", "a/y"]);
    assert_eq!(at(&store, 2).unwrap().objects[1].labels["colour"], "red");
    assert_eq!(names(&at(&store, 3).unwrap()), ["a/y"]);
    store.compact(2);
    assert!(at(&store, 2).is_ok());
    assert_eq!(at(&store, 1).err(), Some(Gone { requested: 1, floor: 2 }));
}

#[test]
fn a_cursor_reads_each_change_once_and_in_order() {
    let mut store = store();
    put(&mut store, "a/x", "red");
    let mut cursor = cursor(1, "");
    put(&mut store, "a/x", "blue");
    put(&mut store, "a/y", "red");
    store.remove(PODS, &Key::new("a", "x"));
    assert_eq!(describe(&store.read(&mut cursor, 2).unwrap()), ["MODIFIED a/x", "ADDED a/y"]);
    assert_eq!(describe(&store.read(&mut cursor, 9).unwrap()), ["DELETED a/x"]);
    assert!(store.read(&mut cursor, 9).unwrap().is_empty());
    assert_eq!(cursor.revision(), store.revision());
}

#[test]
fn an_object_that_leaves_the_selection_is_a_deleted_event() {
    let mut store = store();
    let mut cursor = cursor(0, "red");
    put(&mut store, "a/x", "blue");
    put(&mut store, "a/x", "red");
    put(&mut store, "a/x", "blue");
    store.remove(PODS, &Key::new("a", "x"));
    let events = store.read(&mut cursor, 9).unwrap();
    assert_eq!(describe(&events), ["ADDED a/x", "DELETED a/x"]);
    let last = events[1].object.value();
    assert_eq!(last["metadata"]["labels"]["colour"], "red");
    assert_eq!(last["metadata"]["resourceVersion"], "3");
}

#[test]
fn a_cursor_behind_the_floor_gets_gone() {
    let limits = Limits { changes_max: 3, ..Limits::default() };
    let mut store = Store::new(limits);
    let mut behind = cursor(0, "");
    for _ in 0..4 {
        put(&mut store, "a/x", "red");
    }
    assert_eq!(store.read(&mut behind, 9).err(), Some(Gone { requested: 0, floor: 1 }));
    assert_eq!(store.read(&mut cursor(1, ""), 9).unwrap().len(), 3);
}

#[test]
fn history_is_bounded_in_bytes() {
    let mut store = Store::new(Limits { changes_max: 1000, changed_bytes_max: 1000 });
    for _ in 0..100 {
        put(&mut store, "a/x", "red");
    }
    assert!(store.floor(PODS) > 80, "{}", store.floor(PODS));
    assert_eq!(store.n_objects(PODS), 1);
}

#[test]
fn dependents_are_found_by_owner_uid() {
    let mut store = store();
    let owned = json!({"metadata": {"name": "x", "ownerReferences": [{"uid": "u1"}]}});
    store.put(PODS, Key::new("a", "x"), owned);
    assert_eq!(store.dependents("u1")[0].key.to_string(), "a/x");
    put(&mut store, "a/x", "red");
    assert!(store.dependents("u1").is_empty());
}
