//! Claims with a storage class that waits for the first consumer, in apps where no pod uses them.

use std::time::Duration;

use sandbox::{Fault, RequestMatch};
use tutti::controller::{RunEnding, RunUntil};
use tutti::report::TargetPhase;

use crate::drift::{APP, MANIFESTS, wait_for_repairs};
use crate::support::connections::ProcessConnections;
use crate::support::fleet::{RunningController, TestFleet, target};
use crate::support::live_objects::apply_as;
use crate::support::manifests::{LATE_BINDING_CLASS, objects_app};

fn claim_manifest(name: &str) -> String {
    format!(
        "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: {name}, namespace: default}}\n\
         spec: {{accessModes: [ReadWriteOnce], storageClassName: late, resources: {{requests: {{storage: 1Gi}}}}}}\n---\n"
    )
}

/// A pod template that mounts the claim `data`.
const TEMPLATE: &str = "{metadata: {labels: {app: web}}, spec: {restartPolicy: POLICY, containers: [{name: main, image: web:1}], \
                        volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]}}";

fn deployment(fields: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web, namespace: default}}\n\
         spec: {{{fields}, selector: {{matchLabels: {{app: web}}}}, template: {}}}\n---\n",
        TEMPLATE.replace("POLICY", "Always")
    )
}

fn cron_job() -> String {
    format!(
        "apiVersion: batch/v1\nkind: CronJob\nmetadata: {{name: web, namespace: default}}\n\
         spec: {{schedule: '0 4 1 1 *', jobTemplate: {{spec: {{template: {}}}}}}}\n---\n",
        TEMPLATE.replace("POLICY", "Never")
    )
}

async fn claim_fleet(manifests: &str) -> TestFleet {
    let fleet = TestFleet::new(&["bj1"], &[(APP, &objects_app("default", "web")), (MANIFESTS, manifests)]);
    apply_as(fleet.cluster("bj1"), "admin", LATE_BINDING_CLASS).await;
    fleet
}

fn phase_and_detail(running: &RunningController) -> (TargetPhase, String) {
    let now = running.overview.borrow().clone();
    let target = target(&now, "bj1", "default/web");
    (target.phase, target.detail.clone())
}

fn storage_class_reads(fleet: &TestFleet) -> usize {
    fleet
        .cluster("bj1")
        .count_requests(&RequestMatch::any().verb("get").resource("storageclasses.storage.k8s.io"))
}

const UNUSED_CLAIM_DETAIL: &str = "PersistentVolumeClaim default/data: Suspended, its storage class waits for the first consumer, and no \
                    running workload of its app uses it";

#[tokio::test(start_paused = true)]
async fn an_unused_claim_is_suspended_with_its_reason() {
    let claims = [claim_manifest("data"), claim_manifest("other")].concat();
    for manifests in [
        claims.clone(),
        claims.clone() + &deployment("replicas: 0"),
        claims.clone() + &deployment("paused: true"),
        claims + &cron_job(),
    ] {
        let fleet = claim_fleet(&manifests).await;
        let running = fleet.start().await;
        wait_for_repairs().await;
        let (phase, detail) = phase_and_detail(&running);
        let is_paused = manifests.contains("paused");
        let expected = if is_paused { TargetPhase::Paused } else { TargetPhase::Running };
        assert_eq!(phase, expected, "{detail}\n{manifests}");
        assert!(is_paused || detail == UNUSED_CLAIM_DETAIL, "{detail}\n{manifests}");
        tokio::time::sleep(Duration::from_secs(3_600)).await;
        assert_eq!(storage_class_reads(&fleet), 1, "both claims have one class\n{manifests}");
    }
}

#[tokio::test(start_paused = true)]
async fn run_once_succeeds_with_an_unused_claim() {
    let fleet = claim_fleet(&claim_manifest("data")).await;
    let settled = |settings: &mut tutti::controller::ControllerSettings| {
        settings.until = RunUntil::Settled { timeout: Duration::from_secs(60) };
    };
    let running = fleet.start_with(&ProcessConnections::unlimited(), settled).await;
    let (ending, overview) = running.until_ended().await;
    assert!(matches!(ending, RunEnding::Settled), "{ending:?}");
    assert_eq!(target(&overview, "bj1", "default/web").detail, UNUSED_CLAIM_DETAIL);
}

/// The workload is added later: then the claim is bound and its class is not read any more.
#[tokio::test(start_paused = true)]
async fn used_claim_is_waited_for() {
    let fleet = claim_fleet(&[claim_manifest("data"), deployment("replicas: 0")].concat()).await;
    let running = fleet.start().await;
    wait_for_repairs().await;
    assert_eq!(phase_and_detail(&running), (TargetPhase::Running, UNUSED_CLAIM_DETAIL.to_owned()));
    let placeless =
        deployment("replicas: 1").replace("{restartPolicy", "{nodeSelector: {disk: none}, restartPolicy");
    let manifests = [claim_manifest("data"), placeless].concat();
    fleet.push(&running, "One pod that fits no node", &[(MANIFESTS, Some(&manifests))]).await;
    wait_for_repairs().await;
    let (phase, detail) = phase_and_detail(&running);
    assert_eq!(phase, TargetPhase::Progressing, "{detail}");
    assert!(!detail.contains("Suspended"), "{detail}");
    let manifests = [claim_manifest("data"), deployment("replicas: 1")].concat();
    let head = fleet.push(&running, "One pod", &[(MANIFESTS, Some(&manifests))]).await;
    running.until_converged(&head).await;
    assert_eq!(phase_and_detail(&running), (TargetPhase::Running, String::new()));
    assert_eq!(storage_class_reads(&fleet), 1);
}

/// A claim whose class cannot be read counts as in progress.
#[tokio::test(start_paused = true)]
async fn claim_with_unreadable_class_stays_in_progress() {
    let fleet = claim_fleet(&claim_manifest("data")).await;
    let reads = RequestMatch::any().verb("get").resource("storageclasses.storage.k8s.io");
    fleet.cluster("bj1").fail_next(reads, 3, Fault::forbidden());
    let running = fleet.start().await;
    wait_for_repairs().await;
    let words = "PersistentVolumeClaim default/data: Pending, not bound";
    assert_eq!(phase_and_detail(&running), (TargetPhase::Progressing, words.to_owned()));
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!(phase_and_detail(&running), (TargetPhase::Running, UNUSED_CLAIM_DETAIL.to_owned()));
    assert_eq!(storage_class_reads(&fleet), 4);
}
