//! Renders every target of a fleet, and reuses renders of earlier revisions.
//!
//! A render depends on its app and the files that the app names, the layers of the target, the podSets, and the answers to
//! every question about the cluster. If all of these are equal, on another cluster or in a later revision, the objects are
//! shared. A failed render is never reused.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::inputs::{Inputs, Kept};
use super::site::{Asked, Facts, Seen};
use super::turn::{Pacing, Turn};
use super::{Defined, Discovered, Job, Made, Renderer, codes, idle_patch, in_order, unknown};
use crate::fleet::Target;
use crate::fleet::layers::TEMPLATES;
use crate::model::{
    App, AppId, Capabilities, Cluster, ClusterName, Diagnostic, Digest, Instance, KindFacts, KindsByName,
    Location, Rendered, Revision, Ring, Scope,
};
use crate::schedule::{AssignedPodSet, assign};

/// The units of a target.
type PodSets = Arc<[Arc<str>]>;

/// The objects of a target or its mistakes, and the commit that its status is posted on.
pub type Render = (Revision, Result<Arc<Rendered>, Vec<Diagnostic>>);

/// Every target of a revision.
#[derive(Clone, Debug)]
pub struct Renders {
    pub revision: Revision,
    /// By app and cluster.
    pub apps: BTreeMap<AppId, Arc<BTreeMap<ClusterName, Render>>>,
    /// Renders that were computed; all others were reused.
    pub made: usize,
    /// Some targets were not started in time; the next pass renders them.
    is_cut_short: bool,
    /// The capabilities that the renders assumed.
    discovered: Discovered,
    defined: Defined,
}

impl Renders {
    pub fn get(&self, target: &Target) -> Option<&Render> {
        self.apps.get(&target.app)?.get(&target.cluster)
    }

    /// Targets whose render does not hold for these capabilities of the cluster.
    pub fn stale(&self, cluster: &Cluster, found: &Arc<Capabilities>) -> Vec<Target> {
        let now = Capabilities::of(cluster, Some(found));
        let same = self
            .discovered
            .get(&cluster.name)
            .is_some_and(|known| Arc::ptr_eq(known, found) || known == found);
        if same {
            return Vec::new();
        }
        let defined = self.defined.get(&cluster.name).cloned().unwrap_or_default();
        let holds = |(_, result): &Render| {
            result.as_ref().is_ok_and(|rendered| rendered.questions.hold(&now, &defined))
        };
        let here = self.apps.iter().filter_map(|(app, clusters)| Some((app, clusters.get(&cluster.name)?)));
        let stale = here.filter(|(_, render)| !holds(render));
        stale.map(|(app, _)| Target { app: app.clone(), cluster: cluster.name.clone() }).collect()
    }

    pub fn iter(&self) -> impl Iterator<Item = (Target, &Render)> {
        self.apps.iter().flat_map(|(app, clusters)| {
            let target = |cluster: &ClusterName| Target { app: app.clone(), cluster: cluster.clone() };
            clusters.iter().map(move |(cluster, render)| (target(cluster), render))
        })
    }

    /// Every target was started. Charts may still be fetched.
    pub fn is_complete(&self) -> bool {
        !self.is_cut_short
    }

    /// Some cluster has no result for this app yet.
    pub fn is_awaited(&self, app: &AppId) -> bool {
        self.of_app(app).any(|(_, result)| is_awaited(result))
    }

    pub fn of_app(&self, app: &AppId) -> impl Iterator<Item = &Render> {
        self.apps.get(app).into_iter().flat_map(|clusters| clusters.values())
    }

    /// The kinds that apps define, by cluster.
    pub fn defined(&self) -> &Defined {
        &self.defined
    }

    /// Custom kinds of all clusters, as discovered or as apps define them.
    pub fn kinds(&self) -> impl Iterator<Item = (&String, &KindFacts)> {
        let served = self.discovered.values().flat_map(|known| &known.kinds);
        served.chain(self.defined.values().flat_map(|kinds| &**kinds))
    }

    pub fn results(&self) -> impl Iterator<Item = &Result<Arc<Rendered>, Vec<Diagnostic>>> {
        self.apps.values().flat_map(|clusters| clusters.values().map(|(_, result)| result))
    }
}

/// Renders of the last revision. Losing it costs only time.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    instance: Option<Instance>,
    ground: Option<Ground>,
    defined: Defined,
    apps: BTreeMap<AppId, Known>,
}

/// The inputs that all apps share. If they are equal, an untouched app keeps its renders on every cluster.
#[derive(Clone, Debug, PartialEq)]
struct Ground {
    clusters: BTreeMap<ClusterName, Cluster>,
    rings: Vec<Ring>,
    /// The files of the shared layers.
    layers: Digest,
    /// The last commit that changed any of these.
    changed: Revision,
    discovered: Discovered,
    defined: Defined,
}

impl Ground {
    fn of(renderer: &Renderer<'_>) -> Self {
        let Renderer { fleet, snapshot, discovered, defined, .. } = renderer;
        let clusters = fleet.clusters.values().map(|cluster| &cluster.location);
        let places = clusters.chain(&fleet.rings_location).map(|location| location.file.as_str());
        Self {
            clusters: fleet.clusters.clone(),
            rings: fleet.rings.clone(),
            layers: Digest::of_files(snapshot.files_in(TEMPLATES)),
            changed: snapshot.last_change(places.chain([TEMPLATES])).clone(),
            discovered: discovered.clone(),
            defined: defined.clone(),
        }
    }
}

/// The renders of one app.
#[derive(Clone, Debug)]
struct Known {
    inputs: Kept,
    traces: Vec<Arc<Trace>>,
    /// Index into `traces`, by cluster.
    of_clusters: BTreeMap<ClusterName, usize>,
    renders: Arc<BTreeMap<ClusterName, Render>>,
    /// Renders that reached the end of their time slice.
    cut_off: u32,
}

impl Known {
    fn nothing(app: &Arc<App>) -> Self {
        let (traces, of_clusters) = (Vec::new(), BTreeMap::new());
        Self { inputs: Kept::nothing_but(app), traces, of_clusters, renders: Arc::default(), cut_off: 0 }
    }
}

/// One render and its inputs, besides those of its app.
#[derive(Clone, Debug)]
struct Trace {
    stack: Digest,
    pod_sets: Vec<AssignedPodSet>,
    seen: Seen,
    made: Made,
}

/// Bounds the comparison with earlier renders and question sets. Without it, an app that differs on each of 2,000 clusters
/// costs their square.
const COMPARED: usize = 16;

/// After this many ended workers for one app and stack, its other clusters are skipped: each attempt costs seconds and would
/// delay other commits.
const PATIENCE: usize = 2;

/// An app to be rendered.
struct Task<'a> {
    app: &'a Arc<App>,
    clusters: Vec<ClusterName>,
    known: Option<Known>,
}

impl Task<'_> {
    /// Apps that rendered before come first, then new apps, then apps that were cut off least often. So no broken app delays
    /// the others. Charts come last because they wait for child processes.
    fn turn(&self) -> (bool, u8, u32) {
        let order = match &self.known {
            None => 1,
            Some(known) if known.renders.values().all(|(_, result)| result.is_ok()) => 0,
            Some(known) if known.renders.values().all(|(_, result)| result.is_ok() || is_awaited(result)) => {
                1
            }
            Some(_) => 2,
        };
        (self.app.is_chart(), order, self.known.as_ref().map_or(0, |known| known.cut_off))
    }
}

#[derive(Clone, Copy)]
struct Turns<'a> {
    pacing: Pacing<'a>,
    is_cut_short: &'a AtomicBool,
}

/// Renders every target on all cores. It blocks, so call it off the async threads. With `pacing`, each target has a time
/// slice and unfinished targets are awaited.
///
/// The kinds that an app defines are known only after its render. Targets that asked for one of them earlier are rendered
/// again.
pub fn all(renderer: &mut Renderer<'_>, memory: &mut Memory, pacing: Option<Pacing<'_>>) -> Renders {
    render_apps(renderer, memory, None, pacing)
}

/// Renders only these apps. The caller names the kinds that other apps define ([`Renderer::beside`]). A patch of a shared
/// layer that matches nothing here is no mistake, because it may match other apps.
pub fn some(renderer: &mut Renderer<'_>, apps: &BTreeSet<AppId>, pacing: Option<Pacing<'_>>) -> Renders {
    render_apps(renderer, &mut Memory::default(), Some(apps), pacing)
}

fn render_apps(
    renderer: &mut Renderer<'_>,
    memory: &mut Memory,
    only: Option<&BTreeSet<AppId>>,
    pacing: Option<Pacing<'_>>,
) -> Renders {
    // Names, labels and chart sources of the instance affect every app.
    let instance = &renderer.fleet.instance;
    if memory.instance.as_ref() != Some(instance) {
        *memory = Memory { instance: Some(instance.clone()), ..Memory::default() };
    }
    renderer.defined = with_those_beside(std::mem::take(&mut memory.defined), &renderer.beside);
    let mut renders = pass(renderer, memory, only, pacing);
    let defined = with_those_beside(defined(memory), &renderer.beside);
    if defined != renderer.defined {
        renderer.defined = defined;
        if is_any_answered_otherwise(renderer, &renders) {
            let made = renders.made;
            renders = pass(renderer, memory, only, pacing);
            renders.made += made;
        }
    }
    memory.defined = renderer.defined.clone();
    renders.defined = renderer.defined.clone();
    renders
}

fn with_those_beside(mut defined: Defined, beside: &Defined) -> Defined {
    for (cluster, kinds) in beside {
        let of_cluster = Arc::make_mut(defined.entry(cluster.clone()).or_default());
        for (name, facts) in &**kinds {
            of_cluster.entry(name.clone()).or_insert_with(|| facts.clone());
        }
    }
    defined
}

/// The kinds that the apps of each cluster define. A failed app defines none. If two apps define one kind, the first by name
/// wins.
fn defined(memory: &Memory) -> Defined {
    let mut defined: BTreeMap<ClusterName, KindsByName> = BTreeMap::new();
    for known in memory.apps.values() {
        for (cluster, number) in &known.of_clusters {
            let Some(trace) = known.traces.get(*number).filter(|trace| !trace.made.defines.is_empty()) else {
                continue;
            };
            let of_cluster = defined.entry(cluster.clone()).or_default();
            for (name, facts) in &*trace.made.defines {
                of_cluster.entry(name.clone()).or_insert_with(|| facts.clone());
            }
        }
    }
    defined.into_iter().map(|(cluster, kinds)| (cluster, Arc::new(kinds))).collect()
}

fn is_any_answered_otherwise(renderer: &Renderer<'_>, renders: &Renders) -> bool {
    let none = Arc::default();
    renders.iter().any(|(target, (_, result))| {
        let Some((_, capabilities)) = renderer.clusters.get(&target.cluster) else { return false };
        let defined = renderer.defined.get(&target.cluster).unwrap_or(&none);
        result.as_ref().is_ok_and(|rendered| !rendered.questions.hold(capabilities.known(), defined))
    })
}

fn pass(
    renderer: &Renderer<'_>,
    memory: &mut Memory,
    only: Option<&BTreeSet<AppId>>,
    pacing: Option<Pacing<'_>>,
) -> Renders {
    let fleet = renderer.fleet;
    let ground = Ground::of(renderer);
    let same_ground = memory.ground.as_ref() == Some(&ground);
    memory.ground = Some(ground);
    let mut earlier = std::mem::take(&mut memory.apps);
    let mut tasks: Vec<Task<'_>> = fleet
        .placed()
        .filter(|(app, _)| only.is_none_or(|only| only.contains(&app.id)))
        .map(|(app, clusters)| Task { app, clusters, known: earlier.remove(&app.id) })
        .collect();
    drop(earlier);
    // `Task::turn` reads all renders of an app, so it runs once for each.
    tasks.sort_by_cached_key(Task::turn);
    let is_cut_short = AtomicBool::new(false);
    let turns = pacing.map(|pacing| Turns { pacing, is_cut_short: &is_cut_short });
    let (known, made) = side_by_side(renderer, tasks, same_ground, turns);
    memory.apps = known;
    let apps = memory.apps.iter().map(|(id, known)| (id.clone(), Arc::clone(&known.renders)));
    let mut renders = Renders {
        revision: renderer.snapshot.revision.clone(),
        apps: apps.collect(),
        made,
        is_cut_short: is_cut_short.into_inner(),
        discovered: renderer.discovered.clone(),
        defined: Defined::new(),
    };
    refuse_idle_patches(renderer, memory, only.is_some(), &mut renders);
    renders
}

fn side_by_side(
    renderer: &Renderer<'_>,
    tasks: Vec<Task<'_>>,
    same_ground: bool,
    turns: Option<Turns<'_>>,
) -> (BTreeMap<AppId, Known>, usize) {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(tasks.len()).max(1);
    let tasks: Vec<parking_lot::Mutex<Option<Task<'_>>>> =
        tasks.into_iter().map(|task| parking_lot::Mutex::new(Some(task))).collect();
    let (next, made) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || {
        let mut done = Vec::new();
        while let Some(place) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
            let Some(task) = place.lock().take() else { continue };
            let (app, clusters) = (task.app, task.clusters.clone());
            let id = app.id.clone();
            let whole = catch_unwind(AssertUnwindSafe(|| one(renderer, task, same_ground, turns)));
            let (known, count) = whole.unwrap_or_else(|_| (all_crashed(renderer, app, clusters), 0));
            made.fetch_add(count, Ordering::Relaxed);
            done.push((id, known));
        }
        done
    };
    let known = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mut known: BTreeMap<AppId, Known> = work().into_iter().collect();
        for other in others {
            // A missing app would count as removed, so a panic fails the whole revision.
            known.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        known
    });
    (known, made.into_inner())
}

/// Renders one app on all of its clusters. Returns the number of computed renders too.
fn one(
    renderer: &Renderer<'_>,
    mut task: Task<'_>,
    same_ground: bool,
    turns: Option<Turns<'_>>,
) -> (Known, usize) {
    let inputs = Arc::new(Inputs::of(renderer.fleet, renderer.snapshot, task.app));
    let untouched = |known: &Known| {
        same_ground
            && inputs.is_untouched(&known.inputs)
            && known.renders.keys().eq(&task.clusters)
            && known.renders.values().all(|(_, result)| result.is_ok())
    };
    if let Some(known) = task.known.take_if(|known| untouched(known)) {
        return (known, 0);
    }
    let is_over = || turns.is_some_and(|turns| !(turns.pacing.goes_on)());
    let note_cut_short = || {
        if let Some(turns) = turns {
            turns.is_cut_short.store(true, Ordering::Relaxed);
        }
    };
    if is_over() {
        note_cut_short();
        let render = |cluster: ClusterName| {
            let target = Target { app: task.app.id.clone(), cluster };
            let render = not_begun(renderer, task.app, &target);
            (target.cluster, render)
        };
        let renders = Arc::new(task.clusters.into_iter().map(render).collect());
        let known = task.known.unwrap_or_else(|| Known::nothing(task.app));
        return (Known { renders, ..known }, 0);
    }
    let before = task.known.as_ref().map(|known| Arc::clone(&known.renders)).unwrap_or_default();
    let earlier = task.known.filter(|known| inputs.is_same_as(&known.inputs));
    let cut_off_before = earlier.as_ref().map_or(0, |known| known.cut_off);
    let mut cut_off = false;
    let mut traces = Traces { earlier, ..Traces::default() };
    let mut renders = BTreeMap::new();
    for cluster in task.clusters {
        let target = Target { app: task.app.id.clone(), cluster };
        let rendering = || {
            // If one cluster was cut off, the others most likely would be too, and other apps wait.
            if cut_off || is_over() {
                note_cut_short();
                traces.keep_for_later(&target.cluster);
                return not_begun(renderer, task.app, &target);
            }
            let turn = turns.map_or_else(Turn::endless, |turns| {
                Turn::after(cut_off_before, task.app.is_chart(), turns.pacing)
            });
            let (rendered, was_cut_off) = render(renderer, &inputs, &target, &mut traces, turn);
            if was_cut_off {
                note_cut_short();
                traces.keep_for_later(&target.cluster);
                cut_off = true;
            }
            rendered
        };
        let rendered = catch_unwind(AssertUnwindSafe(rendering));
        let (revision, result) =
            rendered.unwrap_or_else(|_| (renderer.snapshot.revision.clone(), Err(crashed(&target))));
        let result = result.map(|(made, pod_sets)| match before.get(&target.cluster) {
            Some((_, Ok(known)))
                if known.revision == revision
                    && Arc::ptr_eq(&known.objects, &made.objects)
                    && known.pod_sets == pod_sets =>
            {
                Arc::clone(known)
            }
            _ => Arc::new(made.into_rendered(&target, revision.clone(), pod_sets)),
        });
        renders.insert(target.cluster, (revision, result));
    }
    let Traces { now: traces, of_clusters, made, .. } = traces;
    let cut_off = cut_off_before + u32::from(cut_off);
    (Known { inputs: inputs.kept(), traces, of_clusters, renders: Arc::new(renders), cut_off }, made)
}

/// The renders of one app: those of an earlier revision while its inputs are equal, and those of this revision.
#[derive(Default)]
struct Traces {
    earlier: Option<Known>,
    /// From the index in the earlier renders to the index in `now`.
    moved: BTreeMap<usize, usize>,
    now: Vec<Arc<Trace>>,
    /// Distinct question sets, and the renders by stack and answers.
    asked: Vec<Asked>,
    by_answers: HashMap<(Digest, String), Vec<usize>>,
    of_clusters: BTreeMap<ClusterName, usize>,
    made: usize,
    /// Renders that ended their worker, with the last mistakes, by stack.
    ended: HashMap<Digest, (usize, Vec<Diagnostic>)>,
}

impl Traces {
    fn find(&mut self, cluster: &ClusterName, basis: &Basis<'_>) -> Option<Made> {
        let number = self.same_as_before(cluster, basis).or_else(|| self.by_answers(basis))?;
        self.of_clusters.insert(cluster.clone(), number);
        self.now.get(number).map(|trace| trace.made.clone())
    }

    /// The earlier render of the cluster, else one of the first renders of other clusters.
    fn same_as_before(&mut self, cluster: &ClusterName, basis: &Basis<'_>) -> Option<usize> {
        let earlier = self.earlier.as_ref()?;
        let own = earlier.of_clusters.get(cluster).copied();
        let mut candidates = own.into_iter().chain(0..earlier.traces.len().min(COMPARED));
        let number =
            candidates.find(|number| earlier.traces.get(*number).is_some_and(|it| basis.gave(it)))?;
        if let Some(known) = self.moved.get(&number) {
            return Some(*known);
        }
        let trace = Arc::clone(earlier.traces.get(number)?);
        let place = self.keep(trace, basis);
        self.moved.insert(number, place);
        Some(place)
    }

    /// Keeps the earlier render, and the kinds that it defines, for a cluster that is skipped in this pass.
    fn keep_for_later(&mut self, cluster: &ClusterName) {
        let Some(number) = self.earlier.as_ref().and_then(|it| it.of_clusters.get(cluster)).copied() else {
            return;
        };
        let Some(trace) = self.earlier.as_ref().and_then(|it| it.traces.get(number)).map(Arc::clone) else {
            return;
        };
        let place = *self.moved.entry(number).or_insert_with(|| {
            self.now.push(trace);
            self.now.len() - 1
        });
        self.of_clusters.insert(cluster.clone(), place);
    }

    fn by_answers(&self, basis: &Basis<'_>) -> Option<usize> {
        let answers = |asked: &Asked| (basis.stack, asked.answers_of(basis.facts));
        let known = |key: (Digest, String)| {
            self.by_answers.get(&key)?.iter().find(|number| self.gave(**number, basis))
        };
        self.asked.iter().rev().take(COMPARED).map(answers).find_map(known).copied()
    }

    fn gave(&self, number: usize, basis: &Basis<'_>) -> bool {
        self.now.get(number).is_some_and(|trace| basis.gave(trace))
    }

    fn keep(&mut self, trace: Arc<Trace>, basis: &Basis<'_>) -> usize {
        let (asked, number) = (trace.seen.asked(), self.now.len());
        self.by_answers.entry((basis.stack, asked.answers_of(basis.facts))).or_default().push(number);
        if !self.asked.contains(&asked) {
            self.asked.push(asked);
        }
        self.now.push(trace);
        number
    }
}

/// The inputs of a render besides those of its app.
struct Basis<'a> {
    stack: Digest,
    pod_sets: &'a [AssignedPodSet],
    facts: &'a Facts,
}

impl Basis<'_> {
    fn gave(&self, trace: &Trace) -> bool {
        trace.stack == self.stack && trace.pod_sets == self.pod_sets && trace.seen.is_true_of(self.facts)
    }
}

/// The result of a target that was not started in time.
fn not_begun<T>(
    renderer: &Renderer<'_>,
    app: &App,
    target: &Target,
) -> (Revision, Result<T, Vec<Diagnostic>>) {
    let scope = Scope::Target(target.app.clone(), target.cluster.clone());
    let message = format!("{target} is being rendered");
    let awaited = vec![Diagnostic::error(codes::AWAITED, message, scope).at(app.location.clone())];
    (blame(renderer, &awaited), Err(awaited))
}

/// An awaited target is no mistake: a later pass renders it.
pub fn is_awaited<T>(result: &Result<T, Vec<Diagnostic>>) -> bool {
    result.as_ref().is_err_and(|mistakes| mistakes.iter().all(|it| it.code == codes::AWAITED))
}

/// A panic of the renderer fails only its own target.
fn crashed(target: &Target) -> Vec<Diagnostic> {
    let scope = Scope::Target(target.app.clone(), target.cluster.clone());
    let message = format!("failed to render {target}: the renderer crashed, which is a fault of tutti");
    vec![Diagnostic::error(codes::CRASHED, message, scope)]
}

/// A panic in the shared inputs of an app fails all its targets. Nothing is reused.
fn all_crashed(renderer: &Renderer<'_>, app: &Arc<App>, clusters: Vec<ClusterName>) -> Known {
    let render = |cluster: ClusterName| {
        let mistakes = crashed(&Target { app: app.id.clone(), cluster: cluster.clone() });
        (cluster, (renderer.snapshot.revision.clone(), Err(mistakes)))
    };
    Known { renders: Arc::new(clusters.into_iter().map(render).collect()), ..Known::nothing(app) }
}

/// A commit and the result of a render.
type Tried = (Revision, Result<(Made, PodSets), Vec<Diagnostic>>);

/// Reuses or computes one render. The flag says whether its time slice ended.
fn render(
    renderer: &Renderer<'_>,
    inputs: &Arc<Inputs<'_>>,
    target: &Target,
    traces: &mut Traces,
    turn: Turn<'_>,
) -> (Tried, bool) {
    let blamed = |mistakes, was_cut_off| {
        let mistakes = in_order(mistakes);
        ((blame(renderer, &mistakes), Err(mistakes)), was_cut_off)
    };
    let Some(job) = renderer.job_of(inputs, target) else { return blamed(vec![unknown(target)], false) };
    let job = Job { turn, ..job };
    let stack = match job.stacks.of(&job) {
        Ok(stack) => stack,
        Err(mistakes) => return blamed(mistakes, job.turn.was_cut_off()),
    };
    let revision = job.revision(&stack);
    let pod_sets = assign(job.app, &target.cluster);
    let basis = Basis { stack: stack.id, pod_sets: &pod_sets, facts: job.site.facts() };
    if let Some(made) = traces.find(&target.cluster, &basis) {
        return ((revision, Ok((made, job.pod_sets(&pod_sets)))), false);
    }
    if let Some((times, mistakes)) = traces.ended.get(&stack.id)
        && *times >= PATIENCE
    {
        return blamed(job.rescoped(mistakes), false);
    }
    traces.made += 1;
    match job.make(&stack) {
        Ok(made) => {
            let seen = job.site.take_seen();
            let trace = Trace { stack: stack.id, pod_sets: pod_sets.clone(), seen, made: made.clone() };
            let number = traces.keep(Arc::new(trace), &basis);
            traces.of_clusters.insert(target.cluster.clone(), number);
            ((revision, Ok((made, job.pod_sets(&pod_sets)))), false)
        }
        Err(mistakes) => {
            if mistakes.iter().any(codes::is_end) {
                let ended = traces.ended.entry(stack.id).or_default();
                *ended = (ended.0 + 1, mistakes.clone());
            }
            blamed(mistakes, job.turn.was_cut_off())
        }
    }
}

/// The last commit that changed a file with a mistake.
fn blame(renderer: &Renderer<'_>, mistakes: &[Diagnostic]) -> Revision {
    let files = mistakes.iter().filter_map(|mistake| mistake.location.as_ref());
    renderer.snapshot.last_change(files.map(|location| location.file.as_str())).clone()
}

/// A patch may match nothing in one target and something in another. A patch that matches nothing anywhere is a mistake of
/// each target that reads it. A failed target counts as a possible match.
fn refuse_idle_patches(renderer: &Renderer<'_>, memory: &Memory, is_some: bool, renders: &mut Renders) {
    let mut fitted: BTreeMap<&Location, bool> = BTreeMap::new();
    let tried =
        memory.apps.values().flat_map(|known| known.traces.iter().flat_map(|trace| &*trace.made.patches));
    for (location, fits) in tried {
        *fitted.entry(location).or_default() |= fits;
    }
    let mut idle: BTreeSet<&Location> =
        fitted.into_iter().filter(|(_, fits)| !fits).map(|(location, _)| location).collect();
    idle.retain(|location| !is_some || !location.file.starts_with(TEMPLATES));
    if idle.is_empty() {
        return;
    }
    for (target, _) in renders.iter().filter(|(_, (_, result))| result.is_err()) {
        for unknown in renderer.patches_of(&target) {
            idle.remove(&unknown);
        }
    }
    for (app, clusters) in &mut renders.apps {
        let reads = |(_, result): &Render| {
            result
                .as_ref()
                .is_ok_and(|rendered| idle.iter().any(|place| rendered.patches.contains_key(place)))
        };
        if !clusters.values().any(reads) {
            continue;
        }
        for (cluster, (revision, result)) in Arc::make_mut(clusters) {
            let Ok(rendered) = &result else { continue };
            let scope = || Scope::Target(app.clone(), cluster.clone());
            let read = idle.iter().filter(|place| rendered.patches.contains_key(place));
            let mistakes: Vec<Diagnostic> = read.map(|place| idle_patch(place, scope())).collect();
            if !mistakes.is_empty() {
                *revision = blame(renderer, &mistakes);
                *result = Err(mistakes);
            }
        }
    }
}
