//! Groups clusters with equal changes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use super::comparison::{
    FieldChange, FieldGroup, ObjectChange, ObjectChangeAction, RemovalOutcome, VersionChange,
};
use super::objects::{ObjectChangeDraft, TargetChanges};
use crate::model::{ClusterName, GroupVersionKind, ObjectId};

/// The changes of an app, by their clusters.
pub(super) type ChangesByClusters = Vec<(Vec<ClusterName>, Rc<TargetChanges>)>;

/// The parts of an object's change that are equal on all clusters of an [`ObjectChange`].
type ObjectGroupKey<'d> = (
    ObjectChangeAction,
    &'d ObjectId,
    &'d GroupVersionKind,
    Option<&'d ObjectId>,
    Option<&'d RemovalOutcome>,
);

/// The clusters of an object, and those of each of its fields.
struct ObjectGroup<'d> {
    first: &'d ObjectChangeDraft,
    clusters: Vec<ClusterName>,
    more: usize,
    fields: Vec<(&'d FieldChange, Vec<ClusterName>)>,
    places: HashMap<&'d FieldChange, usize>,
}

pub(super) fn group_objects(changes: &ChangesByClusters) -> Vec<ObjectChange> {
    let mut folded: HashMap<ObjectGroupKey<'_>, ObjectGroup<'_>> = HashMap::new();
    for (clusters, drafts) in changes {
        for draft in &drafts.objects {
            let key = (draft.action, &draft.object, &draft.kind, draft.was.as_ref(), draft.fate.as_ref());
            let one = folded.entry(key).or_insert_with(|| ObjectGroup {
                first: draft,
                clusters: Vec::new(),
                more: 0,
                fields: Vec::new(),
                places: HashMap::new(),
            });
            one.clusters.extend(clusters.iter().cloned());
            one.more = one.more.max(draft.more);
            for field in &draft.fields {
                let place = *one.places.entry(field).or_insert_with(|| {
                    one.fields.push((field, Vec::new()));
                    one.fields.len() - 1
                });
                if let Some((_, on)) = one.fields.get_mut(place) {
                    on.extend(clusters.iter().cloned());
                }
            }
        }
    }
    let mut objects: Vec<ObjectChange> = folded.into_values().map(object_change).collect();
    objects.sort_by(|one, other| {
        (one.action, &one.object, &one.clusters).cmp(&(other.action, &other.object, &other.clusters))
    });
    objects
}

fn object_change(folded: ObjectGroup<'_>) -> ObjectChange {
    let ObjectGroup { first, mut clusters, more, fields, .. } = folded;
    clusters.sort();
    let mut groups: BTreeMap<Vec<ClusterName>, Vec<FieldChange>> = BTreeMap::new();
    for (field, mut on) in fields {
        on.sort();
        groups.entry(on).or_default().push(field.clone());
    }
    let groups = groups.into_iter().map(|(clusters, fields)| FieldGroup { clusters, fields });
    let mut groups: Vec<FieldGroup> = groups.collect();
    // Stable: those of as many clusters by name.
    groups.sort_by_key(|group| Reverse(group.clusters.len()));
    ObjectChange {
        object: first.object.clone(),
        kind: first.kind.clone(),
        action: first.action,
        was: first.was.clone(),
        from: None,
        fate: first.fate.clone(),
        clusters,
        fields: groups,
        more,
        body: first.body.clone(),
    }
}

pub(super) fn group_versions(changes: &ChangesByClusters) -> Vec<VersionChange> {
    let mut folded: BTreeMap<&(Option<String>, Option<String>), Vec<ClusterName>> = BTreeMap::new();
    for (clusters, drafts) in changes.iter().filter(|(_, drafts)| drafts.versions != (None, None)) {
        folded.entry(&drafts.versions).or_default().extend(clusters.iter().cloned());
    }
    let mut versions: Vec<VersionChange> = folded
        .into_iter()
        .map(|((before, after), mut clusters)| {
            clusters.sort();
            VersionChange { before: before.clone(), after: after.clone(), clusters }
        })
        .collect();
    versions.sort_by(|one, other| {
        other.clusters.len().cmp(&one.clusters.len()).then_with(|| one.clusters.cmp(&other.clusters))
    });
    versions
}
