//! Renders every target of a fleet, and reuses renders of earlier revisions.
//!
//! A render depends on its app and the files that the app names, the layers of the target, the podSets, and the answers to
//! every question about the cluster. If all of these are equal, on another cluster or in a later revision, the objects are
//! shared. A failed render is never reused.

mod lookup;

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use self::lookup::{AppRenderLookup, TargetInputs};
use super::app_inputs::AppInputs;
use super::fleet_renderer::{DefinedKindsByCluster, FleetRenderer, sorted_mistakes, unknown_target};
use super::patches::unused_patch;
use super::render_cache::{CachedAppRenders, CachedRender, FleetInputs, RenderCache};
use super::render_job::RenderJob;
use super::render_output::RenderOutput;
use super::renders::{Renders, TargetRender, is_awaited};
use super::time_slice::{Pacing, RenderTimeSlice};
use super::{codes, render_run};
use crate::fleet::Target;
use crate::fleet::layers::TEMPLATES_FOLDER;
use crate::model::{
    App, AppId, ClusterName, Diagnostic, DiagnosticScope, KindsByName, Location, RenderedTarget, Revision,
};
use crate::schedule::assign;

/// The units of a target.
type UnitNames = Arc<[Arc<str>]>;

/// After this many ended workers for one app and stack, its other clusters are skipped: each attempt costs seconds and would
/// delay other commits.
const MOST_ENDED_WORKERS: usize = 2;

/// An app to be rendered.
struct AppRenderTask<'a> {
    app: &'a Arc<App>,
    clusters: Vec<ClusterName>,
    cached: Option<CachedAppRenders>,
}

impl AppRenderTask<'_> {
    /// Apps that rendered before come first, then new apps, then apps that were cut off least often. So no broken app delays
    /// the others. Charts come last because they wait for child processes.
    fn priority(&self) -> (bool, u8, u32) {
        let order = match &self.cached {
            None => 1,
            Some(known) if known.renders.values().all(|(_, result)| result.is_ok()) => 0,
            Some(known) if known.renders.values().all(|(_, result)| result.is_ok() || is_awaited(result)) => {
                1
            }
            Some(_) => 2,
        };
        (self.app.is_chart(), order, self.cached.as_ref().map_or(0, |known| known.cut_off_count))
    }
}

#[derive(Clone, Copy)]
struct PacedRun<'a> {
    pacing: Pacing<'a>,
    is_cut_short: &'a AtomicBool,
}

impl FleetRenderer<'_> {
    /// Call it before a single target is rendered: if the target asks for an unknown kind, another app may define it, so all
    /// targets are rendered. Returns whether they were.
    pub fn discover_kinds(&mut self, target: &Target) -> bool {
        let is_open =
            |rendered: &RenderedTarget| rendered.capability_queries.kinds.values().any(Option::is_none);
        let is_asked = self.render(target).is_ok_and(|rendered| is_open(&rendered));
        if is_asked {
            self.render_all(&mut RenderCache::default());
        }
        is_asked
    }

    /// Renders every target that the memory does not hold, on all cores. It blocks, so call it off the async threads.
    ///
    /// The kinds that an app defines are known only after its render. Targets that asked for one of them earlier are rendered
    /// again.
    pub fn render_all(&mut self, memory: &mut RenderCache) -> Renders {
        render_apps(self, memory, None, None)
    }

    /// The same, while the pacing allows. Each target has a time slice. Unchanged targets are always there, unfinished ones are awaited.
    pub fn render_while(&mut self, memory: &mut RenderCache, pacing: Pacing<'_>) -> Renders {
        render_apps(self, memory, None, Some(pacing))
    }

    /// Renders every target of some apps, without a memory. The caller names the kinds that other apps define
    /// ([`Self::outside_kinds`]). A patch of a shared layer that matches nothing here is no mistake, because it may match other apps.
    pub fn render_some(&mut self, apps: &BTreeSet<AppId>, pacing: Option<Pacing<'_>>) -> Renders {
        render_apps(self, &mut RenderCache::default(), Some(apps), pacing)
    }
}

fn render_apps(
    renderer: &mut FleetRenderer<'_>,
    memory: &mut RenderCache,
    only: Option<&BTreeSet<AppId>>,
    pacing: Option<Pacing<'_>>,
) -> Renders {
    // Names, labels and chart sources of the instance affect every app.
    let instance = &renderer.fleet.instance;
    if memory.instance.as_ref() != Some(instance) {
        *memory = RenderCache { instance: Some(instance.clone()), ..RenderCache::default() };
    }
    renderer.defined_kinds =
        with_outside_kinds(std::mem::take(&mut memory.defined_kinds), &renderer.outside_kinds);
    let mut renders = pass(renderer, memory, only, pacing);
    let defined = with_outside_kinds(kinds_defined_by_apps(memory), &renderer.outside_kinds);
    if defined != renderer.defined_kinds {
        renderer.defined_kinds = defined;
        if has_changed_answers(renderer, &renders) {
            let made = renders.render_count;
            renders = pass(renderer, memory, only, pacing);
            renders.render_count += made;
        }
    }
    memory.defined_kinds = renderer.defined_kinds.clone();
    renders.defined_kinds = renderer.defined_kinds.clone();
    renders
}

fn with_outside_kinds(
    mut defined: DefinedKindsByCluster,
    beside: &DefinedKindsByCluster,
) -> DefinedKindsByCluster {
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
fn kinds_defined_by_apps(memory: &RenderCache) -> DefinedKindsByCluster {
    let mut defined: BTreeMap<ClusterName, KindsByName> = BTreeMap::new();
    for known in memory.apps.values() {
        for (cluster, number) in &known.by_cluster {
            let Some(trace) =
                known.cached_renders.get(*number).filter(|trace| !trace.output.defined_kinds.is_empty())
            else {
                continue;
            };
            let of_cluster = defined.entry(cluster.clone()).or_default();
            for (name, facts) in &*trace.output.defined_kinds {
                of_cluster.entry(name.clone()).or_insert_with(|| facts.clone());
            }
        }
    }
    defined.into_iter().map(|(cluster, kinds)| (cluster, Arc::new(kinds))).collect()
}

fn has_changed_answers(renderer: &FleetRenderer<'_>, renders: &Renders) -> bool {
    let none = Arc::default();
    renders.iter().any(|(target, (_, result))| {
        let Some((_, capabilities)) = renderer.clusters.get(&target.cluster) else { return false };
        let defined = renderer.defined_kinds.get(&target.cluster).unwrap_or(&none);
        result
            .as_ref()
            .is_ok_and(|rendered| !rendered.capability_queries.are_unchanged(capabilities.known(), defined))
    })
}

fn pass(
    renderer: &FleetRenderer<'_>,
    memory: &mut RenderCache,
    only: Option<&BTreeSet<AppId>>,
    pacing: Option<Pacing<'_>>,
) -> Renders {
    let fleet = renderer.fleet;
    let ground = FleetInputs::of(renderer);
    let same_ground = memory.fleet_inputs.as_ref() == Some(&ground);
    memory.fleet_inputs = Some(ground);
    let mut earlier = std::mem::take(&mut memory.apps);
    let mut tasks: Vec<AppRenderTask<'_>> = fleet
        .placements()
        .filter(|(app, _)| only.is_none_or(|only| only.contains(&app.id)))
        .map(|(app, clusters)| AppRenderTask { app, clusters, cached: earlier.remove(&app.id) })
        .collect();
    drop(earlier);
    // `AppRenderTask::priority` reads all renders of an app, so it runs once for each.
    tasks.sort_by_cached_key(AppRenderTask::priority);
    let is_cut_short = AtomicBool::new(false);
    let turns = pacing.map(|pacing| PacedRun { pacing, is_cut_short: &is_cut_short });
    let (known, made) = render_in_parallel(renderer, tasks, same_ground, turns);
    memory.apps = known;
    let apps = memory.apps.iter().map(|(id, known)| (id.clone(), Arc::clone(&known.renders)));
    let mut renders = Renders {
        revision: renderer.snapshot.revision.clone(),
        apps: apps.collect(),
        render_count: made,
        is_cut_short: is_cut_short.into_inner(),
        discovered: renderer.discovered.clone(),
        defined_kinds: DefinedKindsByCluster::new(),
    };
    refuse_unused_patches(renderer, memory, only.is_some(), &mut renders);
    renders
}

fn render_in_parallel(
    renderer: &FleetRenderer<'_>,
    tasks: Vec<AppRenderTask<'_>>,
    same_ground: bool,
    turns: Option<PacedRun<'_>>,
) -> (BTreeMap<AppId, CachedAppRenders>, usize) {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(tasks.len()).max(1);
    let tasks: Vec<parking_lot::Mutex<Option<AppRenderTask<'_>>>> =
        tasks.into_iter().map(|task| parking_lot::Mutex::new(Some(task))).collect();
    let (next, made) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || {
        let mut done = Vec::new();
        while let Some(place) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
            let Some(task) = place.lock().take() else { continue };
            let (app, clusters) = (task.app, task.clusters.clone());
            let id = app.id.clone();
            let whole = catch_unwind(AssertUnwindSafe(|| render_app(renderer, task, same_ground, turns)));
            let (known, count) = whole.unwrap_or_else(|_| (crashed_app_renders(renderer, app, clusters), 0));
            made.fetch_add(count, Ordering::Relaxed);
            done.push((id, known));
        }
        done
    };
    let known = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mut known: BTreeMap<AppId, CachedAppRenders> = work().into_iter().collect();
        for other in others {
            // A missing app would count as removed, so a panic fails the whole revision.
            known.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        known
    });
    (known, made.into_inner())
}

/// Renders one app on all of its clusters. Returns the number of computed renders too.
fn render_app(
    renderer: &FleetRenderer<'_>,
    mut task: AppRenderTask<'_>,
    same_ground: bool,
    turns: Option<PacedRun<'_>>,
) -> (CachedAppRenders, usize) {
    let inputs = Arc::new(AppInputs::of(renderer.fleet, renderer.snapshot, task.app));
    let untouched = |known: &CachedAppRenders| {
        same_ground
            && inputs.is_untouched(&known.inputs)
            && known.renders.keys().eq(&task.clusters)
            && known.renders.values().all(|(_, result)| result.is_ok())
    };
    if let Some(known) = task.cached.take_if(|known| untouched(known)) {
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
            let render = awaited_render(renderer, task.app, &target);
            (target.cluster, render)
        };
        let renders = Arc::new(task.clusters.into_iter().map(render).collect());
        let known = task.cached.unwrap_or_else(|| CachedAppRenders::empty(task.app));
        return (CachedAppRenders { renders, ..known }, 0);
    }
    let before = task.cached.as_ref().map(|known| Arc::clone(&known.renders)).unwrap_or_default();
    let earlier = task.cached.filter(|known| inputs.is_same_as(&known.inputs));
    let cut_off_before = earlier.as_ref().map_or(0, |known| known.cut_off_count);
    let mut cut_off = false;
    let mut traces = AppRenderLookup { earlier, ..AppRenderLookup::default() };
    let mut renders = BTreeMap::new();
    for cluster in task.clusters {
        let target = Target { app: task.app.id.clone(), cluster };
        let rendering = || {
            // If one cluster was cut off, the others most likely would be too, and other apps wait.
            if cut_off || is_over() {
                note_cut_short();
                traces.carry_over(&target.cluster);
                return awaited_render(renderer, task.app, &target);
            }
            let turn = turns.map_or_else(RenderTimeSlice::endless, |turns| {
                RenderTimeSlice::after_cut_offs(cut_off_before, task.app.is_chart(), turns.pacing)
            });
            let (rendered, was_cut_off) = render_or_reuse(renderer, &inputs, &target, &mut traces, turn);
            if was_cut_off {
                note_cut_short();
                traces.carry_over(&target.cluster);
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
    let AppRenderLookup { current: traces, by_cluster: of_clusters, render_count: made, .. } = traces;
    let cut_off = cut_off_before + u32::from(cut_off);
    (
        CachedAppRenders {
            inputs: inputs.to_cached(),
            cached_renders: traces,
            by_cluster: of_clusters,
            renders: Arc::new(renders),
            cut_off_count: cut_off,
        },
        made,
    )
}

/// The result of a target that was not started in time.
fn awaited_render<T>(
    renderer: &FleetRenderer<'_>,
    app: &App,
    target: &Target,
) -> (Revision, Result<T, Vec<Diagnostic>>) {
    let scope = DiagnosticScope::Target(target.app.clone(), target.cluster.clone());
    let message = format!("{target} is being rendered");
    let awaited = vec![Diagnostic::error(codes::AWAITED, message, scope).at(app.location.clone())];
    (revision_of_mistakes(renderer, &awaited), Err(awaited))
}

/// A panic of the renderer fails only its own target.
fn crashed(target: &Target) -> Vec<Diagnostic> {
    let scope = DiagnosticScope::Target(target.app.clone(), target.cluster.clone());
    let message = format!("failed to render {target}: the renderer crashed, which is a fault of tutti");
    vec![
        Diagnostic::error(codes::CRASHED, message, scope)
            .help("report it with the log of the process; the next commit is rendered again"),
    ]
}

/// A panic in the shared inputs of an app fails all its targets. Nothing is reused.
fn crashed_app_renders(
    renderer: &FleetRenderer<'_>,
    app: &Arc<App>,
    clusters: Vec<ClusterName>,
) -> CachedAppRenders {
    let render = |cluster: ClusterName| {
        let mistakes = crashed(&Target { app: app.id.clone(), cluster: cluster.clone() });
        (cluster, (renderer.snapshot.revision.clone(), Err(mistakes)))
    };
    CachedAppRenders {
        renders: Arc::new(clusters.into_iter().map(render).collect()),
        ..CachedAppRenders::empty(app)
    }
}

/// A commit and the result of a render.
type RenderAttempt = (Revision, Result<(RenderOutput, UnitNames), Vec<Diagnostic>>);

/// Reuses or computes one render. The flag says whether its time slice ended.
fn render_or_reuse(
    renderer: &FleetRenderer<'_>,
    inputs: &Arc<AppInputs<'_>>,
    target: &Target,
    traces: &mut AppRenderLookup,
    turn: RenderTimeSlice<'_>,
) -> (RenderAttempt, bool) {
    let blamed = |mistakes, was_cut_off| {
        let mistakes = sorted_mistakes(mistakes);
        ((revision_of_mistakes(renderer, &mistakes), Err(mistakes)), was_cut_off)
    };
    let Some(job) = renderer.job_of(inputs, target) else {
        return blamed(vec![unknown_target(target)], false);
    };
    let job = RenderJob { time_slice: turn, ..job };
    let stack = match renderer.stacks.stack_of(&job) {
        Ok(stack) => stack,
        Err(mistakes) => return blamed(mistakes, job.time_slice.was_cut_off()),
    };
    let revision = render_run::revision(&job, &stack);
    let pod_sets = assign(job.app, &target.cluster);
    let basis = TargetInputs { stack_digest: stack.digest, pod_sets: &pod_sets, facts: job.cluster.facts() };
    if let Some(made) = traces.find(&target.cluster, &basis) {
        return ((revision, Ok((made, render_run::unit_names(&job, &pod_sets)))), false);
    }
    if let Some((times, mistakes)) = traces.ended_workers.get(&stack.digest)
        && *times >= MOST_ENDED_WORKERS
    {
        return blamed(job.rescoped(mistakes), false);
    }
    traces.render_count += 1;
    match render_run::render_objects(&job, &stack) {
        Ok(made) => {
            let seen = job.cluster.take_answers();
            let trace = CachedRender {
                stack_digest: stack.digest,
                pod_sets: pod_sets.clone(),
                answers: seen,
                output: made.clone(),
            };
            let number = traces.insert(Arc::new(trace), &basis);
            traces.by_cluster.insert(target.cluster.clone(), number);
            ((revision, Ok((made, render_run::unit_names(&job, &pod_sets)))), false)
        }
        Err(mistakes) => {
            if mistakes.iter().any(codes::is_worker_end) {
                let ended = traces.ended_workers.entry(stack.digest).or_default();
                *ended = (ended.0 + 1, mistakes.clone());
            }
            blamed(mistakes, job.time_slice.was_cut_off())
        }
    }
}

/// The last commit that changed a file with a mistake.
fn revision_of_mistakes(renderer: &FleetRenderer<'_>, mistakes: &[Diagnostic]) -> Revision {
    let files = mistakes.iter().filter_map(|mistake| mistake.location.as_ref());
    renderer.snapshot.last_change(files.map(|location| location.file.as_str())).clone()
}

/// A patch may match nothing in one target and something in another. A patch that matches nothing anywhere is a mistake of
/// each target that reads it. A failed target counts as a possible match.
fn refuse_unused_patches(
    renderer: &FleetRenderer<'_>,
    memory: &RenderCache,
    is_some: bool,
    renders: &mut Renders,
) {
    let mut fitted: BTreeMap<&Location, bool> = BTreeMap::new();
    let tried = memory
        .apps
        .values()
        .flat_map(|known| known.cached_renders.iter().flat_map(|trace| &*trace.output.patches));
    for (location, fits) in tried {
        *fitted.entry(location).or_default() |= fits;
    }
    let mut idle: BTreeSet<&Location> =
        fitted.into_iter().filter(|(_, fits)| !fits).map(|(location, _)| location).collect();
    idle.retain(|location| !is_some || !location.file.starts_with(TEMPLATES_FOLDER));
    if idle.is_empty() {
        return;
    }
    for (target, _) in renders.iter().filter(|(_, (_, result))| result.is_err()) {
        for unknown in renderer.patches_of(&target) {
            idle.remove(&unknown);
        }
    }
    for (app, clusters) in &mut renders.apps {
        let reads = |(_, result): &TargetRender| {
            result
                .as_ref()
                .is_ok_and(|rendered| idle.iter().any(|place| rendered.patches.contains_key(place)))
        };
        if !clusters.values().any(reads) {
            continue;
        }
        for (cluster, (revision, result)) in Arc::make_mut(clusters) {
            let Ok(rendered) = &result else { continue };
            let scope = || DiagnosticScope::Target(app.clone(), cluster.clone());
            let read = idle.iter().filter(|place| rendered.patches.contains_key(place));
            let mistakes: Vec<Diagnostic> = read.map(|place| unused_patch(place, scope())).collect();
            if !mistakes.is_empty() {
                *revision = revision_of_mistakes(renderer, &mistakes);
                *result = Err(mistakes);
            }
        }
    }
}
