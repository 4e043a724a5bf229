//! The baseline: the render that a held unit keeps.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;

use super::observe::TargetView;
use super::past_app::PastApp;
use super::{AppAtCommit, AppEntry, AppHead, HeadUnit, PastCommit, UnitBaseline, UnitEntry, UnitRenderState};
use crate::fleet::Fleet;
use crate::manifest;
use crate::model::{App, AppId, ClusterName, Digest, RenderedObject, RenderedTarget, Revision};
use crate::reconcile::RenderHistory;
use crate::render::{
    DefinedKindsByCluster, DiscoveredCapabilities, FleetRenderer, RenderCache, TargetRender, UnitContent,
    is_hook_run, is_unit_content,
};
use crate::rollout::{GivenApproval, UnitId};

impl PastCommit {
    /// It must be read again for a unit.
    pub fn is_outdated(&self, id: &UnitId, seen: TargetView<'_>) -> bool {
        match self {
            Self::Loading => false,
            Self::Known(past) => past.is_outdated(&id.cluster, seen.cluster.capabilities.as_ref()),
            Self::Unknown { until } => *until <= seen.now,
        }
    }
}

impl AppEntry {
    /// Sets another head. `render`: the current render of a target.
    pub fn update_head(
        &mut self,
        app: Arc<App>,
        head: &Arc<AppHead>,
        approvals: Vec<GivenApproval>,
        render: &dyn Fn(&ClusterName) -> Option<Arc<RenderedTarget>>,
    ) {
        if Arc::ptr_eq(&self.head, head) {
            // The app did not change. Its rollout settings and its approvals may have.
            if !app.rollout.after.is_empty() {
                self.unobserved_units = self.units.keys().cloned().collect();
            }
            (self.app, self.approvals) = (app, approvals);
            return;
        }
        let mut before = std::mem::take(&mut self.units);
        let old = std::mem::replace(&mut self.head, Arc::clone(head));
        let is_in_other_wave =
            |(id, unit): (&UnitId, &HeadUnit)| head.units.get(id).is_some_and(|now| now.wave != unit.wave);
        if old.waves != head.waves || old.units.iter().any(is_in_other_wave) {
            // The facts of commits use the positions of waves.
            self.commits.clear();
        }
        for (id, unit) in &head.units {
            let mut entry = before.remove(id).unwrap_or_default();
            let is_same = old.units.get(id).is_some_and(|known| unit_digest(known) == unit_digest(unit));
            if let UnitRenderState::Head { was_whole } = entry.render_state
                && !is_same
            {
                let facts = self.facts.get(id);
                let is_whole = was_whole || facts.is_none_or(|facts| !facts.is_behind);
                entry.hold_current_render(head, id, render(&id.cluster), is_whole);
            }
            self.units.insert(id.clone(), entry);
        }
        (self.app, self.approvals) = (app, approvals);
        self.forget_commits();
        // The facts are about the previous head.
        self.reset_facts();
        self.decision = None;
    }

    /// Keeps only commits that units name.
    fn forget_commits(&mut self) {
        let runs = self.facts.values().filter_map(|facts| facts.revision.as_ref());
        let previous = self.units.values().filter_map(|unit| Some(&unit.mark.previous.as_ref()?.revision));
        let named: BTreeSet<&Revision> = runs.chain(previous).collect();
        self.commits.retain(|revision, _| named.contains(revision));
    }

    pub fn past_app(&self, revision: &Revision) -> Option<&Arc<PastApp>> {
        match self.commits.get(revision)? {
            PastCommit::Known(past) => Some(past),
            PastCommit::Loading | PastCommit::Unknown { .. } => None,
        }
    }

    /// A unit at a commit; `None` if the commit lacks the unit.
    pub fn baseline_at(&self, id: &UnitId, revision: &Revision) -> Option<UnitBaseline> {
        let rendered = Arc::clone(self.past_app(revision)?.renders.get(&id.cluster)?);
        let content = unit_content(&rendered, &self.head, id);
        let is_there = !content.objects.is_empty();
        is_there.then(|| UnitBaseline {
            revision: revision.clone(),
            content: Arc::new(content),
            rendered,
            is_of_earlier_process: true,
        })
    }
}

fn unit_digest(unit: &HeadUnit) -> Option<Digest> {
    unit.content.as_ref().map(|content| content.digest)
}

impl UnitEntry {
    /// The current render of the target becomes the baseline of the unit.
    fn hold_current_render(
        &mut self,
        head: &AppHead,
        id: &UnitId,
        render: Option<Arc<RenderedTarget>>,
        is_whole: bool,
    ) {
        let held = render.and_then(|rendered| {
            let content = unit_content(&rendered, head, id);
            let revision = rendered.revision_of(&id.pod_set).clone();
            let is_there = !content.objects.is_empty();
            is_there.then(|| UnitBaseline {
                revision,
                content: Arc::new(content),
                rendered,
                is_of_earlier_process: false,
            })
        });
        self.render_state = match held {
            Some(held) if is_whole => UnitRenderState::Held(held),
            Some(held) => UnitRenderState::PartlyApplied(held),
            None => UnitRenderState::Unknown,
        };
    }
}

/// The objects of a unit in a render other than the head's: objects that the head assigns to the unit, whichever unit had them
/// then, and objects of the unit that the head lacks. Hooks do not run again.
pub fn unit_objects<'r>(
    rendered: &'r RenderedTarget,
    head: &'r AppHead,
    unit: &'r UnitId,
) -> impl Iterator<Item = &'r RenderedObject> {
    rendered.objects.iter().filter(move |object| {
        let owner = head.owner_of(&unit.cluster, &object.id);
        let is_of_unit =
            owner.map_or_else(|| rendered.unit_of(object) == &*unit.pod_set, |owner| owner == unit);
        !is_hook_run(object) && is_of_unit
    })
}

pub fn unit_content(rendered: &RenderedTarget, head: &AppHead, unit: &UnitId) -> UnitContent {
    let objects = unit_objects(rendered, head, unit).filter(|object| is_unit_content(object));
    UnitContent::of(objects.map(|object| (object.id.clone(), object.content())).collect())
}

/// Reads an app at an earlier commit and renders it for the current clusters; `None` if that fails. `defined`: the kinds that
/// other apps define at the head.
pub async fn read_past_app(
    history: &RenderHistory,
    reading: &Arc<Mutex<manifest::ManifestCache>>,
    head_fleet: &Arc<Fleet>,
    head: &Arc<AppHead>,
    app: &AppId,
    revision: &Revision,
    (discovered, defined): (DiscoveredCapabilities, DefinedKindsByCluster),
) -> Option<PastApp> {
    let reading = Arc::clone(reading);
    let memory = tokio::task::spawn_blocking(move || reading.lock().clone()).await.ok()?;
    let (snapshot, fleet, fetched) = history.app_at(revision, app, memory).await?;
    let (charts, head_fleet, head) = (Arc::clone(history.charts()), Arc::clone(head_fleet), Arc::clone(head));
    let id = app.clone();
    let render = move || {
        // The charts stay in the cache while a reference exists.
        let _fetched = fetched;
        let app = fleet.apps.get(&id)?;
        let mut renderer = FleetRenderer::with_capabilities(&fleet, &snapshot, &*charts, discovered.clone())
            .outside_kinds(defined);
        let renders = renderer.render_all(&mut RenderCache::default());
        let declared = FleetRenderer::new(&fleet, &snapshot, &*charts)
            .with_defined_kinds(renderer.defined_kinds().clone());
        let of_app = renders.apps.get(&id)?;
        let at = AppAtCommit { fleet: &fleet, app, renders: of_app };
        let facts = Arc::new(at.facts(&head.waves, &head_fleet, &declared));
        let rendered = |(cluster, (_, render)): (&ClusterName, &TargetRender)| {
            Some((cluster.clone(), Arc::clone(render.as_ref().ok()?)))
        };
        let renders = of_app.iter().filter_map(rendered).collect();
        Some(PastApp { renders, facts, waves: head.waves.clone(), discovered })
    };
    tokio::task::spawn_blocking(render).await.ok()?
}
