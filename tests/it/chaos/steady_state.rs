//! Checks the reported phases of a fleet that nobody changes, with its mistakes, pauses and objects of others.

use std::collections::BTreeMap;

use sandbox::Sandbox;
use serde_json::json;
use tutti::report::{Overview, TargetPhase};

use super::desired::{ChaosApp, ClusterLifecycle, DesiredRepository, DriftMode};
use super::edit::ExternalChanges;
use super::object::{ChaosKind, ChaosObjectId};
use super::run::ChaosRun;
use super::{direct_client, live_state};

/// Creates objects that tutti must ignore: a copy with our label, and an object of another instance.
pub fn create_unrelated_objects(clusters: &BTreeMap<String, Sandbox>, traces: &mut ExternalChanges) {
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
            assert!(
                direct_client::create(sandbox, "somebody", ChaosKind::ConfigMap.collection_path(), &object),
                "created"
            );
            let path = ChaosObjectId::new(ChaosKind::ConfigMap, name).path();
            let live = direct_client::get(sandbox, &path).expect("it was created");
            traces.unmanaged_objects.insert((cluster.clone(), path), live);
        }
    }
}

/// Deletes objects of others that block an app.
pub fn delete_blocking_objects(
    wanted: &DesiredRepository,
    clusters: &BTreeMap<String, Sandbox>,
    traces: &mut ExternalChanges,
) {
    let in_the_way = |(cluster, path): &(String, String)| {
        ChaosObjectId::from_path(path).is_some_and(|name| wanted.owners(cluster, &name).next().is_some())
    };
    let gone: Vec<_> = traces.unmanaged_objects.keys().filter(|place| in_the_way(place)).cloned().collect();
    for place in gone {
        direct_client::delete(&clusters[&place.0], &place.1);
        traces.unmanaged_objects.remove(&place);
        traces.record_edit(place);
    }
}

/// Checks the phase of each target.
pub fn check_phases(run: &ChaosRun) {
    let (wanted, overview) = (&run.desired, run.overview());
    let mut found = Vec::new();
    {
        let state = run.write_monitor.state.lock();
        let apps = wanted.apps.iter().filter(|_| !wanted.observe_mode);
        for (id, app) in apps {
            for cluster in app.clusters.iter().filter(|cluster| wanted.is_placed_on(app, cluster)) {
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
                if let Err(why) =
                    check_phase(run, (id, app), cluster, (said.phase, &said.detail), &state.external_changes)
                {
                    found.push(format!(
                        "{id} on {cluster} is called {}: {why} ({})",
                        said.phase.as_str(),
                        said.detail
                    ));
                }
            }
        }
        for sandbox in run.clusters().values() {
            found.extend(live_state::changed_unmanaged(sandbox, &state.external_changes));
            // A stale list may have hidden the objects when the process connected.
            if !state.stale_clusters.contains(sandbox.name()) {
                found.extend(unexplained_remains(wanted, &overview, sandbox, &state.external_changes));
            }
        }
    }
    found.iter().for_each(|words| run.write_monitor.violation(words));
}

/// The app that owns an object: the one that applied it, else the first that renders it.
fn expected_owner(run: &ChaosRun, cluster: &str, name: &ChaosObjectId) -> Option<String> {
    let live = direct_client::get(&run.clusters()[cluster], &name.path()).unwrap_or_default();
    let is_ours = live["metadata"]["labels"]["tutti.dev/managed-by"] == "main";
    let applied = live["metadata"]["annotations"]["tutti.dev/app"].as_str().filter(|_| is_ours);
    let applied = applied.unwrap_or_default().trim_start_matches("default/");
    let mut owners: Vec<&String> = run.desired.owners(cluster, name).map(|(owner, _)| owner).collect();
    owners.sort_by_key(|owner| (*owner != applied, *owner));
    owners.first().map(|owner| (*owner).clone())
}

/// Objects that remain on a removed cluster and are not reported.
fn unexplained_remains(
    wanted: &DesiredRepository,
    overview: &Overview,
    sandbox: &Sandbox,
    traces: &ExternalChanges,
) -> Vec<String> {
    let cluster = sandbox.name();
    let is_removed = wanted.clusters.get(cluster) == Some(&ClusterLifecycle::Removed);
    if !is_removed || wanted.observe_mode || !wanted.is_valid() {
        return Vec::new();
    }
    let told = overview.deletions.iter().chain(&overview.orphans).filter(|it| it.cluster.as_str() == cluster);
    let told: Vec<ChaosObjectId> =
        told.filter_map(|it| ChaosObjectId::from_display_name(&it.object)).collect();
    let mut found: Vec<String> = overview
        .targets
        .iter()
        .filter(|target| target.cluster.as_str() == cluster)
        .map(|target| format!("{} is placed on {cluster}, which is removed", target.app))
        .collect();
    for kind in ChaosKind::ALL {
        for live in direct_client::list(sandbox, kind.collection_path(), "tutti.dev/managed-by=main") {
            let name = ChaosObjectId::new(kind, live["metadata"]["name"].as_str().unwrap_or_default());
            let app = live["metadata"]["annotations"]["tutti.dev/app"].as_str().unwrap_or_default();
            let is_paused = wanted.apps.get(app.trim_start_matches("default/")).is_some_and(|app| app.paused);
            let is_strange = traces.unmanaged_objects.contains_key(&(cluster.to_owned(), name.path()));
            if !is_paused && !is_strange && !told.contains(&name) {
                found.push(format!("{cluster} is removed, and {name} is there"));
            }
        }
    }
    found
}

fn check_phase(
    run: &ChaosRun,
    (id, app): (&str, &ChaosApp),
    cluster: &str,
    (phase, detail): (TargetPhase, &str),
    traces: &ExternalChanges,
) -> Result<(), String> {
    let wanted = &run.desired;
    let expect = |right: bool, why: &str| if right { Ok(()) } else { Err(why.to_owned()) };
    if app.mistake.is_some() {
        return expect(phase == TargetPhase::Invalid, "it has an error");
    }
    if app.paused {
        return expect(phase == TargetPhase::Paused, "it is paused");
    }
    let holds = |mine: &[(&str, &ChaosApp, ChaosObjectId, serde_json::Value)]| {
        mine.iter().find_map(|(_, _, name, body)| {
            live_state::check_object(&run.clusters()[cluster], name, body, traces).err()
        })
    };
    let mine: Vec<_> = wanted.objects_on(cluster).filter(|(owner, ..)| *owner == id).collect();
    // An object that a broken app renders or had applied waits for its correction. An app without a manifest may be the one
    // of the broken file.
    let is_unknown = |id: &str| wanted.apps.get(id).map_or(!wanted.is_valid(), |app| app.mistake.is_some());
    let waits = |name: &ChaosObjectId| {
        let live = direct_client::get(&run.clusters()[cluster], &name.path()).unwrap_or_default();
        let applied = live["metadata"]["annotations"]["tutti.dev/app"].as_str().unwrap_or_default();
        (!applied.is_empty() && is_unknown(applied.trim_start_matches("default/")))
            || wanted.owners(cluster, name).any(|(other, _)| is_unknown(other))
    };
    let place = |name: &ChaosObjectId| (cluster.to_owned(), name.path());
    let is_edited = || mine.iter().any(|(_, _, name, _)| traces.edit_times.contains_key(&place(name)));
    if mine.iter().any(|(_, _, name, _)| waits(name)) {
        let is_left = || app.drift != DriftMode::Repair && is_edited();
        let is_true = phase != TargetPhase::Running || holds(&mine).is_none() || is_left();
        return expect(is_true, "it is not as wanted");
    }
    let is_maintained = wanted.clusters[cluster] == ClusterLifecycle::Maintaining;
    if mine.iter().any(|(_, _, name, _)| expected_owner(run, cluster, name).is_some_and(|owner| owner != id))
    {
        return expect(phase == TargetPhase::Refused, "another app has an object of it");
    }
    let is_contained = |name: &ChaosObjectId| {
        let container = name.kind.container();
        container
            .is_none_or(|container| direct_client::get(&run.clusters()[cluster], &container.path()).is_some())
    };
    if !mine.iter().all(|(_, _, name, _)| is_contained(name)) {
        return expect(phase != TargetPhase::Running, "what it lives in, or what defines it, is not there");
    }
    let is_blocked = mine.iter().any(|(_, _, name, _)| traces.unmanaged_objects.contains_key(&place(name)));
    if is_maintained {
        return match (phase, holds(&mine)) {
            (TargetPhase::Running, Some(why)) if app.drift == DriftMode::Repair => Err(why),
            (TargetPhase::Running, _) if is_blocked => Err("somebody else's object is in the way".to_owned()),
            _ => Ok(()),
        };
    }
    if is_blocked {
        return expect(phase == TargetPhase::Refused, "somebody else's object is in the way");
    }
    let is_unmarked = || mine.iter().any(|(_, _, name, _)| traces.without_markers.contains(&place(name)));
    if phase == TargetPhase::Refused && detail.contains(": conflict with") && is_unmarked() {
        return Ok(());
    }
    let runs = mine.iter().any(|(_, _, name, _)| name.kind == ChaosKind::Deployment);
    if app.broken_image && runs {
        return expect(
            matches!(phase, TargetPhase::Degraded | TargetPhase::Progressing),
            "its image cannot be pulled",
        );
    }
    match holds(&mine) {
        None => expect(matches!(phase, TargetPhase::Running | TargetPhase::OutOfSync), "it is as wanted"),
        Some(_) if app.drift != DriftMode::Repair && is_edited() => Ok(()),
        Some(why) => Err(why),
    }
}
