//! The data of a comparison.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;

use crate::model::{AppId, ClusterName, Diagnostic, GroupVersionKind, ObjectId, Revision};

/// The changes of a head against a base.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Comparison {
    pub base: Revision,
    pub head: Revision,
    /// The clusters of both sides: in the order of the rings, then by name.
    pub clusters: Vec<ClusterColumn>,
    /// The apps with changes, by name.
    pub apps: Vec<AppChange>,
    /// Errors of the head that the base does not have.
    pub errors: Vec<Diagnostic>,
    /// Errors that both have.
    pub known_errors: Vec<Diagnostic>,
    /// Warnings of the head that the base does not have.
    pub warnings: Vec<Diagnostic>,
    pub totals: ComparisonTotals,
    /// The number of renders for it.
    pub renders: usize,
    /// Targets that were not rendered in time or whose chart is being fetched: the comparison must be repeated.
    pub awaited: usize,
}

/// Of the head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ComparisonTotals {
    pub apps: usize,
    pub clusters: usize,
    /// Warnings, those that the base has too among them.
    pub warnings: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterColumn {
    pub name: ClusterName,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ring: Option<String>,
    pub state: ClusterPresence,
}

/// The sides that have a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ClusterPresence {
    Same,
    New,
    /// Only the base has it; its objects stay.
    Gone,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AppChange {
    pub app: AppId,
    pub state: AppPresence,
    /// Its changes are not applied: it is paused, or unmanaged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<&'static str>,
    /// The numbers of changed objects by cluster.
    pub on: BTreeMap<ClusterName, ObjectCounts>,
    /// Clusters with the app and without changes.
    pub unchanged: Vec<ClusterName>,
    /// Clusters where the head does not render it.
    pub broken: Vec<ClusterName>,
    /// Clusters where only the base does not render it: the changes are unknown.
    pub mended: Vec<ClusterName>,
    /// Clusters that lose the app and keep its objects.
    pub remaining: Vec<ClusterName>,
    pub versions: Vec<VersionChange>,
    /// The tags of its images where objects change, for the VERSION column.
    #[serde(skip)]
    pub runs: BTreeMap<ClusterName, Vec<String>>,
    pub placement: Vec<PlacementChange>,
    pub objects: Vec<ObjectChange>,
    /// The waves of the changed clusters; empty: all at once.
    pub waves: Vec<WaveStep>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum AppPresence {
    New,
    Removed,
    Changed,
}

/// Objects of an app on one cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectCounts {
    pub created: usize,
    pub changed: usize,
    pub deleted: usize,
}

impl ObjectCounts {
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    pub fn add(&mut self, other: &Self) {
        self.created += other.created;
        self.changed += other.changed;
        self.deleted += other.deleted;
    }
}

/// `+1 ~2 -3`, without what is zero.
impl fmt::Display for ObjectCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [('+', self.created), ('~', self.changed), ('-', self.deleted)];
        let parts = parts.iter().filter(|(_, count)| *count > 0);
        let parts: Vec<String> = parts.map(|(sign, count)| format!("{sign}{count}")).collect();
        f.write_str(&parts.join(" "))
    }
}

/// The tags of its images.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VersionChange {
    pub before: Option<String>,
    pub after: Option<String>,
    pub clusters: Vec<ClusterName>,
}

/// The replicas of an app on a cluster before and after, with the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlacementChange {
    pub cluster: ClusterName,
    /// `None`: it is not placed there, or has no count.
    pub before: Option<i64>,
    pub after: Option<i64>,
    pub kind: PlacementTransition,
    pub why: String,
}

/// Whether an app is on a cluster before and after.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum PlacementTransition {
    Comes,
    Stays,
    Goes,
}

/// One object on all clusters with the same change.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectChange {
    pub object: ObjectId,
    pub kind: GroupVersionKind,
    pub action: ObjectChangeAction,
    /// The one that it replaces, by another name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub was: Option<ObjectId>,
    /// The app that had it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<AppId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fate: Option<RemovalOutcome>,
    pub clusters: Vec<ClusterName>,
    /// Grouped by the clusters with equal changes, the largest group first.
    pub fields: Vec<FieldGroup>,
    /// Fields that are not listed.
    #[serde(skip_serializing_if = "is_zero")]
    pub more: usize,
    /// Of one that is created: as YAML, as it is on the first of the clusters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ObjectChangeAction {
    Delete,
    Create,
    /// Its name ends in the digest of its content: the new one takes the place of the old one.
    Rename,
    /// Another app had it.
    Move,
    Change,
    /// No longer rendered, and it stays.
    Orphan,
}

/// The outcome for an object that is no longer rendered, as far as Git decides it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum RemovalOutcome {
    Deleted,
    /// Not before somebody approves; why.
    WaitsForApproval(String),
    /// It stays; why.
    Kept(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FieldGroup {
    pub clusters: Vec<ClusterName>,
    pub fields: Vec<FieldChange>,
}

/// One field. Secret values are `*** ` and some digits of a digest.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FieldChange {
    /// `spec.template.spec.containers[web].image`.
    pub path: String,
    /// The same with list items by index, for the trace.
    #[serde(skip)]
    pub place: String,
    /// `None`: it was not there.
    pub before: Option<String>,
    /// `None`: it goes.
    pub after: Option<String>,
    /// Of a text of several lines, instead of both: the lines that differ, with some around them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<String>,
    /// The changed line that it is made from, where it was traced: `templates/cluster/gz/values.yaml:9`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set_by: Option<String>,
}

/// One wave of an app with the clusters that change in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WaveStep {
    pub name: String,
    pub clusters: Vec<ClusterName>,
    /// Somebody confirms before the next one.
    pub confirm: bool,
    /// In seconds, before the next one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub soak: Option<u64>,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl Comparison {
    /// Of all apps and clusters.
    pub fn counts(&self) -> ObjectCounts {
        let mut sum = ObjectCounts::default();
        self.apps.iter().flat_map(|app| app.on.values()).for_each(|counts| sum.add(counts));
        sum
    }

    /// Objects that are deleted, or wait for that: each with its app.
    pub fn deletes(&self) -> impl Iterator<Item = (&AppId, &ObjectChange)> {
        self.apps.iter().flat_map(|app| {
            let deletes = app.objects.iter().filter(|object| object.action == ObjectChangeAction::Delete);
            deletes.map(|object| (&app.app, object))
        })
    }

    /// The clusters on which any object changes.
    pub fn changed_clusters(&self) -> Vec<&ClusterName> {
        let changed: BTreeSet<&ClusterName> = self.apps.iter().flat_map(|app| app.on.keys()).collect();
        self.clusters
            .iter()
            .filter(|column| changed.contains(&column.name))
            .map(|column| &column.name)
            .collect()
    }

    pub fn has_changes(&self) -> bool {
        self.apps
            .iter()
            .any(|app| !app.objects.is_empty() || !app.mended.is_empty() || !app.remaining.is_empty())
    }
}
