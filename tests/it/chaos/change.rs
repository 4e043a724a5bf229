//! The changes that a commit makes to the generated repository. A change selects its subject by a number from the schedule.
//! Without such a subject it does nothing, so a shortened schedule stays valid.

use std::collections::{BTreeMap, BTreeSet};

use super::desired::{
    ChaosApp, ChaosAppKind, ClusterLifecycle, DesiredRepository, DriftMode, ManifestMistake, PruneMode,
};
use super::object::{ChaosKind, ChaosObjectId};
use super::random::{SeededRandom, pick};

/// Apps share this many object names, so that they conflict and take over objects from each other.
const OBJECT_NAMES: u64 = 6;
const MAX_APPS: u64 = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitChangeKind {
    EditObject,
    AddObject,
    RemoveObject,
    MoveObject,
    ClaimObject,
    AddApp,
    RemoveApp,
    SetClusters,
    AddMistake,
    FixMistakes,
    Pause,
    Resume,
    StartMaintenance,
    EndMaintenance,
    RemoveCluster,
    RestoreCluster,
    Observe,
    Enforce,
    Drift,
    Prune,
    BreakImage,
    FixImages,
    EditUnusedFile,
    WithdrawApprovals,
}

/// Each kind of change with its weight.
pub const WEIGHTS: [(u64, CommitChangeKind); 24] = [
    (20, CommitChangeKind::EditObject),
    (10, CommitChangeKind::AddObject),
    (10, CommitChangeKind::RemoveObject),
    (7, CommitChangeKind::MoveObject),
    (1, CommitChangeKind::ClaimObject),
    (5, CommitChangeKind::AddApp),
    (5, CommitChangeKind::RemoveApp),
    (6, CommitChangeKind::SetClusters),
    (4, CommitChangeKind::AddMistake),
    (6, CommitChangeKind::FixMistakes),
    (3, CommitChangeKind::Pause),
    (5, CommitChangeKind::Resume),
    (2, CommitChangeKind::StartMaintenance),
    (4, CommitChangeKind::EndMaintenance),
    (1, CommitChangeKind::RemoveCluster),
    (3, CommitChangeKind::RestoreCluster),
    (1, CommitChangeKind::Observe),
    (3, CommitChangeKind::Enforce),
    (3, CommitChangeKind::Drift),
    (3, CommitChangeKind::Prune),
    (2, CommitChangeKind::BreakImage),
    (4, CommitChangeKind::FixImages),
    (3, CommitChangeKind::EditUnusedFile),
    (1, CommitChangeKind::WithdrawApprovals),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitChange {
    pub kind: CommitChangeKind,
    pub number: u64,
}

impl std::fmt::Display for CommitChange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} #{}", self.kind, self.number % 1000)
    }
}

/// The initial repository.
pub fn initial_repository(draw: &mut SeededRandom) -> DesiredRepository {
    let clusters =
        (1..=draw.in_range(1..5)).map(|number| (format!("c{number}"), ClusterLifecycle::Ready)).collect();
    let mut wanted = DesiredRepository { clusters, ..DesiredRepository::default() };
    for number in 0..draw.in_range(2..9) {
        let app = new_app(&wanted, number, draw);
        wanted.apps.insert(format!("app{number}"), app);
    }
    wanted
}

fn new_app(wanted: &DesiredRepository, number: u64, draw: &mut SeededRandom) -> ChaosApp {
    let sort = if draw.percent_chance(30) {
        ChaosAppKind::Component { version: 1, replicas: draw.in_range(1..3) }
    } else {
        // An object that is never removed, so that the app never renders to nothing.
        let mut objects =
            BTreeMap::from([(ChaosObjectId::new(ChaosKind::ConfigMap, &format!("app{number}")), 0)]);
        for _ in 0..draw.in_range(0..4) {
            let name = unused_name(wanted, draw.next());
            objects.insert(name, draw.in_range(0..4));
        }
        ChaosAppKind::Objects(objects)
    };
    ChaosApp {
        kind: sort,
        clusters: some_clusters(wanted, draw),
        paused: false,
        drift: DriftMode::Repair,
        prune: PruneMode::WhenHealthy,
        mistake: None,
        broken_image: false,
    }
}

fn some_clusters(wanted: &DesiredRepository, draw: &mut SeededRandom) -> BTreeSet<String> {
    let all: Vec<String> = wanted.clusters.keys().cloned().collect();
    let mut some: BTreeSet<String> = all.iter().filter(|_| draw.percent_chance(75)).cloned().collect();
    some.insert(draw.choose(&all));
    some
}

/// A name that no app uses. If none is found, a name of the number's own.
fn unused_name(wanted: &DesiredRepository, number: u64) -> ChaosObjectId {
    let mut draw = SeededRandom::new(number);
    for _ in 0..20 {
        let kind = draw.choose_weighted(&[
            (4, ChaosKind::ConfigMap),
            (2, ChaosKind::Secret),
            (1, ChaosKind::ServiceAccount),
            (2, ChaosKind::Service),
            (2, ChaosKind::Deployment),
            (1, ChaosKind::Claim),
            (1, ChaosKind::Definition),
            (2, ChaosKind::Widget),
            (1, ChaosKind::Namespace),
            (2, ChaosKind::NamespacedConfigMap),
        ]);
        let numbered = format!("o{}", draw.in_range(0..OBJECT_NAMES));
        let name = ChaosObjectId::new(kind, kind.fixed_name().unwrap_or(&numbered));
        let taken = |app: &ChaosApp| matches!(&app.kind, ChaosAppKind::Objects(objects) if objects.contains_key(&name));
        if !wanted.apps.values().any(taken) {
            return name;
        }
    }
    ChaosObjectId::new(ChaosKind::ConfigMap, &format!("n{}", number % 1000))
}

impl CommitChange {
    /// A description of the change; `None` if there was nothing to change.
    pub fn apply(self, wanted: &mut DesiredRepository) -> Option<String> {
        let Self { kind: what, number } = self;
        let mut draw = SeededRandom::new(number);
        let ids: Vec<String> = wanted.apps.keys().cloned().collect();
        let id = pick(&ids, number).cloned();
        let objects_apps: Vec<String> = ids
            .iter()
            .filter(|id| matches!(wanted.apps[*id].kind, ChaosAppKind::Objects(_)))
            .cloned()
            .collect();
        match what {
            CommitChangeKind::EditObject => {
                let id = id?;
                let app = wanted.apps.get_mut(&id)?;
                match &mut app.kind {
                    ChaosAppKind::Component { version, replicas } => {
                        if draw.percent_chance(50) {
                            *version += 1;
                            return Some(format!("version {version} of {id}"));
                        }
                        *replicas = 1 + (*replicas % 3);
                        Some(format!("{replicas} replicas of {id}"))
                    }
                    ChaosAppKind::Objects(objects) => {
                        let names: Vec<ChaosObjectId> = objects.keys().cloned().collect();
                        let name = pick(&names, draw.next())?;
                        let version = objects.get_mut(name)?;
                        *version = draw.in_range(0..6);
                        Some(format!("{name} of {id} to version {version}"))
                    }
                }
            }
            CommitChangeKind::AddObject => {
                let name = unused_name(wanted, draw.next());
                let id = pick(&objects_apps, number)?;
                let ChaosAppKind::Objects(objects) = &mut wanted.apps.get_mut(id)?.kind else { return None };
                objects.insert(name.clone(), draw.in_range(0..4));
                Some(format!("{name} is new in {id}"))
            }
            CommitChangeKind::RemoveObject => {
                let id = pick(&objects_apps, number)?;
                let ChaosAppKind::Objects(objects) = &mut wanted.apps.get_mut(id)?.kind else { return None };
                let name = removable_object(objects, id, draw.next())?;
                objects.remove(&name);
                Some(format!("{name} goes from {id}"))
            }
            CommitChangeKind::MoveObject | CommitChangeKind::ClaimObject => {
                let from = pick(&objects_apps, number)?.clone();
                let to = pick(&objects_apps, draw.next())?.clone();
                let ChaosAppKind::Objects(objects) = &mut wanted.apps.get_mut(&from)?.kind else {
                    return None;
                };
                let name = removable_object(objects, &from, draw.next()).filter(|_| from != to)?;
                let version = objects[&name];
                if what == CommitChangeKind::MoveObject {
                    objects.remove(&name);
                }
                let ChaosAppKind::Objects(objects) = &mut wanted.apps.get_mut(&to)?.kind else { return None };
                objects.insert(name.clone(), version);
                let word = if what == CommitChangeKind::MoveObject { "moves" } else { "is also rendered" };
                Some(format!("{name} of {from} {word} in {to}"))
            }
            CommitChangeKind::AddApp => {
                let free: Vec<u64> = (0..MAX_APPS)
                    .filter(|number| !wanted.apps.contains_key(&format!("app{number}")))
                    .collect();
                let number = *pick(&free, number)?;
                let app = new_app(wanted, number, &mut draw);
                wanted.apps.insert(format!("app{number}"), app);
                Some(format!("app{number} is new"))
            }
            CommitChangeKind::RemoveApp => {
                let id = id.filter(|_| ids.len() > 1)?;
                wanted.apps.remove(&id);
                Some(format!("{id} goes"))
            }
            CommitChangeKind::SetClusters => {
                let id = id?;
                let clusters = some_clusters(wanted, &mut draw);
                wanted.apps.get_mut(&id)?.clusters = clusters.clone();
                Some(format!("{id} on {clusters:?}"))
            }
            CommitChangeKind::AddMistake if draw.percent_chance(25) => {
                wanted.has_stray_file = true;
                Some("a stray file".to_owned())
            }
            CommitChangeKind::AddMistake => {
                let id = id?;
                let mistake = draw.choose(&[ManifestMistake::UnknownField, ManifestMistake::InvalidYaml]);
                wanted.apps.get_mut(&id)?.mistake = Some(mistake);
                Some(format!("{id} has an error: {mistake:?}"))
            }
            CommitChangeKind::FixMistakes => {
                wanted.has_stray_file = false;
                wanted.apps.values_mut().for_each(|app| app.mistake = None);
                Some("errors are mended".to_owned())
            }
            CommitChangeKind::Pause => {
                let id = id?;
                wanted.apps.get_mut(&id)?.paused = true;
                Some(format!("{id} is paused"))
            }
            CommitChangeKind::Resume => {
                wanted.apps.values_mut().for_each(|app| app.paused = false);
                Some("nothing is paused".to_owned())
            }
            CommitChangeKind::StartMaintenance | CommitChangeKind::RemoveCluster => {
                let names: Vec<String> = wanted.clusters.keys().cloned().collect();
                let name = pick(&names, number)?;
                let standing = if what == CommitChangeKind::StartMaintenance {
                    ClusterLifecycle::Maintaining
                } else {
                    ClusterLifecycle::Removed
                };
                wanted.clusters.insert(name.clone(), standing);
                Some(format!("{name}: {standing:?}"))
            }
            CommitChangeKind::EndMaintenance | CommitChangeKind::RestoreCluster => {
                let over = if what == CommitChangeKind::EndMaintenance {
                    ClusterLifecycle::Maintaining
                } else {
                    ClusterLifecycle::Removed
                };
                let of_them = wanted.clusters.values_mut().filter(|standing| **standing == over);
                of_them.for_each(|standing| *standing = ClusterLifecycle::Ready);
                Some(format!("no cluster is {over:?}"))
            }
            CommitChangeKind::Observe | CommitChangeKind::Enforce => {
                wanted.observe_mode = what == CommitChangeKind::Observe;
                Some(format!("{what:?}"))
            }
            CommitChangeKind::Drift => {
                let id = id?;
                let drift = draw.choose(&[DriftMode::Repair, DriftMode::Report, DriftMode::Ignore]);
                wanted.apps.get_mut(&id)?.drift = drift;
                Some(format!("drift of {id}: {drift:?}"))
            }
            CommitChangeKind::Prune => {
                let id = id?;
                let prune = draw.choose(&[PruneMode::WhenHealthy, PruneMode::Always, PruneMode::Never]);
                wanted.apps.get_mut(&id)?.prune = prune;
                Some(format!("prune of {id}: {prune:?}"))
            }
            CommitChangeKind::BreakImage => {
                let id = id?;
                wanted.apps.get_mut(&id)?.broken_image = true;
                Some(format!("images of {id} cannot be pulled"))
            }
            CommitChangeKind::FixImages => {
                wanted.apps.values_mut().for_each(|app| app.broken_image = false);
                Some("all images can be pulled".to_owned())
            }
            CommitChangeKind::EditUnusedFile => {
                wanted.unused_text = number % 1000;
                Some("words".to_owned())
            }
            CommitChangeKind::WithdrawApprovals => {
                wanted.approvals.clear();
                wanted.approved_deletes.clear();
                Some("approvals are taken back".to_owned())
            }
        }
    }
}

/// Leaves out the object that keeps the app from rendering to nothing.
fn removable_object(objects: &BTreeMap<ChaosObjectId, u64>, id: &str, number: u64) -> Option<ChaosObjectId> {
    let names: Vec<&ChaosObjectId> = objects.keys().filter(|name| name.name != id).collect();
    pick(&names, number).map(|name| (*name).clone())
}

/// Makes the changes of the last commit: afterwards everything can converge.
pub fn correct_everything(wanted: &mut DesiredRepository) {
    let mends = [
        CommitChangeKind::FixMistakes,
        CommitChangeKind::Resume,
        CommitChangeKind::EndMaintenance,
        CommitChangeKind::RestoreCluster,
        CommitChangeKind::Enforce,
        CommitChangeKind::FixImages,
    ];
    for what in mends {
        CommitChange { kind: what, number: 0 }.apply(wanted);
    }
    // If several apps claim an object, the first keeps it.
    let mut seen = BTreeSet::new();
    for app in wanted.apps.values_mut() {
        (app.drift, app.prune) = (DriftMode::Repair, PruneMode::WhenHealthy);
        if let ChaosAppKind::Objects(objects) = &mut app.kind {
            objects.retain(|name, _| seen.insert(name.clone()));
        }
    }
    // A new container may itself need a container.
    for kind in [ChaosKind::Widget, ChaosKind::NamespacedConfigMap, ChaosKind::Widget] {
        add_missing_containers(wanted, kind);
    }
    wanted.unused_text += 1;
}

/// Adds the missing Namespace or definition for objects of a kind.
fn add_missing_containers(wanted: &mut DesiredRepository, kind: ChaosKind) {
    let Some(container) = kind.container() else { return };
    let has = |app: &ChaosApp, is_it: &dyn Fn(&ChaosObjectId) -> bool| matches!(&app.kind, ChaosAppKind::Objects(objects) if objects.keys().any(is_it));
    let users: Vec<&ChaosApp> =
        wanted.apps.values().filter(|app| has(app, &|name| name.kind == kind)).collect();
    let clusters: BTreeSet<String> = users.iter().flat_map(|app| app.clusters.iter().cloned()).collect();
    let bring = |is_it: &dyn Fn(&ChaosObjectId) -> bool| {
        wanted.apps.iter().find(|(_, app)| has(app, is_it)).map(|(id, _)| id.clone())
    };
    let Some(id) = bring(&|name| *name == container).or_else(|| bring(&|name| name.kind == kind)) else {
        return;
    };
    let Some(app) = wanted.apps.get_mut(&id) else { return };
    app.clusters.extend(clusters);
    if let ChaosAppKind::Objects(objects) = &mut app.kind {
        objects.entry(container).or_default();
    }
}
