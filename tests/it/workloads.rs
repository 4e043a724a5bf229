//! All workload types, from shipped layers to pods.

use std::collections::BTreeMap;

use tutti::report::{TargetPhase, TargetReport};

use crate::support::fleet::TestFleet;
use crate::support::kruise;
use crate::support::live_objects;
use crate::support::manifests::{component, objects_app};

fn app(workload: &str, language: &str, run_type: &str) -> (String, String) {
    let name = format!("{workload}-{language}-{run_type}").to_lowercase();
    let schedule = if workload == "CronJob" { "\n  schedule: '0 3 * * *'" } else { "" };
    let text = component(&name, "registry.example.com/web:1")
        .replace("workloadType: Deployment", &format!("workloadType: {workload}{schedule}"))
        .replace("developLanguage: python", &format!("developLanguage: {language}"))
        .replace("runType: server", &format!("runType: {run_type}"));
    (name, text)
}

#[tokio::test(start_paused = true)]
async fn every_shipped_layer_becomes_healthy() {
    let mut files: BTreeMap<String, String> = BTreeMap::from([
        ("apps/kruise/app.yaml".to_owned(), objects_app("default", "kruise")),
        ("apps/kruise/objects/definition.yaml".to_owned(), kruise::definition("CloneSet")),
    ]);
    for workload in ["Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob", "InPlaceSet"] {
        for language in ["go", "java", "python", "node", "php", "generic"] {
            for run_type in ["server", "worker", "task"] {
                let (name, text) = app(workload, language, run_type);
                files.insert(format!("apps/{name}/app.yaml"), text);
            }
        }
    }
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let fleet = TestFleet::new(&["bj1"], &files);
    let running = fleet.start().await;
    let cluster = fleet.cluster("bj1");
    // All others are healthy; these wait for the controller of OpenKruise.
    let waits = |it: &TargetReport| it.phase == TargetPhase::Progressing;
    let now = running
        .until("those of OpenKruise alone not healthy", |now| {
            now.targets.iter().filter(|it| waits(it)).count() == 6 * 3
                && now.targets.iter().all(|it| waits(it) || it.phase == TargetPhase::Running)
        })
        .await;
    for target in now.targets.iter().filter(|it| waits(it)) {
        assert!(target.app.to_string().starts_with("default/inplaceset-"), "{}", target.app);
        assert!(target.detail.ends_with("is not observed yet"), "{}", target.detail);
    }
    for name in live_objects::names(cluster, "CloneSet").await {
        kruise::write_status(cluster, &name, kruise::KruisePodState::Ready).await;
    }
    let now = running.until_converged(&fleet.first_commit).await;
    assert_eq!(now.targets.len(), 6 * 6 * 3 + 1);
    for kind in ["StatefulSet", "CronJob", "CloneSet"] {
        assert_eq!(live_objects::names(cluster, kind).await.len(), 6 * 3, "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn new_version_creates_a_new_job() {
    let (name, text) = app("Job", "go", "task");
    let path = format!("apps/{name}/app.yaml");
    let fleet = TestFleet::new(&["bj1"], &[(&path, &text)]);
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    let first = live_objects::names(fleet.cluster("bj1"), "Job").await;
    let revision = fleet.push(&running, "Version 2", &[(&path, Some(&text.replace("web:1", "web:2")))]).await;
    running.until_converged(&revision).await;
    let second = live_objects::names(fleet.cluster("bj1"), "Job").await;
    assert_eq!((first.len(), second.len()), (1, 1));
    assert_ne!(first, second);
}
