//! Renders one target repeatedly, with one value altered each time.

use std::sync::Arc;

use super::input_files::{self, InputFile, InputFileRole};
use super::leaves::{Leaf, alternative_values, with_altered_values};
use super::trace_recorder::{TraceRecorder, TracedObject};
use crate::fleet::{Fleet, Target};
use crate::manifest;
use crate::model::{Location, RenderedObject, Snapshot};
use crate::render::render_job::RenderJob;
use crate::render::{DefinedKindsByCluster, FleetRenderer};
use serde_json::Value;

/// Shared state of these renders.
pub struct TraceSession<'a> {
    renderer: &'a FleetRenderer<'a>,
    job: RenderJob<'a>,
    pub inputs: Vec<InputFile>,
    snapshot: Snapshot,
    fleet: Fleet,
    target: Target,
}

impl<'a> TraceSession<'a> {
    /// `None` when the target is unknown or its layers cannot be read.
    pub fn new(renderer: &'a FleetRenderer<'a>, target: &'a Target) -> Option<Self> {
        let job = renderer.job(target)?;
        let inputs = input_files::input_files(&job, &renderer.stacks.stack_of(&job).ok()?.layers);
        let snapshot = input_files::narrowed_snapshot(&job, &inputs);
        let (fleet, target) = narrowed_fleet(&job, &input_files::manifests_snapshot(&snapshot, &inputs))?;
        Some(Self { renderer, job, inputs, snapshot, fleet, target })
    }

    /// Renders with marks; `None`: the result differs from a plain render.
    pub fn render_marked(&self) -> Option<Vec<TracedObject>> {
        let made = self.run(&self.fleet, &self.snapshot, &self.target, TraceRecorder::marked())?;
        let rendered = self.renderer.run(&self.job).ok()?;
        let known = |object: &RenderedObject| made.iter().any(|made| made.object.hash == object.hash);
        rendered.objects.iter().all(known).then_some(made)
    }

    /// Renders with one leaf altered, and returns the new value. `None`: no alternative is accepted.
    pub fn with_altered_leaf(&self, input: &InputFile, leaf: &Leaf) -> Option<(Value, Vec<TracedObject>)> {
        alternative_values(&leaf.value).into_iter().find_map(|other| {
            let mut changes = vec![(&leaf.location, &other)];
            let more;
            if let Some((total, count)) = following_total(input, leaf, &other) {
                more = count;
                changes.push((total, &more));
            }
            self.with_altered_text(input, &with_altered_values(&input.text, &changes)?)
                .map(|made| (other.clone(), made))
        })
    }

    /// Renders with several leaves of one file altered at once.
    pub fn with_altered_leaves(&self, input: &InputFile, leaves: &[&Leaf]) -> Option<Vec<TracedObject>> {
        let values: Vec<Value> = leaves
            .iter()
            .map(|leaf| alternative_values(&leaf.value).into_iter().next().unwrap_or_default())
            .collect();
        let changes: Vec<(&Location, &Value)> =
            leaves.iter().map(|leaf| &leaf.location).zip(&values).collect();
        self.with_altered_text(input, &with_altered_values(&input.text, &changes)?)
    }

    fn with_altered_text(&self, input: &InputFile, text: &str) -> Option<Vec<TracedObject>> {
        let mut snapshot = self.snapshot.clone();
        snapshot.put(&input.path, text);
        let notes = TraceRecorder::default();
        if matches!(input.role, InputFileRole::Values | InputFileRole::Patch) {
            return self.run(&self.fleet, &snapshot, &self.target, notes);
        }
        let (fleet, target) =
            narrowed_fleet(&self.job, &input_files::manifests_snapshot(&snapshot, &self.inputs))?;
        self.run(&fleet, &snapshot, &target, notes)
    }

    fn run(
        &self,
        fleet: &Fleet,
        snapshot: &Snapshot,
        target: &Target,
        notes: TraceRecorder,
    ) -> Option<Vec<TracedObject>> {
        let defined = DefinedKindsByCluster::from([(
            target.cluster.clone(),
            Arc::clone(self.job.cluster.defined_kinds()),
        )]);
        let renderer = FleetRenderer::new(fleet, snapshot, self.job.charts).with_defined_kinds(defined);
        let job = renderer.job(target)?;
        renderer.run(&RenderJob { trace: Some(&notes), ..job }).ok()?;
        Some(notes.objects.into_inner())
    }
}

/// The total that must follow the replicas of one podSet.
fn following_total<'i>(input: &'i InputFile, leaf: &Leaf, other: &Value) -> Option<(&'i Location, Value)> {
    let is_share = leaf.path.starts_with("spec.clusterTopology.") && leaf.path.ends_with(".replicas");
    let total = input.leaves.iter().find(|leaf| leaf.path == "spec.replicas")?;
    let more = other.as_i64()?.checked_sub(leaf.value.as_i64()?)?;
    let sum = total.value.as_i64()?.checked_add(more)?;
    is_share.then(|| (&total.location, sum.into()))
}

/// A fleet of these manifests alone, without checks of totals over clusters.
fn narrowed_fleet(job: &RenderJob<'_>, manifests: &Snapshot) -> Option<(Fleet, Target)> {
    let read = manifest::read(manifests);
    let instance_is_lost = read.instance.is_none() && job.fleet.instance.location.is_some();
    if instance_is_lost || read.rings.is_none() && job.fleet.rings_location.is_some() {
        return None;
    }
    let same =
        |one: &Location, other: &Location| one.file == other.file && one.start.line == other.start.line;
    let here = &job.cluster.untracked_manifest().location;
    let cluster = read.clusters.iter().find(|cluster| same(&cluster.location, here))?.clone();
    let app = read.apps.iter().find(|app| same(&app.location, &job.app.location))?.clone();
    let target = Target { app: app.id.clone(), cluster: cluster.name.clone() };
    Some((job.fleet.for_single_target(app, cluster, read), target))
}
