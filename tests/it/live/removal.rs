//! What goes while its cluster is away goes when it is back; and a cluster that is removed is emptied first.

use super::support::{Scene, configmap, deployment, service};

const CAPS: &str = "poll: 1s\n  caps: {deletes: 100, deletePercent: 100}";

#[tokio::test]
async fn an_app_that_is_deleted_while_a_cluster_is_away_goes_when_it_is_back() {
    let Some(scene) = Scene::alone("gone-away").await else { return };
    scene.write_instance(CAPS);
    scene.write_app("web", &[deployment("web", "shop/web:1.0", 1)]);
    scene.write_app(
        "settings",
        &[configmap("one", "a", "1"), configmap("two", "a", "1"), service("settings")],
    );
    let first = scene.worktree.publish("first");
    scene.start(&[]).await;
    scene.succeeded(&first).await;

    scene.cluster(3).stop_server();
    scene.worktree.remove("apps/settings/app.yaml");
    scene.worktree.remove("apps/settings/objects/all.yaml");
    let gone = scene.worktree.publish("no settings any more");
    scene.told(&gone, "deploy/test", "success", &["6 objects deleted on 2 clusters"]).await;
    scene.told(&gone, "deploy/prod", "pending", &["3 deletes wait", "cluster-4 does not answer"]).await;
    for cluster in &scene.clusters()[..3] {
        assert_eq!(scene.ours(cluster, "configmaps").await.len(), 0);
        assert_eq!(scene.ours(cluster, "services").await.len(), 0);
    }

    scene.cluster(3).start_server().await.expect("a server that starts again");
    scene.told(&gone, "deploy/prod", "success", &["6 objects deleted on 2 clusters"]).await;
    assert_eq!(scene.ours(scene.cluster(3), "configmaps").await.len(), 0);
    assert_eq!(scene.ours(scene.cluster(3), "services").await.len(), 0);
    scene.ready(scene.cluster(3), "web", "shop/web:1.0", 1).await;
}

#[tokio::test]
async fn a_cluster_that_is_removed_is_emptied_and_then_let_go() {
    let Some(scene) = Scene::new("removal", 2).await else { return };
    let (stays, leaves) = (scene.cluster(0), scene.cluster(1));
    scene.write_instance(CAPS);
    scene.write_app("web", &[deployment("web", "shop/web:1.0", 1), service("web")]);
    scene.write_app("settings", &[configmap("one", "a", "1")]);
    let first = scene.worktree.publish("first");
    scene.start(&[]).await;
    scene.succeeded(&first).await;

    let path = format!("clusters/{}.yaml", leaves.name());
    let file = std::fs::read_to_string(scene.worktree.folder().join(&path)).expect("a file");
    scene.worktree.write(&path, &file.replace("spec:\n", "spec:\n  state: Removed\n"));
    let removed = scene.worktree.publish("without the second");
    scene.told(&removed, "deploy", "success", &["3 objects deleted on 1 cluster"]).await;
    for kind in ["configmaps", "services", "deployments"] {
        assert_eq!(scene.ours(leaves, kind).await.len(), 0, "{kind}");
        assert_eq!(scene.ours(stays, kind).await.len(), 1, "{kind}");
    }
    let looked = scene.run(&scene.local_arguments(&["get", "clusters"], &[])).await;
    assert_eq!(looked.code, Some(0), "{}{}", looked.stdout, looked.stderr);
    assert!(looked.stdout.contains("its file may go"), "{}", looked.stdout);

    scene.worktree.remove(&path);
    let without = scene.worktree.publish("its file");
    scene.succeeded(&without).await;
    scene.ready(stays, "web", "shop/web:1.0", 1).await;
}

/// The list of managed fields is what a real server is particular about.
#[tokio::test]
async fn an_app_that_is_let_go_stays_and_is_nobodys() {
    let Some(scene) = Scene::new("let-go", 1).await else { return };
    let cluster = scene.cluster(0);
    scene.write_app("web", &[deployment("web", "shop/web:1.0", 1), configmap("one", "a", "1")]);
    scene.write_app("neighbour", &[configmap("neighbour", "a", "1")]);
    let first = scene.worktree.publish("first");
    scene.start(&[]).await;
    scene.succeeded(&first).await;
    let before = scene.object(cluster, "configmaps", "one").await.expect("an object");
    let deployed = scene.object(cluster, "deployments", "web").await.expect("an object");

    scene.worktree.remove("apps/web/app.yaml");
    scene.worktree.remove("apps/web/objects/all.yaml");
    let name = scene.name();
    scene.worktree.write(
        "approvals/web.yaml",
        &format!("apiVersion: tutti.dev/v1alpha1\nkind: Approval\nmetadata: {{name: web}}\nspec: {{app: {name}/web, action: orphan}}\n"),
    );
    let released = scene.worktree.publish("hand it over");
    scene.succeeded(&released).await;
    scene
        .eventually("it is nobody's", async || match scene.ours(cluster, "configmaps").await.len() {
            1 if scene.ours(cluster, "deployments").await.is_empty() => Ok(()),
            found => Err(format!("{found} maps")),
        })
        .await;
    let after = scene.object(cluster, "configmaps", "one").await.expect("an object");
    assert_eq!((&after["data"], &after["metadata"]["uid"]), (&before["data"], &before["metadata"]["uid"]));
    assert!(!after["metadata"].to_string().contains("tutti"), "{after}");
    let web = scene.object(cluster, "deployments", "web").await.expect("an object");
    assert!(!web["metadata"]["managedFields"].to_string().contains("tutti"), "{web}");
    assert_eq!(web["spec"], deployed["spec"]);
    assert_eq!(scene.list(cluster, "replicasets", "").await.len(), 1, "no pod was touched");
}
