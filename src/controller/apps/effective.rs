//! Builds the effective render of a target: for each unit the objects of the head or of its baseline, with its number of pods.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::baseline::unit_objects;
use super::{AppEntry, UnitBaseline, UnitEntry, UnitRenderState};
use crate::model::{
    ClusterName, ObjectId, ObjectScale, Observation, RenderedObject, RenderedTarget, ReplicasOwner,
    UnitRender,
};
use crate::render::is_hook_run;
use crate::rollout::{RenderChoice, UnitId};

/// The effective render of a target.
#[derive(Debug)]
pub struct EffectiveRender {
    pub rendered: Arc<RenderedTarget>,
    /// The render of some unit is not decided yet: nothing of the target is written.
    pub is_undecided: bool,
}

impl AppEntry {
    /// The render to apply on a cluster, and its numbers of pods. `head`: the target at the head.
    pub fn effective_render(
        &mut self,
        cluster: &ClusterName,
        head: &Arc<RenderedTarget>,
        seen: &Observation,
    ) -> EffectiveRender {
        // During a pause a lower number is not written, and may meet an open rollout afterwards.
        let keeps_numbers = self.is_open() || self.app.paused;
        let mut objects: BTreeMap<ObjectId, RenderedObject> = BTreeMap::new();
        let (mut units, mut is_undecided) = (BTreeMap::new(), false);
        let mut scales: BTreeMap<UnitId, BTreeMap<ObjectId, ObjectScale>> = BTreeMap::new();
        for (id, unit) in self.units_on(cluster) {
            let choice = self.decision.as_ref().and_then(|decision| Some(&decision.units.get(id)?.choice));
            let of_unit = self.effective_objects(id, unit, choice, head, seen);
            let is_decided = !matches!(choice, None | Some(RenderChoice::Undecided));
            is_undecided |= !is_decided;
            let revision = match &unit.render_state {
                UnitRenderState::Held(held) | UnitRenderState::PartlyApplied(held) => held.revision.clone(),
                // The commit that brought its content: a repair does not make it newer.
                UnitRenderState::Head { .. } | UnitRenderState::Unknown => {
                    unit.revision.clone().unwrap_or_else(|| head.revision.clone())
                }
            };
            units.insert(Arc::clone(&id.pod_set), UnitRender { revision, annotations: unit.mark.clone() });
            let is_behind = self.facts.get(id).is_some_and(|facts| facts.is_behind);
            for object in of_unit {
                let said = min_scale(unit, is_behind, &object, seen).filter(|_| keeps_numbers);
                let object = match said.map(|said| object.scale().max_with(&said)) {
                    Some(scale) => object.with_scale(&scale),
                    None => object,
                };
                if is_decided {
                    scales.entry(id.clone()).or_default().insert(object.id.clone(), object.scale());
                }
                objects.insert(object.id.clone(), object);
            }
        }
        for (id, scales) in scales {
            if let Some(unit) = self.units.get_mut(&id) {
                unit.scales = scales;
            }
        }
        let is_as_head = objects.len() == head.objects.len()
            && head
                .objects
                .iter()
                .all(|object| objects.get(&object.id).is_some_and(|it| it.hash == object.hash));
        let objects = if is_as_head { Arc::clone(&head.objects) } else { objects.into_values().collect() };
        let rendered =
            RenderedTarget { objects, units: Some(Arc::new(units)), ..RenderedTarget::clone(head) };
        EffectiveRender { rendered: Arc::new(rendered), is_undecided }
    }

    fn effective_objects(
        &self,
        id: &UnitId,
        unit: &UnitEntry,
        choice: Option<&RenderChoice>,
        head: &RenderedTarget,
        seen: &Observation,
    ) -> Vec<RenderedObject> {
        let is_skipped = |object: &RenderedObject| unit.skips_hooks && is_hook_run(object);
        let is_of_unit =
            |object: &&RenderedObject| head.unit_of(object) == &*id.pod_set && !is_skipped(object);
        let of_head = || head.objects.iter().filter(is_of_unit);
        match (choice, &unit.render_state) {
            // It is observed as the render that it may get.
            (None | Some(RenderChoice::Undecided), _) => of_head().cloned().collect(),
            (Some(RenderChoice::Frozen | RenderChoice::Nothing), _) => Vec::new(),
            (_, UnitRenderState::Head { .. } | UnitRenderState::Unknown) => of_head().cloned().collect(),
            (_, UnitRenderState::Held(held) | UnitRenderState::PartlyApplied(held)) => {
                self.baseline_objects(id, held, head, seen)
            }
        }
    }

    fn baseline_objects(
        &self,
        id: &UnitId,
        held: &UnitBaseline,
        head: &RenderedTarget,
        seen: &Observation,
    ) -> Vec<RenderedObject> {
        let is_made = |object: &&RenderedObject| {
            !held.is_of_earlier_process
                || seen.objects.contains_key(&object.id)
                || head.object(&object.id).is_some()
        };
        // It may have belonged to another podSet then.
        let pod_sets: Arc<[Arc<str>]> = match &*id.pod_set {
            "" => Arc::default(),
            _ => [Arc::clone(&id.pod_set)].into(),
        };
        let with_rising = |object: &RenderedObject| {
            let scaled = match head.object(&object.id) {
                Some(at_head) => object.with_scale(&object.scale().max_with(&at_head.scale())),
                None => object.clone(),
            };
            RenderedObject { pod_sets: Arc::clone(&pod_sets), ..scaled }
        };
        unit_objects(&held.rendered, &self.head, id).filter(is_made).map(with_rising).collect()
    }
}

/// The number of pods below which an object must not fall while the rollout is open.
fn min_scale(
    unit: &UnitEntry,
    is_behind: bool,
    object: &RenderedObject,
    seen: &Observation,
) -> Option<ObjectScale> {
    let replicas = seen.objects.get(&object.id).and_then(|live| live.ownership.replicas);
    let live = replicas
        .filter(|replicas| replicas.owner == ReplicasOwner::Tutti)
        .map(|replicas| ObjectScale::of_replicas(replicas.count));
    match (unit.scales.get(&object.id), live) {
        // An offline cluster may never have got the last render. The numbers of a unit that is up to date fall at the end of the
        // rollout: a pending lower number does not reopen it.
        (Some(known), Some(live)) if is_behind => Some(known.max_with(&live)),
        (known, live) => known.cloned().or(live),
    }
}
