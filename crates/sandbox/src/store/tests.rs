//! The store as a whole.

use serde_json::{Value, json};

use super::counters::{index_steps_of, parses_of, reads_of};
use super::*;

fn object(namespace: &str, name: &str, x: u64) -> Value {
    json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name, "namespace": namespace,
        "uid": format!("00000000-0000-4000-8000-{x:012x}")}, "data": {"x": x.to_string()}})
}

fn key(namespace: &str, name: &str) -> StoreKey {
    StoreKey { resource: "configmaps".to_owned(), name: NamespacedName::new(namespace, name) }
}

/// The content of a revision, as `place=x`.
fn said<'s>(objects: impl IntoIterator<Item = (&'s ObjectPath, &'s StoredObject)>) -> String {
    let one = |(place, object): (&ObjectPath, &StoredObject)| {
        format!("{}={}", place.text(), object.parse()["data"]["x"].as_str().unwrap_or(""))
    };
    objects.into_iter().map(one).collect::<Vec<_>>().join(" ")
}

fn filled(history: usize) -> (ObjectStore, Vec<u64>) {
    let mut store = ObjectStore::new(100, history);
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
fn earlier_revisions_are_readable_within_the_history() {
    let (store, at) = filled(100);
    let check = |revision: u64, namespace: Option<&str>, expected: &str| {
        let state = store.list_at_revision("configmaps", namespace, revision).unwrap();
        assert_eq!(said(&state), expected);
    };
    check(at[0], None, "a/x=1");
    check(at[1], None, "a-b/x=2 a/x=1");
    check(at[2], Some("a"), "a/x=1 a/y=3");
    check(at[3], None, "a-b/x=2 a/x=4 a/y=3");
    check(at[4], Some("a"), "a/x=4");
    let (short, at) = filled(2);
    assert!(short.list_at_revision("configmaps", None, at[1]).is_err());
    assert!(short.list_at_revision("configmaps", None, at[2]).is_ok());
}

/// Namespaces with dashes come before the shorter name, as in etcd.
#[test]
fn lists_are_in_the_order_of_keys() {
    let (store, _) = filled(100);
    assert_eq!(said(store.list_stored_from("configmaps", None, "")), "a-b/x=2 a/x=4");
    assert_eq!(said(store.list_stored_from("configmaps", Some("a"), "")), "a/x=4");
    assert_eq!(said(store.list_stored_from("configmaps", None, "a-b/x\0")), "a/x=4");
}

/// An up-to-date watch continues after a compaction; any other gets an error.
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
fn object_in_use_is_parsed_once() {
    let (mut store, _) = filled(100);
    let read = |store: &mut ObjectStore| parses_of(|| assert!(store.object_at(&key("a", "x")).is_some()));
    assert_eq!(read(&mut store), 0);
    store.drop_caches();
    assert_eq!(read(&mut store), 1);
    assert_eq!(read(&mut store), 0);
    let list = parses_of(|| assert_eq!(store.list_stored_from("configmaps", None, "").count(), 2));
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

fn labelled(namespace: &str, name: &str, app: usize) -> Value {
    let mut object = object(namespace, name, 0);
    object["metadata"]["uid"] = json!("");
    object["metadata"]["labels"] = json!({"app": format!("app-{app}"), "kind": "all"});
    object
}

#[test]
fn label_lookup_follows_label_changes() {
    let mut store = ObjectStore::new(100, 10);
    let check = |store: &ObjectStore, namespace, start, pairs: &[(&str, &str)], expected: &str| {
        let found = store.list_labelled_from("configmaps", namespace, start, pairs);
        let names: Vec<&str> = found.map(|(place, _)| place.text()).collect();
        assert_eq!(names.join(" "), expected, "{pairs:?}");
    };
    for (namespace, name, app) in [("a", "x", 1), ("a-b", "x", 1), ("a", "y", 2), ("a", "z", 1)] {
        store.put("configmaps", labelled(namespace, name, app));
    }
    let one = [("app", "app-1")];
    check(&store, None, "", &one, "a-b/x a/x a/z");
    check(&store, Some("a"), "", &one, "a/x a/z");
    check(&store, Some("a"), "a/x\0", &one, "a/z");
    check(&store, Some("a"), "", &[("kind", "all"), ("app", "app-2")], "a/y");
    check(&store, None, "", &[("kind", "all"), ("app", "none")], "");
    check(&store, Some("a"), "", &[], "a/x a/y a/z");
    // as it was written, and after another label, none, and a removal
    store.put("configmaps", labelled("a", "new", 1));
    store.put("configmaps", labelled("a", "x", 2));
    store.put("configmaps", object("a", "z", 0));
    store.remove(&StoreKey { resource: "configmaps".to_owned(), name: NamespacedName::new("a-b", "x") });
    check(&store, None, "", &one, "a/new");
    check(&store, None, "", &[("app", "app-2")], "a/x a/y");
}

/// However many others there are.
#[test]
fn labelled_list_reads_only_matching_objects() {
    let read = |size: usize| {
        let mut store = ObjectStore::new(100, 0);
        for number in 0..size {
            store.put("configmaps", labelled("a", &format!("object-{number}"), number / 2));
        }
        let list = |store: &ObjectStore| {
            let pairs = [("kind", "all"), ("app", "app-7")];
            let found = store.list_labelled_from("configmaps", Some("a"), "", &pairs);
            assert_eq!(found.filter(|(_, stored)| !stored.text().is_empty()).count(), 2);
        };
        // the first makes the index
        list(&store);
        store.put("configmaps", labelled("a", "another", 1));
        reads_of(|| list(&store))
    };
    assert_eq!((read(100), read(2_000)), (2, 2));
}

/// However many follow.
#[test]
fn labelled_page_cost_does_not_grow() {
    let steps = |size: usize, pairs: &[(&str, &str)]| {
        let mut store = ObjectStore::new(100, 0);
        for number in 0..size {
            store.put("configmaps", labelled("a", &format!("object-{number:05}"), number % 2));
        }
        let page = || {
            let found = store.list_labelled_from("configmaps", Some("a"), "a/object-00050", pairs);
            assert_eq!(found.take(10).count(), 10);
        };
        page();
        index_steps_of(page)
    };
    for pairs in [&[("kind", "all")][..], &[("kind", "all"), ("app", "app-1")]] {
        let (few, many) = (steps(100, pairs), steps(2_000, pairs));
        assert_eq!(few, many, "{pairs:?}");
        assert!(few <= 40, "{few}");
    }
}
