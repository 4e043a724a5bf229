//! Computes the plan of one app on one cluster, without deletes: the action and the reason for each rendered object.
//! `reconcile` calls it, in observe mode too.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};

use super::turns::{Barriers, Turn};
use super::{
    Action, ApplySettings, Drift, Left, Pending, Phase, Plan, Reason, SentReplicas, Step, denied, drift,
    occasion, replacement,
};
use crate::model::{
    AppId, Digest, DriftMode, FieldPath, ForeignField, IgnoreRule, Kind, Live, ObjectId, Observation,
    Rendered, RenderedObject, Revision, Status, Stranger, Taint, Takeover, ignored, labels,
};
use crate::render::Claims;

/// Everything that the plan depends on.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// The name of this instance. Objects of another instance are never changed.
    pub instance: &'a str,
    pub settings: &'a ApplySettings,
    /// The taint of the cluster, if the app has no object there yet.
    pub kept_out: Option<&'a Taint>,
    /// Objects whose drift was checked within the last minute. The next check of them waits.
    pub asked_lately: &'a BTreeSet<ObjectId>,
    /// An earlier sync wave of the app may still define kinds that are not served yet.
    pub kinds_may_come: bool,
    /// A dry run follows, so uncertain drift is checked even if nothing may be written.
    pub foresees: bool,
    pub rendered: &'a Rendered,
    pub observation: &'a Observation,
    /// From the renders of this cluster.
    pub claims: &'a Claims,
    /// From the renders of this cluster.
    pub pending: &'a Pending,
    /// Apps that are placed on this cluster and failed to render. Their desired objects are unknown.
    pub unrendered: &'a BTreeSet<AppId>,
}

/// Objects that need a GET or list by name before their first apply. Without it, an apply over a foreign object with
/// equal values would adopt that object silently. With `adopt`, the effect of the takeover is asked for too.
pub fn unknown_objects<'a>(
    rendered: &'a Rendered,
    observation: &Observation,
    adopt: bool,
) -> Vec<&'a RenderedObject> {
    let known = |object: &RenderedObject| {
        observation.objects.contains_key(&object.id)
            || observation.absent.contains(&object.id)
            || observation.strangers.get(&object.id).is_some_and(|stranger| {
                !adopt || stranger.takeover.as_ref().is_some_and(|known| known.hash == object.hash)
            })
    };
    // A kind that is not served, or an object of the wrong scope, has no path to request.
    let can_be_asked = |object: &RenderedObject| {
        observation.served.get(&object.kind) == Some(&object.id.namespace.is_some())
    };
    rendered.objects.iter().filter(|object| !known(object) && can_be_asked(object)).collect()
}

/// The objects of one unit. A unit changes as a whole and has its own hooks and sync waves.
#[derive(Debug)]
pub struct Unit<'a> {
    pub name: Arc<str>,
    pub objects: Vec<&'a RenderedObject>,
    /// The app has no other unit on the cluster.
    pub is_only: bool,
}

impl<'a> Unit<'a> {
    pub fn all(rendered: &'a Rendered) -> Vec<Self> {
        if rendered.pod_sets.len() <= 1 {
            let name = rendered.pod_sets.first().cloned().unwrap_or_default();
            return vec![Self { name, objects: rendered.objects.iter().collect(), is_only: true }];
        }
        let mut units: BTreeMap<&str, Vec<&RenderedObject>> = BTreeMap::new();
        for object in &*rendered.objects {
            units.entry(rendered.unit_of(object)).or_default().push(object);
        }
        let is_only = units.len() == 1;
        units.into_iter().map(|(name, objects)| Self { name: name.into(), objects, is_only }).collect()
    }

    /// A digest of the content, without the number of replicas.
    pub fn release(&self) -> Digest {
        let object = |object: &&RenderedObject| [object.id.origin(), object.content().to_string()];
        Digest::of_json(&json!(self.objects.iter().map(object).collect::<Vec<_>>()))
    }
}

fn in_order(one: &Step, other: &Step) -> Ordering {
    (one.turn(), &one.object).cmp(&(other.turn(), &other.object))
}

pub fn compute(input: &Input<'_>) -> Plan {
    let rendered = input.rendered;
    let units = Unit::all(rendered);
    let targets: Vec<_> = rendered.objects.iter().filter_map(target_of_autoscaler).collect();
    let autoscaled =
        targets.iter().map(|(namespace, kind, name)| (*namespace, kind.as_str(), name.as_str())).collect();
    let mut steps = Vec::with_capacity(rendered.objects.len());
    for unit in &units {
        let release_phase = occasion::of(input, unit);
        let barriers = Barriers::of(input, unit, release_phase);
        let of_unit = unit.objects.iter().map(|object| step(input, &barriers, &autoscaled, unit, object));
        let mut of_unit: Vec<Step> = of_unit.collect();
        if let Some(release_phase) = release_phase {
            of_unit.sort_by(in_order);
            occasion::mark(input, unit, release_phase, barriers.are_past(), &mut of_unit);
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

fn step(
    input: &Input<'_>,
    barriers: &Barriers<'_>,
    autoscaled: &BTreeSet<Named<'_>>,
    unit: &Unit<'_>,
    object: &RenderedObject,
) -> Step {
    let phase = Phase::of(&object.id);
    let live = input.observation.objects.get(&object.id).map(Arc::as_ref);
    let left = left(&input.settings.ignore, object, live);
    // An ignored `spec.replicas` means that some autoscaler scales the object.
    let autoscaled = left.paths.iter().any(|path| path.holds(&["spec", "replicas"]))
        || autoscaled.contains(&(object.id.namespace.as_deref(), &*object.id.kind, &*object.id.name));
    let may_replace = object.says(labels::REPLACE).unwrap_or(input.settings.replace);
    // A takeover of a release includes its hooks.
    let is_there =
        live.is_some() || input.settings.adopt && input.observation.strangers.contains_key(&object.id);
    let decided = match barriers.why_not_due(object).filter(|_| !is_there) {
        Some(reason) if !input.settings.unmanaged && input.kept_out.is_none() => (Action::Skip, reason),
        _ => decide(input, object, live, autoscaled),
    };
    let decided = replacement::instead(input.observation, object, live, may_replace, decided);
    let decided = denied::instead(input.observation, object, decided);
    let stranger = input.observation.strangers.get(&object.id);
    let seen = live
        .map(|live| (&live.uid, &live.resource_version))
        .or(stranger.map(|stranger| (&stranger.uid, &stranger.resource_version)));
    let was = seen.and_then(|(uid, _)| input.observation.was(&object.id, uid));
    let was_released = was.is_some_and(|was| was.hash == object.hash);
    let turn = Turn::of(phase, object.hook, object.wave);
    let (action, reason) = held(input, barriers.hold_back(turn, was_released, decided));
    let unlabelled = stranger.filter(|_| matches!(reason.cause(), Reason::LabelsMissing));
    let mut step = Step {
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
        seen: seen.map(|(uid, _)| Arc::clone(uid)),
        is_at_rest: live.is_some_and(|live| live.health.status == Status::Current),
        values: live.and_then(|live| live.ownership.values),
        install: None,
        rollout: None,
        replicas: SentReplicas::of(live, unlabelled, said_replicas(object), autoscaled),
        applied: live.and_then(|live| live.revision.as_deref()).map(Revision::from),
        source: Some(object.source.clone()),
        force: false,
        may_replace: may_replace && !object.id.takes_others_along(),
        left,
        was: live.and_then(Live::was).or_else(|| was.cloned()),
        changed: live.and_then(Live::changes).cloned(),
    };
    if step.intent().is_write() {
        step.rollout = input.rendered.mark_of(&unit.name, object, live);
    }
    step.force = step.intent().is_write() && object.says(labels::FORCE).unwrap_or(input.settings.force);
    step
}

/// The ignored fields that match the object, and which of them this instance still owns.
fn left(rules: &[IgnoreRule], object: &RenderedObject, live: Option<&Live>) -> Left {
    let paths: Vec<FieldPath> = ignored(rules, &object.id).into_iter().cloned().collect();
    let known = live.and_then(|live| live.ignored.clone()).filter(|known| known.paths == paths);
    Left { paths, known }
}

/// A held write stays in the plan, with the action that it would be.
fn held(input: &Input<'_>, (action, reason): (Action, Reason)) -> (Action, Reason) {
    match (input.settings.hold(), &reason) {
        // No write will check this uncertain drift, so it does not count. `Drift::NotCovered` still counts: part of
        // the applied fields is known to be lost.
        (Some(_), Reason::Drifted { drift: Drift::Written, .. }) if !input.foresees => {
            (Action::Unchanged, Reason::Same)
        }
        (Some(by), _) if action.is_write() => {
            (Action::Skip, Reason::Held { by, would: action, because: Box::new(reason) })
        }
        _ => (action, reason),
    }
}

fn decide(
    input: &Input<'_>,
    object: &RenderedObject,
    live: Option<&Live>,
    autoscaled: bool,
) -> (Action, Reason) {
    if input.settings.unmanaged {
        return (Action::Skip, Reason::Unmanaged);
    }
    if let Some(taint) = input.kept_out {
        return (Action::Skip, Reason::KeptOut { taint: taint.to_string() });
    }
    let applied_by = live.map(|live| &*live.app);
    if let Some(owner) = input.claims.taken_from(&input.rendered.app, &object.id, applied_by) {
        return (Action::Refuse, Reason::OfOtherApp { owner: owner.clone() });
    }
    if let Some(obstacle) = obstacle(input, object) {
        return obstacle;
    }
    if let Some(live) = live {
        return against_live(input, object, live, autoscaled);
    }
    if let Some(stranger) = input.observation.strangers.get(&object.id) {
        return against_stranger(input, object, stranger);
    }
    if !input.observation.complete {
        // The object may be ours and not listed yet.
        return (Action::Wait, Reason::ObservationIncomplete);
    }
    if input.observation.absent.contains(&object.id) {
        (Action::Create, Reason::New)
    } else {
        (Action::Wait, Reason::NotLookedUp)
    }
}

/// What the object lacks in the cluster before it can exist.
fn obstacle(input: &Input<'_>, object: &RenderedObject) -> Option<(Action, Reason)> {
    let observation = input.observation;
    let Some(namespaced) = observation.served.get(&object.kind).copied() else {
        return Some(not_served(input, &object.kind));
    };
    let kind = object.kind.clone();
    let Some(namespace) = &object.id.namespace else {
        return namespaced.then_some((Action::Refuse, Reason::ScopeMismatch { kind, namespaced }));
    };
    if !namespaced {
        return Some((Action::Refuse, Reason::ScopeMismatch { kind, namespaced }));
    }
    let namespace_id = ObjectId::new("", "Namespace", None, namespace);
    if observation.objects.get(&namespace_id).is_some_and(|live| live.deleting) {
        let namespace = namespace.to_string();
        return Some((Action::Wait, Reason::NamespaceTerminating { namespace }));
    }
    // The plan itself applies the app's own namespace first.
    let app = input.pending.namespaces.get(namespace).filter(|app| **app != input.rendered.app)?;
    Some((Action::Wait, Reason::NamespacePending { namespace: namespace.to_string(), app: app.clone() }))
}

fn not_served(input: &Input<'_>, kind: &Kind) -> (Action, Reason) {
    let observation = input.observation;
    if observation.served.is_empty() {
        return (Action::Wait, Reason::ObservationIncomplete);
    }
    let definition = (kind.group.clone(), kind.kind.clone());
    if let Some(app) = input.pending.definitions.get(&definition) {
        return (Action::Wait, Reason::DefinitionPending { kind: kind.clone(), app: app.clone() });
    }
    let served = observation.served.keys().filter(|served| served.is_same(kind)).cloned().collect();
    (Action::Refuse, Reason::NotServed { kind: kind.clone(), served })
}

fn against_live(
    input: &Input<'_>,
    object: &RenderedObject,
    live: &Live,
    autoscaled: bool,
) -> (Action, Reason) {
    if live.deleting {
        return (Action::Wait, Reason::Terminating);
    }
    if *live.app != *input.rendered.app.to_string() {
        return match AppId::parse(&live.app).filter(|owner| input.unrendered.contains(owner)) {
            Some(app) => (Action::Wait, Reason::OwnerNotRendered { app }),
            None => (Action::Configure, Reason::TransferredFrom { app: live.app.to_string() }),
        };
    }
    match live.hash {
        hash if object.hook.is_some_and(|hook| hook.is_once()) && hash != Some(object.hash) => {
            (Action::Unchanged, Reason::OnlyOnce)
        }
        None => (Action::Configure, Reason::HashMissing),
        Some(hash) if hash == object.hash => as_applied(input, object, live, autoscaled),
        Some(from) => (Action::Configure, Reason::HashChanged { from, to: object.hash }),
    }
}

fn said_replicas(object: &RenderedObject) -> Option<i64> {
    object.body.field("/spec/replicas")?.as_i64()
}

/// The commit does not change the object. It may have drifted.
fn as_applied(input: &Input<'_>, object: &RenderedObject, live: &Live, autoscaled: bool) -> (Action, Reason) {
    let is_said = !autoscaled && said_replicas(object).is_some();
    let fields = || live.changes().map(|changes| ForeignField::words(&changes.fields)).unwrap_or_default();
    match (drift::of(live, is_said), input.settings.drift) {
        (None, _) | (Some(_), DriftMode::Ignore) => (Action::Unchanged, Reason::Same),
        (Some(drift), DriftMode::Repair) if drift.is_doubt() && input.asked_lately.contains(&object.id) => {
            (Action::Unchanged, Reason::AskedLately)
        }
        (Some(Drift::ValuesChanged), DriftMode::Repair) if live.overruled => {
            (Action::Skip, Reason::Overruled)
        }
        (Some(drift), DriftMode::Repair) => (Action::Configure, Reason::Drifted { drift, fields: fields() }),
        (Some(Drift::Written), DriftMode::Report) if !input.foresees => (Action::Unchanged, Reason::Same),
        (Some(drift), DriftMode::Report) => (Action::Skip, Reason::DriftReported { drift, fields: fields() }),
    }
}

/// Namespace, kind and name.
type Named<'a> = (Option<&'a str>, &'a str, &'a str);

fn target_of_autoscaler(object: &RenderedObject) -> Option<(Option<&str>, String, String)> {
    let target = object.body.field("/spec/scaleTargetRef")?;
    let says = |field: &str| target.get(field).and_then(Value::as_str).map(str::to_owned);
    let kind = says("kind").unwrap_or_else(|| "Deployment".to_owned());
    Some((object.id.namespace.as_deref(), kind, says("name")?))
}

/// A live object of this name without the label of this instance.
fn against_stranger(input: &Input<'_>, object: &RenderedObject, stranger: &Stranger) -> (Action, Reason) {
    let ours = labels::field_manager(input.instance);
    let takeover =
        stranger.takeover.as_ref().filter(|takeover| input.settings.adopt && takeover.hash == object.hash);
    if stranger.managers.contains(&ours) {
        // An interrupted takeover leaves our `managedFields` entry and no label. An apply without force could then
        // conflict for ever.
        if let Some(Takeover { effect: Ok(effect), .. }) = takeover {
            return (Action::Adopt, Reason::Adopted(effect.clone()));
        }
        // Our entry shows that this instance applied it; only the label was removed.
        return (Action::Configure, Reason::LabelsMissing);
    }
    let prefix = labels::field_manager("");
    let other = stranger.managers.iter().find_map(|manager| manager.strip_prefix(&prefix));
    if let Some(name) = other.filter(|name| !name.is_empty()) {
        return (Action::Refuse, Reason::OtherInstance { name: name.to_owned() });
    }
    if !input.settings.adopt {
        return (Action::Refuse, Reason::NotOurs { managers: stranger.managers.clone() });
    }
    match takeover {
        Some(Takeover { effect: Ok(effect), .. }) => (Action::Adopt, Reason::Adopted(effect.clone())),
        Some(Takeover { effect: Err(why), .. }) => (Action::Refuse, Reason::CannotAdopt { why: why.clone() }),
        None => (Action::Wait, Reason::NotLookedUp),
    }
}
