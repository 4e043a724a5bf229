//! Changes that shall go wave by wave, which is not built yet: nothing of them is written.

use crate::model::{ObjectId, Observation, Rendered, labels};

/// What runs pods, in any version.
const WORKLOADS: [(&str, &[&str]); 4] = [
    ("apps", &["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"]),
    ("batch", &["Job", "CronJob"]),
    ("apps.kruise.io", &["CloneSet", "StatefulSet", "DaemonSet"]),
    ("", &["Pod", "ReplicationController"]),
];

/// The first workload of ours that is there and would become another. One that is not there yet is a first
/// installation, which skips the gates between waves.
pub fn changed_workload<'r>(
    instance: &str,
    rendered: &'r Rendered,
    observation: &Observation,
) -> Option<&'r ObjectId> {
    let ours = labels::field_manager(instance);
    let changes = |object: &&crate::model::RenderedObject| {
        let is_workload = WORKLOADS
            .iter()
            .any(|(group, kinds)| *group == &*object.id.group && kinds.contains(&&*object.id.kind));
        // What was applied cannot be told of one that has lost its hash or its label.
        let differs = || match observation.objects.get(&object.id) {
            Some(live) => !live.deleting && live.hash != Some(object.hash),
            None => {
                let stranger = observation.strangers.get(&object.id);
                stranger.is_some_and(|stranger| stranger.managers.contains(&ours))
            }
        };
        is_workload && differs()
    };
    rendered.objects.iter().find(changes).map(|object| &object.id)
}
