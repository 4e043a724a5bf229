//! Collects namespaces and plural names from the objects of all apps, for policies.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::Renders;
use crate::fleet::Fleet;
use crate::model::{ClusterName, DiagnosticScope, GroupVersionKind, ObjectId, usual_plural};
use crate::policy::{PolicyEvaluation, PolicyObjectChange, SelectedPolicies, default_namespace_labels};

/// The object after and before a change.
pub(super) type ObjectSides<'a> = (Option<&'a Value>, Option<&'a Value>);

#[derive(Debug)]
pub(super) struct PolicyFacts {
    namespaces: BTreeMap<(ClusterName, String), BTreeMap<String, String>>,
    /// Clusters where every app is rendered. On others a failed app may define a namespace.
    complete_clusters: BTreeSet<ClusterName>,
    /// Unusual plural names of custom kinds by group and kind, as clusters and definitions give them.
    plurals: BTreeMap<(String, String), BTreeSet<String>>,
}

impl PolicyFacts {
    pub(super) fn of(fleet: &Fleet, renders: &Renders) -> Self {
        let mut namespaces = BTreeMap::new();
        let mut plurals: BTreeMap<_, BTreeSet<String>> = BTreeMap::new();
        for rendered in renders.results().flatten() {
            for object in rendered.objects.iter() {
                if (&*object.id.group, &*object.id.kind) == ("", "Namespace") {
                    let labels = object.body.field("/metadata/labels");
                    let labels = labels.as_ref().and_then(Value::as_object).into_iter().flatten();
                    let mut all = default_namespace_labels(&object.id.name);
                    all.extend(
                        labels.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))),
                    );
                    namespaces.insert((rendered.cluster.clone(), object.id.name.to_string()), all);
                }
                if let Some((group, kind)) = object.defines()
                    && !GroupVersionKind::new(group, "", kind).is_built_in()
                    && let Some(Value::String(plural)) = object.body.field("/spec/names/plural")
                {
                    plurals.entry((group.to_owned(), kind.to_owned())).or_default().insert(plural);
                }
            }
        }
        for (name, facts) in renders.custom_kinds() {
            if let (Some(plural), Some((api_version, kind))) = (&facts.plural, name.rsplit_once('/')) {
                let GroupVersionKind { group, kind, .. } =
                    GroupVersionKind::from_api_version(api_version, kind);
                plurals.entry((group.to_string(), kind.to_string())).or_default().insert(plural.to_string());
            }
        }
        Self { namespaces, complete_clusters: complete_clusters(fleet, renders), plurals }
    }

    /// The plural names that a rule may use for a kind. `served`: the name on the cluster; without it, every known name and
    /// the usual one.
    pub(super) fn plurals(&self, kind: &GroupVersionKind, served: Option<&str>) -> Vec<String> {
        if let Some(served) = served {
            return vec![served.to_owned()];
        }
        let said = self.plurals.get(&(kind.group.to_string(), kind.kind.to_string()));
        let usual = usual_plural(&kind.kind);
        let said = said.into_iter().flatten().filter(|said| **said != usual).cloned();
        said.chain([usual.clone()]).collect()
    }

    /// Evaluates one change. The flag beside the kind hides values in messages.
    pub(super) fn evaluate(
        &self,
        chosen: &SelectedPolicies<'_>,
        (cluster, id): (&ClusterName, &ObjectId),
        (kind, hides_values): (&GroupVersionKind, bool),
        (object, old_object): ObjectSides<'_>,
        served: Option<&str>,
    ) -> PolicyEvaluation {
        let labels = id.namespace.as_deref().and_then(|namespace| {
            let known = self.namespaces.get(&(cluster.clone(), namespace.to_owned())).cloned();
            known.or_else(|| {
                self.complete_clusters.contains(cluster).then(|| default_namespace_labels(namespace))
            })
        });
        let change = PolicyObjectChange {
            kind,
            plurals: &self.plurals(kind, served),
            object,
            old_object,
            namespace_labels: labels.as_ref(),
            hides_values,
        };
        chosen.evaluate(&change)
    }
}

/// Clusters whose objects are all known.
fn complete_clusters(fleet: &Fleet, renders: &Renders) -> BTreeSet<ClusterName> {
    // An unreadable file may be an app with namespaces.
    let is_lost = fleet.broken_apps.values().any(|broken| broken.app.is_none()) || fleet.may_lack_clusters();
    if is_lost || !renders.is_complete() {
        return BTreeSet::new();
    }
    let mut whole: BTreeSet<ClusterName> = fleet.clusters.keys().cloned().collect();
    for (target, (_, result)) in renders.iter() {
        if result.is_err() {
            whole.remove(&target.cluster);
        }
    }
    for app in fleet.broken_apps.values().filter_map(|broken| broken.app.as_ref()) {
        for cluster in fleet.clusters_of(app) {
            whole.remove(&cluster);
        }
    }
    for error in fleet.diagnostics.iter().filter(|it| it.is_error()) {
        if let DiagnosticScope::Target(_, cluster) = &error.scope {
            whole.remove(cluster);
        }
    }
    whole
}
