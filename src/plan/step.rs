//! The plan of one app on one cluster, and its steps.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use serde_json::json;

use super::reason::with_words;
use super::{ApplyPhase, Drift, PlanAction, SentReplicas, StepOrder, StepReason};
use crate::model::{
    AppId, ClusterName, Digest, FieldPath, ForeignChanges, GroupVersionKind, IgnoredFields,
    InstallAnnotation, LastApplied, Location, ObjectHook, ObjectId, ObjectRolloutAnnotations, Revision,
    SyncWave,
};

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanStep {
    pub object: ObjectId,
    /// The podSet; empty if the app is one unit.
    #[serde(skip_serializing_if = "str::is_empty", serialize_with = "as_text")]
    pub unit: Arc<str>,
    pub kind: GroupVersionKind,
    pub phase: ApplyPhase,
    /// If a chart declares the object a hook.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hook: Option<ObjectHook>,
    #[serde(skip_serializing_if = "SyncWave::is_default")]
    pub wave: SyncWave,
    pub action: PlanAction,
    #[serde(serialize_with = "with_words")]
    pub reason: StepReason,
    /// Uid of our live object. A precondition of its delete.
    pub uid: Option<String>,
    /// As `uid`, or as `seen`.
    pub resource_version: Option<String>,
    /// Uid of the live object, also without our label. A write to another object of that name is refused.
    #[serde(skip)]
    pub live_uid: Option<Arc<str>>,
    /// The object is healthy, so no controller is likely to change it: its resourceVersion is still current.
    #[serde(skip)]
    pub is_at_rest: bool,
    /// The commit of the last apply, if our object exists.
    pub applied: Option<Revision>,
    /// Of the live object, if its values are watched.
    #[serde(skip)]
    pub live_values: Option<NonZeroU64>,
    /// For an apply.
    #[serde(skip)]
    pub install_mark: Option<InstallAnnotation>,
    /// For an apply of an app in waves.
    #[serde(skip)]
    pub rollout: Option<ObjectRolloutAnnotations>,
    /// For an apply.
    #[serde(skip)]
    pub replicas: SentReplicas,
    /// The template or file; `None` if no longer rendered.
    pub source: Option<Location>,
    /// Git says `force`: conflicting fields are taken from other managers.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub force: bool,
    /// Git says `replace`: the object may be deleted and created again.
    #[serde(skip)]
    pub may_replace: bool,
    #[serde(skip)]
    pub ignored_paths: IgnoredPaths,
    #[serde(skip)]
    pub last_applied: Option<LastApplied>,
    /// Changes of others to the live object.
    #[serde(skip)]
    pub foreign_changes: Option<Arc<ForeignChanges>>,
}

fn as_text<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(text)
}

/// The ignored fields of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IgnoredPaths {
    pub paths: Vec<FieldPath>,
    /// Which of them are still ours; `None` if the object does not exist or was compared with other ignore rules.
    pub still_owned: Option<Arc<IgnoredFields>>,
}

impl PlanStep {
    /// The object drifted; the commit does not change it.
    pub fn has_drifted(&self) -> bool {
        matches!(self.reason.cause(), StepReason::Drifted { .. } | StepReason::DriftReported { .. })
    }

    /// The apply only checks for a difference.
    pub fn is_drift_check(&self) -> bool {
        matches!(self.reason, StepReason::Drifted { drift, .. } if drift.is_uncertain())
    }

    /// The live values, if only values are to be restored.
    pub fn values_to_restore(&self) -> Option<NonZeroU64> {
        let is_it = matches!(self.reason, StepReason::Drifted { drift: Drift::ValuesChanged, .. });
        self.live_values.filter(|_| is_it)
    }

    /// The action without holds and waits.
    pub fn intended_action(&self) -> PlanAction {
        match &self.reason {
            StepReason::Held { would, .. }
            | StepReason::WaitsForHook { would, .. }
            | StepReason::WaitsForRelease { would, .. }
            | StepReason::WaitsForSyncWave { would, .. } => *would,
            _ => self.action,
        }
    }

    /// A missing hook that this release does not run.
    pub fn is_hook_not_due(&self) -> bool {
        self.action == PlanAction::Skip && matches!(self.reason, StepReason::OnlyOnce | StepReason::OnlyLater)
    }

    pub fn order(&self) -> StepOrder {
        StepOrder::of(self.phase, self.hook, self.wave)
    }
}

/// Steps in apply order: by turn, then by object. Deletes come last, in reverse.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    pub app: AppId,
    pub cluster: ClusterName,
    pub revision: Revision,
    /// Of the render.
    pub rendered: Digest,
    pub steps: Vec<PlanStep>,
}

impl Plan {
    /// For an app that is no longer placed on the cluster: prunes are added later.
    pub fn empty(app: AppId, cluster: ClusterName, revision: Revision) -> Self {
        Self { app, cluster, revision, rendered: Digest::of_json(&json!([])), steps: Vec::new() }
    }

    /// The first step of each object.
    pub fn by_object(&self) -> BTreeMap<&ObjectId, &PlanStep> {
        self.steps.iter().rev().map(|step| (&step.object, step)).collect()
    }

    pub fn writes(&self) -> impl Iterator<Item = &PlanStep> {
        self.steps.iter().filter(|step| step.action.is_write())
    }

    pub fn is_empty(&self) -> bool {
        self.writes().next().is_none()
    }

    /// The taint that the app does not tolerate.
    pub fn blocking_taint(&self) -> Option<&str> {
        self.steps.iter().find_map(|step| match &step.reason {
            StepReason::KeptOut { taint } => Some(taint.as_str()),
            _ => None,
        })
    }

    pub fn summary(&self) -> BTreeMap<PlanAction, usize> {
        let mut counts = BTreeMap::new();
        for step in &self.steps {
            *counts.entry(step.action).or_default() += 1;
        }
        counts
    }

    /// Equal digests mean the same steps from the same commit and render on the same objects; otherwise a plan is
    /// stale. Resource versions count only as preconditions, because every status of a pod changes them.
    pub fn digest(&self) -> Digest {
        let steps: Vec<_> = self
            .steps
            .iter()
            .map(|step| {
                let version = step.resource_version.as_deref().filter(|_| step.action == PlanAction::Delete);
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
