//! Clusters whose change is the same, put together.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::comparison::{FieldChange, FieldGroup, ObjectChange, VersionChange};
use super::objects::{Draft, Drafts};
use crate::model::ClusterName;

/// The changes of an app, by the clusters that have them.
pub(super) type OnClusters = Vec<(Vec<ClusterName>, Rc<Drafts>)>;

pub(super) fn objects(changes: &OnClusters) -> Vec<ObjectChange> {
    let mut folded: Vec<(&Draft, Vec<ClusterName>, Vec<(&FieldChange, Vec<ClusterName>)>)> = Vec::new();
    for (clusters, drafts) in changes {
        for draft in &drafts.objects {
            let same = |known: &Draft| {
                (known.action, &known.object, &known.kind) == (draft.action, &draft.object, &draft.kind)
                    && (&known.was, &known.fate) == (&draft.was, &draft.fate)
            };
            let index = match folded.iter().position(|(known, ..)| same(known)) {
                Some(index) => index,
                None => {
                    folded.push((draft, Vec::new(), Vec::new()));
                    folded.len() - 1
                }
            };
            let Some((_, on, fields)) = folded.get_mut(index) else { continue };
            on.extend(clusters.iter().cloned());
            for field in &draft.fields {
                match fields.iter_mut().find(|(known, _)| *known == field) {
                    Some((_, on)) => on.extend(clusters.iter().cloned()),
                    None => fields.push((field, clusters.clone())),
                }
            }
        }
    }
    let mut objects: Vec<ObjectChange> =
        folded.into_iter().map(|(draft, on, fields)| object(draft, on, fields)).collect();
    objects.sort_by(|one, other| {
        (one.action, &one.object, &one.clusters).cmp(&(other.action, &other.object, &other.clusters))
    });
    objects
}

fn object(
    draft: &Draft,
    mut clusters: Vec<ClusterName>,
    fields: Vec<(&FieldChange, Vec<ClusterName>)>,
) -> ObjectChange {
    clusters.sort();
    let mut groups: Vec<FieldGroup> = Vec::new();
    for (field, mut on) in fields {
        on.sort();
        match groups.iter_mut().find(|group| group.clusters == on) {
            Some(group) => group.fields.push(field.clone()),
            None => groups.push(FieldGroup { clusters: on, fields: vec![field.clone()] }),
        }
    }
    groups.sort_by(|one, other| {
        other.clusters.len().cmp(&one.clusters.len()).then_with(|| one.clusters.cmp(&other.clusters))
    });
    ObjectChange {
        object: draft.object.clone(),
        kind: draft.kind.clone(),
        action: draft.action,
        was: draft.was.clone(),
        from: None,
        fate: draft.fate.clone(),
        clusters,
        fields: groups,
        more: draft.more,
        body: draft.body.clone(),
    }
}

pub(super) fn versions(changes: &OnClusters) -> Vec<VersionChange> {
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
