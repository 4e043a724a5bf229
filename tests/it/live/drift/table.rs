//! Every line of the drift table on the newest and the oldest Kubernetes, with its requests by the server's audit log.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use live::{AuditedRequest, LiveCluster};
use serde_json::{Value, json};

use super::super::support::{LiveFixture, configmap, deployment, print_uncaptured};
use super::mutating_webhook::MutatingWebhook;
use super::rows::{DriftRow, rows};
use super::until_restored;

/// Long enough for all further requests.
const QUIET_TIME: Duration = Duration::from_secs(5);

/// One cluster, and tutti's account there.
pub struct AuditedCluster {
    pub cluster: &'static LiveCluster,
    user: String,
    /// The value of `--cluster`.
    pub cluster_option: String,
}

impl AuditedCluster {
    pub async fn new(scene: &LiveFixture, cluster: &'static LiveCluster) -> Self {
        let (name, namespace) = (cluster.name(), scene.name());
        let path = scene.folder().join(format!("{name}.yaml"));
        let user = cluster.create_account(namespace, "tutti", &path).await.expect("an account");
        Self { cluster, user, cluster_option: format!("{name}={}#admin", path.display()) }
    }

    /// Whether its lists are streamed.
    pub fn has_streamed_lists(&self) -> bool {
        !self.cluster.version().starts_with("v1.30.")
    }

    /// All its requests; a watch when it has ended.
    pub fn all_requests(&self) -> Vec<AuditedRequest> {
        self.cluster.requests_of(&self.user).expect("an audit log")
    }

    /// After a start: waits until the cluster has been read again and is healthy. `before` is the earlier number of requests.
    pub async fn until_read_again(&self, scene: &LiveFixture, before: usize) {
        let name = self.cluster.name();
        scene
            .eventually(&format!("{name} is read again"), async || {
                let asked = self.counted_requests().split_off(before);
                let log = scene.running(|tutti| tutti.log());
                let is_well = log.lines().any(|line| line.contains(name) && line.contains(" Running "));
                let has_read = asked.iter().any(|it| it.verb == "list");
                (is_well && has_read).then_some(()).ok_or(format!("{asked:?}"))
            })
            .await;
    }

    /// Its requests without those that do not depend on the object: watches, probes, pods of unhealthy
    /// objects, and discovery, which other tests cause.
    pub fn counted_requests(&self) -> Vec<AuditedRequest> {
        let is_counted = |it: &AuditedRequest| {
            it.verb != "watch" && it.resource != "pods" && !it.resource.starts_with('/')
        };
        self.all_requests().into_iter().filter(is_counted).collect()
    }
}

/// The fields that Git sets, with what the server made of them.
fn spec_and_metadata(object: &Value) -> Value {
    let annotations = object["metadata"]["annotations"].as_object().into_iter().flatten();
    let annotations: Vec<_> = annotations.filter(|(name, _)| name.starts_with("tutti.dev/")).collect();
    json!([object["data"], object["spec"], object["metadata"]["labels"], annotations])
}

pub fn is_about(asked: &AuditedRequest, kind: &str, name: &str) -> bool {
    let path = asked.uri.split('?').next().unwrap_or_default();
    path.ends_with(&format!("/{kind}/{name}"))
}

/// `patch configmaps`; with the status of failures, but without reads of absent objects.
pub fn request_names(asked: &[AuditedRequest]) -> Vec<String> {
    let name = |it: &AuditedRequest| match it.status {
        200..300 | 404 => format!("{} {}", it.verb, it.resource),
        status => format!("{} {} {status}", it.verb, it.resource),
    };
    asked.iter().map(name).collect()
}

/// Suspends or resumes the process and its children.
fn signal_processes(scene: &LiveFixture, signal: &str) {
    let id = scene.running(|tutti| tutti.id()).to_string();
    assert!(Command::new("kill").args([signal, &id]).status().expect("kill starts").success());
}

async fn edit(scene: &LiveFixture, row: &DriftRow, cluster: &LiveCluster) {
    for edit in &row.edits {
        let (arguments, input) = edit.for_row(row, scene.name());
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let done = cluster.kubectl_with_input(&arguments, &input).await;
        done.unwrap_or_else(|error| panic!("{} on {}: {error}", row.name, cluster.name()));
    }
}

#[tokio::test]
async fn every_row_is_put_back_within_its_requests() {
    let Some(scene) = LiveFixture::new("drift-table", 4).await else { return };
    let rows = rows();
    let clusters = [
        AuditedCluster::new(&scene, scene.cluster(0)).await,
        AuditedCluster::new(&scene, scene.cluster(3)).await,
    ];
    let webhook = MutatingWebhook::start().await;
    for counted in &clusters {
        webhook.register(counted.cluster, scene.name()).await;
    }
    for row in &rows {
        scene.write_app(row.name, &[row.object()]);
    }
    let commit = scene.worktree.publish("first");
    scene.start(&["--cluster", &clusters[0].cluster_option, "--cluster", &clusters[1].cluster_option]).await;
    scene.until_succeeded(&commit).await;
    tokio::time::sleep(QUIET_TIME).await;

    let mut before = BTreeMap::new();
    let mut asked_before = Vec::new();
    for counted in &clusters {
        asked_before.push(counted.counted_requests().len());
        for row in &rows {
            let object = scene.object(counted.cluster, row.kind, row.name).await.expect("an object");
            before.insert((counted.cluster.name(), row.name), object);
        }
    }
    for row in &rows {
        if row.before_tutti_reads {
            signal_processes(&scene, "-STOP");
        }
        for counted in &clusters {
            edit(&scene, row, counted.cluster).await;
        }
        signal_processes(&scene, "-CONT");
    }
    for counted in &clusters {
        for row in rows.iter().filter(|row| !row.expected_requests.is_empty()) {
            let before = &before[&(counted.cluster.name(), row.name)];
            let what = format!("{} on {} is put back", row.name, counted.cluster.name());
            let get = async || scene.object(counted.cluster, row.kind, row.name).await;
            until_restored(&scene, &what, before, spec_and_metadata, get).await;
        }
    }
    tokio::time::sleep(QUIET_TIME).await;

    let mut wrong = Vec::new();
    for (counted, before) in clusters.iter().zip(asked_before) {
        let version = counted.cluster.version();
        let mut asked = counted.counted_requests().split_off(before);
        for row in &rows {
            let (about, others) = asked.into_iter().partition(|it| is_about(it, row.kind, row.name));
            asked = others;
            let about = request_names(&about);
            if about != row.expected_requests {
                wrong.push(format!("{} on {version}: {about:?}, not {:?}", row.name, row.expected_requests));
            }
        }
        wrong.extend(asked.iter().map(|it| format!("of no row on {version}: {it:?}")));
        print_uncaptured(&format!("drift table on Kubernetes {version}: {} rows", rows.len()));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for counted in &clusters {
        let scaled = scene.object(counted.cluster, "deployments", "scaled-by-autoscaler").await.expect("it");
        assert_eq!(scaled["spec"]["replicas"], 3, "an autoscaler's number is left");
    }
}

#[tokio::test]
async fn reported_or_ignored_drift_stays_without_requests() {
    let Some(scene) = LiveFixture::with_newest_and_oldest("drift-stays").await else { return };
    let clusters = [
        AuditedCluster::new(&scene, scene.cluster(0)).await,
        AuditedCluster::new(&scene, scene.cluster(1)).await,
    ];
    let apps = ["report", "ignore"];
    for app in apps {
        scene.write_spec(app, &[&format!("drift: {app}")]);
        scene.write_objects(app, &[configmap(app, "level", "info"), deployment(app, "shop/web:1.0", 1)]);
    }
    let commit = scene.worktree.publish("first");
    scene.start(&["--cluster", &clusters[0].cluster_option, "--cluster", &clusters[1].cluster_option]).await;
    scene.until_succeeded(&commit).await;
    tokio::time::sleep(QUIET_TIME).await;
    let before: Vec<usize> = clusters.iter().map(|counted| counted.counted_requests().len()).collect();
    let image =
        json!({"spec": {"template": {"spec": {"containers": [{"name": "app", "image": "shop/web:9"}]}}}});
    let edits =
        [("configmaps", r#"{"data": {"level": "debug"}}"#.to_owned()), ("deployments", image.to_string())];
    for (counted, app) in clusters.iter().flat_map(|counted| apps.map(|app| (counted, app))) {
        for (kind, patch) in &edits {
            let arguments = ["patch", kind, app, "--patch", patch, "-n", scene.name()];
            counted.cluster.kubectl(&arguments).await.expect("an edit");
        }
    }
    scene.until_logged_for_each(&["drift-stays/report", "OutOfSync", "only reports drift"]).await;
    let log = scene.running(|tutti| tutti.log());
    let is_told = |line: &str| line.contains("drift-stays/ignore") && line.contains("OutOfSync");
    assert!(!log.lines().any(is_told), "{log}");
    tokio::time::sleep(QUIET_TIME).await;
    for (counted, before) in clusters.iter().zip(before) {
        let asked = request_names(&counted.counted_requests().split_off(before));
        assert_eq!(asked, Vec::<String>::new(), "{}", counted.cluster.version());
        for app in apps {
            let map = scene.object(counted.cluster, "configmaps", app).await.expect("an object");
            assert_eq!(map["data"]["level"], "debug", "{app}");
            scene.until_ready(counted.cluster, app, "shop/web:9", 1).await;
        }
    }
}

#[tokio::test]
async fn a_foreign_field_is_refused_after_one_request() {
    let Some(scene) = LiveFixture::new("drift-refused", 4).await else { return };
    let clusters = [
        AuditedCluster::new(&scene, scene.cluster(0)).await,
        AuditedCluster::new(&scene, scene.cluster(3)).await,
    ];
    scene.write_app("web", &[configmap("web", "level", "info")]);
    let commit = scene.worktree.publish("first");
    scene.start(&["--cluster", &clusters[0].cluster_option, "--cluster", &clusters[1].cluster_option]).await;
    scene.until_succeeded(&commit).await;
    let theirs = configmap("web", "verbose", "yes").to_string();
    let apply = ["apply", "--server-side", "--field-manager=somebody", "-n", scene.name(), "-f", "-"];
    for counted in &clusters {
        counted.cluster.kubectl_with_input(&apply, &theirs).await.expect("an apply");
    }
    // If only metadata is watched, one apply shows that the field is not ours.
    tokio::time::sleep(QUIET_TIME).await;
    let before: Vec<usize> = clusters.iter().map(|counted| counted.counted_requests().len()).collect();
    scene.write_objects("web", &[configmap("web", "verbose", "no")]);
    let commit = scene.worktree.publish("a field of somebody else");
    for context in scene.contexts() {
        scene
            .until_status(&commit, context, "failure", &["web", "conflict", "somebody", ".data.verbose"])
            .await;
    }
    for (counted, before) in clusters.iter().zip(before) {
        let asked = request_names(&counted.counted_requests().split_off(before));
        assert_eq!(asked, ["patch configmaps 409"], "{}", counted.cluster.version());
    }
}
