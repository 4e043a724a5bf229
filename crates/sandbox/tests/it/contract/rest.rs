//! Creating, reading, changing: the basics of every resource.

use serde_json::json;

use super::probe::Probe;

pub async fn a_created_object_is_answered_whole(probe: &mut Probe) {
    let path = probe.at("/api/v1", "configmaps");
    probe
        .post(
            &format!("{path}?fieldManager=tester"),
            json!({"metadata": {"name": "one", "labels": {"a": "1"}}, "data": {"x": "1"}}),
        )
        .await;
    probe.get(&format!("{path}/one")).await;
}

pub async fn a_second_create_already_exists(probe: &mut Probe) {
    let path = probe.at("/api/v1", "configmaps");
    probe.quiet().post(&path, json!({"metadata": {"name": "one"}})).await;
    probe.loud().post(&path, json!({"metadata": {"name": "one"}})).await;
}

pub async fn a_missing_object_is_not_found(probe: &mut Probe) {
    probe.get(&probe.at("/api/v1", "configmaps/none")).await;
    probe.get(&probe.at("/apis/apps/v1", "deployments/none")).await;
}
