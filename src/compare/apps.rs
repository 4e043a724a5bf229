//! Builds the change of each app from the renders of both sides.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;
use std::sync::Arc;

use super::comparison::{AppChange, AppPresence, ObjectChange, ObjectChangeAction};
use super::group_clusters::{self, ChangesByClusters};
use super::objects::{TargetChanges, target_changes};
use super::removal::AppRemoval;
use super::{placement, wave_order};
use crate::fleet::Fleet;
use crate::model::{App, AppId, ClusterName, RenderedTarget};
use crate::render::{Renders, TargetRender};

/// The changes by app name. An app without changes has no entry.
pub(super) fn app_changes(base: (&Fleet, &Renders), head: (&Fleet, &Renders)) -> Vec<AppChange> {
    let ids: BTreeSet<&AppId> = base.1.apps.keys().chain(head.1.apps.keys()).collect();
    let mut apps: Vec<AppChange> = ids.into_iter().filter_map(|id| app_change(id, base, head)).collect();
    detect_moves(&mut apps);
    for app in &mut apps {
        app.objects.retain(|object| !object.clusters.is_empty());
    }
    apps
}

fn app_change(
    id: &AppId,
    (base, before): (&Fleet, &Renders),
    (head, after): (&Fleet, &Renders),
) -> Option<AppChange> {
    let of = |renders: &Renders| renders.apps.get(id).map(Arc::clone).unwrap_or_default();
    let (was, is) = (of(before), of(after));
    let (old, new) = (base.apps.get(id), head.apps.get(id));
    let removal = AppRemoval::of(head, old.map(|app| &**app), new.map(|app| &**app));
    let gone: BTreeSet<ClusterName> = match old {
        Some(app) => head
            .removed_targets_of(app, was.keys().cloned().collect())
            .into_iter()
            .map(|it| it.cluster)
            .collect(),
        None => BTreeSet::new(),
    };
    // The base was not valid, so the live state is unknown here.
    let was_broken = |cluster: &ClusterName| {
        let was_placed = old.is_some_and(|app| base.clusters_of(app).contains(cluster));
        !base.is_usable() || base.broken_apps.contains_key(id) || was_placed
    };
    let is_there = |cluster: &ClusterName| head.clusters.contains_key(cluster);
    let (mut broken, mut mended, mut remaining) = (Vec::new(), Vec::new(), Vec::new());
    let mut compared = TargetComparisons::default();
    for cluster in was.keys().chain(is.keys()).collect::<BTreeSet<_>>() {
        match (render_result(&was, cluster), render_result(&is, cluster)) {
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
        (None, Some(_)) if !base.broken_apps.contains_key(id) && base.is_usable() => AppPresence::New,
        (Some(_), None) if broken.is_empty() => AppPresence::Removed,
        _ => AppPresence::Changed,
    };
    let all = compared.changes_by_clusters;
    let (mut unchanged, mut changed): (ChangesByClusters, ChangesByClusters) =
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
        held: new.and_then(|app| hold_reason(app)),
        versions: group_clusters::group_versions(&changed),
        runs,
        placement: match (old, new) {
            (Some(old), Some(new)) => placement::placement_changes((base, old), (head, new), &changed),
            _ => Vec::new(),
        },
        objects: group_clusters::group_objects(&changed),
        waves: new.map(|app| wave_order::waves(head, app, on.keys())).unwrap_or_default(),
        on,
        unchanged,
        broken,
        mended,
        remaining,
    })
}

fn hold_reason(app: &App) -> Option<&'static str> {
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
    let lacks_app = new.is_none() && (head.broken_apps.contains_key(id) || !head.is_valid());
    !head.is_usable() || is_placed || lacks_cluster || lacks_app
}

fn render_result<'r>(
    renders: &'r BTreeMap<ClusterName, TargetRender>,
    cluster: &ClusterName,
) -> Option<Result<&'r Arc<RenderedTarget>, ()>> {
    renders.get(cluster).map(|(_, result)| result.as_ref().map_err(|_| ()))
}

/// Compares each pair of renders once, because clusters share renders.
#[derive(Default)]
struct TargetComparisons {
    index_by_objects: HashMap<[Option<usize>; 2], usize>,
    changes_by_clusters: ChangesByClusters,
}

impl TargetComparisons {
    fn add(
        &mut self,
        cluster: &ClusterName,
        before: Option<&Arc<RenderedTarget>>,
        after: Option<&Arc<RenderedTarget>>,
        removal: &AppRemoval,
    ) {
        let key = [before, after].map(|side| side.map(|rendered| rendered.objects.as_ptr().addr()));
        let index = *self.index_by_objects.entry(key).or_insert_with(|| {
            let drafts = match (before, after) {
                (Some(before), Some(after)) if Arc::ptr_eq(&before.objects, &after.objects) => {
                    TargetChanges::default()
                }
                _ => target_changes(before.map(|it| &**it), after.map(|it| &**it), removal),
            };
            self.changes_by_clusters.push((Vec::new(), Rc::new(drafts)));
            self.changes_by_clusters.len() - 1
        });
        if let Some((clusters, _)) = self.changes_by_clusters.get_mut(index) {
            clusters.push(cluster.clone());
        }
    }
}

/// Turns a delete by one app and a create by another on the same cluster into a move.
fn detect_moves(apps: &mut [AppChange]) {
    let of = |app: &AppChange, action: ObjectChangeAction| -> Vec<(AppId, ObjectChange)> {
        let objects = app.objects.iter().filter(|object| object.action == action);
        objects.map(|object| (app.app.clone(), object.clone())).collect()
    };
    let deletes: Vec<(AppId, ObjectChange)> =
        apps.iter().flat_map(|app| of(app, ObjectChangeAction::Delete)).collect();
    if deletes.is_empty() {
        return;
    }
    let mut by_object: BTreeMap<_, Vec<(AppId, ObjectChange)>> = BTreeMap::new();
    for (app, object) in apps.iter().flat_map(|app| of(app, ObjectChangeAction::Create)) {
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
                    subtract_moved(app, &deleted, &both, |counts| counts.deleted -= 1);
                }
                if app.app == *to {
                    subtract_moved(app, created, &both, |counts| {
                        counts.created -= 1;
                        counts.changed += 1;
                    });
                    app.objects.push(ObjectChange {
                        action: ObjectChangeAction::Move,
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

fn subtract_moved(
    app: &mut AppChange,
    what: &ObjectChange,
    clusters: &[ClusterName],
    recount: impl Fn(&mut super::ObjectCounts),
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
