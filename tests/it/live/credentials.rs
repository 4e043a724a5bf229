//! Wrong credentials are reported as such, and affect nothing else.

use std::fs;

use super::drift::AuditedCluster;
use super::support::{LiveFixture, configmap};

#[tokio::test]
async fn a_wrong_token_for_git_ends_with_5() {
    let Some(scene) = LiveFixture::new("git-token", 1).await else { return };
    scene.write_app("settings", &[configmap("settings", "a", "1")]);
    scene.worktree.publish("first");
    fs::write(scene.folder().join("token"), "0123456789abcdef0123456789abcdef01234567").expect("a file");
    for command in [&["run"][..], &["run", "--once"], &["plan"]] {
        let ended = scene.run(&scene.arguments(command, &[])).await;
        assert_eq!(ended.code, Some(5), "{command:?}: {}", ended.stderr);
        assert!(ended.stderr.contains("failed to authenticate at http://127.0.0.1"), "{}", ended.stderr);
        assert!(!ended.stderr.contains("0123456789abcdef"), "the token is not shown: {}", ended.stderr);
    }
}

#[tokio::test]
async fn wrong_credentials_stop_one_cluster_only() {
    let Some(scene) = LiveFixture::new("cluster-token", 3).await else { return };
    let text = |index: usize| fs::read_to_string(scene.cluster(index).kubeconfig()).expect("a kubeconfig");
    let (with_token, foreign) = (scene.folder().join("token.yaml"), scene.folder().join("foreign.yaml"));
    fs::write(&with_token, with_user(&text(1), "    token: nobody-knows-it\n")).expect("a file");
    // Signed by the authority of another cluster.
    fs::write(&foreign, with_user(&text(2), user_of(&text(0)))).expect("a file");
    scene.write_app("settings", &[configmap("settings", "a", "1")]);
    let commit = scene.worktree.publish("first");
    let ways = [
        format!("cluster-2={}#admin", with_token.display()),
        format!("cluster-3={}#admin", foreign.display()),
    ];
    scene.start(&["--cluster", &ways[0], "--cluster", &ways[1]]).await;

    scene
        .eventually("the first converges", async || {
            scene.object(scene.cluster(0), "configmaps", "settings").await
        })
        .await;
    scene.until_status(&commit, "deploy", "pending", &["1/3 healthy", "cluster-"]).await;
    let more = ["--cluster", &ways[0], "--cluster", &ways[1], "-o", "json"];
    let ended = scene.run(&scene.arguments(&["get", "clusters"], &more)).await;
    let clusters: serde_json::Value = serde_json::from_str(&ended.stdout).expect("JSON");
    let check = |index: usize, state: &str, detail: &str| {
        let cluster = &clusters[index];
        assert_eq!(cluster["state"], state, "{cluster}");
        assert!(cluster["detail"].as_str().is_some_and(|text| text.contains(detail)), "{cluster}");
    };
    check(0, "Ready", "");
    check(1, "Offline", "Unauthorized");
    check(2, "Offline", "Unauthorized");
    assert_eq!(ended.code, Some(6), "{}", ended.stderr);
    for index in [1, 2] {
        assert!(scene.object(scene.cluster(index), "configmaps", "settings").await.is_err());
    }
}

/// Without an event: a kubeconfig is read again when its cluster refuses the credentials.
#[tokio::test]
async fn an_account_that_is_replaced_is_followed() {
    let Some(scene) = LiveFixture::new("cluster-account", 2).await else { return };
    let second = scene.cluster(1);
    let value = async |index: usize| {
        let found = scene.object(scene.cluster(index), "configmaps", "settings").await?;
        Ok::<_, String>(found["data"]["a"].as_str().unwrap_or_default().to_owned())
    };
    let counted = AuditedCluster::new(&scene, second).await;
    scene.write_app("settings", &[configmap("settings", "a", "1")]);
    let first = scene.worktree.publish("first");
    scene.start(&["--cluster", &counted.cluster_option]).await;
    scene.until_succeeded(&first).await;

    let name = scene.name();
    second.kubectl(&["delete", "serviceaccount", "tutti", "-n", name]).await.expect("deleted");
    scene
        .eventually("the account is refused", async || {
            let log = scene.running(|tutti| tutti.log());
            if log.contains("the cluster does not answer") { Ok(()) } else { Err(log) }
        })
        .await;
    scene.write_objects("settings", &[configmap("settings", "a", "2")]);
    let changed = scene.worktree.publish("second");
    scene.until_status(&changed, "deploy", "pending", &["1/2 healthy", second.name()]).await;
    assert_eq!((value(0).await.as_deref(), value(1).await.as_deref()), (Ok("2"), Ok("1")));

    second.kubectl(&["delete", "clusterrolebinding", &format!("{name}-tutti")]).await.expect("deleted");
    let next = AuditedCluster::new(&scene, second).await;
    assert_eq!(next.cluster_option, counted.cluster_option, "the same file");
    scene.until_succeeded(&changed).await;
    assert_eq!(value(1).await.as_deref(), Ok("2"));
}

/// The lines of `user:` in a kubeconfig.
fn user_of(kubeconfig: &str) -> &str {
    let (_, rest) = kubeconfig.split_once("  user:\n").expect("a user");
    rest.split_once("contexts:").expect("contexts after users").0
}

pub(super) fn with_user(kubeconfig: &str, user: &str) -> String {
    kubeconfig.replace(user_of(kubeconfig), user)
}
