//! Checks the reported phases of a fleet that nobody changes, with its mistakes, pauses and objects of others.

use std::collections::BTreeMap;

use sandbox::Sandbox;
use serde_json::json;
use tutti::report::{Overview, TargetPhase};

use super::edit::Traces;
use super::object::{Kind, Name};
use super::run::Run;
use super::wanted::{App, Drift, Standing, Wanted};
use super::{hands, truth};

/// Creates objects that tutti must ignore: a copy with our label, and an object of another instance.
pub fn neighbours(clusters: &BTreeMap<String, Sandbox>, traces: &mut Traces) {
    for (cluster, sandbox) in clusters {
        for (name, instance, origin) in
            [("copy", "main", "/Service/default/app0"), ("other", "other", "/ConfigMap/default/other")]
        {
            let object = json!({
                "apiVersion": "v1", "kind": "ConfigMap", "data": {"value": "theirs"},
                "metadata": {
                    "name": name, "namespace": "default", "labels": {"tutti.dev/managed-by": instance},
                    "annotations": {"tutti.dev/app": "default/app0", "tutti.dev/origin": origin},
                },
            });
            assert!(hands::create(sandbox, "somebody", Kind::ConfigMap.folder(), &object), "created");
            let path = Name::new(Kind::ConfigMap, name).path();
            let live = hands::get(sandbox, &path).expect("it was created");
            traces.strangers.insert((cluster.clone(), path), live);
        }
    }
}

/// Deletes objects of others that block an app.
pub fn strangers_go(wanted: &Wanted, clusters: &BTreeMap<String, Sandbox>, traces: &mut Traces) {
    let in_the_way = |(cluster, path): &(String, String)| {
        Name::parse(path).is_some_and(|name| wanted.owners(cluster, &name).next().is_some())
    };
    let gone: Vec<_> = traces.strangers.keys().filter(|place| in_the_way(place)).cloned().collect();
    for place in gone {
        hands::delete(&clusters[&place.0], &place.1);
        traces.strangers.remove(&place);
        traces.edited(place);
    }
}

/// Checks the phase of each target.
pub fn look(run: &Run) {
    let (wanted, overview) = (&run.wanted, run.overview());
    let mut found = Vec::new();
    {
        let state = run.witness.state.lock();
        let apps = wanted.apps.iter().filter(|_| !wanted.observes);
        for (id, app) in apps {
            for cluster in app.clusters.iter().filter(|cluster| wanted.places(app, cluster)) {
                let said =
                    overview.targets.iter().find(|it| *it.app.name == **id && it.cluster.as_str() == cluster);
                let Some(said) = said else {
                    // A process that started after the mistake does not know the target.
                    if app.mistake.is_some() {
                        continue;
                    }
                    found.push(format!("nothing is said of {id} on {cluster}"));
                    continue;
                };
                if let Err(why) = check(run, (id, app), cluster, (said.phase, &said.detail), &state.traces) {
                    found.push(format!(
                        "{id} on {cluster} is called {}: {why} ({})",
                        said.phase.as_str(),
                        said.detail
                    ));
                }
            }
        }
        for sandbox in run.clusters().values() {
            found.extend(truth::touched(sandbox, &state.traces));
            // A stale list may have hidden the objects when the process connected.
            if !state.stale.contains(sandbox.name()) {
                found.extend(still_there(wanted, &overview, sandbox, &state.traces));
            }
        }
    }
    found.iter().for_each(|words| run.witness.violation(words));
}

/// The app that owns an object: the one that applied it, else the first that renders it.
fn owner(run: &Run, cluster: &str, name: &Name) -> Option<String> {
    let live = hands::get(&run.clusters()[cluster], &name.path()).unwrap_or_default();
    let is_ours = live["metadata"]["labels"]["tutti.dev/managed-by"] == "main";
    let applied = live["metadata"]["annotations"]["tutti.dev/app"].as_str().filter(|_| is_ours);
    let applied = applied.unwrap_or_default().trim_start_matches("default/");
    let mut owners: Vec<&String> = run.wanted.owners(cluster, name).map(|(owner, _)| owner).collect();
    owners.sort_by_key(|owner| (*owner != applied, *owner));
    owners.first().map(|owner| (*owner).clone())
}

/// Objects that remain on a removed cluster and are not reported.
fn still_there(wanted: &Wanted, overview: &Overview, sandbox: &Sandbox, traces: &Traces) -> Vec<String> {
    let cluster = sandbox.name();
    let is_removed = wanted.clusters.get(cluster) == Some(&Standing::Removed);
    if !is_removed || wanted.observes || !wanted.is_valid() {
        return Vec::new();
    }
    let told = overview.deletions.iter().chain(&overview.orphans).filter(|it| it.cluster.as_str() == cluster);
    let told: Vec<Name> = told.filter_map(|it| Name::of_words(&it.object)).collect();
    let mut found: Vec<String> = overview
        .targets
        .iter()
        .filter(|target| target.cluster.as_str() == cluster)
        .map(|target| format!("{} is placed on {cluster}, which is removed", target.app))
        .collect();
    for kind in Kind::ALL {
        for live in hands::list(sandbox, kind.folder(), "tutti.dev/managed-by=main") {
            let name = Name::new(kind, live["metadata"]["name"].as_str().unwrap_or_default());
            let app = live["metadata"]["annotations"]["tutti.dev/app"].as_str().unwrap_or_default();
            let is_paused = wanted.apps.get(app.trim_start_matches("default/")).is_some_and(|app| app.paused);
            let is_strange = traces.strangers.contains_key(&(cluster.to_owned(), name.path()));
            if !is_paused && !is_strange && !told.contains(&name) {
                found.push(format!("{cluster} is removed, and {name} is there"));
            }
        }
    }
    found
}

fn check(
    run: &Run,
    (id, app): (&str, &App),
    cluster: &str,
    (phase, detail): (TargetPhase, &str),
    traces: &Traces,
) -> Result<(), String> {
    let wanted = &run.wanted;
    let expect = |right: bool, why: &str| if right { Ok(()) } else { Err(why.to_owned()) };
    if app.mistake.is_some() {
        return expect(phase == TargetPhase::Invalid, "it has a mistake");
    }
    if app.paused {
        return expect(phase == TargetPhase::Paused, "it is paused");
    }
    let holds = |mine: &[(&str, &App, Name, serde_json::Value)]| {
        mine.iter()
            .find_map(|(_, _, name, body)| truth::holds(&run.clusters()[cluster], name, body, traces).err())
    };
    let mine: Vec<_> = wanted.on(cluster).filter(|(owner, ..)| *owner == id).collect();
    // An object that a broken app renders or had applied waits for its correction. An app without a manifest may be the one
    // of the broken file.
    let is_unknown = |id: &str| wanted.apps.get(id).map_or(!wanted.is_valid(), |app| app.mistake.is_some());
    let waits = |name: &Name| {
        let live = hands::get(&run.clusters()[cluster], &name.path()).unwrap_or_default();
        let applied = live["metadata"]["annotations"]["tutti.dev/app"].as_str().unwrap_or_default();
        (!applied.is_empty() && is_unknown(applied.trim_start_matches("default/")))
            || wanted.owners(cluster, name).any(|(other, _)| is_unknown(other))
    };
    let place = |name: &Name| (cluster.to_owned(), name.path());
    let is_edited = || mine.iter().any(|(_, _, name, _)| traces.edits.contains_key(&place(name)));
    if mine.iter().any(|(_, _, name, _)| waits(name)) {
        let is_left = || app.drift != Drift::Repair && is_edited();
        let is_true = phase != TargetPhase::Running || holds(&mine).is_none() || is_left();
        return expect(is_true, "it is not as wanted");
    }
    let is_maintained = wanted.clusters[cluster] == Standing::Maintaining;
    if mine.iter().any(|(_, _, name, _)| owner(run, cluster, name).is_some_and(|owner| owner != id)) {
        return expect(phase == TargetPhase::Refused, "another app has an object of it");
    }
    let is_contained = |name: &Name| {
        let container = name.kind.container();
        container.is_none_or(|container| hands::get(&run.clusters()[cluster], &container.path()).is_some())
    };
    if !mine.iter().all(|(_, _, name, _)| is_contained(name)) {
        return expect(phase != TargetPhase::Running, "what it lives in, or what defines it, is not there");
    }
    let is_blocked = mine.iter().any(|(_, _, name, _)| traces.strangers.contains_key(&place(name)));
    if is_maintained {
        return match (phase, holds(&mine)) {
            (TargetPhase::Running, Some(why)) if app.drift == Drift::Repair => Err(why),
            (TargetPhase::Running, _) if is_blocked => Err("somebody else's object is in the way".to_owned()),
            _ => Ok(()),
        };
    }
    if is_blocked {
        return expect(phase == TargetPhase::Refused, "somebody else's object is in the way");
    }
    let is_unmarked = || mine.iter().any(|(_, _, name, _)| traces.unmarked.contains(&place(name)));
    if phase == TargetPhase::Refused && detail.contains(": conflict with") && is_unmarked() {
        return Ok(());
    }
    let runs = mine.iter().any(|(_, _, name, _)| name.kind == Kind::Deployment);
    if app.broken_image && runs {
        return expect(
            matches!(phase, TargetPhase::Degraded | TargetPhase::Progressing),
            "its image cannot be pulled",
        );
    }
    match holds(&mine) {
        None => expect(matches!(phase, TargetPhase::Running | TargetPhase::OutOfSync), "it is as wanted"),
        Some(_) if app.drift != Drift::Repair && is_edited() => Ok(()),
        Some(why) => Err(why),
    }
}
