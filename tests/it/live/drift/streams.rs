//! How kinds are listed and watched, by the servers' audit logs: as one stream where servers support it.

use super::super::support::{LiveFixture, configmap, deployment};
use super::table::AuditedCluster;

/// How a kind was requested, without single objects and the check whether any exist.
fn request_forms(counted: &AuditedCluster, resource: &str) -> Vec<&'static str> {
    let form = |verb: &str, uri: &str| match verb {
        "watch" if uri.contains("sendInitialEvents=true") => Some("stream"),
        "watch" => Some("watch"),
        "list" if uri.contains("limit=1&") || uri.ends_with("limit=1") => None,
        "list" => Some("list"),
        _ => None,
    };
    let all = counted.all_requests();
    let mut forms: Vec<&str> =
        all.iter().filter(|it| it.resource == resource).filter_map(|it| form(&it.verb, &it.uri)).collect();
    forms.sort_unstable();
    forms
}

#[tokio::test]
async fn kinds_are_listed_by_streams_where_supported() {
    let Some(scene) = LiveFixture::new("drift-streams", 4).await else { return };
    let clusters = [
        AuditedCluster::new(&scene, scene.cluster(0)).await,
        AuditedCluster::new(&scene, scene.cluster(3)).await,
    ];
    scene.write_app("web", &[deployment("web", "shop/web:1.0", 1), configmap("settings", "a", "1")]);
    scene.worktree.publish("first");
    let ways = ["--cluster", &clusters[0].cluster_option, "--cluster", &clusters[1].cluster_option];
    let ended = scene.run(&scene.arguments(&["run", "--once"], &ways)).await;
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);

    // A restarted process finds existing objects in its lists, and writes nothing.
    let ended = scene.run(&scene.arguments(&["run", "--once"], &ways)).await;
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    for counted in &clusters {
        let expected = if counted.has_streamed_lists() { ["stream"; 2] } else { ["list"; 2] };
        for resource in ["configmaps", "deployments.apps", "customresourcedefinitions.apiextensions.k8s.io"] {
            let what = format!("{resource} on {}", counted.cluster.version());
            // The log records a watch some time after its client disconnected.
            let probe = async || {
                let mut found = request_forms(counted, resource);
                // An idle process may end before it watches the kinds that it listed.
                let watches = found.iter().filter(|form| **form == "watch").count();
                found.retain(|form| *form != "watch");
                let expected_watches = if counted.has_streamed_lists() { 0..=0 } else { 1..=2 };
                if found == expected && expected_watches.contains(&watches) {
                    Ok(())
                } else {
                    Err(format!("{found:?} and {watches} watches"))
                }
            };
            scene.eventually(&what, probe).await;
        }
        let refused: Vec<_> =
            counted.all_requests().into_iter().filter(|it| matches!(it.status, 400 | 422)).collect();
        assert!(refused.is_empty(), "{refused:?}");
    }
    let plan = scene.run(&scene.arguments(&["plan", "--exit-code"], &ways)).await;
    assert_eq!(plan.code, Some(0), "{}{}", plan.stdout, plan.stderr);
}
