//! The plan of one app on one cluster.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use serde_json::json;

use super::prune::{Decided, PruneDecision};
use super::reason::with_words;
use super::{Action, Drift, Phase, Reason, SentReplicas, Turn};
use crate::model::{
    AppId, ClusterName, Digest, FieldPath, ForeignChanges, Hook, Ignored, InstallMark, Kind, Location,
    ObjectId, ObjectMark, Revision, SyncWave, Was,
};

/// What happens to one object, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    pub object: ObjectId,
    /// The podSet that it belongs to; empty where the app is one unit.
    #[serde(skip_serializing_if = "str::is_empty", serialize_with = "as_text")]
    pub unit: Arc<str>,
    pub kind: Kind,
    pub phase: Phase,
    /// When a chart calls the object a hook.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hook: Option<Hook>,
    #[serde(skip_serializing_if = "SyncWave::is_default")]
    pub wave: SyncWave,
    pub action: Action,
    #[serde(serialize_with = "with_words")]
    pub reason: Reason,
    /// Of the live object, when there is one of ours. A precondition of its delete.
    pub uid: Option<String>,
    /// As `uid`, or as `seen`.
    pub resource_version: Option<String>,
    /// Uid of what is there, also where it lost our label: no other object of that name is meant.
    #[serde(skip)]
    pub seen: Option<Arc<str>>,
    /// Nothing is known to be at work on it, so that it most likely still is what was seen.
    #[serde(skip)]
    pub is_at_rest: bool,
    /// The commit that the live object was applied from last, when there is one of ours.
    pub applied: Option<Revision>,
    /// Of the live object, where they are watched.
    #[serde(skip)]
    pub values: Option<NonZeroU64>,
    /// For an apply.
    #[serde(skip)]
    pub install: Option<InstallMark>,
    /// For an apply of an app in waves.
    #[serde(skip)]
    pub rollout: Option<ObjectMark>,
    /// For an apply.
    #[serde(skip)]
    pub replicas: SentReplicas,
    /// The template or file that it came from; `None` when it is no longer rendered.
    pub source: Option<Location>,
    /// Git says that fields which others have are taken from them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub force: bool,
    /// Git says that it is deleted and created anew when it cannot be changed otherwise.
    #[serde(skip)]
    pub may_replace: bool,
    #[serde(skip)]
    pub left: Left,
    #[serde(skip)]
    pub was: Option<Was>,
    /// What others did to the live object.
    #[serde(skip)]
    pub changed: Option<Arc<ForeignChanges>>,
}

fn as_text<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(text)
}

/// Fields that are left to others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Left {
    pub paths: Vec<FieldPath>,
    /// Which of them are still ours; `None` when there is no object yet, or it was looked at with other fields in mind.
    pub known: Option<Arc<Ignored>>,
}

impl Step {
    /// The commit changes nothing of it, and somebody else did.
    pub fn has_drifted(&self) -> bool {
        matches!(self.reason.cause(), Reason::Drifted { .. } | Reason::DriftReported { .. })
    }

    /// Applied only to find out whether anything is different.
    pub fn decides_a_doubt(&self) -> bool {
        matches!(self.reason, Reason::Drifted { drift, .. } if drift.is_doubt())
    }

    /// The values that are there, when nothing but them is to be changed.
    pub fn values_to_put_back(&self) -> Option<NonZeroU64> {
        let is_it = matches!(self.reason, Reason::Drifted { drift: Drift::ValuesChanged, .. });
        self.values.filter(|_| is_it)
    }

    /// The action that it is, or would be if nothing held it.
    pub fn intent(&self) -> Action {
        match &self.reason {
            Reason::Held { would, .. }
            | Reason::WaitsForHook { would, .. }
            | Reason::WaitsForRelease { would, .. }
            | Reason::WaitsForSyncWave { would, .. } => *would,
            _ => self.action,
        }
    }

    /// A hook that does not come with this release, and is not there.
    pub fn is_hook_not_due(&self) -> bool {
        self.action == Action::Skip && matches!(self.reason, Reason::OnlyOnce | Reason::OnlyLater)
    }

    /// Its place among the other steps.
    pub fn turn(&self) -> Turn {
        Turn::of(self.phase, self.hook, self.wave)
    }
}

/// Steps in the order in which they are applied: by turn, then by object; deletes last and in
/// reverse.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    pub app: AppId,
    pub cluster: ClusterName,
    pub revision: Revision,
    /// Of the render that it was computed from.
    pub rendered: Digest,
    pub steps: Vec<Step>,
}

impl Plan {
    /// The plan of an app that is no longer wanted on a cluster: prunes are added to it.
    pub fn of_nothing(app: AppId, cluster: ClusterName, revision: Revision) -> Self {
        Self { app, cluster, revision, rendered: Digest::of_json(&json!([])), steps: Vec::new() }
    }

    /// What is done to each object first.
    pub fn by_object(&self) -> BTreeMap<&ObjectId, &Step> {
        self.steps.iter().rev().map(|step| (&step.object, step)).collect()
    }

    /// Adds what was decided about its objects that are no longer rendered.
    #[must_use]
    pub fn with_prunes(mut self, decision: &PruneDecision) -> Self {
        let mine = |decided: &&Decided| {
            decided.candidate.app == self.app && decided.candidate.cluster == self.cluster
        };
        let mut prunes: Vec<Step> = decision.all().filter(mine).map(Decided::step).collect();
        prunes.sort_by(|one, other| (other.turn(), &other.object).cmp(&(one.turn(), &one.object)));
        self.steps.extend(prunes);
        self
    }

    /// The steps that send a write.
    pub fn writes(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().filter(|step| step.action.is_write())
    }

    /// Nothing would be written.
    pub fn is_empty(&self) -> bool {
        self.writes().next().is_none()
    }

    /// The taint that keeps the app out of the cluster.
    pub fn kept_out(&self) -> Option<&str> {
        self.steps.iter().find_map(|step| match &step.reason {
            Reason::KeptOut { taint } => Some(taint.as_str()),
            _ => None,
        })
    }

    /// How many steps there are of each action; actions without a step are left out.
    pub fn summary(&self) -> BTreeMap<Action, usize> {
        let mut counts = BTreeMap::new();
        for step in &self.steps {
            *counts.entry(step.action).or_default() += 1;
        }
        counts
    }

    /// Equal digests: the same steps, from the same commit and render, on the same objects. A plan
    /// with another digest is stale. Resource versions count where they are a precondition; elsewhere
    /// they would change with every status of a pod.
    pub fn digest(&self) -> Digest {
        let steps: Vec<_> = self
            .steps
            .iter()
            .map(|step| {
                let version = step.resource_version.as_deref().filter(|_| step.action == Action::Delete);
                json!([
                    step.object.origin(),
                    step.kind.api_version(),
                    step.action.as_str(),
                    step.reason.to_string(),
                    step.uid.as_deref(),
                    version,
                    step.force,
                ])
            })
            .collect();
        Digest::of_json(&json!({
            "app": self.app.to_string(), "cluster": self.cluster.as_str(), "revision": self.revision.as_str(),
            "rendered": self.rendered.to_string(), "steps": steps,
        }))
    }
}
