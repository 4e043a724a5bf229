//! Runs one render: the objects of the target, its units, and the commit that changed it last.

use std::sync::Arc;

use super::definitions::AppDefinedKinds;
use super::layer_stacks::{LayerStack, LayerStacks};
use super::patches::PatchUsage;
use super::render_job::RenderJob;
use super::render_output::RenderOutput;
use super::{charts, codes, objects_app, pod_sets, project, project_allowlist, routes};
use crate::model::{AppSpec, Diagnostic, RenderedObject, RenderedTarget, Revision};
use crate::schedule::{AssignedPodSet, assign};

pub fn run(job: &RenderJob<'_>, stacks: &LayerStacks) -> Result<RenderedTarget, Vec<Diagnostic>> {
    let stack = stacks.stack_of(job)?;
    let revision = revision(job, &stack);
    let pod_sets = unit_names(job, &assign(job.app, &job.target.cluster));
    Ok(render_objects(job, &stack)?.into_rendered(job.target, revision, pod_sets))
}

pub fn render_objects(job: &RenderJob<'_>, stack: &LayerStack) -> Result<RenderOutput, Vec<Diagnostic>> {
    let mut used = PatchUsage::new();
    let mut found = match &job.app.spec {
        AppSpec::Objects(objects) => objects_app::render(job, stack, objects, &mut used)?,
        AppSpec::Project(project) => project::render(job, project)?,
        AppSpec::AppSet(_) | AppSpec::Component(_) => pod_sets::render(job, stack, &mut used)?,
    };
    if found.is_empty() {
        let message = format!("{} renders to no object", job.target);
        let help = "an app that shall go is removed with its manifest, not by empty templates";
        return Err(vec![job.error(codes::NO_OBJECTS, message).at(job.app.location.clone()).help(help)]);
    }
    let mut wrong = routes::add_routes(job, &mut found);
    wrong.append(&mut project_allowlist::check(job, &found));
    if !wrong.is_empty() {
        return Err(wrong);
    }
    job.annotation_warnings.report(|code, message, at, help| job.warn(code, message, at, help));
    let objects: Arc<[RenderedObject]> = found.into_values().map(|(object, _)| object).collect();
    Ok(RenderOutput {
        defined_kinds: Arc::new(AppDefinedKinds::of_objects(&objects)),
        objects,
        patches: Arc::new(used),
        questions: Arc::new(job.cluster.questions()),
        warnings: job.warnings.take().into(),
    })
}

/// The units of an AppSet on this cluster, in wave order.
pub fn unit_names(job: &RenderJob<'_>, assigned: &[AssignedPodSet]) -> Arc<[Arc<str>]> {
    if !matches!(job.app.spec, AppSpec::AppSet(_)) {
        return Arc::default();
    }
    let wave = |set: &&AssignedPodSet| job.inputs.waves.wave_of(job.fleet, &job.target.cluster, &set.group);
    let mut in_order: Vec<&AssignedPodSet> = assigned.iter().collect();
    in_order.sort_by_key(wave);
    in_order.into_iter().map(|set| set.name.as_str().into()).collect()
}

/// The last commit that changed an input of this render.
pub fn revision(job: &RenderJob<'_>, stack: &LayerStack) -> Revision {
    let pin = job.app.pins.get(&job.target.cluster).map(|pin| &pin.location);
    let by_ring = job.inputs.uses_ring || stack.uses_ring() || pin.is_some();
    let rings = job.fleet.rings_location.as_ref().filter(|_| by_ring);
    let charts = charts::chart_folders(job);
    let files = [Some(&job.cluster.untracked_manifest().location), rings, pin].into_iter().flatten();
    let here = files.map(|location| location.file.as_str()).chain(charts.iter().map(String::as_str));
    let here = job.snapshot.history.newest(here);
    let numbers = [job.inputs.newest_commit, stack.newest_commit(job.snapshot), here];
    let revision = job.snapshot.revision_at(numbers.into_iter().flatten().min()).clone();
    job.cluster.set_revision(&revision);
    revision
}
