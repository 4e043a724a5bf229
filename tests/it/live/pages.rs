//! The page of the first real cluster, with every command of it.

use super::support::tier;

#[tokio::test(flavor = "multi_thread")]
async fn first_cluster_is_reached_by_its_page() {
    let Some(live) = tier().await else { return };
    // Another test writes as the instance `main` to the third one.
    let cluster = live.cluster(1);
    tokio::task::spawn_blocking(|| crate::pages::check_on("docs/how-to/first-cluster.md", cluster))
        .await
        .expect("the page runs to its end");
    let web = cluster.get("/apis/apps/v1/namespaces/hello/deployments/hello").await.expect("it is there");
    assert_eq!(web["status"]["availableReplicas"], 2, "{web}");
    for object in
        ["namespace/hello", "namespace/tutti", "clusterrole/tutti-main", "clusterrolebinding/tutti-main"]
    {
        cluster.kubectl(&["delete", "--wait=false", object]).await.expect("it was there");
    }
}
