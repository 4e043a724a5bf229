//! Many deletes wait for a person.

use serde_json::Value;

use super::support::{LiveFixture, approval_digests, configmap};

fn numbered_objects(numbers: std::ops::Range<usize>) -> Vec<Value> {
    numbers.map(|number| configmap(&format!("setting-{number}"), "a", "1")).collect()
}

#[tokio::test]
async fn twelve_deletes_wait_for_an_approval() {
    let Some(scene) = LiveFixture::new("prune", 1).await else { return };
    let cluster = scene.cluster(0);
    scene.write_app("settings", &numbered_objects(0..20));
    scene.write_app("neighbour", &[configmap("neighbour", "a", "1")]);
    let first = scene.worktree.publish("first");
    scene.start(&[]).await;
    scene.until_succeeded(&first).await;
    assert_eq!(scene.managed_objects(cluster, "configmaps").await.len(), 21);

    scene.write_objects("settings", &numbered_objects(0..8));
    let fewer = scene.worktree.publish("twelve fewer");
    let text = scene.until_status(&fewer, "deploy", "pending", &["12 deletes wait", "tutti approve "]).await;
    let digest = approval_digests(&text).first().copied().expect("a digest");

    scene.write_objects("neighbour", &[configmap("neighbour", "a", "2")]);
    let unrelated = scene.worktree.publish("something else");
    scene.until_succeeded(&unrelated).await;
    let left = scene.object(cluster, "configmaps", "neighbour").await.expect("an object");
    assert_eq!(left["data"]["a"], "2");
    assert_eq!(
        scene.managed_objects(cluster, "configmaps").await.len(),
        21,
        "an unrelated commit frees nothing"
    );

    let approve = scene.local_arguments(&["approve", digest, "--commit"], &[]);
    let ended = scene.run(&approve).await;
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    assert_eq!(scene.managed_objects(cluster, "configmaps").await.len(), 21, "approved, not pushed yet");
    scene.worktree.push();
    scene
        .eventually("the deletes run", async || {
            let names: Vec<Value> = scene
                .managed_objects(cluster, "configmaps")
                .await
                .iter()
                .map(|it| it["metadata"]["name"].clone())
                .collect();
            if names.len() == 9 { Ok(()) } else { Err(format!("{names:?}")) }
        })
        .await;
    scene.until_succeeded(&scene.worktree.head()).await;
    scene.until_status(&fewer, "deploy", "success", &[]).await;
}
