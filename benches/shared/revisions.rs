//! Pushes new images of one app and watches when its Deployment gets each revision.

use std::path::Path;
use std::time::SystemTime;

use futures::StreamExt as _;
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use kube::api::PartialObjectMeta;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::watcher::{Config, Event, watcher};
use live::LiveCluster;
use tokio::sync::mpsc;

use crate::support::LiveFixture;

const REVISION: &str = "tutti.dev/revision";

/// A Deployment and a Service; the number is in the image.
pub fn write_app(scene: &LiveFixture, number: usize) {
    let text = format!(
        "apiVersion: tutti.dev/v1alpha1
kind: Component
metadata: {{name: web, namespace: {}}}
spec: {{workloadType: Deployment, developLanguage: python, runType: server, image: 'shop/web:{number}', port: 8080}}
",
        scene.name()
    );
    scene.worktree.write("apps/web/app.yaml", &text);
}

pub struct SeenRevision {
    pub revision: String,
    pub at: SystemTime,
}

/// Tells each revision of the Deployment on each cluster once, the moment its watch brings it.
pub async fn watch_all(clusters: &[&LiveCluster], namespace: &str) -> mpsc::UnboundedReceiver<SeenRevision> {
    let (sender, receiver) = mpsc::unbounded_channel();
    for cluster in clusters {
        let deployments: Api<PartialObjectMeta<Deployment>> =
            Api::namespaced(client(cluster.kubeconfig()).await, namespace);
        let sender = sender.clone();
        tokio::spawn(async move {
            let mut known = String::new();
            let mut events = std::pin::pin!(watcher(deployments, Config::default()));
            while let Some(event) = events.next().await {
                let at = SystemTime::now();
                let Ok(Event::Apply(object) | Event::InitApply(object)) = event else { continue };
                let annotations = object.metadata.annotations.unwrap_or_default();
                let Some(revision) = annotations.get(REVISION).filter(|found| **found != known) else {
                    continue;
                };
                known.clone_from(revision);
                if sender.send(SeenRevision { revision: revision.clone(), at }).is_err() {
                    return;
                }
            }
        });
    }
    receiver
}

pub async fn client(kubeconfig: &Path) -> kube::Client {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    kube::Client::try_from(config.expect("a configuration")).expect("a client")
}
