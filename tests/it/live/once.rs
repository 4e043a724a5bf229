//! `tutti run --once` ends with an exit code for its result.

use std::fs;

use serde_json::json;

use super::support::{LiveFixture, configmap, deployment};

#[tokio::test]
async fn once_ends_with_a_code_for_each_outcome() {
    let Some(scene) = LiveFixture::new("once", 2).await else { return };
    scene.write_app("web", &[deployment("web", "shop/web:1.0", 1)]);
    let good = scene.worktree.publish("first");
    let check = async |more: &[&str], code: i32, words: &[&str]| {
        let ended = scene.run(&scene.arguments(&["run", "--once"], more)).await;
        let shown = format!("{}{}", ended.stdout, ended.stderr);
        assert_eq!(ended.code, Some(code), "{shown}");
        for word in words {
            assert!(shown.contains(word), "no {word:?} in {shown}");
        }
    };
    check(&[], 0, &["CLUSTER-1", "CLUSTER-2", "once/web"]).await;
    let (state, _) = scene.status(&good, "deploy").await.expect("posted before the end");
    assert_eq!(state, "success");
    check(&[], 0, &[]).await;

    scene.worktree.write("clusters/nowhere.yaml", "apiVersion: tutti.dev/v1alpha1\nkind: Cluster\nmetadata: {name: nowhere}\nspec: {connection: {kubeconfig: {path: nowhere.yaml, context: admin}}}\n");
    scene.worktree.publish("a cluster that does not answer");
    let nowhere = scene.folder().join("nowhere.yaml");
    let text = fs::read_to_string(scene.cluster(0).kubeconfig()).expect("a kubeconfig");
    fs::write(&nowhere, text.replace(scene.cluster(0).server(), "https://127.0.0.1:1")).expect("a file");
    let way = format!("nowhere={}#admin", nowhere.display());
    check(&["--cluster", &way], 6, &["nowhere", "refused"]).await;
    check(&[], 6, &["nowhere", "No such file", "nowhere.yaml"]).await;

    scene.worktree.remove("clusters/nowhere.yaml");
    scene.write_objects("web", &[deployment("web", "shop/web:broken-1", 1)]);
    let bad = scene.worktree.publish("an image that nobody has");
    check(&[], 3, &["ImagePullBackOff", "web-"]).await;
    let (state, text) = scene.status(&bad, "deploy").await.expect("posted before the end");
    assert_eq!(state, "failure", "{text}");

    scene.write_app("web", &[configmap("web", "a", "1"), deployment("web", "shop/web:1.0", 1)]);
    scene.worktree.write(
        "apps/broken/app.yaml",
        "apiVersion: tutti.dev/v1alpha1\nkind: Objects\nmetadata: {name: broken}\nspec: {file: []}\n",
    );
    scene.worktree.publish("one app with an error, one without");
    check(&[], 3, &["apps/broken/app.yaml"]).await;
    scene.until_ready(scene.cluster(1), "web", "shop/web:1.0", 1).await;
}

#[tokio::test]
async fn once_ends_beside_a_claim_without_a_consumer() {
    let Some(scene) = LiveFixture::new("idle-claim", 1).await else { return };
    let class = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "late"},
        "provisioner": "example.com/disks", "volumeBindingMode": "WaitForFirstConsumer"});
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "late",
            "resources": {"requests": {"storage": "1Gi"}}}});
    scene.write_app("web", &[class, claim]);
    scene.worktree.publish("a claim that nothing uses");
    let ended = scene.run(&scene.arguments(&["run", "--once"], &["--timeout", "60s"])).await;
    let shown = format!("{}{}", ended.stdout, ended.stderr);
    assert_eq!(ended.code, Some(0), "{shown}");
    assert!(shown.contains("waits for the first consumer"), "{shown}");
}

#[tokio::test]
async fn once_without_a_repository_ends_with_2() {
    let Some(scene) = LiveFixture::new("no-repository", 1).await else { return };
    let check = async |arguments: &[&str], words: &str| {
        let arguments: Vec<String> = arguments.iter().map(|it| (*it).to_owned()).collect();
        let ended = scene.run(&arguments).await;
        assert_eq!(ended.code, Some(2), "{arguments:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(words), "{arguments:?}: {}", ended.stderr);
    };
    let folder = scene.folder().join("empty");
    fs::create_dir(&folder).expect("a folder");
    let folder = folder.display().to_string();
    check(&["run", "--once"], "no config repository").await;
    check(&["run", "--once", "--repo", "/no/such/folder"], "/no/such/folder").await;
    check(&["run", "--once", "--repo", &folder], "not a Git repository").await;
    let checked_out = scene.worktree.folder().display().to_string();
    check(&["run", "--once", "--repo", &checked_out], "empty").await;
    // The forge knows the repository, and nothing was pushed.
    let arguments = scene.arguments(&["run", "--once"], &[]);
    check(&arguments.iter().map(String::as_str).collect::<Vec<_>>(), "empty").await;
}
