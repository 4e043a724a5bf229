//! Changes that shall go wave by wave, which is not built yet: nothing of them is written.

use std::sync::Arc;

use crate::model::{AppId, Body, Kind, ObjectId, Observation, Rendered, RenderedObject, labels};

/// What runs pods, in any version: all that is known of what is there and not rendered is its kind.
const WORKLOADS: [(&str, &[&str]); 4] = [
    ("apps", &["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"]),
    ("batch", &["Job", "CronJob"]),
    ("apps.kruise.io", &["CloneSet", "StatefulSet", "DaemonSet"]),
    ("", &["Pod", "ReplicationController"]),
];

/// The first workload of ours that is there and would become another, or go. One that is not there yet is a
/// first installation, which skips the gates between waves.
pub fn changed_workload<'r>(
    instance: &str,
    rendered: &'r Rendered,
    observation: &'r Observation,
) -> Option<&'r ObjectId> {
    let ours = labels::field_manager(instance);
    // What was applied cannot be told of one that has lost its hash or its label.
    let differs = |object: &RenderedObject| match observation.objects.get(&object.id) {
        Some(live) => {
            let stays = object.hook.is_some_and(|hook| hook.is_once());
            !live.deleting && !stays && live.hash != Some(object.hash)
        }
        None => observation.strangers.get(&object.id).is_some_and(|stranger| {
            let known = stranger.takeover.as_ref().filter(|takeover| takeover.hash == object.hash);
            match known.map(|takeover| &takeover.effect) {
                Some(Ok(effect)) => effect.replaces_pods != Some(false) && !effect.changes.is_empty(),
                _ => stranger.managers.contains(&ours),
            }
        }),
    };
    let changes = |object: &&RenderedObject| {
        differs(object) && (is_of_workloads(&object.id) || runs_pods(&object.body))
    };
    let changed = rendered.objects.iter().find(changes).map(|object| &object.id);
    changed.or_else(|| gone_workload(&rendered.app, Some(rendered), observation))
}

/// The first workload of an app that is there and would go: another name, another kind, another cluster.
pub fn gone_workload<'o>(
    app: &AppId,
    rendered: Option<&Rendered>,
    observation: &'o Observation,
) -> Option<&'o ObjectId> {
    let app = app.to_string();
    let is_rendered = |id: &ObjectId| {
        rendered.is_some_and(|rendered| rendered.objects.iter().any(|object| object.id == *id))
    };
    let goes = |(id, live): &(&ObjectId, &Arc<crate::model::Live>)| {
        is_of_workloads(id) && *live.app == *app && !live.deleting && !live.keep && !is_rendered(id)
    };
    observation.objects.iter().find(goes).map(|(id, _)| id)
}

/// The kinds that must have been listed before it is known whether a workload goes; any version of them.
pub fn kinds() -> Vec<Kind> {
    let of_group = |(group, kinds): &(&str, &[&str])| {
        kinds.iter().map(|kind| Kind::new(group, "v1", kind)).collect::<Vec<_>>()
    };
    WORKLOADS.iter().flat_map(of_group).collect()
}

fn is_of_workloads(id: &ObjectId) -> bool {
    WORKLOADS.iter().any(|(group, kinds)| *group == &*id.group && kinds.contains(&&*id.kind))
}

/// It has a pod template, whatever its kind.
fn runs_pods(body: &Body) -> bool {
    const CONTAINERS: [&str; 2] =
        ["/spec/template/spec/containers", "/spec/jobTemplate/spec/template/spec/containers"];
    // Most objects say nothing of containers, and are not read.
    body.mentions("containers") && {
        let fields = body.fields();
        CONTAINERS.iter().any(|path| fields.pointer(path).is_some())
    }
}
