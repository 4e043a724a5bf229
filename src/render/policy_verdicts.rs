//! Evaluates the policies of a repository on its rendered targets, for `lint`, `why` and pull requests.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use serde_json::Value;

use super::policy_facts::{ObjectSides, PolicyFacts};
use super::trace::explain::locate_fields;
use super::{FleetRenderer, Renders, codes};
use crate::fleet::{Fleet, Target};
use crate::manifest::codes::LIMIT;
use crate::model::foreign_annotation::keep_reason;
use crate::model::{
    App, ClusterName, Diagnostic, DiagnosticScope, Location, ObjectId, Policy, PolicyAction, PruneMode,
    RenderedObject, RenderedTarget,
};
use crate::policy::{PolicyTarget, PolicyVerdict, SelectedPolicies, VerdictCause};
use crate::schedule::assign;

/// Targets whose fields are traced: each takes several renders.
const MOST_TRACED: usize = 12;

/// Steps of all policies on all objects of a revision: some tens of seconds. Shipped policies need less for a hundred
/// thousand objects.
const MOST_STEPS: u64 = 1_000_000_000;

/// Reported denials of changed objects, and other reported verdicts.
const MOST_REPORTED: usize = 10_000;

/// The revision before the change.
#[derive(Clone, Copy, Debug)]
pub struct EarlierRevision<'a> {
    pub fleet: &'a Fleet,
    pub renders: &'a Renders,
}

#[derive(Clone, Debug, Default)]
pub struct PolicyVerdicts {
    pub all: Vec<Diagnostic>,
    /// Errors of new and changed objects.
    pub of_changed_objects: Vec<Diagnostic>,
}

/// Reports each object that violates a policy, at the position that sets the field if it is known. Without `before` every
/// object counts as created; with it, an unchanged object does. If `goes_on` returns false, the rest is skipped, which is an
/// error. Fields are traced while `traces` returns true.
pub fn policy_verdicts(
    renderer: &FleetRenderer<'_>,
    renders: &Renders,
    before: Option<EarlierRevision<'_>>,
    goes_on: &dyn Fn() -> bool,
    traces: &dyn Fn() -> bool,
) -> PolicyVerdicts {
    policy_verdicts_within((MOST_STEPS, MOST_REPORTED), renderer, renders, before, (goes_on, traces))
}

pub(super) fn policy_verdicts_within(
    (most_steps, most_told): (u64, usize),
    renderer: &FleetRenderer<'_>,
    renders: &Renders,
    before: Option<EarlierRevision<'_>>,
    (goes_on, traces): (&dyn Fn() -> bool, &dyn Fn() -> bool),
) -> PolicyVerdicts {
    let fleet = renderer.fleet;
    if fleet.policies.is_empty() {
        return PolicyVerdicts::default();
    }
    let mut judge = FleetPolicyEvaluator {
        most_steps,
        most_reported: most_told,
        has_earlier_revision: before.is_some(),
        ..FleetPolicyEvaluator::of(fleet, renders)
    };
    let mut found: Vec<(Target, Arc<Vec<ObjectVerdict>>)> = Vec::new();
    for (target, (_, result)) in renders.iter() {
        let (Ok(after), Some(app)) = (result, fleet.apps.get(&target.app)) else { continue };
        judge.stop_unless(goes_on());
        let old = before.and_then(|before| before.renders.get(&target)?.1.as_ref().ok());
        found.push((target.clone(), judge.evaluate_target(app, &target, Some(after), old)));
    }
    for (target, (_, result)) in before.iter().flat_map(|before| before.renders.iter()) {
        let app = before.and_then(|before| before.fleet.apps.get(&target.app));
        if let (None, Ok(old), Some(app)) = (renders.get(&target), result, app)
            && !fleet.broken_apps.contains_key(&target.app)
            && !fleet.removed_targets_of(app, vec![target.cluster.clone()]).is_empty()
        {
            judge.stop_unless(goes_on());
            found.push((target.clone(), judge.evaluate_target(app, &target, None, Some(old))));
        }
    }
    found.retain(|(_, found)| !found.is_empty());
    let (mut traced, mut told) = (FieldTraceCache::default(), PolicyVerdicts::default());
    for (target, found) in &found {
        for (verdict, is_changed) in target_verdicts(renderer, target, found, &mut traced, traces) {
            if is_changed && verdict.diagnostic.is_error() {
                told.of_changed_objects.push(verdict.diagnostic.clone());
            }
            told.all.push(verdict.diagnostic);
        }
    }
    if let Some(stop) = &judge.stopped {
        let error = limit_reached(stop, (most_steps, most_told), fleet);
        told.of_changed_objects.push(error.clone());
        told.all.push(error);
    }
    told
}

/// Why evaluation stopped.
#[derive(Debug)]
enum EvaluationStop {
    /// With the most expensive policy on the last object.
    Steps(Option<Arc<Policy>>),
    Denials,
    Time,
}

fn limit_reached(stop: &EvaluationStop, (most_steps, most_told): (u64, usize), fleet: &Fleet) -> Diagnostic {
    let (why, policy) = match stop {
        EvaluationStop::Steps(policy) => (format!("take more than {most_steps} steps on"), policy.as_ref()),
        EvaluationStop::Denials => (format!("deny more than {most_told} times"), None),
        EvaluationStop::Time => ("take too long on".to_owned(), None),
    };
    let ended = policy.map_or_else(String::new, |policy| format!("; it ended at policy {}", policy.name));
    let message =
        format!("the policies {why} the objects of this revision, so not all were evaluated{ended}");
    let place = policy.or(fleet.policies.all().next()).map(|policy| policy.location.clone());
    let scope =
        place.as_ref().map_or(DiagnosticScope::Instance, |place| DiagnosticScope::File(place.file.clone()));
    let error = Diagnostic::error(LIMIT, message, scope)
        .help("write matchConstraints that match fewer objects, or simpler expressions");
    match place {
        Some(place) => error.at(place),
        None => error,
    }
}

#[derive(Clone, Debug)]
pub struct TargetPolicyVerdict {
    pub cluster: ClusterName,
    pub policy: Arc<Policy>,
    pub cause: VerdictCause,
    pub diagnostic: Diagnostic,
}

/// Evaluates one app as if all of it were created. Reports invalid policies too.
pub fn policy_verdicts_of_app(
    renderer: &FleetRenderer<'_>,
    renders: &Renders,
    app: &App,
) -> Vec<TargetPolicyVerdict> {
    let mut judge =
        FleetPolicyEvaluator { reports_broken: true, ..FleetPolicyEvaluator::of(renderer.fleet, renders) };
    let mut traced = FieldTraceCache::default();
    let of_app = renders.apps.get(&app.id).into_iter().flat_map(|clusters| clusters.iter());
    let rendered = of_app.filter_map(|(cluster, (_, result))| Some((cluster, result.as_ref().ok()?)));
    let told = rendered.flat_map(|(cluster, rendered)| {
        let target = Target { app: app.id.clone(), cluster: cluster.clone() };
        let found = judge.evaluate_target(app, &target, Some(rendered), None);
        target_verdicts(renderer, &target, &found, &mut traced, &|| true)
    });
    told.map(|(verdict, _)| verdict).collect()
}

#[derive(Clone)]
struct ObjectVerdict {
    object: ObjectId,
    source: Location,
    is_deleted: bool,
    /// The object is new or changed.
    is_changed: bool,
    verdict: PolicyVerdict,
}

/// The inputs of the verdicts if no policy reads the cluster.
type TargetVerdictKey = (usize, usize, Vec<bool>, Option<String>, Option<String>, Vec<(String, String)>);

struct FleetPolicyEvaluator<'a> {
    fleet: &'a Fleet,
    facts: PolicyFacts,
    /// Clusters that share a render are evaluated once.
    cached: HashMap<TargetVerdictKey, Arc<Vec<ObjectVerdict>>>,
    /// Reports invalid policies for unchanged objects too; otherwise only their files report them.
    reports_broken: bool,
    has_earlier_revision: bool,
    steps: u64,
    most_steps: u64,
    /// Counted for each cluster.
    denials: usize,
    other_verdicts: usize,
    most_reported: usize,
    stopped: Option<EvaluationStop>,
}

impl<'a> FleetPolicyEvaluator<'a> {
    fn of(fleet: &'a Fleet, renders: &Renders) -> Self {
        Self {
            fleet,
            facts: PolicyFacts::of(fleet, renders),
            cached: HashMap::new(),
            reports_broken: false,
            has_earlier_revision: false,
            steps: 0,
            most_steps: MOST_STEPS,
            denials: 0,
            other_verdicts: 0,
            most_reported: MOST_REPORTED,
            stopped: None,
        }
    }

    fn stop_unless(&mut self, goes_on: bool) {
        if !goes_on && self.stopped.is_none() {
            self.stopped = Some(EvaluationStop::Time);
        }
    }

    /// Drops reports over the limit. Too many denials of changed objects are an error.
    fn limit_reported(&mut self, found: Arc<Vec<ObjectVerdict>>) -> Arc<Vec<ObjectVerdict>> {
        let is_new = |it: &&ObjectVerdict| it.is_changed && it.verdict.action == PolicyAction::Deny;
        let denials = found.iter().filter(is_new).count();
        let others = found.len() - denials;
        self.denials += denials;
        self.other_verdicts += others;
        if self.denials > self.most_reported {
            self.stopped.get_or_insert(EvaluationStop::Denials);
            return Arc::default();
        }
        if self.other_verdicts <= self.most_reported || others == 0 {
            return found;
        }
        Arc::new(found.iter().filter(is_new).cloned().collect())
    }

    fn evaluate_target(
        &mut self,
        app: &App,
        target: &Target,
        after: Option<&Arc<RenderedTarget>>,
        before: Option<&Arc<RenderedTarget>>,
    ) -> Arc<Vec<ObjectVerdict>> {
        let cluster = self.fleet.clusters.get(&target.cluster).filter(|_| self.stopped.is_none());
        let Some(cluster) = cluster else { return Arc::default() };
        let ring = self.fleet.ring_of(&target.cluster);
        let version = single_version(app, &target.cluster);
        let bodies = |rendered: Option<&Arc<RenderedTarget>>| -> Vec<Value> {
            let objects = rendered.map_or(&[][..], |it| &it.objects);
            objects.iter().map(|object| object.body.fields()).collect()
        };
        let policy_target = |objects| PolicyTarget {
            app: &app.id,
            app_labels: &app.labels,
            version: version.as_deref(),
            cluster: cluster.facts(ring),
            objects,
        };
        let chosen = self.fleet.policies.select(&policy_target(&[]));
        if chosen.is_empty() {
            return Arc::default();
        }
        let address =
            |rendered: Option<&Arc<RenderedTarget>>| rendered.map_or(0, |it| it.objects.as_ptr().addr());
        let key = (!chosen.depend_on_cluster()).then(|| {
            let labels = app.labels.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
            let which = chosen.selected_flags().to_vec();
            (address(after), address(before), which, ring.map(str::to_owned), version.clone(), labels)
        });
        if let Some(known) = key.as_ref().and_then(|key| self.cached.get(key)) {
            let known = Arc::clone(known);
            return self.limit_reported(known);
        }
        let (new, old) = (bodies(after), bodies(before));
        let rendered = after.map_or(&[][..], |it| &it.objects);
        let visible = rendered.iter().zip(&new).filter(|(object, _)| !object.holds_secrets());
        let visible: Vec<Value> = visible.map(|(_, body)| body.clone()).collect();
        let chosen = self.fleet.policies.select(&policy_target(&visible));
        let mut found = Vec::new();
        let old_rendered = before.map_or(&[][..], |it| &it.objects);
        let old_of: BTreeMap<&ObjectId, (&RenderedObject, &Value)> =
            old_rendered.iter().zip(&old).map(|(object, body)| (&object.id, (object, body))).collect();
        for (object, body) in rendered.iter().zip(&new) {
            let known = old_of.get(&object.id);
            let was = known.filter(|(was, _)| was.hash != object.hash);
            let is_changed = known.is_none() || was.is_some();
            let sides = (Some(body), was.map(|(_, body)| *body));
            let hides_values = object.holds_secrets() || was.is_some_and(|(was, _)| was.holds_secrets());
            self.evaluate_object(&chosen, target, (object, hides_values), sides, is_changed, &mut found);
        }
        let default = self.fleet.instance.defaults.prune;
        let stays = after.is_some() && (app.unmanaged || app.prune.unwrap_or(default) == PruneMode::Never);
        let is_rendered: BTreeSet<&ObjectId> = rendered.iter().map(|object| &object.id).collect();
        for (id, (object, body)) in old_of.into_iter().filter(|(id, _)| !stays && !is_rendered.contains(id)) {
            debug_assert_eq!(*id, object.id);
            if keep_reason(body).is_none() {
                let what = (object, object.holds_secrets());
                self.evaluate_object(&chosen, target, what, (None, Some(body)), true, &mut found);
            }
        }
        let found = Arc::new(found);
        if let Some(key) = key {
            self.cached.insert(key, Arc::clone(&found));
        }
        self.limit_reported(found)
    }

    fn evaluate_object(
        &mut self,
        chosen: &SelectedPolicies<'_>,
        target: &Target,
        (object, hides_values): (&RenderedObject, bool),
        sides: ObjectSides<'_>,
        is_changed: bool,
        found: &mut Vec<ObjectVerdict>,
    ) {
        if self.stopped.is_some() {
            return;
        }
        let what = (&object.kind, hides_values);
        let judgement = self.facts.evaluate(chosen, (&target.cluster, &object.id), what, sides, None);
        self.steps += judgement.steps;
        if self.steps > self.most_steps {
            self.stopped = Some(EvaluationStop::Steps(judgement.costliest));
        }
        let tells_broken = self.reports_broken || self.has_earlier_revision && is_changed;
        let is_told = |it: &PolicyVerdict| tells_broken || it.cause != VerdictCause::Broken;
        found.extend(judgement.verdicts.into_iter().filter(is_told).map(|verdict| ObjectVerdict {
            object: object.id.clone(),
            source: object.source.clone(),
            is_deleted: sides.0.is_none(),
            is_changed,
            verdict,
        }));
    }
}

/// `None`: no version, or several.
pub(super) fn single_version(app: &App, cluster: &ClusterName) -> Option<String> {
    let versions: BTreeSet<String> = assign(app, cluster).into_iter().filter_map(|it| it.version).collect();
    let mut versions = versions.into_iter();
    versions.next().filter(|_| versions.next().is_none())
}

/// Positions of fields by verdicts: clusters that share a render share them.
#[derive(Default)]
struct FieldTraceCache(HashMap<usize, (Arc<Vec<ObjectVerdict>>, ObjectFieldLocations)>);

type ObjectFieldLocations = BTreeMap<(ObjectId, String), Location>;

impl FieldTraceCache {
    fn locations(
        &mut self,
        renderer: &FleetRenderer<'_>,
        target: &Target,
        found: &Arc<Vec<ObjectVerdict>>,
        goes_on: &dyn Fn() -> bool,
    ) -> ObjectFieldLocations {
        let address = Arc::as_ptr(found).addr();
        if let Some((_, known)) = self.0.get(&address) {
            return known.clone();
        }
        let wanted = found.iter().filter(|it| !it.is_deleted);
        let wanted: BTreeSet<(ObjectId, String)> =
            wanted.filter_map(|it| Some((it.object.clone(), it.verdict.field.clone()?))).collect();
        if wanted.is_empty() || self.0.len() >= MOST_TRACED || !goes_on() {
            return ObjectFieldLocations::new();
        }
        let places = locate_fields(renderer, target, &wanted);
        self.0.insert(address, (Arc::clone(found), places.clone()));
        places
    }
}

/// The flag says whether the object is new or changed.
fn target_verdicts(
    renderer: &FleetRenderer<'_>,
    target: &Target,
    found: &Arc<Vec<ObjectVerdict>>,
    traced: &mut FieldTraceCache,
    goes_on: &dyn Fn() -> bool,
) -> Vec<(TargetPolicyVerdict, bool)> {
    let places = traced.locations(renderer, target, found, goes_on);
    let is_there = |file: &str| renderer.snapshot.text(file).is_some();
    let app = renderer.fleet.apps.get(&target.app);
    let place = |it: &ObjectVerdict| {
        let field =
            it.verdict.field.as_ref().and_then(|field| places.get(&(it.object.clone(), field.clone())));
        let source = (!it.is_deleted && is_there(&it.source.file)).then_some(&it.source);
        field.or(source).or(app.map(|app| &app.location)).unwrap_or(&it.verdict.place).clone()
    };
    let verdict = |it: &ObjectVerdict| {
        let verdict = TargetPolicyVerdict {
            cluster: target.cluster.clone(),
            policy: Arc::clone(&it.verdict.policy),
            cause: it.verdict.cause,
            diagnostic: verdict_diagnostic(target, it).at(place(it)),
        };
        (verdict, it.is_changed)
    };
    found.iter().map(verdict).collect()
}

fn verdict_diagnostic(target: &Target, found: &ObjectVerdict) -> Diagnostic {
    let ObjectVerdict { object, verdict, is_deleted, .. } = found;
    let scope = DiagnosticScope::Target(target.app.clone(), target.cluster.clone());
    let what = if *is_deleted { "the delete of " } else { "" };
    let (policy, cluster, message) = (&verdict.policy.name, &target.cluster, &verdict.message);
    let says = |verb: &str| format!("policy {policy} {verb} {what}{object} on {cluster}: {message}");
    let diagnostic = match verdict.action {
        PolicyAction::Deny => Diagnostic::error(codes::DENIED, says("denies"), scope),
        PolicyAction::Warn => Diagnostic::warning(codes::WARNED, says("warns of"), scope),
        PolicyAction::Audit => Diagnostic::warning(codes::WARNED, says("audits"), scope),
    };
    let help = verdict.policy.description.as_deref().map(str::trim).filter(|it| !it.is_empty());
    let diagnostic = diagnostic.related(verdict.place.clone(), "the rule");
    match &verdict.field {
        Some(field) if !is_deleted => diagnostic.in_path(field.clone()),
        _ => diagnostic,
    }
    .help(help.unwrap_or("change the object, or the policy"))
}
