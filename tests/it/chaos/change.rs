//! The changes that a commit makes to the generated repository. A change selects its subject by a number from the schedule.
//! Without such a subject it does nothing, so a shortened schedule stays valid.

use std::collections::{BTreeMap, BTreeSet};

use super::draw::{Draw, pick};
use super::object::{Kind, Name};
use super::wanted::{App, Drift, Mistake, Prune, Sort, Standing, Wanted};

/// Apps share this many object names, so that they conflict and take over objects from each other.
const NAMES: u64 = 6;
const APPS: u64 = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    Value,
    AddObject,
    RemoveObject,
    MoveObject,
    ClaimObject,
    AddApp,
    RemoveApp,
    Clusters,
    Break,
    Mend,
    Pause,
    Resume,
    Maintain,
    EndMaintenance,
    RemoveCluster,
    TakeBack,
    Observe,
    Enforce,
    Drift,
    Prune,
    BreakImage,
    MendImage,
    Words,
    Withdraw,
}

/// Each kind of change with its weight.
pub const WEIGHTS: [(u64, What); 24] = [
    (20, What::Value),
    (10, What::AddObject),
    (10, What::RemoveObject),
    (7, What::MoveObject),
    (1, What::ClaimObject),
    (5, What::AddApp),
    (5, What::RemoveApp),
    (6, What::Clusters),
    (4, What::Break),
    (6, What::Mend),
    (3, What::Pause),
    (5, What::Resume),
    (2, What::Maintain),
    (4, What::EndMaintenance),
    (1, What::RemoveCluster),
    (3, What::TakeBack),
    (1, What::Observe),
    (3, What::Enforce),
    (3, What::Drift),
    (3, What::Prune),
    (2, What::BreakImage),
    (4, What::MendImage),
    (3, What::Words),
    (1, What::Withdraw),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    pub what: What,
    pub number: u64,
}

impl std::fmt::Display for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} #{}", self.what, self.number % 1000)
    }
}

/// The initial repository.
pub fn begin(draw: &mut Draw) -> Wanted {
    let clusters = (1..=draw.within(1..5)).map(|number| (format!("c{number}"), Standing::Ready)).collect();
    let mut wanted = Wanted { clusters, ..Wanted::default() };
    for number in 0..draw.within(2..9) {
        let app = app(&wanted, number, draw);
        wanted.apps.insert(format!("app{number}"), app);
    }
    wanted
}

fn app(wanted: &Wanted, number: u64, draw: &mut Draw) -> App {
    let sort = if draw.chance(30) {
        Sort::Component { version: 1, replicas: draw.within(1..3) }
    } else {
        // An object that is never removed, so that the app never renders to nothing.
        let mut objects = BTreeMap::from([(Name::new(Kind::ConfigMap, &format!("app{number}")), 0)]);
        for _ in 0..draw.within(0..4) {
            let name = free(wanted, draw.next());
            objects.insert(name, draw.within(0..4));
        }
        Sort::Objects(objects)
    };
    App {
        sort,
        clusters: some_clusters(wanted, draw),
        paused: false,
        drift: Drift::Repair,
        prune: Prune::WhenHealthy,
        mistake: None,
        broken_image: false,
    }
}

fn some_clusters(wanted: &Wanted, draw: &mut Draw) -> BTreeSet<String> {
    let all: Vec<String> = wanted.clusters.keys().cloned().collect();
    let mut some: BTreeSet<String> = all.iter().filter(|_| draw.chance(75)).cloned().collect();
    some.insert(draw.of(&all));
    some
}

/// A name that no app uses. If none is found, a name of the number's own.
fn free(wanted: &Wanted, number: u64) -> Name {
    let mut draw = Draw::new(number);
    for _ in 0..20 {
        let kind = draw.weighed(&[
            (4, Kind::ConfigMap),
            (2, Kind::Secret),
            (1, Kind::ServiceAccount),
            (2, Kind::Service),
            (2, Kind::Deployment),
            (1, Kind::Claim),
            (1, Kind::Definition),
            (2, Kind::Widget),
            (1, Kind::Namespace),
            (2, Kind::Inside),
        ]);
        let numbered = format!("o{}", draw.within(0..NAMES));
        let name = Name::new(kind, kind.only_name().unwrap_or(&numbered));
        let taken = |app: &App| matches!(&app.sort, Sort::Objects(objects) if objects.contains_key(&name));
        if !wanted.apps.values().any(taken) {
            return name;
        }
    }
    Name::new(Kind::ConfigMap, &format!("n{}", number % 1000))
}

impl Change {
    /// A description of the change; `None` if there was nothing to change.
    pub fn apply(self, wanted: &mut Wanted) -> Option<String> {
        let Self { what, number } = self;
        let mut draw = Draw::new(number);
        let ids: Vec<String> = wanted.apps.keys().cloned().collect();
        let id = pick(&ids, number).cloned();
        let objects_apps: Vec<String> =
            ids.iter().filter(|id| matches!(wanted.apps[*id].sort, Sort::Objects(_))).cloned().collect();
        match what {
            What::Value => {
                let id = id?;
                let app = wanted.apps.get_mut(&id)?;
                match &mut app.sort {
                    Sort::Component { version, replicas } => {
                        if draw.chance(50) {
                            *version += 1;
                            return Some(format!("version {version} of {id}"));
                        }
                        *replicas = 1 + (*replicas % 3);
                        Some(format!("{replicas} replicas of {id}"))
                    }
                    Sort::Objects(objects) => {
                        let names: Vec<Name> = objects.keys().cloned().collect();
                        let name = pick(&names, draw.next())?;
                        let version = objects.get_mut(name)?;
                        *version = draw.within(0..6);
                        Some(format!("{name} of {id} to version {version}"))
                    }
                }
            }
            What::AddObject => {
                let name = free(wanted, draw.next());
                let id = pick(&objects_apps, number)?;
                let Sort::Objects(objects) = &mut wanted.apps.get_mut(id)?.sort else { return None };
                objects.insert(name.clone(), draw.within(0..4));
                Some(format!("{name} is new in {id}"))
            }
            What::RemoveObject => {
                let id = pick(&objects_apps, number)?;
                let Sort::Objects(objects) = &mut wanted.apps.get_mut(id)?.sort else { return None };
                let name = movable(objects, id, draw.next())?;
                objects.remove(&name);
                Some(format!("{name} goes from {id}"))
            }
            What::MoveObject | What::ClaimObject => {
                let from = pick(&objects_apps, number)?.clone();
                let to = pick(&objects_apps, draw.next())?.clone();
                let Sort::Objects(objects) = &mut wanted.apps.get_mut(&from)?.sort else { return None };
                let name = movable(objects, &from, draw.next()).filter(|_| from != to)?;
                let version = objects[&name];
                if what == What::MoveObject {
                    objects.remove(&name);
                }
                let Sort::Objects(objects) = &mut wanted.apps.get_mut(&to)?.sort else { return None };
                objects.insert(name.clone(), version);
                let word = if what == What::MoveObject { "moves" } else { "is also rendered" };
                Some(format!("{name} of {from} {word} in {to}"))
            }
            What::AddApp => {
                let free: Vec<u64> =
                    (0..APPS).filter(|number| !wanted.apps.contains_key(&format!("app{number}"))).collect();
                let number = *pick(&free, number)?;
                let app = app(wanted, number, &mut draw);
                wanted.apps.insert(format!("app{number}"), app);
                Some(format!("app{number} is new"))
            }
            What::RemoveApp => {
                let id = id.filter(|_| ids.len() > 1)?;
                wanted.apps.remove(&id);
                Some(format!("{id} goes"))
            }
            What::Clusters => {
                let id = id?;
                let clusters = some_clusters(wanted, &mut draw);
                wanted.apps.get_mut(&id)?.clusters = clusters.clone();
                Some(format!("{id} on {clusters:?}"))
            }
            What::Break if draw.chance(25) => {
                wanted.stray = true;
                Some("a stray file".to_owned())
            }
            What::Break => {
                let id = id?;
                let mistake = draw.of(&[Mistake::Field, Mistake::Syntax]);
                wanted.apps.get_mut(&id)?.mistake = Some(mistake);
                Some(format!("{id} has a mistake: {mistake:?}"))
            }
            What::Mend => {
                wanted.stray = false;
                wanted.apps.values_mut().for_each(|app| app.mistake = None);
                Some("mistakes are mended".to_owned())
            }
            What::Pause => {
                let id = id?;
                wanted.apps.get_mut(&id)?.paused = true;
                Some(format!("{id} is paused"))
            }
            What::Resume => {
                wanted.apps.values_mut().for_each(|app| app.paused = false);
                Some("nothing is paused".to_owned())
            }
            What::Maintain | What::RemoveCluster => {
                let names: Vec<String> = wanted.clusters.keys().cloned().collect();
                let name = pick(&names, number)?;
                let standing = if what == What::Maintain { Standing::Maintaining } else { Standing::Removed };
                wanted.clusters.insert(name.clone(), standing);
                Some(format!("{name}: {standing:?}"))
            }
            What::EndMaintenance | What::TakeBack => {
                let over =
                    if what == What::EndMaintenance { Standing::Maintaining } else { Standing::Removed };
                let of_them = wanted.clusters.values_mut().filter(|standing| **standing == over);
                of_them.for_each(|standing| *standing = Standing::Ready);
                Some(format!("no cluster is {over:?}"))
            }
            What::Observe | What::Enforce => {
                wanted.observes = what == What::Observe;
                Some(format!("{what:?}"))
            }
            What::Drift => {
                let id = id?;
                let drift = draw.of(&[Drift::Repair, Drift::Report, Drift::Ignore]);
                wanted.apps.get_mut(&id)?.drift = drift;
                Some(format!("drift of {id}: {drift:?}"))
            }
            What::Prune => {
                let id = id?;
                let prune = draw.of(&[Prune::WhenHealthy, Prune::Always, Prune::Never]);
                wanted.apps.get_mut(&id)?.prune = prune;
                Some(format!("prune of {id}: {prune:?}"))
            }
            What::BreakImage => {
                let id = id?;
                wanted.apps.get_mut(&id)?.broken_image = true;
                Some(format!("images of {id} cannot be pulled"))
            }
            What::MendImage => {
                wanted.apps.values_mut().for_each(|app| app.broken_image = false);
                Some("all images can be pulled".to_owned())
            }
            What::Words => {
                wanted.words = number % 1000;
                Some("words".to_owned())
            }
            What::Withdraw => {
                wanted.approvals.clear();
                wanted.approved.clear();
                Some("approvals are taken back".to_owned())
            }
        }
    }
}

/// Leaves out the object that keeps the app from rendering to nothing.
fn movable(objects: &BTreeMap<Name, u64>, id: &str, number: u64) -> Option<Name> {
    let names: Vec<&Name> = objects.keys().filter(|name| name.name != id).collect();
    pick(&names, number).map(|name| (*name).clone())
}

/// Makes the changes of the last commit: afterwards everything can converge.
pub fn settle(wanted: &mut Wanted) {
    let mends =
        [What::Mend, What::Resume, What::EndMaintenance, What::TakeBack, What::Enforce, What::MendImage];
    for what in mends {
        Change { what, number: 0 }.apply(wanted);
    }
    // If several apps claim an object, the first keeps it.
    let mut seen = BTreeSet::new();
    for app in wanted.apps.values_mut() {
        (app.drift, app.prune) = (Drift::Repair, Prune::WhenHealthy);
        if let Sort::Objects(objects) = &mut app.sort {
            objects.retain(|name, _| seen.insert(name.clone()));
        }
    }
    // A new container may itself need a container.
    for kind in [Kind::Widget, Kind::Inside, Kind::Widget] {
        contain(wanted, kind);
    }
    wanted.words += 1;
}

/// Adds the missing Namespace or definition for objects of a kind.
fn contain(wanted: &mut Wanted, kind: Kind) {
    let Some(container) = kind.container() else { return };
    let has = |app: &App, is_it: &dyn Fn(&Name) -> bool| matches!(&app.sort, Sort::Objects(objects) if objects.keys().any(is_it));
    let users: Vec<&App> = wanted.apps.values().filter(|app| has(app, &|name| name.kind == kind)).collect();
    let clusters: BTreeSet<String> = users.iter().flat_map(|app| app.clusters.iter().cloned()).collect();
    let bring = |is_it: &dyn Fn(&Name) -> bool| {
        wanted.apps.iter().find(|(_, app)| has(app, is_it)).map(|(id, _)| id.clone())
    };
    let Some(id) = bring(&|name| *name == container).or_else(|| bring(&|name| name.kind == kind)) else {
        return;
    };
    let Some(app) = wanted.apps.get_mut(&id) else { return };
    app.clusters.extend(clusters);
    if let Sort::Objects(objects) = &mut app.sort {
        objects.entry(container).or_default();
    }
}
