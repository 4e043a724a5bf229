//! A workload whose pods a real server refuses shows the reason, from its controller's event.

use serde_json::json;

use super::support::LiveFixture;

#[tokio::test]
async fn pods_without_account_show_the_event() {
    let Some(scene) = LiveFixture::with_newest_and_oldest("refused").await else { return };
    let template = |restarts: &str| {
        let containers = json!([{"name": "main", "image": "shop/run:1.0"}]);
        json!({"metadata": {"labels": {"app": "web"}},
            "spec": {"serviceAccountName": "robot", "restartPolicy": restarts, "containers": containers}})
    };
    let metadata = json!({"name": "web", "namespace": scene.name()});
    let job = |name: &str| {
        json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": scene.name()},
            "spec": {"template": template("Never")}})
    };
    let set = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata,
        "spec": {"replicas": 1, "serviceName": "web", "selector": {"matchLabels": {"app": "web"}},
            "template": template("Always")}});
    // A status is too short for all of it.
    let words = ["FailedCreate web", "error looking up service account refused/robot"];
    scene.write_app("set", &[set]);
    let commit = scene.worktree.publish("an account that is not there");
    scene.start(&[]).await;
    scene.until_status(&commit, "deploy", "pending", &words).await;
    // The events of several stuck workloads are read by one list.
    let jobs = ["job-1", "job-2", "job-3", "job-4"];
    jobs.iter().for_each(|name| scene.write_app(name, &[job(&format!("web-{name}"))]));
    scene.worktree.publish("Jobs too");
    for name in jobs {
        scene.until_logged_for_each(&[&words[..], &[&format!("refused/{name}")]].concat()).await;
    }
}
