//! An app in waves at one commit: its units by wave, and their contents. Pure.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use serde_json::json;

use crate::fleet::{Fleet, Target, Waves};
use crate::model::{
    App, AppId, Capabilities, ChartProvider, ClusterName, Digest, KindsByName, ObjectId, OnFailure,
    PathHistory, RenderedTarget, Revision, Snapshot, UpdateStrategy,
};
use crate::render::{FleetRenderer, Renders, TargetRender, UnitContent, UnitContents, unit_contents};
use crate::report::version::of_workload;
use crate::rollout::{AppApprovalRules, AppWindows, CommitFacts, UnitId};
use crate::schedule::assign;

#[derive(Clone, Debug)]
pub struct AppHead {
    pub waves: Waves,
    /// Of its content, from Git alone. Approvals name it.
    pub digest: Digest,
    pub facts: Arc<CommitFacts>,
    pub units: BTreeMap<UnitId, HeadUnit>,
    pub selected: SelectedRules,
    /// The renders that it was made from.
    renders: Arc<BTreeMap<ClusterName, TargetRender>>,
}

/// The windows and approval rules of an app.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SelectedRules {
    pub windows: AppWindows,
    pub rules: AppApprovalRules,
}

impl SelectedRules {
    fn is_empty(&self) -> bool {
        self.windows.is_empty() && self.rules.is_empty()
    }
}

#[derive(Clone, Debug)]
pub struct HeadUnit {
    /// The position of its wave.
    pub wave: usize,
    /// Its content for the current capabilities of the cluster; `None`: it cannot be rendered.
    pub content: Option<Arc<UnitContent>>,
    pub pin: Option<Arc<str>>,
}

pub(super) fn units_on<'u, T>(
    units: &'u BTreeMap<UnitId, T>,
    cluster: &ClusterName,
) -> impl Iterator<Item = (&'u UnitId, &'u T)> + use<'u, T> {
    let (first, cluster) = (UnitId { cluster: cluster.clone(), pod_set: Arc::default() }, cluster.clone());
    units.range(first..).take_while(move |(id, _)| id.cluster == cluster)
}

/// All apps in waves at the head.
#[derive(Debug, Default)]
pub struct AppHeads {
    pub revision: Option<Revision>,
    pub apps: BTreeMap<AppId, Arc<AppHead>>,
    /// Apps without waves, with the input of that result.
    plain: BTreeMap<AppId, PlainApp>,
    /// Clusters may be missing: a wave without units may have some.
    pub may_lack_clusters: bool,
    /// The position of each commit in history; the head is 0. Empty if no app has waves.
    pub positions: Arc<HashMap<Revision, usize>>,
    /// The input of the positions.
    pub(super) history: Arc<PathHistory>,
}

type PlainApp = (Arc<BTreeMap<ClusterName, TargetRender>>, Waves, UpdateStrategy);

impl AppHead {
    pub fn units_on(&self, cluster: &ClusterName) -> impl Iterator<Item = (&UnitId, &HeadUnit)> {
        units_on(&self.units, cluster)
    }

    /// The commit that brought the render of a cluster.
    pub fn revision_on(&self, cluster: &ClusterName) -> Option<&Revision> {
        let (_, render) = self.renders.get(cluster)?;
        render.as_ref().ok().map(|rendered| &rendered.revision)
    }

    /// The unit that owns an object at the head.
    pub fn owner_of(&self, cluster: &ClusterName, object: &ObjectId) -> Option<&UnitId> {
        let has =
            |unit: &HeadUnit| unit.content.as_ref().is_some_and(|content| content.get(object).is_some());
        self.units_on(cluster).find(|(_, unit)| has(unit)).map(|(id, _)| id)
    }
}

impl AppHeads {
    /// `before`: the previous heads; unchanged apps are reused.
    pub fn of(
        fleet: &Fleet,
        snapshot: &Snapshot,
        charts: &dyn ChartProvider,
        renders: &Renders,
        before: &Self,
    ) -> Self {
        let (mut apps, mut plain) = (BTreeMap::new(), BTreeMap::new());
        let mut declared = None;
        let may_lack_clusters = fleet.may_lack_clusters();
        for (id, renders_of_app) in &renders.apps {
            let Some(app) = fleet.apps.get(id).filter(|app| !app.unmanaged) else { continue };
            let waves = Waves::of(fleet, app);
            let is_same =
                |known: &&Arc<AppHead>| known.waves == waves && Arc::ptr_eq(&known.renders, renders_of_app);
            let known = before.apps.get(id).filter(is_same);
            let at = AppAtCommit { fleet, app, renders: renders_of_app };
            let was_plain = before.plain.get(id).is_some_and(|(renders, known, rollout)| {
                Arc::ptr_eq(renders, renders_of_app) && *known == waves && *rollout == app.rollout
            });
            // A missing cluster may hide a wave. Another process does not know whether the app was in waves.
            let was_in_waves = || match before.revision {
                Some(_) => before.apps.contains_key(id),
                None => waves.list().len() > 1,
            };
            let stays_in_waves = was_in_waves() && (may_lack_clusters || renders.is_awaited(id));
            let selected = at.selected();
            if !stays_in_waves && selected.is_empty() && (was_plain || !at.is_in_waves(&waves)) {
                plain.insert(id.clone(), (Arc::clone(renders_of_app), waves, app.rollout.clone()));
                continue;
            }
            let head = match known {
                Some(known) if known.selected == selected => Arc::clone(known),
                Some(known) => Arc::new(AppHead { selected, ..(**known).clone() }),
                None => {
                    let declared = declared.get_or_insert_with(|| {
                        FleetRenderer::new(fleet, snapshot, charts)
                            .with_defined_kinds(renders.defined_kinds().clone())
                    });
                    Arc::new(AppHead { selected, ..at.head(waves, declared) })
                }
            };
            apps.insert(id.clone(), head);
        }
        let number = |(number, revision): (usize, &Revision)| (revision.clone(), number);
        let history = Arc::clone(&snapshot.history);
        let positions = if apps.is_empty() {
            Arc::default()
        } else if Arc::ptr_eq(&history, &before.history) && !before.positions.is_empty() {
            Arc::clone(&before.positions)
        } else {
            Arc::new(history.commits.iter().enumerate().map(number).collect())
        };
        Self { revision: Some(renders.revision.clone()), apps, plain, may_lack_clusters, positions, history }
    }
}

/// An app and its renders at a commit.
#[derive(Clone, Copy, Debug)]
pub struct AppAtCommit<'a> {
    pub fleet: &'a Fleet,
    pub app: &'a App,
    pub renders: &'a Arc<BTreeMap<ClusterName, TargetRender>>,
}

impl AppAtCommit<'_> {
    fn selected(&self) -> SelectedRules {
        SelectedRules {
            windows: AppWindows::of_fleet(self.fleet, self.app, self.renders.keys()),
            rules: AppApprovalRules::of_fleet(self.fleet, self.app, self.renders.keys()),
        }
    }

    /// A window or an approval rule selects it.
    pub(super) fn is_selected(&self) -> bool {
        !self.selected().is_empty()
    }

    /// Some units may have to wait for others. An app whose units all change at once in one wave needs no decision.
    pub(super) fn is_in_waves(&self, waves: &Waves) -> bool {
        let rollout = &self.app.rollout;
        if !rollout.after.is_empty() || rollout.on_failure == OnFailure::Revert {
            return true;
        }
        let wave_of = |(cluster, group): (&ClusterName, String)| waves.wave_of(self.fleet, cluster, &group);
        let units = self
            .renders
            .keys()
            .flat_map(|cluster| self.groups(cluster).into_iter().map(move |(_, group)| (cluster, group)));
        let mut used = units.map(wave_of);
        let Some(first) = used.next() else { return false };
        let is_limited = waves.list().get(first).is_some_and(|wave| wave.limits.max_concurrency.is_some());
        is_limited || used.any(|wave| wave != first)
    }

    pub(super) fn head(&self, waves: Waves, declared: &FleetRenderer<'_>) -> AppHead {
        let mut shared = SharedContents::default();
        let mut units = BTreeMap::new();
        let versions = self.versions(&waves, self.fleet);
        for (cluster, (_, render)) in self.renders.iter() {
            let contents = render.as_ref().ok().map(|rendered| shared.contents(rendered));
            let pin = versions.get(cluster).cloned();
            for (pod_set, group) in self.groups(cluster) {
                let content = contents.as_ref().and_then(|contents| contents.get(&pod_set)).cloned();
                let wave = waves.wave_of(self.fleet, cluster, &group);
                let id = UnitId { cluster: cluster.clone(), pod_set };
                units.insert(id, HeadUnit { wave, content, pin: pin.clone() });
            }
        }
        let facts = self.facts(&waves, self.fleet, declared);
        let contents: BTreeSet<Digest> = facts.units.values().copied().collect();
        AppHead {
            waves,
            digest: digest_of(&contents),
            facts: Arc::new(facts),
            units,
            selected: SelectedRules::default(),
            renders: Arc::clone(self.renders),
        }
    }

    /// Computed from Git alone, with the capabilities that Cluster files declare, so that discovered capabilities do not change
    /// the version. `waves` and `fleet` are those of the head.
    pub fn facts(&self, waves: &Waves, fleet: &Fleet, declared: &FleetRenderer<'_>) -> CommitFacts {
        let mut shared = SharedContents::default();
        let mut units = BTreeMap::new();
        let mut of_waves = vec![BTreeSet::new(); waves.list().len()];
        for (cluster, (_, render)) in self.renders.iter() {
            let own;
            let rendered = match render {
                Ok(rendered) if self.is_as_declared(rendered, declared) => rendered,
                // The discovered capabilities may be the reason why it cannot be rendered.
                Ok(_) | Err(_) => {
                    let target = Target { app: self.app.id.clone(), cluster: cluster.clone() };
                    let Ok(made) = declared.render(&target) else { continue };
                    own = Arc::new(made);
                    &own
                }
            };
            let contents = shared.contents(rendered);
            // A cluster that the head lacks was in the wave of its own commit.
            let fleet = if fleet.clusters.contains_key(cluster) { fleet } else { self.fleet };
            for (pod_set, group) in self.groups(cluster) {
                let Some(content) = contents.get(&pod_set) else { continue };
                if let Some(wave) = of_waves.get_mut(waves.wave_of(fleet, cluster, &group)) {
                    wave.insert(content.digest);
                }
                units.insert(UnitId { cluster: cluster.clone(), pod_set }, content.digest);
            }
        }
        let pins = self.versions(waves, fleet);
        CommitFacts { waves: of_waves.iter().map(digest_of).collect(), units, pins }
    }

    /// The versions of pins. A cluster without a pin that comes before a pinned one has the version of its render.
    fn versions(&self, waves: &Waves, fleet: &Fleet) -> BTreeMap<ClusterName, Arc<str>> {
        let pins = self.app.pins.iter().map(|(cluster, pin)| (cluster.clone(), pin.version.as_str().into()));
        let mut versions: BTreeMap<ClusterName, Arc<str>> = pins.collect();
        let wave_of = |cluster: &ClusterName| waves.wave_of(fleet, cluster, "");
        let Some(last) = versions.keys().map(wave_of).max() else { return versions };
        for (cluster, (_, render)) in self.renders.iter().filter(|(cluster, _)| wave_of(cluster) < last) {
            let objects = render.as_ref().into_iter().flat_map(|rendered| &*rendered.objects);
            let version = { objects }.find_map(|object| of_workload(&object.body.fields()));
            if let (Some(version), false) = (version, versions.contains_key(cluster)) {
                versions.insert(cluster.clone(), version.into());
            }
        }
        versions
    }

    fn is_as_declared(&self, rendered: &RenderedTarget, declared: &FleetRenderer<'_>) -> bool {
        let Some(cluster) = self.fleet.clusters.get(&rendered.cluster) else { return false };
        let none = Arc::<KindsByName>::default();
        let defined = declared.defined_kinds().get(&rendered.cluster).unwrap_or(&none);
        rendered.capability_queries.are_unchanged(&Capabilities::of(cluster, None), defined)
    }

    /// The units on a cluster, with the group of their pods.
    fn groups(&self, cluster: &ClusterName) -> Vec<(Arc<str>, String)> {
        let is_app_set = matches!(self.app.spec, crate::model::AppSpec::AppSet(_));
        let assigned = if is_app_set { assign(self.app, cluster) } else { Vec::new() };
        match assigned.is_empty() {
            true => vec![(Arc::default(), String::new())],
            false => assigned.into_iter().map(|set| (set.name.as_str().into(), set.group)).collect(),
        }
    }
}

/// Equal contents count once.
fn digest_of(contents: &BTreeSet<Digest>) -> Digest {
    Digest::of_json(&json!(contents.iter().map(Digest::to_string).collect::<Vec<_>>()))
}

/// Clusters with equal renders of an app share the objects and the results computed from them.
#[derive(Default)]
struct SharedContents(HashMap<(usize, PodSetOrder), Arc<ContentsByPodSet>>);

type ContentsByPodSet = BTreeMap<Arc<str>, Arc<UnitContent>>;

/// Their order decides which podSet owns shared objects.
type PodSetOrder = Arc<[Arc<str>]>;

impl SharedContents {
    fn contents(&mut self, rendered: &RenderedTarget) -> Arc<ContentsByPodSet> {
        let made = || {
            let contents: UnitContents = unit_contents(rendered);
            Arc::new(contents.into_iter().map(|(name, content)| (name, Arc::new(content))).collect())
        };
        let key = (rendered.objects.as_ptr() as usize, Arc::clone(&rendered.pod_sets));
        Arc::clone(self.0.entry(key).or_insert_with(made))
    }
}
