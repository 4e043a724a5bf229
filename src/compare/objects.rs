//! Compares the objects of one target before and after.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::comparison::{FieldChange, ObjectChangeAction, ObjectCounts, RemovalOutcome};
use super::fields;
use super::removal::AppRemoval;
use crate::model::{
    GroupVersionKind, ObjectId, RenderedObject, RenderedTarget, SecretValues, image_tag, masked_body,
    shortened,
};

/// Fields of one object that are listed.
const MOST_FIELDS: usize = 100;
/// Characters of the body of an object that is created.
const LONGEST_BODY: usize = 4000;

/// The change of one object on one target.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ObjectChangeDraft {
    pub object: ObjectId,
    pub kind: GroupVersionKind,
    pub action: ObjectChangeAction,
    pub was: Option<ObjectId>,
    pub fate: Option<RemovalOutcome>,
    pub fields: Vec<FieldChange>,
    pub more: usize,
    pub body: Option<String>,
}

/// The changes of one target.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct TargetChanges {
    pub objects: Vec<ObjectChangeDraft>,
    /// The tags of the images of its containers that only one side has.
    pub versions: (Option<String>, Option<String>),
    pub replicas: (Option<i64>, Option<i64>),
    /// The tags of the first containers of its workloads.
    pub runs: Vec<String>,
}

impl TargetChanges {
    pub fn counts(&self) -> ObjectCounts {
        let of = |actions: &[ObjectChangeAction]| {
            self.objects.iter().filter(|it| actions.contains(&it.action)).count()
        };
        ObjectCounts {
            created: of(&[ObjectChangeAction::Create]),
            changed: of(&[ObjectChangeAction::Change, ObjectChangeAction::Rename, ObjectChangeAction::Move]),
            deleted: of(&[ObjectChangeAction::Delete]),
        }
    }
}

pub(super) fn target_changes(
    before: Option<&RenderedTarget>,
    after: Option<&RenderedTarget>,
    removal: &AppRemoval,
) -> TargetChanges {
    let (old, new) = (by_id(before), by_id(after));
    let secrets = SecretValues::of(old.values().chain(new.values()).copied());
    let gone: Vec<&RenderedObject> = old.values().copied().filter(|it| !new.contains_key(&it.id)).collect();
    let added: Vec<&RenderedObject> = new.values().copied().filter(|it| !old.contains_key(&it.id)).collect();
    let renamed = find_renames(&gone, &added);
    let mut drafts = Vec::new();
    for object in gone.iter().filter(|it| !renamed.values().any(|was| was.id == it.id)) {
        let fate = removal.outcome(object);
        let action = if matches!(fate, RemovalOutcome::Kept(_)) {
            ObjectChangeAction::Orphan
        } else {
            ObjectChangeAction::Delete
        };
        drafts.push(ObjectChangeDraft { fate: Some(fate), ..new_draft(object, action) });
    }
    for object in new.values() {
        match (old.get(&object.id), renamed.get(&object.id)) {
            (Some(was), _) if was.hash == object.hash => {}
            (Some(was), _) => drafts.push(changed_draft(was, object, ObjectChangeAction::Change, &secrets)),
            (None, Some(was)) => {
                drafts.push(ObjectChangeDraft {
                    was: Some(was.id.clone()),
                    ..changed_draft(was, object, ObjectChangeAction::Rename, &secrets)
                });
            }
            (None, None) => {
                drafts.push(ObjectChangeDraft {
                    body: Some(body(object, &secrets)),
                    ..new_draft(object, ObjectChangeAction::Create)
                });
            }
        }
    }
    drafts.sort_by(|one, other| (one.action, &one.object).cmp(&(other.action, &other.object)));
    let ([was, _], [is, runs]) = (image_tags(old.values().copied()), image_tags(new.values().copied()));
    let only = |own: &BTreeSet<String>, other: &BTreeSet<String>| {
        let own: Vec<&str> = own.difference(other).map(String::as_str).collect();
        (!own.is_empty()).then(|| shortened(own.join(", "), 80))
    };
    TargetChanges {
        objects: drafts,
        versions: (only(&was, &is), only(&is, &was)),
        replicas: (replicas(old.values().copied()), replicas(new.values().copied())),
        runs: runs.into_iter().collect(),
    }
}

fn by_id(side: Option<&RenderedTarget>) -> BTreeMap<&ObjectId, &RenderedObject> {
    let objects = side.into_iter().flat_map(|rendered| rendered.objects.iter());
    objects.map(|object| (&object.id, object)).collect()
}

fn new_draft(object: &RenderedObject, action: ObjectChangeAction) -> ObjectChangeDraft {
    ObjectChangeDraft {
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

fn changed_draft(
    was: &RenderedObject,
    is: &RenderedObject,
    action: ObjectChangeAction,
    secrets: &SecretValues,
) -> ObjectChangeDraft {
    let (before, after) = masked_bodies(was, is);
    let changes = fields::field_differences(&before, &after);
    // A rename already reports the changed name.
    let told = changes.iter().filter(|it| {
        action != ObjectChangeAction::Rename || it.path != "metadata.name" && !is_ours(&it.path)
    });
    let told: Vec<_> = told.collect();
    let listed = told.iter().take(MOST_FIELDS);
    ObjectChangeDraft {
        more: told.len().saturating_sub(MOST_FIELDS),
        fields: listed.map(|change| fields::field_change(change, secrets)).collect(),
        ..new_draft(is, action)
    }
}

/// The annotation that repeats the name of an object.
fn is_ours(path: &str) -> bool {
    path == "metadata.annotations.tutti.dev/origin"
}

/// Both bodies, with the secret values of either masked in both: a newly encrypted value was in plain text before.
fn masked_bodies(was: &RenderedObject, is: &RenderedObject) -> (Value, Value) {
    let (mut before, mut after) = (masked_body(was), masked_body(is));
    if was.holds_secrets() != is.holds_secrets() || was.encrypted_values != is.encrypted_values {
        let mut places = BTreeSet::new();
        masked_pointers(&was.body.fields(), &before, String::new(), &mut places);
        masked_pointers(&is.body.fields(), &after, String::new(), &mut places);
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
fn masked_pointers(raw: &Value, shown: &Value, pointer: String, places: &mut BTreeSet<String>) {
    match (raw, shown) {
        (Value::Object(raw), Value::Object(shown)) => {
            for (key, raw) in raw {
                let key_in_pointer = key.replace('~', "~0").replace('/', "~1");
                let Some(shown) = shown.get(key) else { continue };
                masked_pointers(raw, shown, format!("{pointer}/{key_in_pointer}"), places);
            }
        }
        (Value::Array(raw), Value::Array(shown)) => {
            for (index, (raw, shown)) in raw.iter().zip(shown).enumerate() {
                masked_pointers(raw, shown, format!("{pointer}/{index}"), places);
            }
        }
        (raw, shown) if raw != shown => _ = places.insert(pointer),
        _ => {}
    }
}

fn body(object: &RenderedObject, secrets: &SecretValues) -> String {
    let text = serde_yaml::to_string(&masked_body(object)).unwrap_or_default();
    shortened(secrets.hide(&text, false, ToOwned::to_owned), LONGEST_BODY)
}

/// Objects that replace others whose name differs only in its final digest.
fn find_renames<'o>(
    gone: &[&'o RenderedObject],
    added: &[&'o RenderedObject],
) -> BTreeMap<ObjectId, &'o RenderedObject> {
    let key = |object: &RenderedObject| {
        let ObjectId { group, kind, namespace, name } = object.id.clone();
        Some((group, kind, namespace, name_without_digest(&name)?.to_owned()))
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
pub(super) fn name_without_digest(name: &str) -> Option<&str> {
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
fn image_tags<'o>(objects: impl Iterator<Item = &'o RenderedObject>) -> [BTreeSet<String>; 2] {
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
