//! Renders both sides, as far as they can differ, and compares them. Pull requests and command-line diffs call it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::comparison::{ClusterColumn, ClusterState, Comparison, Totals};
use super::{apps, mistakes, origins, removal};
use crate::fleet::layers::TEMPLATES;
use crate::fleet::{Fleet, assemble_after};
use crate::manifest;
use crate::model::{self, Charts, ClusterName, Digest, Location, ObjectId, Revision, Snapshot};
use crate::render::{
    Before, Defined, Differing, Discovered, Memory, Pacing, Renderer, Renders, differing, is_awaited,
    verdicts,
};
use crate::sops::unopened;

/// One of the two revisions, with everything that its render needs.
#[derive(Clone, Debug)]
pub struct Side<'a> {
    pub fleet: &'a Fleet,
    /// Both sides have the keys and the registered clusters of the base.
    pub snapshot: &'a Snapshot,
    pub charts: &'a dyn Charts,
    /// Discovered capabilities: the same on both sides.
    pub discovered: Discovered,
}

impl<'a> Side<'a> {
    fn renderer(&self) -> Renderer<'a> {
        Renderer::knowing(self.fleet, self.snapshot, self.charts, self.discovered.clone())
    }
}

/// Cached renders between comparisons. The result is the same without it.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    /// All renders of a base, once all were needed.
    renders: Memory,
    /// What the apps of a base define.
    defined: Option<(Revision, Defined)>,
}

impl Kept {
    /// Sets the kinds that the apps of a base define, from a caller that renders all apps (`Renders::defined`).
    pub fn know(&mut self, base: &Revision, defined: Defined) {
        self.defined = Some((base.clone(), defined));
    }

    fn defined_at(&self, base: &Revision) -> Option<&Defined> {
        self.defined.as_ref().filter(|(revision, _)| revision == base).map(|(_, defined)| defined)
    }
}

/// The fleet of a head. Names that the base holds stay with their holders, and unchanged files are not parsed again.
pub fn fleet_after(head: &Snapshot, reading: &mut manifest::Memory, base: Option<&Fleet>) -> Fleet {
    let holders = base.map(|base| Arc::clone(&base.holders)).unwrap_or_default();
    assemble_after(manifest::read_again(head, reading), head, &holders)
}

/// The time limit of the policies for both sides.
const LONGEST_JUDGING: Duration = Duration::from_secs(60);

/// Compares two revisions. It may block for long, so call it off the async threads. Without `pacing` each render has its full time
/// limit.
pub fn compare(base: &Side<'_>, head: &Side<'_>, kept: &mut Kept, pacing: Option<Pacing<'_>>) -> Comparison {
    let Rendered { before, after, made } = rendered(base, head, kept, pacing);
    let mut apps = apps::changes((base.fleet, &before), (head.fleet, &after));
    let head_renderer = head.renderer().defining(after.defined().clone());
    let goes_on = || pacing.is_none_or(|pacing| (pacing.goes_on)());
    origins::trace(&mut apps, &head_renderer, base.snapshot, &goes_on);
    removal::over_cap(&mut apps, head.fleet.instance.caps);
    let base_renderer = base.renderer().defining(before.defined().clone());
    // The time limit of the policies excludes the renders.
    let begun = pacing.map_or(Duration::ZERO, |pacing| (pacing.clock)());
    let judges = || pacing.is_none_or(|pacing| (pacing.clock)().saturating_sub(begun) < LONGEST_JUDGING);
    let compared = Before { fleet: base.fleet, renders: &before };
    let of_policies = (
        verdicts(&base_renderer, &before, None, &judges, &|| false),
        verdicts(&head_renderer, &after, Some(compared), &judges, &goes_on),
    );
    let of_base = mistakes::of_side(base.fleet, &before, &of_policies.0.all);
    let of_head = mistakes::of_side(head.fleet, &after, &of_policies.1.all);
    let (mut new, mut known) = mistakes::parted(&of_base, &of_head, &of_policies.1.of_changed);
    if head.snapshot.keys.is_empty() {
        new.iter_mut().chain(&mut known).for_each(unopened);
    }
    let warnings = new.iter().chain(&known).filter(|it| !it.is_error()).count();
    let (errors, new_warnings): (Vec<_>, Vec<_>) = new.into_iter().partition(|it| it.is_error());
    Comparison {
        base: base.snapshot.revision.clone(),
        head: head.snapshot.revision.clone(),
        clusters: columns(base.fleet, head.fleet),
        apps,
        errors,
        known_errors: known.into_iter().filter(|it| it.is_error()).collect(),
        warnings: new_warnings,
        totals: Totals {
            apps: head.fleet.apps.len() + head.fleet.broken.len(),
            clusters: head.fleet.clusters.len(),
            warnings,
        },
        renders: made,
        awaited: before.results().chain(after.results()).filter(|result| is_awaited(result)).count(),
    }
}

struct Rendered {
    before: Renders,
    after: Renders,
    made: usize,
}

fn rendered(base: &Side<'_>, head: &Side<'_>, kept: &mut Kept, pacing: Option<Pacing<'_>>) -> Rendered {
    let defined = kept.defined_at(&base.snapshot.revision).cloned();
    let mut made = 0;
    // Changed policies may deny unchanged objects, and any app may set the labels of a namespace.
    let judged_alike =
        base.fleet.policies == head.fleet.policies && !head.fleet.policies.look_at_namespaces();
    if judged_alike && let Differing::Apps(apps) = differing(&base.renderer(), &head.renderer()) {
        let beside = defined.clone().unwrap_or_default();
        let some = |side: &Side<'_>| side.renderer().beside(beside.clone()).render_some(&apps, pacing);
        let (before, after) = (some(base), some(head));
        made += before.made + after.made;
        let is_open = defined.is_none() && (asks_for_more(&before) || asks_for_more(&after));
        let others_differ = definitions(&before) != definitions(&after)
            || fitting(&before).difference(&fitting(&after)).next().is_some();
        if !is_open && !others_differ {
            return Rendered { before, after, made };
        }
    }
    let all = |side: &Side<'_>, memory: &mut Memory| match pacing {
        Some(pacing) => side.renderer().render_while(memory, pacing),
        None => side.renderer().render_all(memory),
    };
    let before = all(base, &mut kept.renders);
    if before.is_complete() {
        kept.know(&base.snapshot.revision, before.defined().clone());
    }
    let after = all(head, &mut kept.renders.clone());
    made += before.made + after.made;
    Rendered { before, after, made }
}

/// Whether a render looked up an unknown kind, which another app may define.
fn asks_for_more(renders: &Renders) -> bool {
    let mut rendered = renders.results().filter_map(|result| result.as_ref().ok());
    rendered.any(|rendered| rendered.questions.kinds.values().any(Option::is_none))
}

/// The defined kinds. When they differ, any app may render differently.
fn definitions(renders: &Renders) -> BTreeSet<(ClusterName, ObjectId, Digest)> {
    let rendered =
        renders.iter().filter_map(|(target, (_, result))| Some((target.cluster, result.as_ref().ok()?)));
    let of_target = |(cluster, rendered): (ClusterName, &Arc<model::Rendered>)| {
        let defining = rendered.objects.iter().filter(|object| object.defines().is_some());
        let found: Vec<_> =
            defining.map(|object| (cluster.clone(), object.id.clone(), object.hash)).collect();
        found
    };
    rendered.flat_map(of_target).collect()
}

/// The patches of shared layers that match an object. A patch that matches no object of any app is a mistake.
fn fitting(renders: &Renders) -> BTreeSet<Location> {
    let rendered = renders.results().filter_map(|result| result.as_ref().ok());
    let patches = rendered.flat_map(|rendered| rendered.patches.iter());
    let fitting = patches.filter(|(location, fits)| **fits && location.file.starts_with(TEMPLATES));
    fitting.map(|(location, _)| location.clone()).collect()
}

fn columns(base: &Fleet, head: &Fleet) -> Vec<ClusterColumn> {
    let names: BTreeSet<&ClusterName> = base.clusters.keys().chain(head.clusters.keys()).collect();
    let column = |name: &ClusterName| ClusterColumn {
        name: name.clone(),
        ring: head.ring_of(name).or_else(|| base.ring_of(name)).map(ToOwned::to_owned),
        state: match (base.clusters.contains_key(name), head.clusters.contains_key(name)) {
            (true, true) => ClusterState::Same,
            (false, _) => ClusterState::New,
            // A Cluster file with a mistake does not remove its cluster.
            (true, false) if head.may_lack_clusters() => ClusterState::Same,
            (true, false) => ClusterState::Gone,
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
