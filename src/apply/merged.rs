//! What is sent to a server that knows no server-side apply: a merge patch with what is rendered, and without what only we said
//! before.
//!
//! Such a server does not say who set what. Our entry stands in an annotation of the object instead, as `managedFields` would
//! have it. A merge patch replaces lists whole, so a list is one field.

use serde_json::{Map, Value, json};

use super::left;
use super::owned::{FieldSet, entry_of, fields, is_nothing};
use crate::model::{FieldPath, PathStep, labels};

/// Of metadata, what is no field of anybody's.
const OF_THE_SERVER: [&str; 6] =
    ["creationTimestamp", "managedFields", "name", "namespace", "resourceVersion", "uid"];

/// What is sent to make an object.
pub fn created(body: &Value, manager: &str) -> Value {
    let mut body = without_nulls(body);
    keep_entry(&mut body, manager);
    if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|name, _| !["resourceVersion", "uid"].contains(&name.as_str()));
    }
    body
}

/// Its server does not say of an object which one it is, or in which state: a patch of it could not be refused once it is another.
#[derive(Debug, PartialEq, Eq)]
pub struct NoPrecondition;

/// What is sent to change an object that was just read; `None` when it is all there. `before`: the fields that were ours.
/// `left`: what others have of it.
pub fn patch(
    live: &Value,
    body: &Value,
    before: &FieldSet,
    left: &[FieldPath],
    manager: &str,
) -> Result<Option<Value>, NoPrecondition> {
    let (mut patch, mut before) = (without_nulls(body), before.clone());
    for path in left {
        leave(&mut patch, live, path);
        left::forget(&mut before, live, path);
    }
    keep_entry(&mut patch, manager);
    share_finalizers(&mut patch, live, &mut before);
    for field in ["resourceVersion", "uid"] {
        let known = live["metadata"][field].as_str().filter(|text| !text.is_empty());
        patch["metadata"][field] = Value::String(known.ok_or(NoPrecondition)?.to_owned());
    }
    if let Some(said) = patch.as_object_mut() {
        remove(&before, live, said);
    }
    Ok(changes(&patch, live).then_some(patch))
}

/// The fields that `kubectl apply` set last, where it keeps them in an annotation.
pub fn applied_by_kubectl(live: &Value) -> Option<FieldSet> {
    let text = live.pointer("/metadata/annotations")?.get(LAST_APPLIED)?.as_str()?;
    let mut set = FieldSet::of(&serde_json::from_str(text).ok()?);
    set.add(&FieldSet::of(&json!({"metadata": {"annotations": {LAST_APPLIED: ""}}})));
    Some(set)
}

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Whether an object says all that is rendered. What the server has filled in is no difference, also in the items of a list.
pub fn says(live: &Value, rendered: &Value) -> bool {
    let without = |object: &Value| {
        let mut object = object.clone();
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.retain(|name, _| !OF_THE_SERVER.contains(&name.as_str()) && name != "finalizers");
        }
        object
    };
    let finalizers = |object: &Value| texts(object.pointer("/metadata/finalizers"));
    let known = finalizers(live);
    includes(live, &without(rendered)) && finalizers(rendered).iter().all(|it| known.contains(it))
}

fn includes(live: &Value, said: &Value) -> bool {
    match (live, said) {
        (Value::Object(live), Value::Object(said)) => said.iter().all(|(name, said)| match live.get(name) {
            Some(live) => said.is_null() || includes(live, said),
            // A server forgets what is empty.
            None => name == "status" || is_nothing(said),
        }),
        (Value::Array(live), Value::Array(said)) => {
            live.len() == said.len() && live.iter().zip(said).all(|(live, said)| includes(live, said))
        }
        (Value::Number(live), Value::Number(said)) => live == said || live.as_f64() == said.as_f64(),
        (live, said) => live == said,
    }
}

/// A null says that there is no value, as an apply reads it.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let said = map.iter().filter(|(_, value)| !value.is_null());
            Value::Object(said.map(|(name, value)| (name.clone(), without_nulls(value))).collect())
        }
        other => other.clone(),
    }
}

/// Writes what is ours into the annotation: names of fields, never a value.
fn keep_entry(body: &mut Value, manager: &str) {
    let entry = entry_of(manager, body, &FieldSet::of(body));
    body["metadata"]["annotations"][labels::FIELDS] = Value::String(entry.to_string());
}

/// Finalizers are a set that many write: who says one must not take those of others away.
fn share_finalizers(patch: &mut Value, live: &Value, before: &mut FieldSet) {
    let ours = texts(patch.pointer("/metadata/finalizers"));
    let known = texts(live.pointer("/metadata/finalizers"));
    let was_ours = |name: &str| {
        let set = before.below.get("f:metadata").and_then(|metadata| metadata.below.get("f:finalizers"));
        set.is_some_and(|set| set.whole || set.below.contains_key(&item_key(name)))
    };
    let stays = known.iter().filter(|name| ours.contains(name) || !was_ours(name));
    let new = ours.iter().filter(|name| !known.contains(name));
    let wanted: Vec<&String> = stays.chain(new).collect();
    let is_same = wanted.len() == known.len() && ours.iter().all(|name| known.contains(name));
    before.forget(&["metadata", "finalizers"]);
    let Some(metadata) = patch.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    if is_same {
        metadata.shift_remove("finalizers");
    } else {
        metadata.insert("finalizers".to_owned(), json!(wanted));
    }
}

fn texts(list: Option<&Value>) -> Vec<String> {
    let items = list.and_then(Value::as_array).into_iter().flatten();
    items.filter_map(Value::as_str).map(ToOwned::to_owned).collect()
}

fn item_key(name: &str) -> String {
    format!("v:{}", json!(name))
}

/// Says null for what was ours, is no more, and still there. What others put beside it stays.
fn remove(before: &FieldSet, live: &Value, patch: &mut Map<String, Value>) {
    for (key, child) in &before.below {
        let Some((name, value)) = key.strip_prefix("f:").and_then(|name| Some((name, live.get(name)?)))
        else {
            continue;
        };
        match patch.get_mut(name) {
            Some(Value::Object(said)) if value.is_object() => remove(child, value, said),
            Some(_) => {}
            None if child.is_all_of(value) => {
                patch.insert(name.to_owned(), Value::Null);
            }
            None => {
                let mut below = Map::new();
                remove(child, value, &mut below);
                if !below.is_empty() {
                    patch.insert(name.to_owned(), Value::Object(below));
                }
            }
        }
    }
}

/// Whether a merge patch would change an object. The commit is written with other changes only.
fn changes(patch: &Value, live: &Value) -> bool {
    match (patch, live) {
        (Value::Object(patch), Value::Object(live)) => patch
            .iter()
            .filter(|(name, _)| !labels::WRITTEN_ALONG.contains(&name.as_str()) || *name == labels::INSTALL)
            .any(|(name, said)| match live.get(name) {
                Some(live) => said.is_null() || changes(said, live),
                None => !said.is_null(),
            }),
        (said, live) => said != live,
    }
}

/// Takes out of what is sent what others have. A list is sent whole, with what they have in its items.
fn leave(body: &mut Value, live: &Value, path: &FieldPath) {
    let is_field = |step: &PathStep| matches!(step, PathStep::Field(_));
    if path.steps().iter().all(is_field) {
        left::leave_out(body, path, &FieldSet::default());
    } else {
        carry(body, live, path.steps());
    }
}

fn carry(body: &mut Value, live: &Value, steps: &[PathStep]) {
    let Some((step, rest)) = steps.split_first() else { return };
    match (step, body) {
        (PathStep::Field(name), Value::Object(body)) => match (live.get(name), body.get_mut(name)) {
            (Some(live), Some(body)) if !rest.is_empty() => carry(body, live, rest),
            (Some(live), _) if rest.is_empty() => {
                body.insert(name.clone(), live.clone());
            }
            (None, Some(_)) if rest.is_empty() => {
                body.shift_remove(name);
            }
            _ => {}
        },
        (step, Value::Array(body)) => {
            let live = live.as_array().and_then(|items| items.iter().find(|item| step.is_item(item)));
            let place = body.iter().position(|item| step.is_item(item));
            match (place.and_then(|place| body.get_mut(place)), live) {
                (Some(body), Some(live)) if rest.is_empty() => *body = live.clone(),
                (Some(body), Some(live)) => carry(body, live, rest),
                (None, Some(live)) if rest.is_empty() => body.push(live.clone()),
                (Some(_), None) if rest.is_empty() => {
                    place.map(|place| body.remove(place));
                }
                _ => {}
            }
        }
        _ => {}
    }
}

impl FieldSet {
    /// All that an object says, as our entry would have it.
    pub fn of(object: &Value) -> Self {
        let mut set = Self::of_value(object, &["apiVersion", "kind", "status"]);
        if let Some(metadata) = object.get("metadata") {
            let mut fields = Self::of_value(metadata, &OF_THE_SERVER);
            fields.forget(&["annotations", labels::FIELDS]);
            let finalizers = texts(metadata.get("finalizers"));
            fields.below.remove("f:finalizers");
            if !finalizers.is_empty() {
                let below = finalizers.iter().map(|name| (item_key(name), Self::leaf())).collect();
                fields.below.insert("f:finalizers".to_owned(), Self { below, ..Self::default() });
            }
            set.below.insert("f:metadata".to_owned(), fields);
        }
        set
    }

    fn of_value(value: &Value, except: &[&str]) -> Self {
        let Some(map) = value.as_object().filter(|map| !map.is_empty()) else { return Self::leaf() };
        let fields = map.iter().filter(|(name, _)| !except.contains(&name.as_str()));
        let below = fields.map(|(name, value)| (format!("f:{name}"), Self::of_value(value, &[]))).collect();
        Self { below, ..Self::default() }
    }

    fn leaf() -> Self {
        Self { owned: true, whole: true, ..Self::default() }
    }

    /// Nothing would be left of this value without the set.
    fn is_all_of(&self, value: &Value) -> bool {
        match value.as_object().filter(|map| !map.is_empty()) {
            Some(map) => map.iter().all(|(name, value)| {
                self.below.get(&format!("f:{name}")).is_some_and(|child| child.is_all_of(value))
            }),
            None => true,
        }
    }

    /// What an entry of this manager has, where one stands in the object.
    pub fn of_manager(object: &Value, manager: &str) -> Option<Self> {
        let entry =
            super::owned::entries(object).iter().find(|entry| super::owned::is_ours(entry, manager))?;
        Some(fields(entry))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANAGER: &str = "tutti-main";

    fn object(spec: Value) -> Value {
        let mut object = json!({"apiVersion": "example.com/v1", "kind": "Account",
            "metadata": {"name": "web", "namespace": "shop", "annotations": {"a": "b"}}});
        object["spec"] = spec;
        object
    }

    /// As the cluster has it after `before` was applied, with `spec` now.
    fn live(before: &Value, spec: Value) -> Value {
        let mut live = created(&object(before.clone()), MANAGER);
        live["spec"] = spec;
        live["metadata"]["uid"] = json!("u1");
        live["metadata"]["resourceVersion"] = json!("7");
        live
    }

    fn check(before: Value, now: Value, rendered: Value, left: &[&str], expected: Option<Value>) {
        let live = live(&before, now);
        let paths: Vec<FieldPath> = left.iter().map(|it| FieldPath::parse(it).expect("a path")).collect();
        let ours = FieldSet::of(&object(before));
        let sent = patch(&live, &object(rendered), &ours, &paths, MANAGER).expect("a precondition");
        match (sent, expected) {
            (None, None) => {}
            (Some(sent), Some(spec)) => {
                assert_eq!(sent["spec"], spec, "{live}");
                assert_eq!(
                    (&sent["metadata"]["uid"], &sent["metadata"]["resourceVersion"]),
                    (&json!("u1"), &json!("7"))
                );
            }
            (sent, expected) => panic!("{sent:?} and not {expected:?}"),
        }
    }

    #[test]
    fn what_is_there_already_is_not_sent() {
        let spec = || json!({"owner": "a", "limits": {"max": 1}});
        let filled = json!({"owner": "a", "limits": {"max": 1, "min": 0}, "tier": "free"});
        check(spec(), spec(), spec(), &[], None);
        check(spec(), filled, spec(), &[], None);
        check(spec(), json!({"owner": "b", "limits": {"max": 1}}), spec(), &[], Some(spec()));
    }

    #[test]
    fn what_is_not_said_any_more_goes_and_what_others_said_stays() {
        let before = || json!({"owner": "a", "limits": {"max": 1, "min": 0}, "hosts": ["x"]});
        check(
            before(),
            json!({"owner": "a", "limits": {"max": 1, "min": 0, "theirs": 3}, "hosts": ["x"], "tier": "free"}),
            json!({"owner": "a", "limits": {"max": 2}}),
            &[],
            Some(json!({"owner": "a", "limits": {"max": 2, "min": null}, "hosts": null})),
        );
        // All of a map was ours, or some of it.
        check(
            before(),
            before(),
            json!({"owner": "a"}),
            &[],
            Some(json!({"owner": "a", "limits": null, "hosts": null})),
        );
        check(
            before(),
            json!({"limits": {"max": 1, "min": 0, "theirs": 3}}),
            json!({"owner": "a"}),
            &[],
            Some(json!({"owner": "a", "limits": {"max": null, "min": null}})),
        );
        // Gone already, and filled by somebody else.
        check(
            json!({"x": {}, "y": 1}),
            json!({"x": {"theirs": 1}}),
            json!({"z": 1}),
            &[],
            Some(json!({"z": 1})),
        );
        // A value becomes a map, and a map a value.
        check(
            json!({"x": 1, "y": {"a": 1}}),
            json!({"x": 1, "y": {"a": 1}}),
            json!({"x": {"a": 1}, "y": 2}),
            &[],
            Some(json!({"x": {"a": 1}, "y": 2})),
        );
        // A null is no value.
        check(
            json!({"x": 1}),
            json!({"x": 1}),
            json!({"x": null, "y": 1}),
            &[],
            Some(json!({"x": null, "y": 1})),
        );
    }

    #[test]
    fn what_is_left_to_others_is_neither_sent_nor_taken_away() {
        let before = || json!({"owner": "a", "size": 1});
        check(
            before(),
            json!({"owner": "a", "size": 5}),
            json!({"owner": "b", "size": 1}),
            &["/spec/size"],
            Some(json!({"owner": "b"})),
        );
        check(
            before(),
            json!({"owner": "a", "size": 5}),
            json!({"owner": "b"}),
            &["/spec/size"],
            Some(json!({"owner": "b"})),
        );
        let hosts = |size: u8, path: &str| json!({"hosts": [{"name": "x", "size": size, "path": path}]});
        check(
            hosts(1, "/a"),
            hosts(5, "/a"),
            hosts(1, "/b"),
            &["/spec/hosts/name=x/size"],
            Some(hosts(5, "/b")),
        );
        let item = |name: &str| json!({"name": name});
        check(
            json!({"hosts": [item("x")]}),
            json!({"hosts": [item("x"), item("y")]}),
            json!({"hosts": [item("z")]}),
            &["/spec/hosts/name=y"],
            Some(json!({"hosts": [item("z"), item("y")]})),
        );
    }

    #[test]
    fn nothing_is_sent_that_could_not_be_refused() {
        let spec = || json!({"owner": "a"});
        for field in ["uid", "resourceVersion"] {
            for missing in [Value::Null, json!("")] {
                let mut live = live(&spec(), spec());
                live["metadata"][field] = missing;
                let ours = FieldSet::of(&object(spec()));
                let sent = patch(&live, &object(json!({"owner": "b"})), &ours, &[], MANAGER);
                assert_eq!(sent, Err(NoPrecondition), "{field}");
            }
        }
    }

    #[test]
    fn finalizers_of_others_stay() {
        let with = |finalizers: Value| {
            let mut object = object(json!({}));
            object["metadata"]["finalizers"] = finalizers;
            object
        };
        let check = |before: Value, live: Value, body: Value, expected: Value| {
            let ours = FieldSet::of(&with(before));
            let mut live = with(live);
            live["metadata"]["uid"] = json!("u1");
            live["metadata"]["resourceVersion"] = json!("7");
            let sent = patch(&live, &with(body), &ours, &[], MANAGER).expect("a precondition");
            let sent = sent.expect("the annotation is new");
            assert_eq!(sent["metadata"]["finalizers"], expected);
        };
        check(json!(["a/x"]), json!(["b/y", "a/x"]), json!(["a/x"]), Value::Null);
        check(json!(["a/x"]), json!(["b/y", "a/x"]), Value::Null, json!(["b/y"]));
        check(json!([]), json!(["b/y"]), json!(["a/x"]), json!(["b/y", "a/x"]));
    }

    #[test]
    fn the_annotation_names_fields_and_no_values() {
        let made = created(&object(json!({"password": "hunter2", "hosts": ["hunter3"], "x": null})), MANAGER);
        let kept = made["metadata"]["annotations"][labels::FIELDS].as_str().expect("it is kept");
        let entry: Value = serde_json::from_str(kept).expect("an entry");
        assert_eq!(entry["fieldsV1"]["f:spec"], json!({"f:hosts": {}, "f:password": {}}));
        assert!(!kept.contains("hunter"), "{kept}");
        assert_eq!(FieldSet::parse(&entry["fieldsV1"]), FieldSet::of(&without_nulls(&made)));
        assert!(made["spec"].get("x").is_none());
    }

    #[test]
    fn what_a_server_fills_in_is_no_difference() {
        let check = |live: Value, rendered: Value, expected: bool| {
            assert_eq!(says(&object(live.clone()), &object(rendered.clone())), expected, "{live} {rendered}");
        };
        let ports = || json!({"ports": [{"port": 80}], "empty": [], "none": {"deep": {}}, "null": null});
        check(json!({"ports": [{"port": 80, "protocol": "TCP"}], "more": 1}), ports(), true);
        check(json!({"ports": [{"port": 81, "protocol": "TCP"}]}), ports(), false);
        check(json!({"ports": [{"port": 80}, {"port": 81}]}), ports(), false);
        check(json!({"size": 1}), json!({"size": 1.0}), true);
        check(json!({}), json!({"size": 1}), false);
    }

    #[test]
    fn what_kubectl_applied_is_known_from_its_annotation() {
        let mut live = object(json!({"owner": "a"}));
        assert!(applied_by_kubectl(&live).is_none());
        live["metadata"]["annotations"][LAST_APPLIED] = json!(object(json!({"owner": "a"})).to_string());
        let known = applied_by_kubectl(&live).expect("it is there");
        assert!(
            known.has_path(&["spec", "owner"]) && known.has_path(&["metadata", "annotations", LAST_APPLIED])
        );
    }
}
