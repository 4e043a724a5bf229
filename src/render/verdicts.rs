//! What the policies of a repository say of its rendered targets.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use serde_json::Value;

use super::trace::explain::set_at;
use super::{Renderer, Renders, codes};
use crate::fleet::{Fleet, Target};
use crate::manifest::codes::LIMIT;
use crate::model::mark::kept_by;
use crate::model::{
    App, ClusterName, Diagnostic, Kind, Location, ObjectId, Policy, PolicyAction, PruneMode, Rendered,
    RenderedObject, Scope,
};
use crate::policy::{Cause, Change, Chosen, Judgement, PolicyTarget, Verdict, usual_namespace_labels};
use crate::schedule::assign;

/// Renders whose fields are traced: each is rendered some times more.
const MOST_TRACED: usize = 12;

/// Steps of all policies on all objects of a revision: some tens of seconds, and more than shipped policies need for a hundred thousand
/// objects.
const MOST_STEPS: u64 = 1_000_000_000;

/// What was there before a change.
#[derive(Clone, Copy, Debug)]
pub struct Before<'a> {
    pub fleet: &'a Fleet,
    pub renders: &'a Renders,
}

/// What policies say of a revision.
#[derive(Clone, Debug, Default)]
pub struct Verdicts {
    pub all: Vec<Diagnostic>,
    /// The errors of objects that were not there before, or were others.
    pub of_changed: Vec<Diagnostic>,
}

/// Says of each object that breaks a policy why, at the place that sets its field where that is known. Without `before` every object is
/// one that is created; with it, an object that is the same is judged as if it were.
pub fn verdicts(
    renderer: &Renderer<'_>,
    renders: &Renders,
    before: Option<Before<'_>>,
    goes_on: &dyn Fn() -> bool,
) -> Verdicts {
    verdicts_within(MOST_STEPS, renderer, renders, before, goes_on)
}

pub(super) fn verdicts_within(
    most_steps: u64,
    renderer: &Renderer<'_>,
    renders: &Renders,
    before: Option<Before<'_>>,
    goes_on: &dyn Fn() -> bool,
) -> Verdicts {
    let fleet = renderer.fleet;
    if fleet.policies.is_empty() {
        return Verdicts::default();
    }
    let mut judge = Judge { most_steps, compares: before.is_some(), ..Judge::of(fleet, renders) };
    let mut found: Vec<(Target, Arc<Vec<Found>>)> = Vec::new();
    for (target, (_, result)) in renders.iter() {
        let (Ok(after), Some(app)) = (result, fleet.apps.get(&target.app)) else { continue };
        let old = before.and_then(|before| before.renders.get(&target)?.1.as_ref().ok());
        found.push((target.clone(), judge.target(app, &target, Some(after), old)));
    }
    for (target, (_, result)) in before.iter().flat_map(|before| before.renders.iter()) {
        let app = before.and_then(|before| before.fleet.apps.get(&target.app));
        if let (None, Ok(old), Some(app)) = (renders.get(&target), result, app)
            && !fleet.broken.contains_key(&target.app)
            && !fleet.takes_away(app, vec![target.cluster.clone()]).is_empty()
        {
            found.push((target.clone(), judge.target(app, &target, None, Some(old))));
        }
    }
    found.retain(|(_, found)| !found.is_empty());
    let (mut traced, mut told) = (Traced::default(), Verdicts::default());
    for (target, found) in &found {
        for (verdict, is_changed) in self::told(renderer, target, found, &mut traced, goes_on) {
            if is_changed && verdict.diagnostic.is_error() {
                told.of_changed.push(verdict.diagnostic.clone());
            }
            told.all.push(verdict.diagnostic);
        }
    }
    if let Some(policy) = &judge.stopped_at {
        let error = too_much(policy, most_steps);
        told.of_changed.push(error.clone());
        told.all.push(error);
    }
    told
}

fn too_much(policy: &Policy, most_steps: u64) -> Diagnostic {
    let message = format!(
        "the policies take more than {most_steps} steps on the objects of this revision, so not all were evaluated; it ended at policy {}",
        policy.name
    );
    let scope = Scope::File(policy.location.file.clone());
    let help = "write matchConstraints that match fewer objects, or simpler expressions";
    Diagnostic::error(LIMIT, message, scope).at(policy.location.clone()).help(help)
}

/// What a policy says of an object of a target.
#[derive(Clone, Debug)]
pub struct TargetVerdict {
    pub cluster: ClusterName,
    pub policy: Arc<Policy>,
    pub cause: Cause,
    pub diagnostic: Diagnostic,
}

/// What policies say of one app as if all of it were created, also those that have a mistake.
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

struct Found {
    object: ObjectId,
    source: Location,
    is_deleted: bool,
    /// It was not there before, or was another.
    is_changed: bool,
    verdict: Verdict,
}

/// What the objects of all apps say of others.
#[derive(Debug)]
pub(super) struct Git {
    namespaces: BTreeMap<(ClusterName, String), BTreeMap<String, String>>,
    /// Else a namespace may be of an app whose render has not come yet.
    is_whole: bool,
    /// Plural names of defined kinds, by group and kind. Those of Kubernetes are not among them: no definition gives them another name.
    plurals: BTreeMap<(String, String), String>,
}

impl Git {
    pub(super) fn of(renders: &Renders) -> Self {
        let (mut namespaces, mut plurals) = (BTreeMap::new(), BTreeMap::new());
        for rendered in renders.results().flatten() {
            for object in rendered.objects.iter() {
                if (&*object.id.group, &*object.id.kind) == ("", "Namespace") {
                    let labels = object.body.field("/metadata/labels");
                    let labels = labels.as_ref().and_then(Value::as_object).into_iter().flatten();
                    let mut all = usual_namespace_labels(&object.id.name);
                    all.extend(
                        labels.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))),
                    );
                    namespaces.insert((rendered.cluster.clone(), object.id.name.to_string()), all);
                }
                if let Some((group, kind)) = object.defines()
                    && !Kind::new(group, "", kind).is_built_in()
                    && let Some(Value::String(plural)) = object.body.field("/spec/names/plural")
                {
                    plurals.insert((group.to_owned(), kind.to_owned()), plural);
                }
            }
        }
        Self { namespaces, is_whole: renders.is_complete(), plurals }
    }

    pub(super) fn plural(&self, kind: &Kind) -> Option<&str> {
        self.plurals.get(&(kind.group.to_string(), kind.kind.to_string())).map(String::as_str)
    }

    /// What policies say of one change; of what it changes, the kind, and whether messages may say what is in it.
    pub(super) fn judge(
        &self,
        chosen: &Chosen<'_>,
        (cluster, id): (&ClusterName, &ObjectId),
        (kind, hides_values): (&Kind, bool),
        (object, old_object): Sides<'_>,
    ) -> Judgement {
        let labels = id.namespace.as_deref().and_then(|namespace| {
            let known = self.namespaces.get(&(cluster.clone(), namespace.to_owned())).cloned();
            known.or_else(|| self.is_whole.then(|| usual_namespace_labels(namespace)))
        });
        let change = Change {
            kind,
            plural: self.plural(kind),
            object,
            old_object,
            namespace_labels: labels.as_ref(),
            hides_values,
        };
        chosen.judge(&change)
    }
}

/// An object after and before a change.
type Sides<'a> = (Option<&'a Value>, Option<&'a Value>);

/// What decides about a target, where no policy looks at the cluster itself.
type Key = (usize, usize, Vec<bool>, Option<String>, Option<String>, Vec<(String, String)>);

struct Judge<'a> {
    fleet: &'a Fleet,
    git: Git,
    /// Clusters with one render are judged once.
    known: HashMap<Key, Arc<Vec<Found>>>,
    /// Also what policies with a mistake say of what did not change; else that is shown once, at their files.
    tells_broken: bool,
    /// There is a side before.
    compares: bool,
    steps: u64,
    most_steps: u64,
    /// The policy that took most on the object with which the steps ended.
    stopped_at: Option<Arc<Policy>>,
}

impl<'a> Judge<'a> {
    fn of(fleet: &'a Fleet, renders: &Renders) -> Self {
        Self {
            fleet,
            git: Git::of(renders),
            known: HashMap::new(),
            tells_broken: false,
            compares: false,
            steps: 0,
            most_steps: MOST_STEPS,
            stopped_at: None,
        }
    }

    fn target(
        &mut self,
        app: &App,
        target: &Target,
        after: Option<&Arc<Rendered>>,
        before: Option<&Arc<Rendered>>,
    ) -> Arc<Vec<Found>> {
        let cluster = self.fleet.clusters.get(&target.cluster).filter(|_| self.stopped_at.is_none());
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
            return Arc::clone(known);
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
            self.object(&chosen, target, object, sides, is_changed, &mut found);
        }
        let default = self.fleet.instance.defaults.prune;
        let stays = after.is_some() && (app.unmanaged || app.prune.unwrap_or(default) == PruneMode::Never);
        let is_rendered: BTreeSet<&ObjectId> = rendered.iter().map(|object| &object.id).collect();
        for (id, (object, body)) in old_of.into_iter().filter(|(id, _)| !stays && !is_rendered.contains(id)) {
            debug_assert_eq!(*id, object.id);
            if kept_by(body).is_none() {
                self.object(&chosen, target, object, (None, Some(body)), true, &mut found);
            }
        }
        let found = Arc::new(found);
        if let Some(key) = key {
            self.known.insert(key, Arc::clone(&found));
        }
        found
    }

    fn object(
        &mut self,
        chosen: &Chosen<'_>,
        target: &Target,
        object: &RenderedObject,
        sides: Sides<'_>,
        is_changed: bool,
        found: &mut Vec<Found>,
    ) {
        if self.stopped_at.is_some() {
            return;
        }
        let what = (&object.kind, object.holds_secrets());
        let judgement = self.git.judge(chosen, (&target.cluster, &object.id), what, sides);
        self.steps += judgement.steps;
        if self.steps > self.most_steps {
            self.stopped_at = judgement.dearest;
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

/// `None`: it has none, or its podSets have several.
pub(super) fn version_of(app: &App, cluster: &ClusterName) -> Option<String> {
    let versions: BTreeSet<String> = assign(app, cluster).into_iter().filter_map(|it| it.version).collect();
    let mut versions = versions.into_iter();
    versions.next().filter(|_| versions.next().is_none())
}

/// Where fields are set, by what was found of them: clusters with one render have one answer.
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

/// Each with whether its object was not there before, or was another.
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
