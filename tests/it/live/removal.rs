//! Removals during an outage of a cluster happen afterwards; a removed cluster is emptied first.

use super::outage;
use super::support::{LiveFixture, configmap, deployment, service};

const DELETE_CAPS: &str = "poll: 1s\n  caps: {deletes: 100, deletePercent: 100}";

#[tokio::test]
async fn an_app_is_removed_after_the_outage() {
    let Some(away) = OfflineRemoval::new("gone-away").await else { return };
    let waiting = ["6 deletes wait: cluster-3 does not answer, deleted when it answers again"];
    away.scene.until_status(&away.removal_commit, "deploy/prod", "pending", &waiting).await;
    away.restart_and_wait_until_emptied().await;
    away.scene
        .until_status(&away.removal_commit, "deploy/prod", "success", &["6 objects deleted on 2 clusters"])
        .await;
}

/// No memory is needed: only the labels of the objects on the clusters.
#[tokio::test]
async fn a_new_process_removes_an_unknown_app() {
    let Some(away) = OfflineRemoval::new("gone-unseen").await else { return };
    away.scene.kill();
    // Without its disk too.
    std::fs::remove_dir_all(away.scene.folder().join("state")).expect("a folder of state");
    away.scene.start(&[]).await;
    away.scene.until_logged_for(&away.scene.clusters()[2..], &["does not answer"]).await;
    // It does not know the objects, but knows that the commit removed the app from both clusters.
    let waiting = ["2 deletes wait: cluster-3 does not answer, deleted when it answers again"];
    away.scene.until_status(&away.removal_commit, "deploy/prod", "pending", &waiting).await;
    away.restart_and_wait_until_emptied().await;
}

/// The last two clusters, the newest and the oldest Kubernetes, were stopped before an app was deleted.
struct OfflineRemoval {
    scene: LiveFixture,
    removal_commit: String,
}

impl OfflineRemoval {
    async fn new(name: &'static str) -> Option<Self> {
        let scene = LiveFixture::with_exclusive_clusters(name).await?;
        scene.write_instance(DELETE_CAPS);
        scene.write_app("web", &[deployment("web", "shop/web:1.0", 1)]);
        scene.write_app(
            "settings",
            &[configmap("one", "a", "1"), configmap("two", "a", "1"), service("settings")],
        );
        let first = scene.worktree.publish("first");
        scene.start(&[]).await;
        scene.until_succeeded(&first).await;

        outage::stop_last_clusters(&scene);
        scene.worktree.remove("apps/settings/app.yaml");
        scene.worktree.remove("apps/settings/objects/all.yaml");
        let gone = scene.worktree.publish("no settings any more");
        scene.until_status(&gone, "deploy/test", "success", &["6 objects deleted on 2 clusters"]).await;
        let away = Self { scene, removal_commit: gone };
        away.until_emptied(0..2).await;
        Some(away)
    }

    async fn until_emptied(&self, clusters: std::ops::Range<usize>) {
        for cluster in &self.scene.clusters()[clusters] {
            let what = format!("the app is gone on {} ({})", cluster.name(), cluster.version());
            self.scene
                .eventually(&what, async || {
                    let maps = self.scene.managed_objects(cluster, "configmaps").await.len();
                    let services = self.scene.managed_objects(cluster, "services").await.len();
                    if maps + services == 0 {
                        Ok(())
                    } else {
                        Err(format!("{maps} maps, {services} services"))
                    }
                })
                .await;
        }
    }

    async fn restart_and_wait_until_emptied(&self) {
        outage::start_last_clusters(&self.scene).await;
        self.until_emptied(2..4).await;
        for cluster in &self.scene.clusters()[2..] {
            self.scene.until_ready(cluster, "web", "shop/web:1.0", 1).await;
        }
        self.scene.until_succeeded(&self.removal_commit).await;
    }
}

#[tokio::test]
async fn a_removed_cluster_is_emptied_and_released() {
    let Some(scene) = LiveFixture::new("removal", 2).await else { return };
    let (stays, leaves) = (scene.cluster(0), scene.cluster(1));
    scene.write_instance(DELETE_CAPS);
    scene.write_app("web", &[deployment("web", "shop/web:1.0", 1), service("web")]);
    scene.write_app("settings", &[configmap("one", "a", "1")]);
    let first = scene.worktree.publish("first");
    scene.start(&[]).await;
    scene.until_succeeded(&first).await;

    let path = format!("clusters/{}.yaml", leaves.name());
    let file = std::fs::read_to_string(scene.worktree.folder().join(&path)).expect("a file");
    scene.worktree.write(&path, &file.replace("spec:\n", "spec:\n  state: Removed\n"));
    let removed = scene.worktree.publish("without the second");
    scene.until_status(&removed, "deploy", "success", &["3 objects deleted on 1 cluster"]).await;
    for kind in ["configmaps", "services", "deployments"] {
        assert_eq!(scene.managed_objects(leaves, kind).await.len(), 0, "{kind}");
        assert_eq!(scene.managed_objects(stays, kind).await.len(), 1, "{kind}");
    }
    let looked = scene.run(&scene.local_arguments(&["get", "clusters"], &[])).await;
    assert_eq!(looked.code, Some(0), "{}{}", looked.stdout, looked.stderr);
    assert!(looked.stdout.contains("delete its file"), "{}", looked.stdout);

    scene.worktree.remove(&path);
    let without = scene.worktree.publish("its file");
    scene.until_succeeded(&without).await;
    scene.until_ready(stays, "web", "shop/web:1.0", 1).await;
}

/// A real server is strict about the list of managed fields.
#[tokio::test]
async fn an_orphaned_app_stays_without_an_owner() {
    let Some(scene) = LiveFixture::new("let-go", 1).await else { return };
    let cluster = scene.cluster(0);
    scene.write_app("web", &[deployment("web", "shop/web:1.0", 1), configmap("one", "a", "1")]);
    scene.write_app("neighbour", &[configmap("neighbour", "a", "1")]);
    let first = scene.worktree.publish("first");
    scene.start(&[]).await;
    scene.until_succeeded(&first).await;
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
    scene.until_succeeded(&released).await;
    scene
        .eventually("it is nobody's", async || {
            match scene.managed_objects(cluster, "configmaps").await.len() {
                1 if scene.managed_objects(cluster, "deployments").await.is_empty() => Ok(()),
                found => Err(format!("{found} maps")),
            }
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
