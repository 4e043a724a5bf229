//! Evaluates the policies of the head for one change, before `reconcile` writes it to a cluster.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::Renders;
use super::policy_facts::PolicyFacts;
use super::policy_verdicts::single_version;
use crate::fleet::Fleet;
use crate::model::{
    App, AppId, ClusterName, GroupVersionKind, ObjectId, PolicyAction, PolicyDenial, RenderedObject,
    RenderedTarget,
};
use crate::policy::{PolicyTarget, PolicyVerdict, SelectedPolicies};

static NO_LABELS: BTreeMap<String, String> = BTreeMap::new();

/// The policies of a revision, and the namespaces and kinds that its renders define.
#[derive(Debug)]
pub struct Admission {
    fleet: Arc<Fleet>,
    facts: PolicyFacts,
}

/// What a policy can read about a target besides the changed object.
#[derive(Debug)]
pub struct AdmissionContext {
    version: Option<String>,
    objects: Vec<Value>,
    plurals: PluralsByKind,
}

/// Plural names of custom kinds, as the cluster serves them.
type PluralsByKind = BTreeMap<GroupVersionKind, String>;

impl Admission {
    /// `None`: there are no policies.
    pub fn of(fleet: &Arc<Fleet>, renders: &Renders) -> Option<Arc<Self>> {
        let admission =
            || Arc::new(Self { fleet: Arc::clone(fleet), facts: PolicyFacts::of(fleet, renders) });
        (!fleet.policies.is_empty()).then(admission)
    }

    /// Compares the policies alone; facts about namespaces and kinds may differ.
    pub fn has_same_policies(&self, other: &Self) -> bool {
        self.fleet.policies == other.fleet.policies
    }

    /// `plural` returns the plural name of a kind that the cluster serves.
    pub fn admission_context<'p>(
        &self,
        app: &App,
        rendered: &RenderedTarget,
        plural: impl Fn(&GroupVersionKind) -> Option<&'p str>,
    ) -> AdmissionContext {
        let looks = self.fleet.policies.use_app_objects();
        let visible = rendered.objects.iter().filter(|object| looks && !object.holds_secrets());
        let objects = visible.map(|object| object.body.fields()).collect();
        let custom = rendered.objects.iter().map(|object| &object.kind).filter(|kind| !kind.is_built_in());
        let plurals = custom.filter_map(|kind| Some((kind.clone(), plural(kind)?.to_owned()))).collect();
        AdmissionContext { version: single_version(app, &rendered.cluster), objects, plurals }
    }

    pub fn target<'a>(
        &'a self,
        rendered: &'a RenderedTarget,
        around: &'a AdmissionContext,
    ) -> TargetAdmission<'a> {
        let AdmissionContext { version, objects, plurals } = around;
        self.select_policies(&rendered.app, &rendered.cluster, version.as_deref(), objects, plurals)
    }

    fn select_policies<'a>(
        &'a self,
        app: &'a AppId,
        name: &'a ClusterName,
        version: Option<&'a str>,
        objects: &'a [Value],
        plurals: &'a PluralsByKind,
    ) -> TargetAdmission<'a> {
        let Self { fleet, facts: git } = self;
        let labels = fleet.apps.get(app).map(|app| &app.labels);
        let cluster = fleet.clusters.get(name);
        let chosen = cluster.map(|cluster| {
            fleet.policies.select(&PolicyTarget {
                app,
                app_labels: labels.unwrap_or(&NO_LABELS),
                version,
                cluster: cluster.facts(fleet.ring_of(name)),
                objects,
            })
        });
        TargetAdmission {
            facts: git,
            cluster: name,
            plurals,
            policies: chosen.filter(|chosen| !chosen.is_empty()),
        }
    }

    /// If false, a delete of this kind needs no read of the live object.
    pub fn may_deny_deletes(&self, kind: &GroupVersionKind) -> bool {
        self.fleet.policies.may_deny_deletes(kind, &self.facts.plurals(kind, None))
    }

    /// Evaluates the delete of an object that is no longer in Git. If its app is gone too, the labels of the app are unknown.
    /// `plural` is the name that the cluster serves.
    pub fn denies_delete(
        &self,
        app: &AppId,
        cluster: &ClusterName,
        live: &Value,
        plural: &str,
    ) -> Option<PolicyDenial> {
        let (id, kind) = (ObjectId::of(live)?, GroupVersionKind::of(live)?);
        let plurals = BTreeMap::from([(kind.clone(), plural.to_owned())]);
        self.select_policies(app, cluster, None, &[], &plurals).denies_delete(&id, &kind, live)
    }
}

/// The policies that select one app on one cluster.
#[derive(Debug)]
pub struct TargetAdmission<'a> {
    facts: &'a PolicyFacts,
    cluster: &'a ClusterName,
    plurals: &'a PluralsByKind,
    /// `None`: no policy selects the target.
    policies: Option<SelectedPolicies<'a>>,
}

impl TargetAdmission<'_> {
    fn served_plural(&self, kind: &GroupVersionKind) -> Option<&str> {
        self.plurals.get(kind).map(String::as_str)
    }

    /// If false, an update of this kind needs no read of the live object.
    pub fn needs_old_object(&self, kind: &GroupVersionKind) -> bool {
        let plurals = || self.facts.plurals(kind, self.served_plural(kind));
        self.policies.as_ref().is_some_and(|chosen| chosen.need_old_object(kind, &plurals()))
    }

    /// `old`: the object before the change, and whether it may hold secrets. `None`: the object is created.
    pub fn denies(&self, object: &RenderedObject, old: Option<(&Value, bool)>) -> Option<PolicyDenial> {
        let what = (&object.kind, object.holds_secrets() || old.is_some_and(|(_, is_secret)| is_secret));
        self.evaluate(&object.id, what, (Some(&object.body.fields()), old.map(|(old, _)| old)))
    }

    /// A live object does not show whether its values were encrypted in Git, so messages hide its values.
    pub fn denies_delete(&self, id: &ObjectId, kind: &GroupVersionKind, old: &Value) -> Option<PolicyDenial> {
        self.evaluate(id, (kind, true), (None, Some(old)))
    }

    fn evaluate(
        &self,
        id: &ObjectId,
        what: (&GroupVersionKind, bool),
        change: (Option<&Value>, Option<&Value>),
    ) -> Option<PolicyDenial> {
        let verdicts = self
            .facts
            .evaluate(self.policies.as_ref()?, (self.cluster, id), what, change, self.served_plural(what.0))
            .verdicts;
        let (denied, warned): (Vec<PolicyVerdict>, Vec<PolicyVerdict>) =
            verdicts.into_iter().partition(|it| it.action == PolicyAction::Deny);
        for PolicyVerdict { policy, message, .. } in warned {
            tracing::info!(cluster = %self.cluster, object = %id, policy = policy.name, message, "a policy warns");
        }
        let first = denied.into_iter().next()?;
        Some(PolicyDenial { policy: first.policy.name.as_str().into(), message: first.message.into() })
    }
}
