//! A project reaches each cluster in any order; the namespaces of a removed project wait for approval.

use std::fs;

use live::LiveCluster;

use super::support::{LiveFixture, approval_digests};

fn project(name: &str, spec: &str) -> String {
    format!("apiVersion: tutti.dev/v1alpha1\nkind: Project\nmetadata: {{name: {name}}}\nspec: {{{spec}}}\n")
}

/// The existing namespaces among these, each with its quota.
async fn namespaces(cluster: &LiveCluster) -> Vec<String> {
    let quota =
        ["get", "resourcequotas", "-A", "-o", "jsonpath={range .items[*]}{.metadata.namespace}{' '}{end}"];
    let found = cluster.kubectl(&quota).await.expect("quotas");
    found.split_whitespace().filter(|name| name.starts_with("projects-")).map(str::to_owned).collect()
}

#[tokio::test]
async fn every_project_reaches_every_cluster() {
    let Some(scene) = LiveFixture::new("projects", 2).await else { return };
    let (first, second) = (scene.cluster(0), scene.cluster(1));
    let file = scene.worktree.folder().join(format!("clusters/{}.yaml", second.name()));
    let of_second = fs::read_to_string(&file).expect("a Cluster file");
    fs::remove_file(&file).expect("removed");
    let quota = "quota: {pods: 20}";
    scene.worktree.write("projects/shop.yaml", &project("projects-shop", quota));
    let commit = scene.worktree.publish("a project");
    scene.start(&[]).await;
    scene.until_succeeded(&commit).await;
    assert_eq!(namespaces(first).await, ["projects-shop"]);

    scene.worktree.write("projects/pay.yaml", &project("projects-pay", quota));
    scene.until_succeeded(&scene.worktree.publish("another project")).await;
    assert_eq!(namespaces(first).await, ["projects-pay", "projects-shop"]);
    assert_eq!(namespaces(second).await, [""; 0], "nobody spoke of that cluster");

    scene.worktree.write(&format!("clusters/{}.yaml", second.name()), &of_second);
    scene.until_succeeded(&scene.worktree.publish("a cluster")).await;
    assert_eq!(namespaces(second).await, ["projects-pay", "projects-shop"]);

    fs::remove_file(scene.worktree.folder().join("projects/pay.yaml")).expect("removed");
    let without = scene.worktree.publish("without a project");
    let text = scene.until_status(&without, "deploy", "pending", &["deletes wait", "tutti approve "]).await;
    for cluster in [first, second] {
        let namespace = cluster.kubectl(&["get", "namespace", "projects-pay", "-o", "name"]).await;
        assert_eq!(namespace.expect("a namespace").trim(), "namespace/projects-pay", "it waits: {text}");
    }
    let digest = approval_digests(&text).first().copied().expect("a digest");
    let approve = scene.local_arguments(&["approve", digest, "--commit"], &[]);
    let ended = scene.run(&approve).await;
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    scene.worktree.push();
    scene
        .eventually("the approved namespaces go", async || {
            for cluster in [first, second] {
                let ours = ["get", "namespace", "projects-pay", "--ignore-not-found", "-o", "name"];
                let left = cluster.kubectl(&ours).await.map_err(|error| error.to_string())?;
                if !left.trim().is_empty() {
                    return Err(format!("{left} on {}", cluster.name()));
                }
            }
            Ok(())
        })
        .await;
    assert_eq!(namespaces(first).await, ["projects-shop"]);
}
