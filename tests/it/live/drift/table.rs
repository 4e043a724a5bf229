//! Every line of the drift table on the newest and the oldest Kubernetes, with its requests by the server's audit log.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use live::{AuditedRequest, LiveCluster};
use serde_json::{Value, json};

use super::super::support::{Scene, configmap, deployment, say};
use super::admission::Webhook;
use super::put_back;
use super::rows::{Row, rows};

/// Long enough for all further requests.
const QUIET: Duration = Duration::from_secs(5);

/// One cluster, and tutti's account there.
pub struct Counted {
    pub cluster: &'static LiveCluster,
    user: String,
    /// The value of `--cluster`.
    pub way: String,
}

impl Counted {
    pub async fn new(scene: &Scene, cluster: &'static LiveCluster) -> Self {
        let (name, namespace) = (cluster.name(), scene.name());
        let path = scene.folder().join(format!("{name}.yaml"));
        let user = cluster.create_account(namespace, "tutti", &path).await.expect("an account");
        Self { cluster, user, way: format!("{name}={}#admin", path.display()) }
    }

    /// Whether its lists are streamed.
    pub fn streams(&self) -> bool {
        !self.cluster.version().starts_with("v1.30.")
    }

    /// All its requests; a watch when it has ended.
    pub fn all(&self) -> Vec<AuditedRequest> {
        self.cluster.requests_of(&self.user).expect("an audit log")
    }

    /// After a start: waits until the cluster has been read again and is healthy. `before` is the earlier number of requests.
    pub async fn is_read_again(&self, scene: &Scene, before: usize) {
        let name = self.cluster.name();
        scene
            .eventually(&format!("{name} is read again"), async || {
                let asked = self.asked().split_off(before);
                let log = scene.running(|tutti| tutti.log());
                let is_well = log.lines().any(|line| line.contains(name) && line.contains(" Running "));
                let has_read = asked.iter().any(|it| it.verb == "list");
                (is_well && has_read).then_some(()).ok_or(format!("{asked:?}"))
            })
            .await;
    }

    /// Its requests without those that do not depend on the object: watches, probes, pods of unhealthy
    /// objects, and discovery, which other tests cause.
    pub fn asked(&self) -> Vec<AuditedRequest> {
        let is_counted = |it: &AuditedRequest| {
            it.verb != "watch" && it.resource != "pods" && !it.resource.starts_with('/')
        };
        self.all().into_iter().filter(is_counted).collect()
    }
}

/// The fields that Git sets, with what the server made of them.
fn said(object: &Value) -> Value {
    let annotations = object["metadata"]["annotations"].as_object().into_iter().flatten();
    let annotations: Vec<_> = annotations.filter(|(name, _)| name.starts_with("tutti.dev/")).collect();
    json!([object["data"], object["spec"], object["metadata"]["labels"], annotations])
}

pub fn is_about(asked: &AuditedRequest, kind: &str, name: &str) -> bool {
    let path = asked.uri.split('?').next().unwrap_or_default();
    path.ends_with(&format!("/{kind}/{name}"))
}

/// `patch configmaps`; with the status of failures, but without reads of absent objects.
pub fn named(asked: &[AuditedRequest]) -> Vec<String> {
    let name = |it: &AuditedRequest| match it.status {
        200..300 | 404 => format!("{} {}", it.verb, it.resource),
        status => format!("{} {} {status}", it.verb, it.resource),
    };
    asked.iter().map(name).collect()
}

/// Suspends or resumes the process and its children.
fn signal(scene: &Scene, signal: &str) {
    let id = scene.running(|tutti| tutti.id()).to_string();
    assert!(Command::new("kill").args([signal, &id]).status().expect("kill starts").success());
}

async fn edit(scene: &Scene, row: &Row, cluster: &LiveCluster) {
    for edit in &row.edits {
        let (arguments, input) = edit.of(row, scene.name());
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let done = cluster.kubectl_with_input(&arguments, &input).await;
        done.unwrap_or_else(|error| panic!("{} on {}: {error}", row.name, cluster.name()));
    }
}

#[tokio::test]
async fn every_row_is_put_back_within_its_requests() {
    let Some(scene) = Scene::new("drift-table", 4).await else { return };
    let rows = rows();
    let clusters =
        [Counted::new(&scene, scene.cluster(0)).await, Counted::new(&scene, scene.cluster(3)).await];
    let webhook = Webhook::start().await;
    for counted in &clusters {
        webhook.register(counted.cluster, scene.name()).await;
    }
    for row in &rows {
        scene.write_app(row.name, &[row.object()]);
    }
    let commit = scene.worktree.publish("first");
    scene.start(&["--cluster", &clusters[0].way, "--cluster", &clusters[1].way]).await;
    scene.succeeded(&commit).await;
    tokio::time::sleep(QUIET).await;

    let mut before = BTreeMap::new();
    let mut asked_before = Vec::new();
    for counted in &clusters {
        asked_before.push(counted.asked().len());
        for row in &rows {
            let object = scene.object(counted.cluster, row.kind, row.name).await.expect("an object");
            before.insert((counted.cluster.name(), row.name), object);
        }
    }
    for row in &rows {
        if row.at_once {
            signal(&scene, "-STOP");
        }
        for counted in &clusters {
            edit(&scene, row, counted.cluster).await;
        }
        signal(&scene, "-CONT");
    }
    for counted in &clusters {
        for row in rows.iter().filter(|row| !row.asks.is_empty()) {
            let before = &before[&(counted.cluster.name(), row.name)];
            let what = format!("{} on {} is put back", row.name, counted.cluster.name());
            let get = async || scene.object(counted.cluster, row.kind, row.name).await;
            put_back(&scene, &what, before, said, get).await;
        }
    }
    tokio::time::sleep(QUIET).await;

    let mut wrong = Vec::new();
    for (counted, before) in clusters.iter().zip(asked_before) {
        let version = counted.cluster.version();
        let mut asked = counted.asked().split_off(before);
        for row in &rows {
            let (about, others) = asked.into_iter().partition(|it| is_about(it, row.kind, row.name));
            asked = others;
            let about = named(&about);
            if about != row.asks {
                wrong.push(format!("{} on {version}: {about:?}, not {:?}", row.name, row.asks));
            }
        }
        wrong.extend(asked.iter().map(|it| format!("of no row on {version}: {it:?}")));
        say(&format!("drift table on Kubernetes {version}: {} rows", rows.len()));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for counted in &clusters {
        let scaled = scene.object(counted.cluster, "deployments", "scaled-by-autoscaler").await.expect("it");
        assert_eq!(scaled["spec"]["replicas"], 3, "an autoscaler's number is left");
    }
}

#[tokio::test]
async fn reported_or_ignored_drift_stays_without_requests() {
    let Some(scene) = Scene::pair("drift-stays").await else { return };
    let clusters =
        [Counted::new(&scene, scene.cluster(0)).await, Counted::new(&scene, scene.cluster(1)).await];
    let apps = ["report", "ignore"];
    for app in apps {
        scene.write_spec(app, &[&format!("drift: {app}")]);
        scene.write_objects(app, &[configmap(app, "level", "info"), deployment(app, "shop/web:1.0", 1)]);
    }
    let commit = scene.worktree.publish("first");
    scene.start(&["--cluster", &clusters[0].way, "--cluster", &clusters[1].way]).await;
    scene.succeeded(&commit).await;
    tokio::time::sleep(QUIET).await;
    let before: Vec<usize> = clusters.iter().map(|counted| counted.asked().len()).collect();
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
    scene.says_of_each(&["drift-stays/report", "OutOfSync", "only reports drift"]).await;
    let log = scene.running(|tutti| tutti.log());
    let is_told = |line: &str| line.contains("drift-stays/ignore") && line.contains("OutOfSync");
    assert!(!log.lines().any(is_told), "{log}");
    tokio::time::sleep(QUIET).await;
    for (counted, before) in clusters.iter().zip(before) {
        let asked = named(&counted.asked().split_off(before));
        assert_eq!(asked, Vec::<String>::new(), "{}", counted.cluster.version());
        for app in apps {
            let map = scene.object(counted.cluster, "configmaps", app).await.expect("an object");
            assert_eq!(map["data"]["level"], "debug", "{app}");
            scene.ready(counted.cluster, app, "shop/web:9", 1).await;
        }
    }
}

#[tokio::test]
async fn a_foreign_field_is_refused_after_one_request() {
    let Some(scene) = Scene::new("drift-refused", 4).await else { return };
    let clusters =
        [Counted::new(&scene, scene.cluster(0)).await, Counted::new(&scene, scene.cluster(3)).await];
    scene.write_app("web", &[configmap("web", "level", "info")]);
    let commit = scene.worktree.publish("first");
    scene.start(&["--cluster", &clusters[0].way, "--cluster", &clusters[1].way]).await;
    scene.succeeded(&commit).await;
    let theirs = configmap("web", "verbose", "yes").to_string();
    let apply = ["apply", "--server-side", "--field-manager=somebody", "-n", scene.name(), "-f", "-"];
    for counted in &clusters {
        counted.cluster.kubectl_with_input(&apply, &theirs).await.expect("an apply");
    }
    // If only metadata is watched, one apply shows that the field is not ours.
    tokio::time::sleep(QUIET).await;
    let before: Vec<usize> = clusters.iter().map(|counted| counted.asked().len()).collect();
    scene.write_objects("web", &[configmap("web", "verbose", "no")]);
    let commit = scene.worktree.publish("a field of somebody else");
    for context in scene.contexts() {
        scene.told(&commit, context, "failure", &["web", "conflict", "somebody", ".data.verbose"]).await;
    }
    for (counted, before) in clusters.iter().zip(before) {
        let asked = named(&counted.asked().split_off(before));
        assert_eq!(asked, ["patch configmaps 409"], "{}", counted.cluster.version());
    }
}
