//! The store as a whole.

use serde_json::{Value, json};

use super::counters::parses_of;
use super::*;

fn object(namespace: &str, name: &str, x: u64) -> Value {
    json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name, "namespace": namespace,
        "uid": format!("00000000-0000-4000-8000-{x:012x}")}, "data": {"x": x.to_string()}})
}

fn key(namespace: &str, name: &str) -> Key {
    Key { resource: "configmaps".to_owned(), name: ObjectName::new(namespace, name) }
}

/// What a state holds, as `place=x`.
fn said<'s>(objects: impl IntoIterator<Item = (&'s Place, &'s Stored)>) -> String {
    let one = |(place, object): (&Place, &Stored)| {
        format!("{}={}", place.text(), object.parse()["data"]["x"].as_str().unwrap_or(""))
    };
    objects.into_iter().map(one).collect::<Vec<_>>().join(" ")
}

fn filled(history: usize) -> (Store, Vec<u64>) {
    let mut store = Store::new(100, history);
    let mut revisions = Vec::new();
    for (namespace, name, x) in [("a", "x", 1), ("a-b", "x", 2), ("a", "y", 3), ("a", "x", 4)] {
        store.put("configmaps", object(namespace, name, x));
        revisions.push(store.revision());
    }
    store.remove(&key("a", "y"));
    revisions.push(store.revision());
    (store, revisions)
}

#[test]
fn an_earlier_state_is_found_while_its_history_is_kept() {
    let (store, at) = filled(100);
    let check = |revision: u64, namespace: Option<&str>, expected: &str| {
        let state = store.snapshot("configmaps", namespace, revision).unwrap();
        assert_eq!(said(&state), expected);
    };
    check(at[0], None, "a/x=1");
    check(at[1], None, "a-b/x=2 a/x=1");
    check(at[2], Some("a"), "a/x=1 a/y=3");
    check(at[3], None, "a-b/x=2 a/x=4 a/y=3");
    check(at[4], Some("a"), "a/x=4");
    let (short, at) = filled(2);
    assert!(short.snapshot("configmaps", None, at[1]).is_err());
    assert!(short.snapshot("configmaps", None, at[2]).is_ok());
}

/// Namespaces with dashes come before the shorter name, as in etcd.
#[test]
fn lists_are_in_the_order_of_keys() {
    let (store, _) = filled(100);
    assert_eq!(said(store.list_stored("configmaps", None)), "a-b/x=2 a/x=4");
    assert_eq!(said(store.list_stored("configmaps", Some("a"))), "a/x=4");
    assert_eq!(said(store.list_stored_from("configmaps", None, "a-b/x\0")), "a/x=4");
}

/// A watch that has seen everything goes on after a compaction; one that has not is told so.
#[test]
fn changes_are_counted() {
    let (mut store, at) = filled(100);
    let all = store.changes_before("configmaps", at[4]).unwrap();
    assert_eq!((all, store.changes_before("configmaps", at[0]).unwrap()), (5, 1));
    assert_eq!(store.changes_from("configmaps", 3).unwrap().count(), 2);
    store.compact();
    store.put("configmaps", object("a", "z", 9));
    assert_eq!(store.changes_from("configmaps", all).unwrap().count(), 1);
    assert!(store.changes_from("configmaps", all - 1).is_err());
    assert!(store.changes_before("configmaps", at[4]).is_err());
}

#[test]
fn an_object_is_parsed_once_while_it_is_in_use() {
    let (mut store, _) = filled(100);
    let read = |store: &mut Store| parses_of(|| assert!(store.at(&key("a", "x")).is_some()));
    assert_eq!(read(&mut store), 0);
    store.cool();
    assert_eq!(read(&mut store), 1);
    assert_eq!(read(&mut store), 0);
    let list = parses_of(|| assert_eq!(store.list_stored("configmaps", None).count(), 2));
    assert_eq!(list, 0);
}

#[test]
fn owners_and_uids_are_found() {
    let (mut store, _) = filled(100);
    let uid = format!("00000000-0000-4000-8000-{:012x}", 4);
    assert_eq!(store.by_uid(&uid), Some(key("a", "x")));
    let mut child = object("a", "child", 8);
    child["metadata"]["ownerReferences"] = json!([{"uid": uid}, {"uid": "of nothing here"}]);
    store.put("configmaps", child);
    assert_eq!(store.dependents(&uid), [key("a", "child")]);
    store.remove(&key("a", "child"));
    assert_eq!(store.dependents(&uid), []);
    assert_eq!(store.by_uid("of nothing here"), None);
}
