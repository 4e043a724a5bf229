//! Equal seeds give equal runs.

use std::time::{Duration, SystemTime};

use kube::api::{DynamicObject, ListParams};
use kube::discovery::ApiResource;
use kube::{Api, core::GroupVersionKind};
use sandbox::SandboxOptions;

use crate::support::{apply, cluster_with, deployment, deployments};

/// All objects of a cluster after a rollout and a failed one, as text.
async fn run_cluster(seed: u64) -> String {
    let options = SandboxOptions { seed, epoch: SystemTime::UNIX_EPOCH, ..SandboxOptions::default() };
    let (_sandbox, client) = cluster_with(options);
    let api = deployments(&client);
    for image in ["web:1", "web:2", "web:broken"] {
        apply(&api, "a", &deployment("web", 3, image)).await.unwrap();
        tokio::time::sleep(Duration::from_secs(30)).await;
    }
    let mut out = String::new();
    for (group, kind) in [("apps", "Deployment"), ("apps", "ReplicaSet"), ("", "Pod"), ("", "Namespace")] {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind));
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        let list = api.list(&ListParams::default()).await.unwrap();
        out.push_str(&serde_json::to_string(&list.items).unwrap());
    }
    out
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_gives_the_same_cluster() {
    let (first, second, other) = (run_cluster(7).await, run_cluster(7).await, run_cluster(8).await);
    assert_eq!(first, second);
    assert_ne!(first, other);
}
