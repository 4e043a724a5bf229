//! Clusters with older releases of Kubernetes: the same reconcile, with the same requests.

use std::time::Duration;

use sandbox::{Release, SandboxOptions};
use serde_json::json;
use tutti::report::TargetPhase;

use crate::drift::{APP, MANIFESTS, app_with_fields, wait_for_repairs, write_requests};
use crate::support::fleet::{TestFleet, is_list, target};
use crate::support::live_objects::{self, edit_as, scale_as};
use crate::support::manifests::{config_map, deployment, objects_app};

const SECRET: &str =
    "apiVersion: v1\nkind: Secret\nmetadata: {name: web, namespace: default}\nstringData: {password: one}\n";
const SERVICE: &str = "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: default}\n\
                       spec: {selector: {app: web}, ports: [{port: 80, name: http}, {port: 53, protocol: UDP, name: dns}]}\n";
const INGRESS: &str = "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: web, namespace: default}\n\
                       spec: {defaultBackend: {service: {name: web, port: {number: 80}}}}\n";

fn release_options(name: &str, minor: u32) -> SandboxOptions {
    SandboxOptions::instant(name).running(Release::new(minor).expect("a release"))
}

/// API versions that a release serves.
struct ServedVersions {
    options: fn(&str) -> SandboxOptions,
    disruption_version: &'static str,
    cron_job_version: &'static str,
}

const OLDEST: ServedVersions = ServedVersions {
    options: |name| release_options(name, 20),
    disruption_version: "policy/v1beta1",
    cron_job_version: "batch/v1beta1",
};
const OLD: ServedVersions = ServedVersions {
    options: |name| release_options(name, 24),
    disruption_version: "policy/v1",
    cron_job_version: "batch/v1",
};
const NEWEST: ServedVersions = ServedVersions { options: |name| release_options(name, 36), ..OLD };

impl ServedVersions {
    fn disruption_version(&self) -> String {
        format!(
            "apiVersion: {}\nkind: PodDisruptionBudget\nmetadata: {{name: web, namespace: default}}\n\
             spec: {{minAvailable: 1, selector: {{matchLabels: {{app: web}}}}}}\n",
            self.disruption_version
        )
    }

    fn cron_job_version(&self) -> String {
        let job = json!({"spec": {"template": {"spec": {"restartPolicy": "Never",
            "containers": [{"name": "a", "image": "b"}]}}}});
        json!({"apiVersion": self.cron_job_version, "kind": "CronJob", "metadata": {"name": "web", "namespace": "default"},
            "spec": {"schedule": "0 0 1 1 *", "jobTemplate": job}})
        .to_string()
            + "\n"
    }

    fn manifests(&self, value: &str) -> Vec<String> {
        let (web, map) = (deployment("default", "web", "web", "web:1"), config_map("default", "web", value));
        let others = [SECRET, SERVICE, INGRESS].map(str::to_owned);
        [vec![web, map, self.cron_job_version(), self.disruption_version()], others.to_vec()].concat()
    }
}

async fn check_reconcile_requests(served: &ServedVersions) {
    let all = served.manifests("one");
    let files = [(APP, objects_app("default", "web")), (MANIFESTS, all.join("---\n"))];
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    let fleet = TestFleet::with_options(&["bj1"], &files, served.options);
    let bj1 = fleet.cluster("bj1");
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    wait_for_repairs().await;
    let kinds = [
        "configmaps",
        "cronjobs.batch",
        "deployments.apps",
        "ingresses.networking.k8s.io",
        "poddisruptionbudgets.policy",
        "secrets",
        "services",
    ];
    let asked = fleet.request_counts();
    for verb in ["apply", "get"] {
        let of_verb: Vec<&String> =
            asked.iter().filter(|it| it.starts_with(&format!("1 {verb} ")) && !it.contains(" /")).collect();
        assert_eq!(
            of_verb,
            kinds.map(|kind| format!("1 {verb} {kind}")).iter().collect::<Vec<_>>(),
            "{asked:?}"
        );
    }
    let has = async |kind: &str| live_objects::get(bj1, kind, "default", "web").await.expect("it is there");
    assert_eq!(has("Service").await["spec"]["ports"][0]["protocol"], "TCP");

    // Nothing changes for a long time.
    fleet.clear_requests();
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(fleet.request_counts(), Vec::<String>::new());

    let changed = served.manifests("two").join("---\n");
    let revision = fleet.push(&running, "Change", &[(MANIFESTS, Some(&changed))]).await;
    running.until_converged(&revision).await;
    wait_for_repairs().await;
    assert_eq!(fleet.request_counts(), ["1 apply configmaps"]);

    let image = json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "web:2"}]}}}});
    let edits = [
        ("ConfigMap", "configmaps", json!({"data": {"value": "three"}})),
        ("Deployment", "deployments.apps", image),
        ("Secret", "secrets", json!({"data": {"password": "dHdv"}})),
        ("Service", "services", json!({"spec": {"selector": {"app": "other"}}})),
    ];
    for (kind, resource, edit) in edits {
        let before = has(kind).await;
        fleet.clear_requests();
        edit_as(bj1, "kubectl-edit", (kind, "web"), &edit).await;
        wait_for_repairs().await;
        assert_eq!(fleet.request_counts(), [format!("1 apply {resource}"), format!("1 patch {resource}")]);
        let after = has(kind).await;
        assert_eq!((&after["data"], &after["spec"]), (&before["data"], &before["spec"]), "{kind}");
    }
    // Manual scaling.
    fleet.clear_requests();
    scale_as(bj1, "kubectl", "web", 7).await;
    wait_for_repairs().await;
    assert_eq!(fleet.request_counts(), ["1 apply deployments.apps", "1 patch deployments.apps"]);
    assert_eq!(has("Deployment").await["spec"]["replicas"], 2);

    let without = |gone: &[&str]| {
        let stays = |it: &String| !gone.iter().any(|kind| it.contains(kind));
        served.manifests("two").into_iter().filter(stays).collect::<Vec<_>>().join("---\n")
    };
    fleet.clear_requests();
    let fewer = without(&["PodDisruptionBudget"]);
    let revision = fleet.push(&running, "Fewer", &[(MANIFESTS, Some(&fewer))]).await;
    running.until_converged(&revision).await;
    wait_for_repairs().await;
    assert_eq!(fleet.request_counts(), ["1 delete poddisruptionbudgets.policy"]);

    // A new process finds all objects, also those that left Git.
    running.stop().await;
    fleet.clear_requests();
    let fewer = without(&["PodDisruptionBudget", "CronJob"]);
    let revision = fleet.repository.commit("Fewer still", &[(MANIFESTS, Some(&fewer))]);
    let running = fleet.start().await;
    running.until_converged(&revision).await;
    wait_for_repairs().await;
    assert_eq!(write_requests(&fleet), ["1 delete cronjobs.batch"]);
    fleet.clear_requests();
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(fleet.request_counts(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn oldest_release_needs_no_more_requests_than_newest() {
    check_reconcile_requests(&OLDEST).await;
}

#[tokio::test(start_paused = true)]
async fn legacy_discovery_needs_no_more_requests_than_newest() {
    check_reconcile_requests(&OLD).await;
}

#[tokio::test(start_paused = true)]
async fn newest_release_needs_only_these_requests() {
    check_reconcile_requests(&NEWEST).await;
}

/// One app with one object; returns the detail of its target in the phase.
async fn target_detail(options: fn(&str) -> SandboxOptions, object: &str, phase: TargetPhase) -> String {
    let fleet = TestFleet::with_options(
        &["bj1"],
        &[(APP, &objects_app("default", "web")), (MANIFESTS, object)],
        options,
    );
    let running = fleet.start().await;
    let now =
        running.until(&format!("{phase:?}"), |now| now.targets.iter().any(|it| it.phase == phase)).await;
    let detail = target(&now, "bj1", "default/web").detail.clone();
    wait_for_repairs().await;
    assert_eq!(write_requests(&fleet).iter().filter(|it| !it.contains("apply accounts")).count(), 0);
    detail
}

#[tokio::test(start_paused = true)]
async fn unserved_version_is_refused_with_the_served_ones() {
    let detail = target_detail(OLDEST.options, &OLD.disruption_version(), TargetPhase::Refused).await;
    assert!(detail.contains("policy/v1beta1"), "{detail}");
}

/// Before 1.22 no field shows whether an autoscaler or a person scaled: an ignore rule or an autoscaler in Git decides.
#[tokio::test(start_paused = true)]
async fn ignored_replicas_stay_on_the_oldest_release() {
    let app = app_with_fields("ignore: [{target: {kind: Deployment}, paths: [/spec/replicas]}]");
    let manifest = deployment("default", "web", "web", "web:1");
    let fleet = TestFleet::with_options(&["bj1"], &[(APP, &app), (MANIFESTS, &manifest)], OLDEST.options);
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    scale_as(fleet.cluster("bj1"), "kube-controller-manager", "web", 5).await;
    let newer = manifest.replace("web:1", "web:2");
    let revision = fleet.push(&running, "Release 2", &[(MANIFESTS, Some(&newer))]).await;
    running.until_converged(&revision).await;
    wait_for_repairs().await;
    let web =
        live_objects::get(fleet.cluster("bj1"), "Deployment", "default", "web").await.expect("it is there");
    assert_eq!(web["spec"]["replicas"], 5);
    assert_eq!(web.pointer("/spec/template/spec/containers/0/image"), Some(&json!("web:2")));
}

/// Requests for ConfigMaps at the start, and after the server compacted its watch history.
async fn config_map_requests(options: fn(&str) -> SandboxOptions) -> (Vec<String>, Vec<String>) {
    let map = config_map("default", "one", "first");
    let fleet = TestFleet::with_options(
        &["bj1"],
        &[(APP, &objects_app("default", "web")), (MANIFESTS, &map)],
        options,
    );
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    wait_for_repairs().await;
    let of_maps = || {
        fleet
            .request_counts()
            .into_iter()
            .filter(|it| is_list(it) && it.ends_with(" configmaps"))
            .collect::<Vec<_>>()
    };
    let first = of_maps();
    fleet.clear_requests();
    let bj1 = fleet.cluster("bj1");
    for name in ["two", "three"] {
        live_objects::apply_as(bj1, "somebody", &config_map("default", name, "other")).await;
    }
    bj1.compact();
    bj1.cut_watches();
    wait_for_repairs().await;
    let again = of_maps();
    // The watches continue: a new edit is seen.
    edit_as(bj1, "kubectl-edit", ("ConfigMap", "one"), &json!({"data": {"value": "by hand"}})).await;
    wait_for_repairs().await;
    let one = live_objects::get(bj1, "ConfigMap", "default", "one").await.expect("it is there");
    assert_eq!(one["data"]["value"], "first");
    (first, again)
}

#[tokio::test(start_paused = true)]
async fn streaming_lists_are_tried_once_per_server() {
    // One list with limit 1 shows whether the kind has objects.
    let (first, again) = config_map_requests(|name| release_options(name, 36)).await;
    assert_eq!(
        (first, again),
        (vec!["1 list configmaps".into(), "1 stream configmaps".into()], vec!["1 stream configmaps".into()])
    );
    // Older servers are not asked for streams.
    let (first, again) = config_map_requests(|name| release_options(name, 31)).await;
    assert_eq!((first, again), (vec!["2 list configmaps".into()], vec!["1 list configmaps".into()]));
    // Some servers of 1.33 refuse them.
    let (first, again) =
        config_map_requests(|name| SandboxOptions { streaming_lists: false, ..release_options(name, 33) })
            .await;
    assert_eq!(
        (first, again),
        (vec!["2 list configmaps".into(), "1 stream configmaps".into()], vec!["1 list configmaps".into()])
    );
}
