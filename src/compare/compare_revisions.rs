//! Renders both sides, as far as they can differ, and compares them. Pull requests and command-line diffs call it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::comparison::{ClusterColumn, ClusterPresence, Comparison, ComparisonTotals};
use super::{apps, mistakes, origins, removal};
use crate::fleet::layers::TEMPLATES_FOLDER;
use crate::fleet::{Fleet, assemble_after};
use crate::manifest;
use crate::model::{self, ChartProvider, ClusterName, Digest, Location, ObjectId, Revision, Snapshot};
use crate::render::{
    ChangedApps, DefinedKindsByCluster, DiscoveredCapabilities, EarlierRevision, FleetRenderer, Pacing,
    RenderCache, Renders, changed_apps, is_awaited, policy_verdicts,
};
use crate::sops::downgrade_missing_identity;

/// One of the two revisions, with everything that its render needs.
#[derive(Clone, Debug)]
pub struct ComparedRevision<'a> {
    pub fleet: &'a Fleet,
    /// Both sides have the keys and the registered clusters of the base.
    pub snapshot: &'a Snapshot,
    pub charts: &'a dyn ChartProvider,
    /// Discovered capabilities: the same on both sides.
    pub discovered: DiscoveredCapabilities,
}

impl<'a> ComparedRevision<'a> {
    fn renderer(&self) -> FleetRenderer<'a> {
        FleetRenderer::with_capabilities(self.fleet, self.snapshot, self.charts, self.discovered.clone())
    }
}

/// Cached renders between comparisons. The result is the same without it.
#[derive(Clone, Debug, Default)]
pub struct ComparisonCache {
    /// All renders of a base, once all were needed.
    renders: RenderCache,
    /// What the apps of a base define.
    defined: Option<(Revision, DefinedKindsByCluster)>,
}

impl ComparisonCache {
    /// Sets the kinds that the apps of a base define, from a caller that renders all apps (`Renders::defined_kinds`).
    pub fn set_defined(&mut self, base: &Revision, defined: DefinedKindsByCluster) {
        self.defined = Some((base.clone(), defined));
    }

    fn defined_at(&self, base: &Revision) -> Option<&DefinedKindsByCluster> {
        self.defined.as_ref().filter(|(revision, _)| revision == base).map(|(_, defined)| defined)
    }
}

/// The fleet of a head. Names that the base holds stay with their holders, and unchanged files are not parsed again.
pub fn fleet_after(head: &Snapshot, reading: &mut manifest::ManifestCache, base: Option<&Fleet>) -> Fleet {
    let holders = base.map(|base| Arc::clone(&base.identity_owners)).unwrap_or_default();
    assemble_after(manifest::read_incremental(head, reading), head, &holders)
}

/// The time limit of the policies for both sides.
const POLICY_TIME_LIMIT: Duration = Duration::from_secs(60);

/// Compares two revisions. It may block for long, so call it off the async threads. Without `pacing` each render has its full time
/// limit.
pub fn compare(
    base: &ComparedRevision<'_>,
    head: &ComparedRevision<'_>,
    kept: &mut ComparisonCache,
    pacing: Option<Pacing<'_>>,
) -> Comparison {
    let RenderedSides { before, after, render_count: made } = render_sides(base, head, kept, pacing);
    let mut apps = apps::app_changes((base.fleet, &before), (head.fleet, &after));
    let head_renderer = head.renderer().with_defined_kinds(after.defined_kinds().clone());
    let goes_on = || pacing.is_none_or(|pacing| (pacing.goes_on)());
    origins::trace_fields(&mut apps, &head_renderer, base.snapshot, &goes_on);
    removal::apply_delete_cap(&mut apps, head.fleet.instance.caps);
    let base_renderer = base.renderer().with_defined_kinds(before.defined_kinds().clone());
    // The time limit of the policies excludes the renders.
    let begun = pacing.map_or(Duration::ZERO, |pacing| (pacing.clock)());
    let judges = || pacing.is_none_or(|pacing| (pacing.clock)().saturating_sub(begun) < POLICY_TIME_LIMIT);
    let compared = EarlierRevision { fleet: base.fleet, renders: &before };
    let of_policies = (
        policy_verdicts(&base_renderer, &before, None, &judges, &|| false),
        policy_verdicts(&head_renderer, &after, Some(compared), &judges, &goes_on),
    );
    let of_base = mistakes::diagnostics_of_side(base.fleet, &before, &of_policies.0.all);
    let of_head = mistakes::diagnostics_of_side(head.fleet, &after, &of_policies.1.all);
    let (mut new, mut known) =
        mistakes::split_new_and_known(&of_base, &of_head, &of_policies.1.of_changed_objects);
    if head.snapshot.keys.is_empty() {
        new.iter_mut().chain(&mut known).for_each(downgrade_missing_identity);
    }
    let warnings = new.iter().chain(&known).filter(|it| !it.is_error()).count();
    let (errors, new_warnings): (Vec<_>, Vec<_>) = new.into_iter().partition(|it| it.is_error());
    Comparison {
        base: base.snapshot.revision.clone(),
        head: head.snapshot.revision.clone(),
        clusters: cluster_columns(base.fleet, head.fleet),
        apps,
        errors,
        known_errors: known.into_iter().filter(|it| it.is_error()).collect(),
        warnings: new_warnings,
        totals: ComparisonTotals {
            apps: head.fleet.apps.len() + head.fleet.broken_apps.len(),
            clusters: head.fleet.clusters.len(),
            warnings,
        },
        renders: made,
        awaited: before.results().chain(after.results()).filter(|result| is_awaited(result)).count(),
    }
}

struct RenderedSides {
    before: Renders,
    after: Renders,
    render_count: usize,
}

fn render_sides(
    base: &ComparedRevision<'_>,
    head: &ComparedRevision<'_>,
    kept: &mut ComparisonCache,
    pacing: Option<Pacing<'_>>,
) -> RenderedSides {
    let defined = kept.defined_at(&base.snapshot.revision).cloned();
    let mut made = 0;
    // Changed policies may deny unchanged objects, and any app may set the labels of a namespace.
    let judged_alike = base.fleet.policies == head.fleet.policies && !head.fleet.policies.use_namespaces();
    if judged_alike && let ChangedApps::Apps(apps) = changed_apps(&base.renderer(), &head.renderer()) {
        let beside = defined.clone().unwrap_or_default();
        let some = |side: &ComparedRevision<'_>| {
            side.renderer().outside_kinds(beside.clone()).render_some(&apps, pacing)
        };
        let (before, after) = (some(base), some(head));
        made += before.render_count + after.render_count;
        let is_open = defined.is_none() && (has_unknown_kinds(&before) || has_unknown_kinds(&after));
        let others_differ = definitions(&before) != definitions(&after)
            || matching_patches(&before).difference(&matching_patches(&after)).next().is_some();
        if !is_open && !others_differ {
            return RenderedSides { before, after, render_count: made };
        }
    }
    let all = |side: &ComparedRevision<'_>, memory: &mut RenderCache| match pacing {
        Some(pacing) => side.renderer().render_while(memory, pacing),
        None => side.renderer().render_all(memory),
    };
    let before = all(base, &mut kept.renders);
    if before.is_complete() {
        kept.set_defined(&base.snapshot.revision, before.defined_kinds().clone());
    }
    let after = all(head, &mut kept.renders.clone());
    made += before.render_count + after.render_count;
    RenderedSides { before, after, render_count: made }
}

/// Whether a render looked up an unknown kind, which another app may define.
fn has_unknown_kinds(renders: &Renders) -> bool {
    let mut rendered = renders.results().filter_map(|result| result.as_ref().ok());
    rendered.any(|rendered| rendered.capability_queries.kinds.values().any(Option::is_none))
}

/// The defined kinds. When they differ, any app may render differently.
fn definitions(renders: &Renders) -> BTreeSet<(ClusterName, ObjectId, Digest)> {
    let rendered =
        renders.iter().filter_map(|(target, (_, result))| Some((target.cluster, result.as_ref().ok()?)));
    let of_target = |(cluster, rendered): (ClusterName, &Arc<model::RenderedTarget>)| {
        let defining = rendered.objects.iter().filter(|object| object.defines().is_some());
        let found: Vec<_> =
            defining.map(|object| (cluster.clone(), object.id.clone(), object.hash)).collect();
        found
    };
    rendered.flat_map(of_target).collect()
}

/// The patches of shared layers that match an object. A patch that matches no object of any app is a mistake.
fn matching_patches(renders: &Renders) -> BTreeSet<Location> {
    let rendered = renders.results().filter_map(|result| result.as_ref().ok());
    let patches = rendered.flat_map(|rendered| rendered.patches.iter());
    let fitting = patches.filter(|(location, fits)| **fits && location.file.starts_with(TEMPLATES_FOLDER));
    fitting.map(|(location, _)| location.clone()).collect()
}

fn cluster_columns(base: &Fleet, head: &Fleet) -> Vec<ClusterColumn> {
    let names: BTreeSet<&ClusterName> = base.clusters.keys().chain(head.clusters.keys()).collect();
    let column = |name: &ClusterName| ClusterColumn {
        name: name.clone(),
        ring: head.ring_of(name).or_else(|| base.ring_of(name)).map(ToOwned::to_owned),
        state: match (base.clusters.contains_key(name), head.clusters.contains_key(name)) {
            (true, true) => ClusterPresence::Same,
            (false, _) => ClusterPresence::New,
            // A Cluster file with a mistake does not remove its cluster.
            (true, false) if head.may_lack_clusters() => ClusterPresence::Same,
            (true, false) => ClusterPresence::Gone,
        },
    };
    let mut columns: Vec<ClusterColumn> = names.into_iter().map(column).collect();
    let rings: BTreeMap<&str, usize> =
        head.rings.iter().enumerate().map(|(number, ring)| (ring.name.as_str(), number)).collect();
    let place = |column: &ClusterColumn| {
        column.ring.as_deref().and_then(|ring| rings.get(ring).copied()).unwrap_or(usize::MAX)
    };
    columns.sort_by_key(|column| (place(column), column.name.clone()));
    columns
}
