//! Renders one target repeatedly, with one value altered each time.

use std::sync::Arc;

use super::files::{self, Input, Role};
use super::leaves::{Leaf, altered, others};
use super::{Made, Notes};
use crate::fleet::{Fleet, Target};
use crate::manifest;
use crate::model::{Location, RenderedObject, Snapshot};
use crate::render::{Defined, Job, Renderer};
use serde_json::Value;

/// Shared state of these renders.
pub struct Stage<'a> {
    job: Job<'a>,
    pub inputs: Vec<Input>,
    snapshot: Snapshot,
    fleet: Fleet,
    target: Target,
}

impl<'a> Stage<'a> {
    /// `None` when the layers of the target cannot be read.
    pub fn new(job: Job<'a>) -> Option<Self> {
        let inputs = files::of(&job, &job.stacks.of(&job).ok()?.layers);
        let snapshot = files::narrowed(&job, &inputs);
        let (fleet, target) = narrowed(&job, &files::manifests(&snapshot, &inputs))?;
        Some(Self { job, inputs, snapshot, fleet, target })
    }

    /// Renders with marks; `None`: the result differs from a plain render.
    pub fn marked(&self) -> Option<Vec<Made>> {
        let made = self.run(&self.fleet, &self.snapshot, &self.target, Notes::marked())?;
        let rendered = self.job.run().ok()?;
        let known = |object: &RenderedObject| made.iter().any(|made| made.object.hash == object.hash);
        rendered.objects.iter().all(known).then_some(made)
    }

    /// Renders with one leaf altered, and returns the new value. `None`: no alternative is accepted.
    pub fn with(&self, input: &Input, leaf: &Leaf) -> Option<(Value, Vec<Made>)> {
        others(&leaf.value).into_iter().find_map(|other| {
            let mut changes = vec![(&leaf.location, &other)];
            let more;
            if let Some((total, count)) = total_of(input, leaf, &other) {
                more = count;
                changes.push((total, &more));
            }
            self.with_text(input, &altered(&input.text, &changes)?).map(|made| (other.clone(), made))
        })
    }

    /// Renders with several leaves of one file altered at once.
    pub fn with_all(&self, input: &Input, leaves: &[&Leaf]) -> Option<Vec<Made>> {
        let values: Vec<Value> =
            leaves.iter().map(|leaf| others(&leaf.value).into_iter().next().unwrap_or_default()).collect();
        let changes: Vec<(&Location, &Value)> =
            leaves.iter().map(|leaf| &leaf.location).zip(&values).collect();
        self.with_text(input, &altered(&input.text, &changes)?)
    }

    fn with_text(&self, input: &Input, text: &str) -> Option<Vec<Made>> {
        let mut snapshot = self.snapshot.clone();
        snapshot.put(&input.path, text);
        let notes = Notes::default();
        if matches!(input.role, Role::Values | Role::Patch) {
            return self.run(&self.fleet, &snapshot, &self.target, notes);
        }
        let (fleet, target) = narrowed(&self.job, &files::manifests(&snapshot, &self.inputs))?;
        self.run(&fleet, &snapshot, &target, notes)
    }

    fn run(&self, fleet: &Fleet, snapshot: &Snapshot, target: &Target, notes: Notes) -> Option<Vec<Made>> {
        let defined = Defined::from([(target.cluster.clone(), Arc::clone(self.job.site.defined()))]);
        let renderer = Renderer::new(fleet, snapshot, self.job.charts).defining(defined);
        let job = renderer.job(target)?;
        Job { notes: Some(&notes), ..job }.run().ok()?;
        Some(notes.made.into_inner())
    }
}

/// The total that must follow the replicas of one podSet.
fn total_of<'i>(input: &'i Input, leaf: &Leaf, other: &Value) -> Option<(&'i Location, Value)> {
    let is_share = leaf.path.starts_with("spec.clusterTopology.") && leaf.path.ends_with(".replicas");
    let total = input.leaves.iter().find(|leaf| leaf.path == "spec.replicas")?;
    let more = other.as_i64()?.checked_sub(leaf.value.as_i64()?)?;
    let sum = total.value.as_i64()?.checked_add(more)?;
    is_share.then(|| (&total.location, sum.into()))
}

/// A fleet of these manifests alone, without checks of totals over clusters.
fn narrowed(job: &Job<'_>, manifests: &Snapshot) -> Option<(Fleet, Target)> {
    let read = manifest::read(manifests);
    let instance_is_lost = read.instance.is_none() && job.fleet.instance.location.is_some();
    if instance_is_lost || read.rings.is_none() && job.fleet.rings_location.is_some() {
        return None;
    }
    let same =
        |one: &Location, other: &Location| one.file == other.file && one.start.line == other.start.line;
    let here = &job.site.manifest().location;
    let cluster = read.clusters.iter().find(|cluster| same(&cluster.location, here))?.clone();
    let app = read.apps.iter().find(|app| same(&app.location, &job.app.location))?.clone();
    let target = Target { app: app.id.clone(), cluster: cluster.name.clone() };
    Some((job.fleet.narrowed(app, cluster, read), target))
}
