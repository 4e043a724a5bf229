//! Many clusters in one process.

use futures::future::join_all;
use sandbox::SandboxOptions;

use crate::support::{apply, cluster_with, deployment, deployment_condition, deployments, wait_until};

#[tokio::test(start_paused = true)]
async fn fifty_clusters_roll_out_at_once() {
    let clusters: Vec<_> = (0..50)
        .map(|number| {
            cluster_with(SandboxOptions {
                seed: number,
                name: format!("c{number}"),
                ..SandboxOptions::default()
            })
        })
        .collect();
    let rollouts = clusters.iter().map(|(_, client)| async {
        let api = deployments(client);
        apply(&api, "a", &deployment("web", 2, "web:1")).await.unwrap();
        wait_until(&api, "web", |web| deployment_condition(web, "Progressing").1 == "NewReplicaSetAvailable")
            .await;
    });
    join_all(rollouts).await;
}
