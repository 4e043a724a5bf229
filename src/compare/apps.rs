//! Builds the change of each app from the renders of both sides.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;
use std::sync::Arc;

use super::comparison::{Action, AppChange, AppState, ObjectChange};
use super::fold::{self, OnClusters};
use super::objects::{Drafts, of_target};
use super::removal::Removal;
use super::{order, placement};
use crate::fleet::Fleet;
use crate::model::{App, AppId, ClusterName, Rendered};
use crate::render::{Render, Renders};

/// The changes by app name. An app without changes has no entry.
pub(super) fn changes(base: (&Fleet, &Renders), head: (&Fleet, &Renders)) -> Vec<AppChange> {
    let ids: BTreeSet<&AppId> = base.1.apps.keys().chain(head.1.apps.keys()).collect();
    let mut apps: Vec<AppChange> = ids.into_iter().filter_map(|id| change(id, base, head)).collect();
    moves(&mut apps);
    for app in &mut apps {
        app.objects.retain(|object| !object.clusters.is_empty());
    }
    apps
}

fn change(
    id: &AppId,
    (base, before): (&Fleet, &Renders),
    (head, after): (&Fleet, &Renders),
) -> Option<AppChange> {
    let of = |renders: &Renders| renders.apps.get(id).map(Arc::clone).unwrap_or_default();
    let (was, is) = (of(before), of(after));
    let (old, new) = (base.apps.get(id), head.apps.get(id));
    let removal = Removal::of(head, old.map(|app| &**app), new.map(|app| &**app));
    let gone: BTreeSet<ClusterName> = match old {
        Some(app) => {
            head.takes_away(app, was.keys().cloned().collect()).into_iter().map(|it| it.cluster).collect()
        }
        None => BTreeSet::new(),
    };
    // The base was not valid, so the live state is unknown here.
    let was_broken = |cluster: &ClusterName| {
        let was_placed = old.is_some_and(|app| base.clusters_of(app).contains(cluster));
        !base.is_usable() || base.broken.contains_key(id) || was_placed
    };
    let is_there = |cluster: &ClusterName| head.clusters.contains_key(cluster);
    let (mut broken, mut mended, mut remaining) = (Vec::new(), Vec::new(), Vec::new());
    let mut compared = Compared::default();
    for cluster in was.keys().chain(is.keys()).collect::<BTreeSet<_>>() {
        match (result(&was, cluster), result(&is, cluster)) {
            (_, Some(Err(()))) => broken.push(cluster.clone()),
            (Some(Err(())), Some(Ok(_))) => mended.push(cluster.clone()),
            (None, Some(Ok(_))) if was_broken(cluster) => mended.push(cluster.clone()),
            (Some(Ok(before)), Some(Ok(after))) => compared.add(cluster, Some(before), Some(after), &removal),
            (None, Some(Ok(after))) => compared.add(cluster, None, Some(after), &removal),
            (Some(Ok(before)), None) if gone.contains(cluster) => {
                compared.add(cluster, Some(before), None, &removal);
            }
            (Some(Ok(_)), None) if is_hidden(head, id, new, cluster) => broken.push(cluster.clone()),
            (Some(_), None) if is_there(cluster) => remaining.push(cluster.clone()),
            _ => {}
        }
    }
    let state = match (old, new) {
        (None, Some(_)) if !base.broken.contains_key(id) && base.is_usable() => AppState::New,
        (Some(_), None) if broken.is_empty() => AppState::Removed,
        _ => AppState::Changed,
    };
    let all = compared.by_drafts;
    let (mut unchanged, mut changed): (OnClusters, OnClusters) =
        all.into_iter().partition(|(_, drafts)| drafts.objects.is_empty());
    changed.sort_by(|(one, _), (other, _)| one.cmp(other));
    unchanged.sort_by(|(one, _), (other, _)| one.cmp(other));
    let (mut on, mut runs) = (BTreeMap::new(), BTreeMap::new());
    for (clusters, drafts) in &changed {
        let counts = drafts.counts();
        if !counts.is_none() {
            on.extend(clusters.iter().map(|cluster| (cluster.clone(), counts)));
            runs.extend(clusters.iter().map(|cluster| (cluster.clone(), drafts.runs.clone())));
        }
    }
    if changed.is_empty() && broken.is_empty() && mended.is_empty() && remaining.is_empty() {
        return None;
    }
    let mut unchanged: Vec<ClusterName> = unchanged.into_iter().flat_map(|(clusters, _)| clusters).collect();
    unchanged.sort();
    Some(AppChange {
        app: id.clone(),
        state,
        held: new.and_then(|app| held(app)),
        versions: fold::versions(&changed),
        runs,
        placement: match (old, new) {
            (Some(old), Some(new)) => placement::changes((base, old), (head, new), &changed),
            _ => Vec::new(),
        },
        objects: fold::objects(&changed),
        waves: new.map(|app| order::waves(head, app, on.keys())).unwrap_or_default(),
        on,
        unchanged,
        broken,
        mended,
        remaining,
    })
}

fn held(app: &App) -> Option<&'static str> {
    match app {
        App { unmanaged: true, .. } => Some("unmanaged"),
        App { paused: true, .. } => Some("paused"),
        _ => None,
    }
}

/// Whether a mistake of the head hides the change of an app on a cluster where the base renders it.
fn is_hidden(head: &Fleet, id: &AppId, new: Option<&Arc<App>>, cluster: &ClusterName) -> bool {
    let is_placed = new.is_some_and(|app| head.clusters_of(app).contains(cluster));
    let lacks_cluster = !head.clusters.contains_key(cluster) && head.may_lack_clusters();
    let lacks_app = new.is_none() && (head.broken.contains_key(id) || !head.is_valid());
    !head.is_usable() || is_placed || lacks_cluster || lacks_app
}

fn result<'r>(
    renders: &'r BTreeMap<ClusterName, Render>,
    cluster: &ClusterName,
) -> Option<Result<&'r Arc<Rendered>, ()>> {
    renders.get(cluster).map(|(_, result)| result.as_ref().map_err(|_| ()))
}

/// Compares each pair of renders once, because clusters share renders.
#[derive(Default)]
struct Compared {
    known: HashMap<[Option<usize>; 2], usize>,
    by_drafts: OnClusters,
}

impl Compared {
    fn add(
        &mut self,
        cluster: &ClusterName,
        before: Option<&Arc<Rendered>>,
        after: Option<&Arc<Rendered>>,
        removal: &Removal,
    ) {
        let key = [before, after].map(|side| side.map(|rendered| rendered.objects.as_ptr().addr()));
        let index = *self.known.entry(key).or_insert_with(|| {
            let drafts = match (before, after) {
                (Some(before), Some(after)) if Arc::ptr_eq(&before.objects, &after.objects) => {
                    Drafts::default()
                }
                _ => of_target(before.map(|it| &**it), after.map(|it| &**it), removal),
            };
            self.by_drafts.push((Vec::new(), Rc::new(drafts)));
            self.by_drafts.len() - 1
        });
        if let Some((clusters, _)) = self.by_drafts.get_mut(index) {
            clusters.push(cluster.clone());
        }
    }
}

/// Turns a delete by one app and a create by another on the same cluster into a move.
fn moves(apps: &mut [AppChange]) {
    let of = |app: &AppChange, action: Action| -> Vec<(AppId, ObjectChange)> {
        let objects = app.objects.iter().filter(|object| object.action == action);
        objects.map(|object| (app.app.clone(), object.clone())).collect()
    };
    let deletes: Vec<(AppId, ObjectChange)> = apps.iter().flat_map(|app| of(app, Action::Delete)).collect();
    if deletes.is_empty() {
        return;
    }
    let mut by_object: BTreeMap<_, Vec<(AppId, ObjectChange)>> = BTreeMap::new();
    for (app, object) in apps.iter().flat_map(|app| of(app, Action::Create)) {
        by_object.entry(object.object.clone()).or_default().push((app, object));
    }
    for (from, deleted) in deletes {
        for (to, created) in
            by_object.get(&deleted.object).into_iter().flatten().filter(|(to, _)| *to != from)
        {
            let both: Vec<ClusterName> =
                created.clusters.iter().filter(|name| deleted.clusters.contains(name)).cloned().collect();
            if both.is_empty() {
                continue;
            }
            for app in apps.iter_mut() {
                if app.app == from {
                    take_from(app, &deleted, &both, |counts| counts.deleted -= 1);
                }
                if app.app == *to {
                    take_from(app, created, &both, |counts| {
                        counts.created -= 1;
                        counts.changed += 1;
                    });
                    app.objects.push(ObjectChange {
                        action: Action::Move,
                        from: Some(from.clone()),
                        clusters: both.clone(),
                        body: None,
                        ..created.clone()
                    });
                    app.objects.sort_by(|one, other| {
                        (one.action, &one.object, &one.clusters).cmp(&(
                            other.action,
                            &other.object,
                            &other.clusters,
                        ))
                    });
                }
            }
        }
    }
    for app in apps {
        app.on.retain(|_, counts| !counts.is_none());
    }
}

fn take_from(
    app: &mut AppChange,
    what: &ObjectChange,
    clusters: &[ClusterName],
    recount: impl Fn(&mut super::Counts),
) {
    for object in &mut app.objects {
        if object.action == what.action && object.object == what.object {
            object.clusters.retain(|name| !clusters.contains(name));
        }
    }
    for name in clusters {
        app.on.entry(name.clone()).and_modify(&recount);
    }
}
