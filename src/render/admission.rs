//! Evaluates the policies of the head for one change, before `reconcile` writes it to a cluster.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::Renders;
use super::git::Git;
use super::verdicts::version_of;
use crate::fleet::Fleet;
use crate::model::{App, AppId, ClusterName, Denial, Kind, ObjectId, PolicyAction, Rendered, RenderedObject};
use crate::policy::{Chosen, PolicyTarget, Verdict};

static NO_LABELS: BTreeMap<String, String> = BTreeMap::new();

/// The policies of a revision, and the namespaces and kinds that its renders define.
#[derive(Debug)]
pub struct Admission {
    fleet: Arc<Fleet>,
    git: Git,
}

/// What a policy can read about a target besides the changed object.
#[derive(Debug)]
pub struct Surroundings {
    version: Option<String>,
    objects: Vec<Value>,
    plurals: Plurals,
}

/// Plural names of custom kinds, as the cluster serves them.
type Plurals = BTreeMap<Kind, String>;

impl Admission {
    /// `None`: there are no policies.
    pub fn of(fleet: &Arc<Fleet>, renders: &Renders) -> Option<Arc<Self>> {
        let admission = || Arc::new(Self { fleet: Arc::clone(fleet), git: Git::of(fleet, renders) });
        (!fleet.policies.is_empty()).then(admission)
    }

    /// Compares the policies alone; facts about namespaces and kinds may differ.
    pub fn has_policies_of(&self, other: &Self) -> bool {
        self.fleet.policies == other.fleet.policies
    }

    /// `plural` returns the plural name of a kind that the cluster serves.
    pub fn surroundings<'p>(
        &self,
        app: &App,
        rendered: &Rendered,
        plural: impl Fn(&Kind) -> Option<&'p str>,
    ) -> Surroundings {
        let looks = self.fleet.policies.look_at_objects();
        let visible = rendered.objects.iter().filter(|object| looks && !object.holds_secrets());
        let objects = visible.map(|object| object.body.fields()).collect();
        let custom = rendered.objects.iter().map(|object| &object.kind).filter(|kind| !kind.is_built_in());
        let plurals = custom.filter_map(|kind| Some((kind.clone(), plural(kind)?.to_owned()))).collect();
        Surroundings { version: version_of(app, &rendered.cluster), objects, plurals }
    }

    pub fn target<'a>(&'a self, rendered: &'a Rendered, around: &'a Surroundings) -> TargetAdmission<'a> {
        let Surroundings { version, objects, plurals } = around;
        self.chosen(&rendered.app, &rendered.cluster, version.as_deref(), objects, plurals)
    }

    fn chosen<'a>(
        &'a self,
        app: &'a AppId,
        name: &'a ClusterName,
        version: Option<&'a str>,
        objects: &'a [Value],
        plurals: &'a Plurals,
    ) -> TargetAdmission<'a> {
        let Self { fleet, git } = self;
        let labels = fleet.apps.get(app).map(|app| &app.labels);
        let cluster = fleet.clusters.get(name);
        let chosen = cluster.map(|cluster| {
            fleet.policies.chosen(&PolicyTarget {
                app,
                app_labels: labels.unwrap_or(&NO_LABELS),
                version,
                cluster: cluster.facts(fleet.ring_of(name)),
                objects,
            })
        });
        TargetAdmission { git, cluster: name, plurals, chosen: chosen.filter(|chosen| !chosen.is_empty()) }
    }

    /// If false, a delete of this kind needs no read of the live object.
    pub fn looks_at_deletes(&self, kind: &Kind) -> bool {
        self.fleet.policies.look_at_deletes(kind, &self.git.plurals(kind, None))
    }

    /// Evaluates the delete of an object that is no longer in Git. If its app is gone too, the labels of the app are unknown.
    /// `plural` is the name that the cluster serves.
    pub fn denies_delete(
        &self,
        app: &AppId,
        cluster: &ClusterName,
        live: &Value,
        plural: &str,
    ) -> Option<Denial> {
        let (id, kind) = (ObjectId::of(live)?, Kind::of(live)?);
        let plurals = BTreeMap::from([(kind.clone(), plural.to_owned())]);
        self.chosen(app, cluster, None, &[], &plurals).denies_delete(&id, &kind, live)
    }
}

/// The policies that select one app on one cluster.
#[derive(Debug)]
pub struct TargetAdmission<'a> {
    git: &'a Git,
    cluster: &'a ClusterName,
    plurals: &'a Plurals,
    /// `None`: no policy selects the target.
    chosen: Option<Chosen<'a>>,
}

impl TargetAdmission<'_> {
    fn served(&self, kind: &Kind) -> Option<&str> {
        self.plurals.get(kind).map(String::as_str)
    }

    /// If false, an update of this kind needs no read of the live object.
    pub fn looks_at_old(&self, kind: &Kind) -> bool {
        let plurals = || self.git.plurals(kind, self.served(kind));
        self.chosen.as_ref().is_some_and(|chosen| chosen.look_at_old(kind, &plurals()))
    }

    /// `old`: the object before the change, and whether it may hold secrets. `None`: the object is created.
    pub fn denies(&self, object: &RenderedObject, old: Option<(&Value, bool)>) -> Option<Denial> {
        let what = (&object.kind, object.holds_secrets() || old.is_some_and(|(_, is_secret)| is_secret));
        self.judge(&object.id, what, (Some(&object.body.fields()), old.map(|(old, _)| old)))
    }

    /// A live object does not show whether its values were encrypted in Git, so messages hide its values.
    pub fn denies_delete(&self, id: &ObjectId, kind: &Kind, old: &Value) -> Option<Denial> {
        self.judge(id, (kind, true), (None, Some(old)))
    }

    fn judge(
        &self,
        id: &ObjectId,
        what: (&Kind, bool),
        change: (Option<&Value>, Option<&Value>),
    ) -> Option<Denial> {
        let verdicts = self
            .git
            .judge(self.chosen.as_ref()?, (self.cluster, id), what, change, self.served(what.0))
            .verdicts;
        let (denied, warned): (Vec<Verdict>, Vec<Verdict>) =
            verdicts.into_iter().partition(|it| it.action == PolicyAction::Deny);
        for Verdict { policy, message, .. } in warned {
            tracing::info!(cluster = %self.cluster, object = %id, policy = policy.name, message, "a policy warns");
        }
        let first = denied.into_iter().next()?;
        Some(Denial { policy: first.policy.name.as_str().into(), message: first.message.into() })
    }
}
