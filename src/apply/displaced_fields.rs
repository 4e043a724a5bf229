//! Finds fields of others that displace ours.
//!
//! Server-side apply merges lists by keys. If somebody changes such a key (the number of a port), our item is gone
//! and theirs is in its place. An apply adds ours beside theirs, and the server keeps both or refuses them
//! (`Duplicate value: "web"`). The same holds for alternatives of which one may be set (`httpGet` and `tcpSocket` of
//! a probe).
//!
//! Their fields are moved into our `managedFields` entry. The apply that follows does not contain them, so the server
//! removes them in the same write. Only displacing fields are taken, and none that we ever applied.

use serde_json::{Map, Value, json};

use super::ignored_fields;
use super::managed_fields::{
    ItemKey, OwnedFieldSet, default_of_key, entry_fields, entry_text, is_apply_entry, is_blank_value,
    is_empty_value, managed_entries, new_apply_entry,
};
use crate::model::{FieldPath, ForeignField, GroupVersionKind};

/// The fields that are taken, and their managers.
#[derive(Debug, PartialEq)]
pub struct DisplacedFields {
    /// A JSON patch that moves the fields into our entry if the entries are unchanged.
    pub steps: Value,
    pub fields: OwnedFieldSet,
    pub taken: Vec<ForeignField>,
}

/// How a displacement is recognized.
#[derive(Clone, Copy)]
pub enum DisplacementSign<'a> {
    /// Our field is gone, and theirs has the same content or is another alternative of the same choice.
    Likeness,
    /// The server refused our field beside theirs. Its message names the fields.
    Refusal(&'a str),
}

/// `before`: the last applied body. `left`: ignored fields.
pub fn find_displaced(
    before: &Value,
    live: &Value,
    manager: &str,
    left: &[FieldPath],
    sign: DisplacementSign<'_>,
) -> Option<DisplacedFields> {
    let refusal = match sign {
        DisplacementSign::Likeness => None,
        DisplacementSign::Refusal(words) => Some(RefusedFields::of(words)),
    };
    let (mut tests, mut changes, mut removals) = (Vec::new(), Vec::new(), Vec::new());
    let (mut own, mut taken) = (None, Vec::new());
    let mut all = OwnedFieldSet::default();
    let is_applied =
        |entry: &&Value| entry_text(entry, "operation") == "Apply" && !is_apply_entry(entry, manager);
    // A manager with Apply keeps applying its item. Without a refusal it is not our item under another key.
    let applied: Vec<OwnedFieldSet> =
        managed_entries(live).iter().filter(is_applied).map(entry_fields).collect();
    let uid = live.pointer("/metadata/uid").unwrap_or(&Value::Null);
    tests.push(json!({"op": "test", "path": "/metadata/uid", "value": uid}));
    let is_built_in = GroupVersionKind::of(before).is_some_and(|kind| kind.is_built_in());
    for (index, entry) in managed_entries(live).iter().enumerate() {
        let place = format!("/metadata/managedFields/{index}");
        let mut theirs = entry_fields(entry);
        if is_apply_entry(entry, manager) {
            own = Some((place, entry, theirs));
        } else if entry_text(entry, "subresource").is_empty() {
            let mut walk = DisplacementWalk {
                refusal: refusal.as_ref(),
                is_built_in,
                keys: Vec::new(),
                names: Vec::new(),
                shown: String::new(),
                taken: Vec::new(),
            };
            let mut found = walk.of(&theirs, before, live);
            left.iter().for_each(|path| ignored_fields::remove_path(&mut found, live, path));
            if refusal.is_none() {
                applied.iter().for_each(|applied| found.subtract(applied));
            }
            if found.is_empty() {
                continue;
            }
            let manager = entry_text(entry, "manager");
            let is_left =
                |keys: &[String]| keys.iter().try_fold(&found, |set, key| set.children.get(key)).is_some();
            let told = walk.taken.into_iter().filter(|(keys, _)| is_left(keys));
            taken.extend(told.map(|(_, field)| ForeignField { manager: manager.to_owned(), field }));
            theirs.subtract(&found);
            all.add(&found);
            tests.push(json!({"op": "test", "path": place, "value": entry}));
            if theirs.is_empty() {
                // In reverse, so that the indexes stay valid.
                removals.insert(0, json!({"op": "remove", "path": place}));
            } else {
                let fields = theirs.to_value();
                changes.push(json!({"op": "replace", "path": format!("{place}/fieldsV1"), "value": fields}));
            }
        }
    }
    if all.is_empty() {
        return None;
    }
    match own {
        Some((place, entry, mut ours)) => {
            ours.add(&all);
            tests.push(json!({"op": "test", "path": place, "value": entry}));
            let fields = ours.to_value();
            changes.push(json!({"op": "replace", "path": format!("{place}/fieldsV1"), "value": fields}));
        }
        None => {
            // No field of the object was ours any more.
            let entry = new_apply_entry(manager, live, &all);
            removals.push(json!({"op": "add", "path": "/metadata/managedFields/-", "value": entry}));
        }
    }
    let steps = [tests, changes, removals].concat();
    Some(DisplacedFields { steps: Value::Array(steps), fields: all, taken })
}

impl DisplacedFields {
    /// The result of the apply, computed here: the server refuses our fields while theirs exist.
    pub fn preview(&self, mut live: Value, body: &Value) -> Value {
        let mut known = OwnedFieldSet::default();
        managed_entries(&live).iter().for_each(|entry| known.add(&entry_fields(entry)));
        self.fields.remove_from(&mut live);
        put(&mut live, body, &known);
        live
    }
}

/// Merges the applied fields into an object. Items of lists are matched by their keys in `known`.
fn put(live: &mut Value, said: &Value, known: &OwnedFieldSet) {
    match (live, said) {
        (Value::Object(live), Value::Object(said)) => {
            for (name, said) in said {
                let none = OwnedFieldSet::default();
                let known = known.children.get(&format!("f:{name}")).unwrap_or(&none);
                put(live.entry(name.clone()).or_insert(Value::Null), said, known);
            }
        }
        (Value::Array(live), Value::Array(said)) if !known.children.is_empty() => {
            for said in said {
                let key = known.find_item_key(said);
                let index = key.and_then(ItemKey::parse).and_then(|key| key.find(live));
                match (
                    index.and_then(|index| live.get_mut(index)),
                    key.and_then(|key| known.children.get(key)),
                ) {
                    (Some(item), Some(known)) => put(item, said, known),
                    _ => live.push(said.clone()),
                }
            }
        }
        (live, said) => *live = said.clone(),
    }
}

/// The named fields of a refusal that others own. A refusal of our own fields is about our own values.
pub fn refused_neighbours(live: &Value, said: &Value, manager: &str, words: &str) -> Vec<ForeignField> {
    let refusal = RefusedFields::of(words);
    let mut found = Vec::new();
    for entry in managed_entries(live).iter().filter(|entry| !is_apply_entry(entry, manager)) {
        let mut tell = |path: &str| {
            if refusal.fields.iter().any(|field| field == path || is_right_below(path, field)) {
                let manager = entry_text(entry, "manager").to_owned();
                found.push(ForeignField { manager, field: path.to_owned() });
            }
        };
        names_of(&entry_fields(entry), Some(said), &mut String::new(), &mut tell);
    }
    found.dedup();
    found
}

/// Visits the path of every field of a set but those that are `said`. Paths omit list indexes. The refusal does not
/// tell which item it means, so fields of all items are visited.
fn names_of(set: &OwnedFieldSet, said: Option<&Value>, path: &mut String, tell: &mut impl FnMut(&str)) {
    for (key, child) in &set.children {
        let length = path.len();
        let mut below = None;
        if let Some(name) = key.strip_prefix("f:") {
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(name);
            below = said.and_then(|said| said.get(name));
            if below.is_none() {
                tell(path);
            }
        }
        names_of(child, below, path, tell);
        path.truncate(length);
    }
}

/// The fields that a refusal names, without list indexes: `spec.ports.name`.
struct RefusedFields {
    fields: Vec<String>,
}

impl RefusedFields {
    fn of(words: &str) -> Self {
        // Several causes are in brackets, and so are list indexes: `[spec.ports[1].name: Duplicate value, …]`.
        let (mut plain, mut rest) = (String::with_capacity(words.len()), words);
        while let Some((before, behind)) = rest.split_once('[') {
            plain.push_str(before);
            let place = behind.split_once(']').filter(|(place, _)| !place.contains([' ', ':', '[']));
            rest = place.map_or(behind, |(_, rest)| rest);
        }
        plain.push_str(rest);
        // A path ends at the colon before its message.
        let is_path = |word: &&str| word.contains('.') && !word.contains(['"', '/']);
        let words = plain.split_whitespace().filter_map(|word| word.strip_suffix(':'));
        // A oneOf of a definition: `"spec.backend" must validate one and only one schema (oneOf)`.
        let quoted = plain
            .match_indices("\" must validate ")
            .filter_map(|(end, _)| plain.get(..end)?.rsplit('"').next());
        Self { fields: words.filter(is_path).chain(quoted).map(str::to_owned).collect() }
    }

    /// Whether it names this field or a direct child. Deeper fields do not concern its neighbours.
    fn is_about(&self, path: &str) -> bool {
        self.fields.iter().any(|field| field == path || is_right_below(field, path))
    }

    /// For items of the list at this path: whether both have an equal value in a named field.
    fn has_equal_named_field(&self, path: &str, one: &Value, other: &Value) -> bool {
        let named = self.fields.iter().filter(|field| is_right_below(field, path));
        let mut names = named.filter_map(|field| field.rsplit('.').next());
        names.any(|name| one.get(name).is_some_and(|value| other.get(name) == Some(value)))
    }
}

fn is_right_below(field: &str, path: &str) -> bool {
    field.rsplit_once('.').is_some_and(|(parent, _)| parent == path)
}

struct DisplacementWalk<'a> {
    refusal: Option<&'a RefusedFields>,
    is_built_in: bool,
    /// Keys of the sets down to here.
    keys: Vec<String>,
    /// Field names only, as refusals write them.
    names: Vec<String>,
    /// For people: `.spec.ports[port=83,protocol="TCP"]`.
    shown: String,
    /// By their keys, and as shown.
    taken: Vec<(Vec<String>, String)>,
}

impl DisplacementWalk<'_> {
    /// The part of a foreign set that displaces ours.
    fn of(&mut self, theirs: &OwnedFieldSet, before: &Value, live: &Value) -> OwnedFieldSet {
        let mut found = OwnedFieldSet::default();
        for (key, child) in &theirs.children {
            let length = self.shown.len();
            self.keys.push(key.clone());
            let part = match (key.strip_prefix("f:"), ItemKey::parse(key)) {
                (Some(name), _) => {
                    self.names.push(name.to_owned());
                    self.shown.extend([".", name]);
                    let part = self.of_field(name, child, before, live);
                    self.names.pop();
                    part
                }
                (None, Some(item)) => {
                    self.shown.push_str(&item.conflict_notation());
                    self.of_item(&item, child, before, live)
                }
                (None, None) => OwnedFieldSet::default(),
            };
            self.keys.pop();
            self.shown.truncate(length);
            if !part.is_empty() {
                found.children.insert(key.clone(), part);
            }
        }
        found
    }

    fn of_field(
        &mut self,
        name: &str,
        theirs: &OwnedFieldSet,
        before: &Value,
        live: &Value,
    ) -> OwnedFieldSet {
        let Some(ours) = before.as_object() else { return OwnedFieldSet::default() };
        if let Some(before) = ours.get(name) {
            return self.of(theirs, before, live.get(name).unwrap_or(&Value::Null));
        }
        // Alternatives: one of ours is missing or has another type, and theirs is beside it.
        let gone = || ours.keys().filter(|known| live.get(known.as_str()).is_none());
        let is_in_place = match self.refusal {
            Some(refusal) => {
                let is_other = |(name, value): (&String, &Value)| {
                    !value.is_object() && !value.is_array() && live.get(name) != Some(value)
                };
                let (parent, path) = (self.names_above(), self.names.join("."));
                gone().next().is_some() && (refusal.is_about(&parent) || refusal.is_about(&path))
                    || ours.iter().any(is_other) && refusal.is_about(&path)
            }
            None => {
                let is_other_kind = self.is_discriminated_by_type()
                    && ours.get("type").is_some_and(|kind| live.get("type") != Some(kind));
                self.has_known_choices() && (is_other_kind || gone().any(|gone| is_choice(gone, name)))
            }
        };
        if is_in_place { self.take(theirs) } else { OwnedFieldSet::default() }
    }

    fn of_item(
        &mut self,
        key: &ItemKey,
        theirs: &OwnedFieldSet,
        before: &Value,
        live: &Value,
    ) -> OwnedFieldSet {
        let (Some(ours), Some(now)) = (before.as_array(), live.as_array()) else {
            return OwnedFieldSet::default();
        };
        let item = key.find(now).and_then(|index| now.get(index));
        if let Some(known) = key.find(ours).and_then(|index| ours.get(index)) {
            return self.of(theirs, known, item.unwrap_or(&Value::Null));
        }
        let (ItemKey::Keys(keys), Some(item)) = (key, item) else { return OwnedFieldSet::default() };
        let path = self.names.join(".");
        if self.refusal.is_some_and(|refusal| !refusal.is_about(&path)) {
            return OwnedFieldSet::default();
        }
        let lacks = |items: &[Value], item: &Value| !items.iter().any(|it| has_same_keys(it, item, keys));
        let missing: Vec<&Value> = ours.iter().filter(|known| lacks(now, known)).collect();
        let strangers: Vec<&Value> = now.iter().filter(|item| lacks(ours, item)).collect();
        let is_alone = missing.len() == 1 && strangers.len() == 1;
        let is_it = |known: &&Value| {
            // A value that must be unique (the name of a port) decides, whatever else is equal.
            let is_named = |it: &Value| {
                self.refusal.is_some_and(|refusal| refusal.has_equal_named_field(&path, known, it))
            };
            if strangers.iter().filter(|it| is_named(it)).count() == 1 {
                return is_named(item);
            }
            let (count, alike) = (said(known, keys).count(), likeness(known, item, keys));
            let is_enough = alike > 0 && (self.refusal.is_some() || alike * 2 >= count);
            // If several items are equally similar, none is chosen.
            let is_best = || strangers.iter().filter(|it| likeness(known, it, keys) >= alike).count() == 1;
            // The item has nothing but its keys and empty values.
            let mut others = names(known).filter(|name| !keys.contains_key(*name));
            let is_bare = count == 0 && others.all(|name| item.get(name).is_some());
            is_alone && (self.refusal.is_some() || is_bare) || is_enough && is_best()
        };
        if missing.iter().any(is_it) { self.take(theirs) } else { OwnedFieldSet::default() }
    }

    /// The lists of alternatives hold for built-in kinds and for pod templates. In other kinds the same names may
    /// exist side by side, so only a refusal decides.
    fn has_known_choices(&self) -> bool {
        let is_pod = |names: &[String]| match names {
            [template, spec, part] => {
                template == "template" && spec == "spec" && POD_PARTS.contains(&part.as_str())
            }
            _ => false,
        };
        self.is_built_in || self.names.windows(3).any(is_pod)
    }

    fn names_above(&self) -> String {
        self.names.split_last().map(|(_, above)| above.join(".")).unwrap_or_default()
    }

    /// Whether the `type` of the map selects which other fields may exist.
    fn is_discriminated_by_type(&self) -> bool {
        let parent = self.names.iter().rev().nth(1);
        parent.is_some_and(|parent| TYPE_DISCRIMINATED.contains(&parent.as_str()))
    }

    fn take(&mut self, theirs: &OwnedFieldSet) -> OwnedFieldSet {
        self.taken.push((self.keys.clone(), self.shown.clone()));
        theirs.clone()
    }
}

type ItemKeyFields = Map<String, Value>;

fn has_same_keys(one: &Value, other: &Value, keys: &ItemKeyFields) -> bool {
    keys.keys().all(|name| {
        let of = |item: &Value| item.get(name).cloned().unwrap_or_else(|| default_of_key(name));
        of(one) == of(other)
    })
}

fn names(item: &Value) -> impl Iterator<Item = &String> {
    item.as_object().into_iter().flat_map(Map::keys)
}

/// The fields of an item beside its keys.
fn said<'v>(item: &'v Value, keys: &ItemKeyFields) -> impl Iterator<Item = (&'v String, &'v Value)> {
    let fields = item.as_object().into_iter().flatten();
    fields.filter(|(name, value)| !keys.contains_key(*name) && !is_blank_value(value))
}

/// How many fields of one item another item has too. Values that the server filled in do not count as a difference.
fn likeness(known: &Value, item: &Value, keys: &ItemKeyFields) -> usize {
    said(known, keys).filter(|(name, value)| item.get(*name).is_some_and(|now| includes(now, value))).count()
}

fn includes(live: &Value, said: &Value) -> bool {
    match (live, said) {
        (Value::Object(live), Value::Object(said)) => said.iter().all(|(name, said)| match live.get(name) {
            Some(live) => said.is_null() || includes(live, said),
            // The server drops empty values.
            None => is_empty_value(said),
        }),
        (Value::Array(live), Value::Array(said)) => {
            live.len() == said.len() && live.iter().zip(said).all(|(live, said)| includes(live, said))
        }
        (Value::Number(live), Value::Number(said)) => live == said || live.as_f64() == said.as_f64(),
        (live, said) => live == said,
    }
}

/// Parts of a pod template with alternatives.
const POD_PARTS: [&str; 5] =
    ["containers", "ephemeralContainers", "initContainers", "securityContext", "volumes"];

/// Maps whose `type` selects another field.
const TYPE_DISCRIMINATED: [&str; 6] =
    ["strategy", "updateStrategy", "seccompProfile", "appArmorProfile", "limitResponse", "conversion"];

/// Alternatives of built-in kinds. Their schemas tell them in text only.
const CHOICES: [&[&str]; 8] = [
    &["exec", "grpc", "httpGet", "sleep", "tcpSocket"],
    &["value", "valueFrom"],
    &["configMapKeyRef", "fieldRef", "fileKeyRef", "resourceFieldRef", "secretKeyRef"],
    &["resource", "service"],
    &["service", "url"],
    &["maxUnavailable", "minAvailable"],
    &["name", "selector"],
    &VOLUMES,
];

/// The sources of a pod's volume.
const VOLUMES: [&str; 31] = [
    "awsElasticBlockStore",
    "azureDisk",
    "azureFile",
    "cephfs",
    "cinder",
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "fc",
    "flexVolume",
    "flocker",
    "gcePersistentDisk",
    "gitRepo",
    "glusterfs",
    "hostPath",
    "image",
    "iscsi",
    "nfs",
    "persistentVolumeClaim",
    "photonPersistentDisk",
    "portworxVolume",
    "projected",
    "quobyte",
    "rbd",
    "scaleIO",
    "secret",
    "storageos",
    "vsphereVolume",
    "local",
];

fn is_choice(one: &str, other: &str) -> bool {
    CHOICES.iter().any(|choice| choice.contains(&one) && choice.contains(&other))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(manager: &str, operation: &str, fields: &Value) -> Value {
        json!({"manager": manager, "operation": operation, "fieldsV1": fields})
    }

    fn check(before: &Value, live: &Value, theirs: &Value, refusal: &str, expected: &[&str]) {
        let mut live = live.clone();
        let entries =
            [entry("tutti-main", "Apply", &json!({"f:spec": {}})), entry("kubectl", "Update", theirs)];
        live["metadata"] = json!({"managedFields": entries});
        let found = find_displaced(before, &live, "tutti-main", &[], DisplacementSign::Refusal(refusal));
        let taken = found.map(|found| found.taken).unwrap_or_default();
        let fields: Vec<&str> = taken.iter().map(|it| it.field.as_str()).collect();
        assert_eq!(fields, expected, "{refusal}");
    }

    const PORT: &str = ".spec.ports[port=83,protocol=\"TCP\"]";

    #[test]
    fn item_with_another_key_displaces_ours() {
        let ports = |ports: Value| json!({"spec": {"ports": ports}});
        let ours = ports(json!([{"name": "web", "port": 80}]));
        let duplicate = "Service \"web\" is invalid: spec.ports[1].name: Duplicate value: \"web\"";
        let key = r#"k:{"port":83,"protocol":"TCP"}"#;
        let theirs = json!({"f:spec": {"f:ports": {key: {".": {}, "f:name": {}, "f:port": {}}}}});
        let live = ports(json!([{"name": "web", "port": 83, "protocol": "TCP", "targetPort": 83}]));
        check(&ours, &live, &theirs, duplicate, &[PORT]);
        let several = "Service \"web\" is invalid: [spec.type: Invalid value, spec.ports[1].name: Duplicate value: \"web\"]";
        check(&ours, &live, &theirs, several, &[PORT]);
        check(&ours, &live, &theirs, "Service \"web\" is invalid: spec.selector: Invalid value", &[]);
        // Ours still exists: theirs is additional.
        let both = ports(json!([{"name": "web", "port": 80}, {"name": "x", "port": 83, "protocol": "TCP"}]));
        check(&ours, &both, &theirs, duplicate, &[]);
        // Another item is equally similar, except in the refused field.
        let ours = ports(json!([{"name": "web", "port": 80, "targetPort": 8080}]));
        let live = ports(json!([{"name": "x", "port": 82, "protocol": "TCP", "targetPort": 8080},
            {"name": "web", "port": 83, "protocol": "TCP", "targetPort": 9090}]));
        let port = json!({".": {}, "f:name": {}, "f:port": {}, "f:targetPort": {}});
        let other = r#"k:{"port":82,"protocol":"TCP"}"#;
        let theirs = json!({"f:spec": {"f:ports": {key: port, other: port}}});
        check(&ours, &live, &theirs, duplicate, &[PORT]);
        let target = "Service \"web\" is invalid: spec.ports[1].protocol: Invalid value";
        check(&ours, &live, &theirs, target, &[]);
    }

    /// The fields that are taken without a refusal, from one entry with operation Update.
    #[track_caller]
    fn check_likeness(before: &Value, live: &Value, theirs: &Value, left: &[FieldPath], expected: &[&str]) {
        let mut live = live.clone();
        let entries =
            [entry("tutti-main", "Apply", &json!({"f:spec": {}})), entry("kubectl", "Update", theirs)];
        live["metadata"] = json!({"managedFields": entries});
        let found = find_displaced(before, &live, "tutti-main", left, DisplacementSign::Likeness);
        let taken = found.map(|found| found.taken).unwrap_or_default();
        let fields: Vec<&str> = taken.iter().map(|it| it.field.as_str()).collect();
        assert_eq!(fields, expected, "{live}");
    }

    fn pod(spec: &Value) -> Value {
        json!({"apiVersion": "v1", "kind": "Pod", "spec": spec})
    }

    /// Each item of `live` with all its fields, as an entry of `managedFields`.
    fn entry_of_items(list: &str, live: &Value) -> Value {
        let mut items = Map::new();
        for item in live["spec"][list].as_array().into_iter().flatten() {
            let fields = names(item).map(|name| (format!("f:{name}"), json!({})));
            let fields: Map<String, Value> =
                [(".".to_owned(), json!({}))].into_iter().chain(fields).collect();
            items.insert(format!("k:{}", json!({"name": item["name"]})), fields.into());
        }
        json!({"f:spec": {format!("f:{list}"): items}})
    }

    #[test]
    fn missing_item_has_one_foreign_replacement_at_most() {
        let check = |list: &str, ours: Value, now: Value, expected: &[&str]| {
            let (ours, now) = (pod(&json!({list: ours})), pod(&json!({list: now})));
            check_likeness(&ours, &now, &entry_of_items(list, &now), &[], expected);
        };
        let on = |name: &str| json!({"name": name, "value": "true"});
        check("env", json!([on("MODE")]), json!([on("OTHER")]), &[".spec.env[name=\"OTHER\"]"]);
        check("env", json!([on("MODE")]), json!([on("FEATURE_A"), on("FEATURE_B")]), &[]);
        let off = json!({"name": "MODE", "value": "false"});
        check("env", json!([off]), json!([on("FEATURE_A")]), &[]);
        // The most similar one.
        let mount = |name: &str, more: Value| {
            let mut mount = json!({"name": name, "image": "web:1", "command": ["run"]});
            mount.as_object_mut().expect("a map").extend(more.as_object().expect("a map").clone());
            mount
        };
        let more = json!({"workingDir": "/srv"});
        let now = json!([mount("proxy", json!({})), mount("web2", more.clone())]);
        check("containers", json!([mount("web", more)]), now, &[".spec.containers[name=\"web2\"]"]);
        // An empty field is no similarity.
        let empty = |name: &str| json!({"name": name, "emptyDir": {}});
        check("volumes", json!([empty("data")]), json!([empty("a"), empty("b")]), &[]);
        check("volumes", json!([empty("data")]), json!([empty("a")]), &[".spec.volumes[name=\"a\"]"]);
        let host = json!({"name": "a", "hostPath": {"path": "/tmp"}});
        check("volumes", json!([empty("data")]), json!([host]), &[]);
        // The name was removed.
        let secret = json!([{"name": "one"}]);
        let list = "imagePullSecrets";
        let (ours, now) = (pod(&json!({list: secret})), pod(&json!({list: [{}]})));
        let theirs = json!({"f:spec": {"f:imagePullSecrets": {r#"k:{"name":""}"#: {}}}});
        check_likeness(&ours, &now, &theirs, &[], &[".spec.imagePullSecrets[name=\"\"]"]);
    }

    #[test]
    fn known_choices_cover_built_in_kinds_and_pods() {
        let check = |api_version: &str, kind: &str, way: &[&str], is_taken: bool| {
            let object = |name: &str| {
                let value =
                    way.iter().rev().fold(json!({name: {"a": 1}}), |below, name| json!({*name: below}));
                json!({"apiVersion": api_version, "kind": kind, "spec": value})
            };
            let theirs = way
                .iter()
                .rev()
                .fold(json!({"f:secret": {}}), |below, name| json!({format!("f:{name}"): below}));
            let shown = format!(".{}", [&["spec"], way, &["secret"]].concat().join("."));
            let expected: &[&str] = if is_taken { &[&shown] } else { &[] };
            check_likeness(&object("image"), &object("secret"), &json!({"f:spec": theirs}), &[], expected);
        };
        check("v1", "Pod", &[], true);
        check("example.com/v1", "Account", &[], false);
        check("example.com/v1", "Account", &["template", "spec"], false);
        check("example.com/v1", "Rollout", &["template", "spec", "volumes"], true);
    }

    #[test]
    fn ignored_fields_are_not_reported_as_taken() {
        let containers = |name: &str| pod(&json!({"containers": [{"name": name, "image": "web:1"}]}));
        let (ours, now) = (containers("web"), containers("web2"));
        let theirs = entry_of_items("containers", &now);
        let path = |text: &str| FieldPath::parse(text).expect("a path");
        let shown = ".spec.containers[name=\"web2\"]";
        check_likeness(&ours, &now, &theirs, &[], &[shown]);
        check_likeness(&ours, &now, &theirs, &[path("/spec/containers/name=web2/image")], &[shown]);
        let probe = |probe: Value| pod(&json!({"livenessProbe": probe}));
        let (ours, now) =
            (probe(json!({"httpGet": {"port": 80}})), probe(json!({"exec": {}, "tcpSocket": {}})));
        let theirs = json!({"f:spec": {"f:livenessProbe": {"f:exec": {}, "f:tcpSocket": {}}}});
        let left = [path("/spec/livenessProbe/exec")];
        check_likeness(&ours, &now, &theirs, &left, &[".spec.livenessProbe.tcpSocket"]);
    }

    #[test]
    fn refusal_of_own_fields_names_no_neighbours() {
        let check = |said: Value, theirs: Value, refusal: &str, expected: &[&str]| {
            let live = json!({"metadata": {"managedFields": [entry("kubectl", "Update", &theirs)]}});
            let told = refused_neighbours(&live, &said, "tutti-main", refusal);
            let fields: Vec<&str> = told.iter().map(|it| it.field.as_str()).collect();
            assert_eq!(fields, expected, "{refusal}");
        };
        let replicas = json!({"f:spec": {"f:replicas": {}}});
        let negative = "Deployment \"web\" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0";
        check(json!({"spec": {"replicas": -1}}), replicas.clone(), negative, &[]);
        check(json!({"spec": {"paused": true}}), replicas, negative, &["spec.replicas"]);
        // It may be another item.
        let key = r#"k:{"port":83,"protocol":"TCP"}"#;
        let port = json!({"f:spec": {"f:ports": {key: {".": {}, "f:name": {}, "f:port": {}}}}});
        let duplicate = "Service \"web\" is invalid: spec.ports[1].name: Duplicate value: \"web\"";
        check(
            json!({"spec": {"ports": [{"name": "web", "port": 80}]}}),
            port,
            duplicate,
            &["spec.ports.name"],
        );
    }

    #[test]
    fn neighbour_that_is_not_alike_stays() {
        let containers = |list: Value| json!({"spec": {"containers": list}});
        let ours = containers(json!([{"name": "web", "image": "web:1"}]));
        let live =
            containers(json!([{"name": "proxy", "image": "proxy:1"}, {"name": "web2", "image": "web:1"}]));
        let item = json!({".": {}, "f:image": {}, "f:name": {}});
        let theirs = json!({"f:spec": {"f:containers": {r#"k:{"name":"proxy"}"#: item, r#"k:{"name":"web2"}"#: item}}});
        let refusal = "Pod \"a\" is invalid: spec.containers[0].image: Forbidden: x";
        let mut live = live;
        live["metadata"] = json!({"managedFields": [entry("tutti-main", "Apply", &json!({})), entry("x", "Update", &theirs)]});
        let found = find_displaced(&ours, &live, "tutti-main", &[], DisplacementSign::Refusal(refusal))
            .expect("something");
        let steps = found.steps.as_array().expect("steps");
        let change = |path: &str| steps.iter().find(|step| step["path"] == path).expect("a step");
        let left = &change("/metadata/managedFields/1/fieldsV1")["value"]["f:spec"]["f:containers"];
        assert!(left.get(r#"k:{"name":"proxy"}"#).is_some() && left.get(r#"k:{"name":"web2"}"#).is_none());
    }

    #[test]
    fn other_variant_of_a_choice_is_taken() {
        let probe = |probe: Value| json!({"spec": {"livenessProbe": probe}});
        let ours = probe(json!({"httpGet": {"port": 80}, "periodSeconds": 5}));
        let live = probe(json!({"tcpSocket": {"port": 80}, "periodSeconds": 5, "timeoutSeconds": 1}));
        let theirs = json!({"f:spec": {"f:livenessProbe": {"f:tcpSocket": {".": {}, "f:port": {}}}}});
        let refusal = "Pod \"a\" is invalid: spec.livenessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type";
        check(&ours, &live, &theirs, refusal, &[".spec.livenessProbe.tcpSocket"]);
        let ours = json!({"spec": {"backend": {"host": "db", "timeout": 5}}});
        let live = json!({"spec": {"backend": {"socket": "a", "timeout": 5}}});
        let theirs = json!({"f:spec": {"f:backend": {"f:socket": {}}}});
        let of_schema = "Account.example.com \"a\" is invalid: <nil>: Invalid value: \"\": \"spec.backend\" must validate one and only one schema (oneOf). Found 2 valid alternatives";
        check(&ours, &live, &theirs, of_schema, &[".spec.backend.socket"]);
        // An unrelated added field stays, even beside a missing one of ours.
        let pods = |spec: Value| json!({"spec": spec});
        let ours = pods(json!({"hostname": "a", "livenessProbe": {"httpGet": {"port": 80}}}));
        let live = pods(json!({"priorityClassName": "high", "livenessProbe": {"httpGet": {"port": 80}}}));
        check(&ours, &live, &json!({"f:spec": {"f:priorityClassName": {}}}), refusal, &[]);
        let strategy = |strategy: Value| json!({"spec": {"strategy": strategy}});
        let ours = strategy(json!({"type": "Recreate"}));
        let live = strategy(json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}));
        let theirs =
            json!({"f:spec": {"f:strategy": {"f:rollingUpdate": {".": {}, "f:maxSurge": {}}, "f:type": {}}}});
        let refusal = "Deployment \"a\" is invalid: spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy";
        check(&ours, &live, &theirs, refusal, &[".spec.strategy.rollingUpdate"]);
    }
}
