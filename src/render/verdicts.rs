//! Evaluates the policies of a repository on its rendered targets, for `lint`, `why` and pull requests.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use serde_json::Value;

use super::git::{Git, Sides};
use super::trace::explain::set_at;
use super::{Renderer, Renders, codes};
use crate::fleet::{Fleet, Target};
use crate::manifest::codes::LIMIT;
use crate::model::mark::kept_by;
use crate::model::{
    App, ClusterName, Diagnostic, Location, ObjectId, Policy, PolicyAction, PruneMode, Rendered,
    RenderedObject, Scope,
};
use crate::policy::{Cause, Chosen, PolicyTarget, Verdict};
use crate::schedule::assign;

/// Targets whose fields are traced: each takes several renders.
const MOST_TRACED: usize = 12;

/// Steps of all policies on all objects of a revision: some tens of seconds. Shipped policies need less for a hundred
/// thousand objects.
const MOST_STEPS: u64 = 1_000_000_000;

/// Reported denials of changed objects, and other reported verdicts.
const MOST_TOLD: usize = 10_000;

/// The revision before the change.
#[derive(Clone, Copy, Debug)]
pub struct Before<'a> {
    pub fleet: &'a Fleet,
    pub renders: &'a Renders,
}

#[derive(Clone, Debug, Default)]
pub struct Verdicts {
    pub all: Vec<Diagnostic>,
    /// Errors of new and changed objects.
    pub of_changed: Vec<Diagnostic>,
}

/// Reports each object that violates a policy, at the position that sets the field if it is known. Without `before` every
/// object counts as created; with it, an unchanged object does. If `goes_on` returns false, the rest is skipped, which is an
/// error. Fields are traced while `traces` returns true.
pub fn verdicts(
    renderer: &Renderer<'_>,
    renders: &Renders,
    before: Option<Before<'_>>,
    goes_on: &dyn Fn() -> bool,
    traces: &dyn Fn() -> bool,
) -> Verdicts {
    verdicts_within((MOST_STEPS, MOST_TOLD), renderer, renders, before, (goes_on, traces))
}

pub(super) fn verdicts_within(
    (most_steps, most_told): (u64, usize),
    renderer: &Renderer<'_>,
    renders: &Renders,
    before: Option<Before<'_>>,
    (goes_on, traces): (&dyn Fn() -> bool, &dyn Fn() -> bool),
) -> Verdicts {
    let fleet = renderer.fleet;
    if fleet.policies.is_empty() {
        return Verdicts::default();
    }
    let mut judge = Judge { most_steps, most_told, compares: before.is_some(), ..Judge::of(fleet, renders) };
    let mut found: Vec<(Target, Arc<Vec<Found>>)> = Vec::new();
    for (target, (_, result)) in renders.iter() {
        let (Ok(after), Some(app)) = (result, fleet.apps.get(&target.app)) else { continue };
        judge.stop_unless(goes_on());
        let old = before.and_then(|before| before.renders.get(&target)?.1.as_ref().ok());
        found.push((target.clone(), judge.target(app, &target, Some(after), old)));
    }
    for (target, (_, result)) in before.iter().flat_map(|before| before.renders.iter()) {
        let app = before.and_then(|before| before.fleet.apps.get(&target.app));
        if let (None, Ok(old), Some(app)) = (renders.get(&target), result, app)
            && !fleet.broken.contains_key(&target.app)
            && !fleet.takes_away(app, vec![target.cluster.clone()]).is_empty()
        {
            judge.stop_unless(goes_on());
            found.push((target.clone(), judge.target(app, &target, None, Some(old))));
        }
    }
    found.retain(|(_, found)| !found.is_empty());
    let (mut traced, mut told) = (Traced::default(), Verdicts::default());
    for (target, found) in &found {
        for (verdict, is_changed) in self::told(renderer, target, found, &mut traced, traces) {
            if is_changed && verdict.diagnostic.is_error() {
                told.of_changed.push(verdict.diagnostic.clone());
            }
            told.all.push(verdict.diagnostic);
        }
    }
    if let Some(stop) = &judge.stopped {
        let error = too_much(stop, (most_steps, most_told), fleet);
        told.of_changed.push(error.clone());
        told.all.push(error);
    }
    told
}

/// Why evaluation stopped.
#[derive(Debug)]
enum Stop {
    /// With the most expensive policy on the last object.
    Steps(Option<Arc<Policy>>),
    Denials,
    Time,
}

fn too_much(stop: &Stop, (most_steps, most_told): (u64, usize), fleet: &Fleet) -> Diagnostic {
    let (why, policy) = match stop {
        Stop::Steps(policy) => (format!("take more than {most_steps} steps on"), policy.as_ref()),
        Stop::Denials => (format!("deny more than {most_told} times"), None),
        Stop::Time => ("take too long on".to_owned(), None),
    };
    let ended = policy.map_or_else(String::new, |policy| format!("; it ended at policy {}", policy.name));
    let message =
        format!("the policies {why} the objects of this revision, so not all were evaluated{ended}");
    let place = policy.or(fleet.policies.all().next()).map(|policy| policy.location.clone());
    let scope = place.as_ref().map_or(Scope::Instance, |place| Scope::File(place.file.clone()));
    let error = Diagnostic::error(LIMIT, message, scope)
        .help("write matchConstraints that match fewer objects, or simpler expressions");
    match place {
        Some(place) => error.at(place),
        None => error,
    }
}

#[derive(Clone, Debug)]
pub struct TargetVerdict {
    pub cluster: ClusterName,
    pub policy: Arc<Policy>,
    pub cause: Cause,
    pub diagnostic: Diagnostic,
}

/// Evaluates one app as if all of it were created. Reports invalid policies too.
pub fn verdicts_of(renderer: &Renderer<'_>, renders: &Renders, app: &App) -> Vec<TargetVerdict> {
    let mut judge = Judge { tells_broken: true, ..Judge::of(renderer.fleet, renders) };
    let mut traced = Traced::default();
    let of_app = renders.apps.get(&app.id).into_iter().flat_map(|clusters| clusters.iter());
    let rendered = of_app.filter_map(|(cluster, (_, result))| Some((cluster, result.as_ref().ok()?)));
    let told = rendered.flat_map(|(cluster, rendered)| {
        let target = Target { app: app.id.clone(), cluster: cluster.clone() };
        let found = judge.target(app, &target, Some(rendered), None);
        told(renderer, &target, &found, &mut traced, &|| true)
    });
    told.map(|(verdict, _)| verdict).collect()
}

#[derive(Clone)]
struct Found {
    object: ObjectId,
    source: Location,
    is_deleted: bool,
    /// The object is new or changed.
    is_changed: bool,
    verdict: Verdict,
}

/// The inputs of the verdicts if no policy reads the cluster.
type Key = (usize, usize, Vec<bool>, Option<String>, Option<String>, Vec<(String, String)>);

struct Judge<'a> {
    fleet: &'a Fleet,
    git: Git,
    /// Clusters that share a render are evaluated once.
    known: HashMap<Key, Arc<Vec<Found>>>,
    /// Reports invalid policies for unchanged objects too; otherwise only their files report them.
    tells_broken: bool,
    compares: bool,
    steps: u64,
    most_steps: u64,
    /// Counted for each cluster.
    denials: usize,
    others: usize,
    most_told: usize,
    stopped: Option<Stop>,
}

impl<'a> Judge<'a> {
    fn of(fleet: &'a Fleet, renders: &Renders) -> Self {
        Self {
            fleet,
            git: Git::of(fleet, renders),
            known: HashMap::new(),
            tells_broken: false,
            compares: false,
            steps: 0,
            most_steps: MOST_STEPS,
            denials: 0,
            others: 0,
            most_told: MOST_TOLD,
            stopped: None,
        }
    }

    fn stop_unless(&mut self, goes_on: bool) {
        if !goes_on && self.stopped.is_none() {
            self.stopped = Some(Stop::Time);
        }
    }

    /// Drops reports over the limit. Too many denials of changed objects are an error.
    fn count(&mut self, found: Arc<Vec<Found>>) -> Arc<Vec<Found>> {
        let is_new = |it: &&Found| it.is_changed && it.verdict.action == PolicyAction::Deny;
        let denials = found.iter().filter(is_new).count();
        let others = found.len() - denials;
        self.denials += denials;
        self.others += others;
        if self.denials > self.most_told {
            self.stopped.get_or_insert(Stop::Denials);
            return Arc::default();
        }
        if self.others <= self.most_told || others == 0 {
            return found;
        }
        Arc::new(found.iter().filter(is_new).cloned().collect())
    }

    fn target(
        &mut self,
        app: &App,
        target: &Target,
        after: Option<&Arc<Rendered>>,
        before: Option<&Arc<Rendered>>,
    ) -> Arc<Vec<Found>> {
        let cluster = self.fleet.clusters.get(&target.cluster).filter(|_| self.stopped.is_none());
        let Some(cluster) = cluster else { return Arc::default() };
        let ring = self.fleet.ring_of(&target.cluster);
        let version = version_of(app, &target.cluster);
        let bodies = |rendered: Option<&Arc<Rendered>>| -> Vec<Value> {
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
        let chosen = self.fleet.policies.chosen(&policy_target(&[]));
        if chosen.is_empty() {
            return Arc::default();
        }
        let address = |rendered: Option<&Arc<Rendered>>| rendered.map_or(0, |it| it.objects.as_ptr().addr());
        let key = (!chosen.look_at_cluster()).then(|| {
            let labels = app.labels.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
            let which = chosen.which().to_vec();
            (address(after), address(before), which, ring.map(str::to_owned), version.clone(), labels)
        });
        if let Some(known) = key.as_ref().and_then(|key| self.known.get(key)) {
            let known = Arc::clone(known);
            return self.count(known);
        }
        let (new, old) = (bodies(after), bodies(before));
        let rendered = after.map_or(&[][..], |it| &it.objects);
        let visible = rendered.iter().zip(&new).filter(|(object, _)| !object.holds_secrets());
        let visible: Vec<Value> = visible.map(|(_, body)| body.clone()).collect();
        let chosen = self.fleet.policies.chosen(&policy_target(&visible));
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
            self.object(&chosen, target, (object, hides_values), sides, is_changed, &mut found);
        }
        let default = self.fleet.instance.defaults.prune;
        let stays = after.is_some() && (app.unmanaged || app.prune.unwrap_or(default) == PruneMode::Never);
        let is_rendered: BTreeSet<&ObjectId> = rendered.iter().map(|object| &object.id).collect();
        for (id, (object, body)) in old_of.into_iter().filter(|(id, _)| !stays && !is_rendered.contains(id)) {
            debug_assert_eq!(*id, object.id);
            if kept_by(body).is_none() {
                let what = (object, object.holds_secrets());
                self.object(&chosen, target, what, (None, Some(body)), true, &mut found);
            }
        }
        let found = Arc::new(found);
        if let Some(key) = key {
            self.known.insert(key, Arc::clone(&found));
        }
        self.count(found)
    }

    fn object(
        &mut self,
        chosen: &Chosen<'_>,
        target: &Target,
        (object, hides_values): (&RenderedObject, bool),
        sides: Sides<'_>,
        is_changed: bool,
        found: &mut Vec<Found>,
    ) {
        if self.stopped.is_some() {
            return;
        }
        let what = (&object.kind, hides_values);
        let judgement = self.git.judge(chosen, (&target.cluster, &object.id), what, sides, None);
        self.steps += judgement.steps;
        if self.steps > self.most_steps {
            self.stopped = Some(Stop::Steps(judgement.dearest));
        }
        let tells_broken = self.tells_broken || self.compares && is_changed;
        let is_told = |it: &Verdict| tells_broken || it.cause != Cause::Broken;
        found.extend(judgement.verdicts.into_iter().filter(is_told).map(|verdict| Found {
            object: object.id.clone(),
            source: object.source.clone(),
            is_deleted: sides.0.is_none(),
            is_changed,
            verdict,
        }));
    }
}

/// `None`: no version, or several.
pub(super) fn version_of(app: &App, cluster: &ClusterName) -> Option<String> {
    let versions: BTreeSet<String> = assign(app, cluster).into_iter().filter_map(|it| it.version).collect();
    let mut versions = versions.into_iter();
    versions.next().filter(|_| versions.next().is_none())
}

/// Positions of fields by verdicts: clusters that share a render share them.
#[derive(Default)]
struct Traced(HashMap<usize, (Arc<Vec<Found>>, SetAt)>);

type SetAt = BTreeMap<(ObjectId, String), Location>;

impl Traced {
    fn places(
        &mut self,
        renderer: &Renderer<'_>,
        target: &Target,
        found: &Arc<Vec<Found>>,
        goes_on: &dyn Fn() -> bool,
    ) -> SetAt {
        let address = Arc::as_ptr(found).addr();
        if let Some((_, known)) = self.0.get(&address) {
            return known.clone();
        }
        let wanted = found.iter().filter(|it| !it.is_deleted);
        let wanted: BTreeSet<(ObjectId, String)> =
            wanted.filter_map(|it| Some((it.object.clone(), it.verdict.field.clone()?))).collect();
        if wanted.is_empty() || self.0.len() >= MOST_TRACED || !goes_on() {
            return SetAt::new();
        }
        let places = set_at(renderer, target, &wanted);
        self.0.insert(address, (Arc::clone(found), places.clone()));
        places
    }
}

/// The flag says whether the object is new or changed.
fn told(
    renderer: &Renderer<'_>,
    target: &Target,
    found: &Arc<Vec<Found>>,
    traced: &mut Traced,
    goes_on: &dyn Fn() -> bool,
) -> Vec<(TargetVerdict, bool)> {
    let places = traced.places(renderer, target, found, goes_on);
    let is_there = |file: &str| renderer.snapshot.text(file).is_some();
    let app = renderer.fleet.apps.get(&target.app);
    let place = |it: &Found| {
        let field =
            it.verdict.field.as_ref().and_then(|field| places.get(&(it.object.clone(), field.clone())));
        let source = (!it.is_deleted && is_there(&it.source.file)).then_some(&it.source);
        field.or(source).or(app.map(|app| &app.location)).unwrap_or(&it.verdict.place).clone()
    };
    let verdict = |it: &Found| {
        let verdict = TargetVerdict {
            cluster: target.cluster.clone(),
            policy: Arc::clone(&it.verdict.policy),
            cause: it.verdict.cause,
            diagnostic: diagnostic(target, it).at(place(it)),
        };
        (verdict, it.is_changed)
    };
    found.iter().map(verdict).collect()
}

fn diagnostic(target: &Target, found: &Found) -> Diagnostic {
    let Found { object, verdict, is_deleted, .. } = found;
    let scope = Scope::Target(target.app.clone(), target.cluster.clone());
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
