//! A pushed commit reaches four clusters and gets its status: valid, broken, and valid again.

use super::support::{LiveFixture, component};

#[tokio::test]
async fn a_push_reaches_every_cluster_by_its_hook() {
    let Some(scene) = LiveFixture::new("push-hook", 4).await else { return };
    // The poll is too rare to find the push.
    scene.write_instance("poll: 2h");
    scene.worktree.write("apps/web/app.yaml", &component(scene.name(), "shop/web:1.0", ""));
    let first = scene.worktree.publish("first");
    scene.start(&[]).await;
    scene.until_succeeded(&first).await;
    let secret = super::support::HOOK_SECRET;
    scene.gitea().create_hook(scene.name(), &scene.hook_url(), secret, &["push"]).await.expect("a hook");
    push_valid_broken_valid(&scene).await;
}

#[tokio::test]
async fn a_push_reaches_every_cluster_by_polling() {
    let Some(scene) = LiveFixture::new("push-poll", 4).await else { return };
    scene.worktree.write("apps/web/app.yaml", &component(scene.name(), "shop/web:1.0", ""));
    let first = scene.worktree.publish("first");
    scene.start(&[]).await;
    scene.until_succeeded(&first).await;
    push_valid_broken_valid(&scene).await;
    assert_eq!(scene.running(|tutti| tutti.stop()), Some(0), "a stop in order");
}

async fn push_valid_broken_valid(scene: &LiveFixture) {
    scene.worktree.write("apps/web/app.yaml", &component(scene.name(), "shop/web:1.1", ""));
    let good = scene.worktree.publish("web 1.1");
    until_everywhere(scene, &good, "shop/web:1.1").await;

    scene.worktree.write("apps/web/app.yaml", &component(scene.name(), "shop/web:broken-1", ""));
    let bad = scene.worktree.publish("an image that nobody has");
    for context in scene.contexts() {
        let text = scene.until_status(&bad, context, "failure", &["ImagePullBackOff", "web-"]).await;
        assert!(text.starts_with("cluster-"), "the cluster is named first: {text}");
        assert_began_pending(scene, &bad, context).await;
    }

    let back = scene.worktree.revert();
    scene.worktree.push();
    until_everywhere(scene, &back, "shop/web:1.1").await;
    for context in scene.contexts() {
        let (state, _) = scene.status(&bad, context).await.expect("a status");
        assert_eq!(state, "failure", "what failed is not called superseded");
    }
}

async fn until_everywhere(scene: &LiveFixture, commit: &str, image: &str) {
    scene.until_succeeded(commit).await;
    for cluster in scene.clusters() {
        scene.until_ready(cluster, "web", image, 2).await;
    }
    for context in scene.contexts() {
        assert_began_pending(scene, commit, context).await;
    }
}

async fn assert_began_pending(scene: &LiveFixture, commit: &str, context: &str) {
    let history = scene.status_history(commit, context).await;
    assert_eq!(history.first().map(|(state, _)| state.as_str()), Some("pending"), "{history:?}");
}
