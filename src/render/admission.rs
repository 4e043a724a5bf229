//! What the policies of the head say of a change, before it is written to a cluster.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::Renders;
use super::verdicts::{Git, version_of};
use crate::fleet::Fleet;
use crate::model::{App, AppId, ClusterName, Denial, Kind, ObjectId, PolicyAction, Rendered, RenderedObject};
use crate::policy::{Chosen, PolicyTarget, Verdict};

static NO_LABELS: BTreeMap<String, String> = BTreeMap::new();

/// The policies of a revision, with what its renders say of namespaces and kinds.
#[derive(Debug)]
pub struct Admission {
    fleet: Arc<Fleet>,
    git: Git,
}

/// What policies see of an app on a cluster, beside one object.
#[derive(Debug)]
pub struct Surroundings {
    version: Option<String>,
    objects: Vec<Value>,
}

impl Admission {
    /// `None`: there are no policies.
    pub fn of(fleet: &Arc<Fleet>, renders: &Renders) -> Option<Arc<Self>> {
        let admission = || Arc::new(Self { fleet: Arc::clone(fleet), git: Git::of(renders) });
        (!fleet.policies.is_empty()).then(admission)
    }

    pub fn surroundings(&self, app: &App, rendered: &Rendered) -> Surroundings {
        let looks = self.fleet.policies.look_at_objects();
        let visible = rendered.objects.iter().filter(|object| looks && !object.holds_secrets());
        let objects = visible.map(|object| object.body.fields()).collect();
        Surroundings { version: version_of(app, &rendered.cluster), objects }
    }

    pub fn target<'a>(&'a self, rendered: &'a Rendered, around: &'a Surroundings) -> TargetAdmission<'a> {
        let Surroundings { version, objects } = around;
        self.chosen(&rendered.app, &rendered.cluster, version.as_deref(), objects)
    }

    fn chosen<'a>(
        &'a self,
        app: &'a AppId,
        name: &'a ClusterName,
        version: Option<&'a str>,
        objects: &'a [Value],
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
        TargetAdmission { git, cluster: name, chosen: chosen.filter(|chosen| !chosen.is_empty()) }
    }

    /// Whether an object of this kind is read before it is deleted.
    pub fn looks_at_deletes(&self, kind: &Kind) -> bool {
        self.fleet.policies.look_at_deletes(kind, self.git.plural(kind))
    }

    /// Of an object that Git no longer wants. Of an app that is gone its labels are not known.
    pub fn denies_delete(&self, app: &AppId, cluster: &ClusterName, live: &Value) -> Option<Denial> {
        let (id, kind) = (ObjectId::of(live)?, Kind::of(live)?);
        self.chosen(app, cluster, None, &[]).denies_delete(&id, &kind, live)
    }
}

/// The policies that select one app on one cluster.
#[derive(Debug)]
pub struct TargetAdmission<'a> {
    git: &'a Git,
    cluster: &'a ClusterName,
    /// `None`: none does.
    chosen: Option<Chosen<'a>>,
}

impl TargetAdmission<'_> {
    /// Whether what is said of an update depends on the object before it.
    pub fn looks_at_old(&self, kind: &Kind) -> bool {
        self.chosen.as_ref().is_some_and(|chosen| chosen.look_at_old(kind, self.git.plural(kind)))
    }

    /// `old`: what was there before; `None`: it is created.
    pub fn denies(&self, object: &RenderedObject, old: Option<&Value>) -> Option<Denial> {
        let what = (&object.kind, object.holds_secrets());
        self.judge(&object.id, what, (Some(&object.body.fields()), old))
    }

    pub fn denies_delete(&self, id: &ObjectId, kind: &Kind, old: &Value) -> Option<Denial> {
        self.judge(id, (kind, &*kind.kind == "Secret"), (None, Some(old)))
    }

    fn judge(
        &self,
        id: &ObjectId,
        what: (&Kind, bool),
        change: (Option<&Value>, Option<&Value>),
    ) -> Option<Denial> {
        let verdicts = self.git.judge(self.chosen.as_ref()?, (self.cluster, id), what, change).verdicts;
        let (denied, warned): (Vec<Verdict>, Vec<Verdict>) =
            verdicts.into_iter().partition(|it| it.action == PolicyAction::Deny);
        for Verdict { policy, message, .. } in warned {
            tracing::info!(cluster = %self.cluster, object = %id, policy = policy.name, message, "a policy warns");
        }
        let first = denied.into_iter().next()?;
        Some(Denial { policy: first.policy.name.as_str().into(), message: first.message.into() })
    }
}
