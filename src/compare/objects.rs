//! Compares the objects of one target before and after.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::comparison::{Action, Counts, Fate, FieldChange};
use super::fields;
use super::removal::Removal;
use crate::model::{Kind, ObjectId, Rendered, RenderedObject, SecretValues, image_tag, masked, shortened};

/// Fields of one object that are listed.
const MOST_FIELDS: usize = 100;
/// Characters of the body of an object that is created.
const LONGEST_BODY: usize = 4000;

/// The change of one object on one target.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Draft {
    pub object: ObjectId,
    pub kind: Kind,
    pub action: Action,
    pub was: Option<ObjectId>,
    pub fate: Option<Fate>,
    pub fields: Vec<FieldChange>,
    pub more: usize,
    pub body: Option<String>,
}

/// The changes of one target.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Drafts {
    pub objects: Vec<Draft>,
    /// The tags of the images of its containers that only one side has.
    pub versions: (Option<String>, Option<String>),
    pub replicas: (Option<i64>, Option<i64>),
    /// The tags of the first containers of its workloads.
    pub runs: Vec<String>,
}

impl Drafts {
    pub fn counts(&self) -> Counts {
        let of = |actions: &[Action]| self.objects.iter().filter(|it| actions.contains(&it.action)).count();
        Counts {
            created: of(&[Action::Create]),
            changed: of(&[Action::Change, Action::Rename, Action::Move]),
            deleted: of(&[Action::Delete]),
        }
    }
}

pub(super) fn of_target(before: Option<&Rendered>, after: Option<&Rendered>, removal: &Removal) -> Drafts {
    let (old, new) = (by_id(before), by_id(after));
    let secrets = SecretValues::of(old.values().chain(new.values()).copied());
    let gone: Vec<&RenderedObject> = old.values().copied().filter(|it| !new.contains_key(&it.id)).collect();
    let added: Vec<&RenderedObject> = new.values().copied().filter(|it| !old.contains_key(&it.id)).collect();
    let renamed = renamed(&gone, &added);
    let mut drafts = Vec::new();
    for object in gone.iter().filter(|it| !renamed.values().any(|was| was.id == it.id)) {
        let fate = removal.fate(object);
        let action = if matches!(fate, Fate::Kept(_)) { Action::Orphan } else { Action::Delete };
        drafts.push(Draft { fate: Some(fate), ..draft(object, action) });
    }
    for object in new.values() {
        match (old.get(&object.id), renamed.get(&object.id)) {
            (Some(was), _) if was.hash == object.hash => {}
            (Some(was), _) => drafts.push(changed(was, object, Action::Change, &secrets)),
            (None, Some(was)) => {
                drafts.push(Draft {
                    was: Some(was.id.clone()),
                    ..changed(was, object, Action::Rename, &secrets)
                });
            }
            (None, None) => {
                drafts.push(Draft { body: Some(body(object, &secrets)), ..draft(object, Action::Create) });
            }
        }
    }
    drafts.sort_by(|one, other| (one.action, &one.object).cmp(&(other.action, &other.object)));
    let ([was, _], [is, runs]) = (tags(old.values().copied()), tags(new.values().copied()));
    let only = |own: &BTreeSet<String>, other: &BTreeSet<String>| {
        let own: Vec<&str> = own.difference(other).map(String::as_str).collect();
        (!own.is_empty()).then(|| shortened(own.join(", "), 80))
    };
    Drafts {
        objects: drafts,
        versions: (only(&was, &is), only(&is, &was)),
        replicas: (replicas(old.values().copied()), replicas(new.values().copied())),
        runs: runs.into_iter().collect(),
    }
}

fn by_id(side: Option<&Rendered>) -> BTreeMap<&ObjectId, &RenderedObject> {
    let objects = side.into_iter().flat_map(|rendered| rendered.objects.iter());
    objects.map(|object| (&object.id, object)).collect()
}

fn draft(object: &RenderedObject, action: Action) -> Draft {
    Draft {
        object: object.id.clone(),
        kind: object.kind.clone(),
        action,
        was: None,
        fate: None,
        fields: Vec::new(),
        more: 0,
        body: None,
    }
}

fn changed(was: &RenderedObject, is: &RenderedObject, action: Action, secrets: &SecretValues) -> Draft {
    let (before, after) = shown(was, is);
    let changes = fields::changes(&before, &after);
    // A rename already reports the changed name.
    let told = changes
        .iter()
        .filter(|it| action != Action::Rename || it.path != "metadata.name" && !is_ours(&it.path));
    let told: Vec<_> = told.collect();
    let listed = told.iter().take(MOST_FIELDS);
    Draft {
        more: told.len().saturating_sub(MOST_FIELDS),
        fields: listed.map(|change| fields::told(change, secrets)).collect(),
        ..draft(is, action)
    }
}

/// The annotation that repeats the name of an object.
fn is_ours(path: &str) -> bool {
    path == "metadata.annotations.tutti.dev/origin"
}

/// Both bodies, with the secret values of either masked in both: a newly encrypted value was in plain text before.
fn shown(was: &RenderedObject, is: &RenderedObject) -> (Value, Value) {
    let (mut before, mut after) = (masked(was), masked(is));
    if was.holds_secrets() != is.holds_secrets() || was.sealed != is.sealed {
        let mut places = BTreeSet::new();
        hidden(&was.body.fields(), &before, String::new(), &mut places);
        hidden(&is.body.fields(), &after, String::new(), &mut places);
        for place in &places {
            for side in [&mut before, &mut after] {
                if let Some(value) = side.pointer_mut(place)
                    && !value.as_str().is_some_and(|text| text.starts_with("*** "))
                {
                    *value = Value::String("***".to_owned());
                }
            }
        }
    }
    (before, after)
}

/// The JSON pointers of masked values.
fn hidden(raw: &Value, shown: &Value, pointer: String, places: &mut BTreeSet<String>) {
    match (raw, shown) {
        (Value::Object(raw), Value::Object(shown)) => {
            for (key, raw) in raw {
                let key_in_pointer = key.replace('~', "~0").replace('/', "~1");
                let Some(shown) = shown.get(key) else { continue };
                hidden(raw, shown, format!("{pointer}/{key_in_pointer}"), places);
            }
        }
        (Value::Array(raw), Value::Array(shown)) => {
            for (index, (raw, shown)) in raw.iter().zip(shown).enumerate() {
                hidden(raw, shown, format!("{pointer}/{index}"), places);
            }
        }
        (raw, shown) if raw != shown => _ = places.insert(pointer),
        _ => {}
    }
}

fn body(object: &RenderedObject, secrets: &SecretValues) -> String {
    let text = serde_yaml::to_string(&masked(object)).unwrap_or_default();
    shortened(secrets.hide(&text, false, ToOwned::to_owned), LONGEST_BODY)
}

/// Objects that replace others whose name differs only in its final digest.
fn renamed<'o>(
    gone: &[&'o RenderedObject],
    added: &[&'o RenderedObject],
) -> BTreeMap<ObjectId, &'o RenderedObject> {
    let key = |object: &RenderedObject| {
        let ObjectId { group, kind, namespace, name } = object.id.clone();
        Some((group, kind, namespace, stem(&name)?.to_owned()))
    };
    let of = |objects: &[&'o RenderedObject]| {
        let mut by_stem: BTreeMap<_, Vec<&'o RenderedObject>> = BTreeMap::new();
        for object in objects {
            if let Some(key) = key(object) {
                by_stem.entry(key).or_default().push(object);
            }
        }
        by_stem
    };
    let (old, new) = (of(gone), of(added));
    let pair = |(key, added): (_, Vec<&'o RenderedObject>)| match (
        added.as_slice(),
        old.get(&key).map(Vec::as_slice),
    ) {
        ([new], Some([old])) => Some((new.id.clone(), *old)),
        _ => None,
    };
    new.into_iter().filter_map(pair).collect()
}

/// A name without its final digest: hexadecimal digits, or the letters that Kubernetes and kustomize use for them.
pub(super) fn stem(name: &str) -> Option<&str> {
    const LETTERS: &str = "bcdfghkmnpqrstvwxz2456789";
    let (stem, suffix) = name.rsplit_once('-')?;
    let is_of = |letters: &dyn Fn(char) -> bool| suffix.chars().all(letters);
    let is_hex = (6..=64).contains(&suffix.len()) && is_of(&|it| matches!(it, '0'..='9' | 'a'..='f'));
    let is_safe = (8..=10).contains(&suffix.len()) && is_of(&|it| LETTERS.contains(it));
    let has_digit = suffix.chars().any(|it| it.is_ascii_digit());
    (!stem.is_empty() && has_digit && (is_hex || is_safe)).then_some(stem)
}

const POD_TEMPLATES: [&str; 2] =
    ["/spec/template/spec/containers", "/spec/jobTemplate/spec/template/spec/containers"];

/// The image tags of all containers, and of the first container of each workload.
fn tags<'o>(objects: impl Iterator<Item = &'o RenderedObject>) -> [BTreeSet<String>; 2] {
    let lists = objects.flat_map(|object| POD_TEMPLATES.iter().filter_map(|it| object.body.field(it)));
    let (mut all, mut first) = (BTreeSet::new(), BTreeSet::new());
    for list in lists {
        for (number, container) in list.as_array().into_iter().flatten().enumerate() {
            let image = container.get("image").and_then(Value::as_str);
            let Some(tag) = image.and_then(image_tag) else { continue };
            all.insert(tag.to_owned());
            if number == 0 {
                first.insert(tag.to_owned());
            }
        }
    }
    [all, first]
}

/// The sum of the replicas of all workloads that set them.
fn replicas<'o>(objects: impl Iterator<Item = &'o RenderedObject>) -> Option<i64> {
    let workloads = objects.filter(|object| object.makes_pods());
    workloads.filter_map(|object| object.body.field("/spec/replicas")?.as_i64()).reduce(i64::saturating_add)
}
