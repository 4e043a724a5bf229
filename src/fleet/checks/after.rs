//! Checks `after`: apps that wait for other apps.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::CheckInput;
use crate::fleet::codes;
use crate::manifest::read::nearest;
use crate::model::{App, AppId, Diagnostic, DiagnosticScope, RolloutDependency};

/// The number of names of a cycle in a message.
const MAX_CYCLE_NAMES: usize = 8;
/// A wrong name is compared with this many apps of its namespace at most: comparing ten thousand wrong names with ten thousand
/// apps takes minutes.
const MAX_COMPARED_NAMES: usize = 200;

/// A name that does not exist makes the app wait for nothing, which is easy to miss.
pub fn apps_exist(facts: &CheckInput<'_>) -> Vec<Diagnostic> {
    let waiting = || facts.manifests.apps.iter().filter(|app| !app.rollout.after.is_empty());
    if waiting().next().is_none() {
        return Vec::new();
    }
    let known = facts.app_names();
    let named = waiting().flat_map(|app| app.rollout.after.iter().map(move |after| (&**app, after)));
    let unknown = named.filter(|(_, after)| !known.contains(&after.app));
    unknown.map(|(app, after)| unknown_app_warning(app, after, &known)).collect()
}

fn unknown_app_warning(app: &App, after: &RolloutDependency, known: &BTreeSet<&AppId>) -> Diagnostic {
    let (title, name) = (app.title(), after.app.to_string());
    let message =
        format!("{title} names {name} under `after`, an app that does not exist: it waits for no app");
    let beside = known.iter().filter(|id| id.namespace == after.app.namespace);
    let names: Vec<String> = beside.take(MAX_COMPARED_NAMES).map(ToString::to_string).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let help = match nearest(&name, &names) {
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None => "write namespace/name of an app, or remove it".to_owned(),
    };
    let warning =
        Diagnostic::warning(codes::AFTER_UNKNOWN_APP, message, DiagnosticScope::App(app.id.clone()));
    warning.at(after.location.clone()).help(help)
}

/// Each app of a cycle would wait forever.
pub fn no_cycles(facts: &CheckInput<'_>) -> Vec<Diagnostic> {
    let waiting = facts.manifests.apps.iter().filter(|app| !app.rollout.after.is_empty());
    let apps: BTreeMap<&AppId, &App> = waiting.map(|app| (&app.id, &**app)).collect();
    let mut cycles: BTreeMap<&AppId, Vec<&AppId>> = BTreeMap::new();
    for id in apps_in_cycles(&apps) {
        if cycles.contains_key(id) {
            continue;
        }
        let Some(cycle) = cycle_through(id, &apps) else { continue };
        for index in 0..cycle.len() {
            let from_here = cycle.iter().cycle().skip(index).take(cycle.len()).copied();
            cycles.entry(cycle[index]).or_insert_with(|| from_here.take(MAX_CYCLE_NAMES + 1).collect());
        }
    }
    cycles.iter().filter_map(|(id, cycle)| cycle_error(apps.get(*id)?, cycle)).collect()
}

fn cycle_error(app: &App, cycle: &[&AppId]) -> Option<Diagnostic> {
    let next = cycle.get(1).copied().unwrap_or(&app.id);
    let after = app.rollout.after.iter().find(|after| after.app == *next)?;
    let mut names: Vec<String> = cycle.iter().take(MAX_CYCLE_NAMES).map(ToString::to_string).collect();
    if cycle.len() > MAX_CYCLE_NAMES {
        names.push("…".to_owned());
    }
    names.push(app.id.to_string());
    let message = format!("{} waits for itself: {}", app.title(), names.join(" → "));
    let error = Diagnostic::error(codes::AFTER_CYCLE, message, DiagnosticScope::App(app.id.clone()));
    Some(error.at(after.location.clone()).help("remove one of these from `after` of the app before it"))
}

/// Apps on a cycle, or on a path between two cycles.
fn apps_in_cycles<'a>(apps: &BTreeMap<&'a AppId, &'a App>) -> BTreeSet<&'a AppId> {
    let of_app = |(id, app): (&&'a AppId, &&'a App)| {
        let others = app.rollout.after.iter().filter_map(|after| apps.get_key_value(&after.app));
        others.map(|(other, _)| (*id, *other)).collect::<Vec<_>>()
    };
    let leading_on = cyclic_edges(apps.iter().flat_map(of_app).collect());
    let flipped = leading_on.into_iter().map(|(from, to)| (to, from)).collect();
    cyclic_edges(flipped).into_iter().map(|(id, _)| id).collect()
}

/// Edges from which the graph never ends.
fn cyclic_edges<'a>(steps: Vec<(&'a AppId, &'a AppId)>) -> Vec<(&'a AppId, &'a AppId)> {
    let mut leaving: BTreeMap<&AppId, usize> = BTreeMap::new();
    let mut coming: BTreeMap<&AppId, Vec<&AppId>> = BTreeMap::new();
    for (from, to) in &steps {
        *leaving.entry(from).or_default() += 1;
        coming.entry(to).or_default().push(from);
    }
    let mut ends: Vec<&AppId> = coming.keys().copied().filter(|id| !leaving.contains_key(id)).collect();
    while let Some(end) = ends.pop() {
        for before in coming.remove(end).unwrap_or_default() {
            if let Some(count) = leaving.get_mut(before) {
                *count -= 1;
                if *count == 0 {
                    leaving.remove(before);
                    ends.push(before);
                }
            }
        }
    }
    steps.into_iter().filter(|(_, to)| leaving.contains_key(to)).collect()
}

/// The shortest path from an app back to itself, without the app at its end.
fn cycle_through<'a>(start: &'a AppId, apps: &BTreeMap<&'a AppId, &'a App>) -> Option<Vec<&'a AppId>> {
    let mut came_from: BTreeMap<&AppId, &AppId> = BTreeMap::new();
    let mut queue = VecDeque::from([start]);
    while let Some(id) = queue.pop_front() {
        let others = apps.get(id).into_iter().flat_map(|app| &app.rollout.after);
        for (next, _) in others.filter_map(|after| apps.get_key_value(&after.app)) {
            if *next == start {
                let mut way = vec![id];
                while let Some(before) = came_from.get(way[way.len() - 1]) {
                    way.push(before);
                }
                way.reverse();
                return Some(way);
            }
            if !came_from.contains_key(next) {
                came_from.insert(next, id);
                queue.push_back(next);
            }
        }
    }
    None
}
