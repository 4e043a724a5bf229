//! Computes the plan of one app on one cluster, without deletes: the action and the reason for each rendered object.
//! `reconcile` calls it, in observe mode too.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::release_barriers::ReleaseBarriers;
use super::unit::PlanUnit;
use super::{
    ApplyPhase, Drift, IgnoredPaths, Plan, PlanAction, PlanInput, PlanStep, SentReplicas, StepOrder,
    StepReason, drift, policy_denial, release_phase, replacement,
};
use crate::model::{
    AdoptionPreview, AppId, DriftMode, FieldPath, ForeignField, GroupVersionKind, HealthStatus, IgnoreRule,
    LiveObject, ObjectId, Observation, RenderedObject, RenderedTarget, Revision, UnmanagedObject,
    ignored_paths, labels,
};

/// Objects that need a GET or list by name before their first apply. Without it, an apply over a foreign object with
/// equal values would adopt that object silently. With `adopt`, the effect of the takeover is asked for too.
pub fn objects_to_look_up<'a>(
    rendered: &'a RenderedTarget,
    observation: &Observation,
    adopt: bool,
) -> Vec<&'a RenderedObject> {
    let known = |object: &RenderedObject| {
        observation.objects.contains_key(&object.id)
            || observation.absent.contains(&object.id)
            || observation.unmanaged_objects.get(&object.id).is_some_and(|stranger| {
                !adopt || stranger.adoption.as_ref().is_some_and(|known| known.hash == object.hash)
            })
    };
    // A kind that is not served, or an object of the wrong scope, has no path to request.
    let can_be_asked = |object: &RenderedObject| {
        observation.served_kinds.get(&object.kind) == Some(&object.id.namespace.is_some())
    };
    rendered.objects.iter().filter(|object| !known(object) && can_be_asked(object)).collect()
}

fn in_order(one: &PlanStep, other: &PlanStep) -> Ordering {
    (one.order(), &one.object).cmp(&(other.order(), &other.object))
}

pub fn compute(input: &PlanInput<'_>) -> Plan {
    let rendered = input.rendered;
    let units = PlanUnit::all(rendered);
    let targets: Vec<_> = rendered.objects.iter().filter_map(target_of_autoscaler).collect();
    let autoscaled =
        targets.iter().map(|(namespace, kind, name)| (*namespace, kind.as_str(), name.as_str())).collect();
    let mut steps = Vec::with_capacity(rendered.objects.len());
    for unit in &units {
        let release_phase = release_phase::find_release_phase(input, unit);
        let barriers = ReleaseBarriers::of(input, unit, release_phase);
        let of_unit =
            unit.objects.iter().map(|object| plan_step(input, &barriers, &autoscaled, unit, object));
        let mut of_unit: Vec<PlanStep> = of_unit.collect();
        if let Some(release_phase) = release_phase {
            of_unit.sort_by(in_order);
            release_phase::mark_installation(
                input,
                unit,
                release_phase,
                barriers.are_cleared(),
                &mut of_unit,
            );
        }
        steps.append(&mut of_unit);
    }
    steps.sort_by(in_order);
    Plan {
        app: rendered.app.clone(),
        cluster: rendered.cluster.clone(),
        revision: rendered.revision.clone(),
        rendered: rendered.digest(),
        steps,
    }
}

fn plan_step(
    input: &PlanInput<'_>,
    barriers: &ReleaseBarriers<'_>,
    autoscaled: &BTreeSet<NamespacedRef<'_>>,
    unit: &PlanUnit<'_>,
    object: &RenderedObject,
) -> PlanStep {
    let phase = ApplyPhase::of(&object.id);
    let live = input.observation.objects.get(&object.id).map(Arc::as_ref);
    let left = step_ignored_paths(&input.settings.ignore, object, live);
    // An ignored `spec.replicas` means that some autoscaler scales the object.
    let autoscaled = left.paths.iter().any(|path| path.contains(&["spec", "replicas"]))
        || autoscaled.contains(&(object.id.namespace.as_deref(), &*object.id.kind, &*object.id.name));
    let may_replace = object.annotation_flag(labels::REPLACE).unwrap_or(input.settings.replace);
    // A takeover of a release includes its hooks.
    let is_there = live.is_some()
        || input.settings.adopt && input.observation.unmanaged_objects.contains_key(&object.id);
    let decided = match barriers.hook_skip_reason(object).filter(|_| !is_there) {
        Some(reason) if !input.settings.unmanaged && input.blocking_taint.is_none() => {
            (PlanAction::Skip, reason)
        }
        _ => decide_action(input, object, live, autoscaled),
    };
    let decided = replacement::replace_if_immutable(input.observation, object, live, may_replace, decided);
    let decided = policy_denial::refuse_if_denied(input.observation, object, decided);
    let stranger = input.observation.unmanaged_objects.get(&object.id);
    let seen = live
        .map(|live| (&live.uid, &live.resource_version))
        .or(stranger.map(|stranger| (&stranger.uid, &stranger.resource_version)));
    let was = seen.and_then(|(uid, _)| input.observation.last_applied(&object.id, uid));
    let was_released = was.is_some_and(|was| was.hash == object.hash);
    let turn = StepOrder::of(phase, object.hook, object.wave);
    let (action, reason) = apply_hold(input, barriers.delay_step(turn, was_released, decided));
    let unlabelled = stranger.filter(|_| matches!(reason.cause(), StepReason::LabelsMissing));
    let mut step = PlanStep {
        object: object.id.clone(),
        unit: Arc::clone(&unit.name),
        kind: object.kind.clone(),
        phase,
        hook: object.hook,
        wave: object.wave,
        action,
        reason,
        uid: live.map(|live| live.uid.to_string()),
        resource_version: seen.map(|(_, version)| version.to_string()),
        live_uid: seen.map(|(uid, _)| Arc::clone(uid)),
        is_at_rest: live.is_some_and(|live| live.health.status == HealthStatus::Current),
        live_values: live.and_then(|live| live.ownership.values),
        install_mark: None,
        rollout: None,
        replicas: SentReplicas::of(live, unlabelled, rendered_replicas(object), autoscaled),
        applied: live.and_then(|live| live.revision.as_deref()).map(Revision::from),
        source: Some(object.source.clone()),
        force: false,
        may_replace: may_replace && !object.id.deletes_contents(),
        ignored_paths: left,
        last_applied: live.and_then(LiveObject::last_applied).or_else(|| was.cloned()),
        foreign_changes: live.and_then(LiveObject::foreign_changes).cloned(),
    };
    if step.intended_action().is_write() {
        step.rollout = input.rendered.annotations_of(&unit.name, object, live);
    }
    step.force = step.intended_action().is_write()
        && object.annotation_flag(labels::FORCE).unwrap_or(input.settings.force);
    step
}

/// The ignored fields that match the object, and which of them this instance still owns.
fn step_ignored_paths(
    rules: &[IgnoreRule],
    object: &RenderedObject,
    live: Option<&LiveObject>,
) -> IgnoredPaths {
    let paths: Vec<FieldPath> = ignored_paths(rules, &object.id).into_iter().cloned().collect();
    let known = live.and_then(|live| live.ignored.clone()).filter(|known| known.paths == paths);
    IgnoredPaths { paths, still_owned: known }
}

/// A held write stays in the plan, with the action that it would be.
fn apply_hold(input: &PlanInput<'_>, (action, reason): (PlanAction, StepReason)) -> (PlanAction, StepReason) {
    match (input.settings.write_hold(), &reason) {
        // No write will check this uncertain drift, so it does not count. `Drift::NotCovered` still counts: part of
        // the applied fields is known to be lost.
        (Some(_), StepReason::Drifted { drift: Drift::Written, .. }) if !input.is_preview => {
            (PlanAction::Unchanged, StepReason::Same)
        }
        (Some(by), _) if action.is_write() => {
            (PlanAction::Skip, StepReason::Held { by, would: action, because: Box::new(reason) })
        }
        _ => (action, reason),
    }
}

fn decide_action(
    input: &PlanInput<'_>,
    object: &RenderedObject,
    live: Option<&LiveObject>,
    autoscaled: bool,
) -> (PlanAction, StepReason) {
    if input.settings.unmanaged {
        return (PlanAction::Skip, StepReason::Unmanaged);
    }
    if let Some(taint) = input.blocking_taint {
        return (PlanAction::Skip, StepReason::KeptOut { taint: taint.to_string() });
    }
    let applied_by = live.map(|live| &*live.app);
    if let Some(owner) = input.claims.other_owner(&input.rendered.app, &object.id, applied_by) {
        return (PlanAction::Refuse, StepReason::OfOtherApp { owner: owner.clone() });
    }
    if let Some(obstacle) = obstacle(input, object) {
        return obstacle;
    }
    if let Some(live) = live {
        return decide_for_live(input, object, live, autoscaled);
    }
    if let Some(stranger) = input.observation.unmanaged_objects.get(&object.id) {
        return decide_for_unmanaged(input, object, stranger);
    }
    if !input.observation.complete {
        // The object may be ours and not listed yet.
        return (PlanAction::Wait, StepReason::ObservationIncomplete);
    }
    if input.observation.absent.contains(&object.id) {
        (PlanAction::Create, StepReason::New)
    } else {
        (PlanAction::Wait, StepReason::NotLookedUp)
    }
}

/// What the object lacks in the cluster before it can exist.
fn obstacle(input: &PlanInput<'_>, object: &RenderedObject) -> Option<(PlanAction, StepReason)> {
    let observation = input.observation;
    let Some(namespaced) = observation.served_kinds.get(&object.kind).copied() else {
        return Some(not_served(input, &object.kind));
    };
    let kind = object.kind.clone();
    let Some(namespace) = &object.id.namespace else {
        return namespaced.then_some((PlanAction::Refuse, StepReason::ScopeMismatch { kind, namespaced }));
    };
    if !namespaced {
        return Some((PlanAction::Refuse, StepReason::ScopeMismatch { kind, namespaced }));
    }
    let namespace_id = ObjectId::new("", "Namespace", None, namespace);
    if observation.objects.get(&namespace_id).is_some_and(|live| live.deleting) {
        let namespace = namespace.to_string();
        return Some((PlanAction::Wait, StepReason::NamespaceTerminating { namespace }));
    }
    // The plan itself applies the app's own namespace first.
    let app = input.pending.namespaces.get(namespace).filter(|app| **app != input.rendered.app)?;
    Some((
        PlanAction::Wait,
        StepReason::NamespacePending { namespace: namespace.to_string(), app: app.clone() },
    ))
}

fn not_served(input: &PlanInput<'_>, kind: &GroupVersionKind) -> (PlanAction, StepReason) {
    let observation = input.observation;
    if observation.served_kinds.is_empty() {
        return (PlanAction::Wait, StepReason::ObservationIncomplete);
    }
    let definition = (kind.group.clone(), kind.kind.clone());
    if let Some(app) = input.pending.definitions.get(&definition) {
        return (PlanAction::Wait, StepReason::DefinitionPending { kind: kind.clone(), app: app.clone() });
    }
    let served =
        observation.served_kinds.keys().filter(|served| served.is_same_group_kind(kind)).cloned().collect();
    (PlanAction::Refuse, StepReason::NotServed { kind: kind.clone(), served })
}

fn decide_for_live(
    input: &PlanInput<'_>,
    object: &RenderedObject,
    live: &LiveObject,
    autoscaled: bool,
) -> (PlanAction, StepReason) {
    if live.deleting {
        return (PlanAction::Wait, StepReason::Terminating);
    }
    if *live.app != *input.rendered.app.to_string() {
        return match AppId::parse(&live.app).filter(|owner| input.unrendered_apps.contains(owner)) {
            Some(app) => (PlanAction::Wait, StepReason::OwnerNotRendered { app }),
            None => (PlanAction::Configure, StepReason::TransferredFrom { app: live.app.to_string() }),
        };
    }
    match live.hash {
        hash if object.hook.is_some_and(|hook| hook.is_install_only()) && hash != Some(object.hash) => {
            (PlanAction::Unchanged, StepReason::OnlyOnce)
        }
        None => (PlanAction::Configure, StepReason::HashMissing),
        Some(hash) if hash == object.hash => as_applied(input, object, live, autoscaled),
        Some(from) => (PlanAction::Configure, StepReason::HashChanged { from, to: object.hash }),
    }
}

fn rendered_replicas(object: &RenderedObject) -> Option<i64> {
    object.body.field("/spec/replicas")?.as_i64()
}

/// The commit does not change the object. It may have drifted.
fn as_applied(
    input: &PlanInput<'_>,
    object: &RenderedObject,
    live: &LiveObject,
    autoscaled: bool,
) -> (PlanAction, StepReason) {
    let is_said = !autoscaled && rendered_replicas(object).is_some();
    let fields =
        || live.foreign_changes().map(|changes| ForeignField::summary(&changes.fields)).unwrap_or_default();
    match (drift::detect_drift(live, is_said), input.settings.drift) {
        (None, _) | (Some(_), DriftMode::Ignore) => (PlanAction::Unchanged, StepReason::Same),
        (Some(drift), DriftMode::Repair)
            if drift.is_uncertain() && input.recently_checked.contains(&object.id) =>
        {
            (PlanAction::Unchanged, StepReason::AskedLately)
        }
        (Some(Drift::ValuesChanged), DriftMode::Repair) if live.is_overruled => {
            (PlanAction::Skip, StepReason::Overruled)
        }
        (Some(drift), DriftMode::Repair) => {
            (PlanAction::Configure, StepReason::Drifted { drift, fields: fields() })
        }
        (Some(Drift::Written), DriftMode::Report) if !input.is_preview => {
            (PlanAction::Unchanged, StepReason::Same)
        }
        (Some(drift), DriftMode::Report) => {
            (PlanAction::Skip, StepReason::DriftReported { drift, fields: fields() })
        }
    }
}

/// Namespace, kind and name.
type NamespacedRef<'a> = (Option<&'a str>, &'a str, &'a str);

fn target_of_autoscaler(object: &RenderedObject) -> Option<(Option<&str>, String, String)> {
    let target = object.body.field("/spec/scaleTargetRef")?;
    let says = |field: &str| target.get(field).and_then(Value::as_str).map(str::to_owned);
    let kind = says("kind").unwrap_or_else(|| "Deployment".to_owned());
    Some((object.id.namespace.as_deref(), kind, says("name")?))
}

/// A live object of this name without the label of this instance.
fn decide_for_unmanaged(
    input: &PlanInput<'_>,
    object: &RenderedObject,
    stranger: &UnmanagedObject,
) -> (PlanAction, StepReason) {
    let ours = labels::field_manager(input.instance);
    let takeover =
        stranger.adoption.as_ref().filter(|takeover| input.settings.adopt && takeover.hash == object.hash);
    if stranger.managers.contains(&ours) {
        // An interrupted takeover leaves our `managedFields` entry and no label. An apply without force could then
        // conflict for ever.
        if let Some(AdoptionPreview { effect: Ok(effect), .. }) = takeover {
            return (PlanAction::Adopt, StepReason::Adopted(effect.clone()));
        }
        // Our entry shows that this instance applied it; only the label was removed.
        return (PlanAction::Configure, StepReason::LabelsMissing);
    }
    let prefix = labels::field_manager("");
    let other = stranger.managers.iter().find_map(|manager| manager.strip_prefix(&prefix));
    if let Some(name) = other.filter(|name| !name.is_empty()) {
        return (PlanAction::Refuse, StepReason::OtherInstance { name: name.to_owned() });
    }
    if !input.settings.adopt {
        return (PlanAction::Refuse, StepReason::NotOurs { managers: stranger.managers.clone() });
    }
    match takeover {
        Some(AdoptionPreview { effect: Ok(effect), .. }) => {
            (PlanAction::Adopt, StepReason::Adopted(effect.clone()))
        }
        Some(AdoptionPreview { effect: Err(why), .. }) => {
            (PlanAction::Refuse, StepReason::CannotAdopt { why: why.clone() })
        }
        None => (PlanAction::Wait, StepReason::NotLookedUp),
    }
}
