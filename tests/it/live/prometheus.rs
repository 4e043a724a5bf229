//! A real Prometheus scrapes a running tutti: it accepts the metrics, each query of the dashboard has an answer, and the alert rules
//! are evaluated.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::hooks::{deliver_hook, hook_signature, http_client};
use super::support::{HOOK_SECRET, LiveFixture, configmap, print_uncaptured};
use crate::support::monitoring::{groups, queries};

/// For all queries of the dashboard together.
const QUERY_TIMEOUT: Duration = Duration::from_secs(90);

/// As in the ServiceMonitor, whose targets are the pods of the Service `tutti`.
const NAMESPACE: &str = "tutti-system";
const JOB: &str = "tutti";

pub fn is_available() -> bool {
    if Command::new("prometheus").arg("--version").output().is_ok_and(|output| output.status.success()) {
        return true;
    }
    let why = "##### THE LIVE TEST OF PROMETHEUS DID NOT RUN: there is no prometheus (Debian: apt-get install prometheus) #####";
    assert_ne!(env::var("TUTTI_LIVE").as_deref(), Ok("1"), "{why}");
    print_uncaptured(why);
    false
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Killed when dropped, and by the kernel when the test process dies.
pub struct Prometheus {
    child: Child,
    pub address: String,
    log: PathBuf,
    client: reqwest::Client,
}

impl Prometheus {
    /// Scrapes `target` each second.
    pub fn start(folder: &Path, target: &str) -> Self {
        let [config, rules, data, log] =
            ["prometheus.yaml", "rules.yaml", "prometheus", "prometheus.log"].map(|name| folder.join(name));
        let labels = json!({"namespace": NAMESPACE, "pod": "tutti-0"});
        // JSON is YAML too.
        let text = json!({
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [rules],
            "scrape_configs": [{"job_name": JOB, "static_configs": [{"targets": [target], "labels": labels}]}],
        });
        fs::write(&config, text.to_string()).expect("a file");
        fs::write(&rules, groups(root()).to_string()).expect("a file");
        let address = format!("127.0.0.1:{}", live::free_port().expect("a port"));
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--", "prometheus"])
            .arg(format!("--config.file={}", config.display()))
            .arg(format!("--storage.tsdb.path={}", data.display()))
            .arg(format!("--web.listen-address={address}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log).expect("a log file"))
            .spawn()
            .expect("setpriv and prometheus start");
        Self { child, address, log, client: http_client() }
    }

    /// `data` of an answer of its API.
    async fn get(&self, path: &str, parameters: &[(&str, &str)]) -> Result<Value, String> {
        let address = format!("http://{}/api/v1/{path}", self.address);
        let url = reqwest::Url::parse_with_params(&address, parameters).expect("an address");
        let because =
            |error: reqwest::Error| format!("{error}\n{}", fs::read_to_string(&self.log).unwrap_or_default());
        let answer = self.client.get(url).send().await.map_err(because)?;
        let answer: Value = answer.json().await.map_err(because)?;
        if answer["status"] == "success" { Ok(answer["data"].clone()) } else { Err(answer.to_string()) }
    }

    /// The numeric values of all series of a query now.
    pub async fn values(&self, query: &str) -> Result<Vec<String>, String> {
        let data = self.get("query", &[("query", query)]).await?;
        let series = data["result"].as_array().into_iter().flatten();
        let values = series.filter_map(|it| it["value"][1].as_str()).filter(|value| *value != "NaN");
        Ok(values.map(str::to_owned).collect())
    }

    pub async fn until_value(&self, scene: &LiveFixture, query: &str, expected: &str) {
        scene
            .eventually(&format!("{query} is {expected}"), async || {
                let found = self.values(query).await?;
                if found == [expected] { Ok(()) } else { Err(format!("{found:?}")) }
            })
            .await;
    }

    /// Repeats the queries until each has had a numeric series once. Returns the others with their last answer.
    async fn unanswered(&self, mut queries: Vec<String>) -> BTreeMap<String, String> {
        let begin = Instant::now();
        loop {
            let mut left = BTreeMap::new();
            for query in queries {
                match self.values(&query).await {
                    Ok(values) if !values.is_empty() => {}
                    found => {
                        left.insert(query, format!("{found:?}"));
                    }
                }
            }
            if left.is_empty() || begin.elapsed() > QUERY_TIMEOUT {
                return left;
            }
            queries = left.into_keys().collect();
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }

    /// The alert rules with `health` and `state`.
    async fn rules(&self) -> Result<Vec<Value>, String> {
        let data = self.get("rules", &[("type", "alert")]).await?;
        let groups = data["groups"].as_array().into_iter().flatten();
        Ok(groups.filter_map(|group| group["rules"].as_array()).flatten().cloned().collect())
    }

    async fn firing(&self) -> Result<BTreeSet<String>, String> {
        let rules = self.rules().await?;
        Ok(rule_names(rules.iter().filter(|rule| rule["state"] == "firing"), "name"))
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn rule_names<'a>(rules: impl IntoIterator<Item = &'a Value>, key: &str) -> BTreeSet<String> {
    rules.into_iter().map(|rule| rule[key].as_str().expect("a name").to_owned()).collect()
}

/// One app in waves: a canary, then the rest.
fn app_set(scene: &LiveFixture, version: &str) -> String {
    let sets =
        ["web-canary", "web-blue"].map(|name| json!({"name": name, "version": version, "replicas": 1}));
    let clusters: Vec<Value> =
        scene.clusters().iter().map(|cluster| json!({"name": cluster.name(), "podSets": sets})).collect();
    json!({
        "apiVersion": "tutti.dev/v1alpha1", "kind": "AppSet",
        "metadata": {"name": "web", "namespace": scene.name()},
        "spec": {
            "replicas": 4,
            "podSpec": {"template": {"spec": {"containers": [{"name": "web", "image": "shop/web:1"}]}}},
            "updateStrategy": {"upgradeType": "canary|blue", "canaryClusters": [scene.cluster(0).name()]},
            "clusterTopology": {"clusters": clusters},
        },
    })
    .to_string()
}

/// Edits a field whose drift is only reported.
async fn edit_reported_object(scene: &LiveFixture) {
    let patch = r#"{"data":{"a":"2"}}"#;
    let arguments = ["patch", "configmap", "settings", "-n", scene.name(), "--type", "merge", "-p", patch];
    scene.cluster(0).kubectl(&arguments).await.expect("an edit");
}

async fn deliver_with_a_wrong_signature(scene: &LiveFixture) {
    let body = b"{}";
    let signature = hook_signature(body, "another secret");
    assert_eq!(deliver_hook(&scene.hook_url(), Some(&signature), body).await, 401);
}

#[tokio::test]
async fn prometheus_answers_the_dashboard_and_evaluates_the_alerts() {
    if !is_available() {
        return;
    }
    let Some(scene) = LiveFixture::new("prometheus", 2).await else { return };
    scene.worktree.write("apps/web/app.yaml", &app_set(&scene, "v1"));
    scene.write_spec("settings", &["drift: report"]);
    scene.write_objects("settings", &[configmap("settings", "a", "1")]);
    let first = scene.worktree.publish("first");
    scene.start(&[]).await;
    scene.gitea().create_hook(scene.name(), &scene.hook_url(), HOOK_SECRET, &["push"]).await.expect("a hook");
    let target = scene.running(|tutti| tutti.address("status")).expect("an address");
    let prometheus = Prometheus::start(&scene.folder(), &target);
    prometheus.until_value(&scene, "up", "1").await;
    scene.until_succeeded(&first).await;

    // Everything that a panel shows: a rollout, deliveries, drift, and a cluster that does not answer.
    scene.worktree.write("apps/web/app.yaml", &app_set(&scene, "v2"));
    let second = scene.worktree.publish("web v2");
    scene.until_succeeded(&second).await;
    deliver_with_a_wrong_signature(&scene).await;
    edit_reported_object(&scene).await;
    scene.write_cluster("nowhere", "test", "nowhere.yaml");
    scene.worktree.publish("a cluster that nobody has");
    let unanswered = prometheus.unanswered(queries(root())).await;
    assert!(unanswered.is_empty(), "within {QUERY_TIMEOUT:?} these had no series: {unanswered:#?}");
    let namespaces = prometheus.get("label/namespace/values", &[("match[]", "tutti_leader")]).await;
    assert_eq!(namespaces, Ok(json!([NAMESPACE])), "the choice of the dashboard");
    for (query, expected) in [
        ("tutti_drift_objects", "1"),
        ("count(tutti_cluster_up == 0)", "1"),
        ("tutti_rollouts{phase=\"Done\"}", "1"),
        ("count(tutti_webhook_deliveries_total{verdict=~\"accepted|unauthorized\"} > 0)", "2"),
        ("tutti_commit_to_converged_seconds_count >= bool 1", "1"),
    ] {
        prometheus.until_value(&scene, query, expected).await;
    }

    // Everything is restored, as in the runbooks.
    scene.write_spec("settings", &["drift: repair"]);
    scene.worktree.remove("clusters/nowhere.yaml");
    let last = scene.worktree.publish("without it");
    scene.until_succeeded(&last).await;
    prometheus.until_value(&scene, "tutti_drift_objects", "0").await;
    prometheus.until_value(&scene, "sum(tutti_cluster_up) == count(tutti_cluster_up)", "2").await;
    let groups = groups(root());
    let written = groups["groups"].as_array().expect("groups").iter();
    let written = rule_names(written.flat_map(|group| group["rules"].as_array().expect("rules")), "alert");
    scene
        .eventually("each rule is evaluated", async || {
            let rules = prometheus.rules().await?;
            assert_eq!(rule_names(&rules, "name"), written);
            if rules.iter().all(|rule| rule["health"] == "ok") { Ok(()) } else { Err(format!("{rules:#?}")) }
        })
        .await;
    assert_eq!(prometheus.firing().await, Ok(BTreeSet::new()));

    // One alert fires when its condition holds.
    for _ in 0..12 {
        deliver_with_a_wrong_signature(&scene).await;
    }
    scene
        .eventually("an alert fires", async || {
            let found = prometheus.firing().await?;
            let expected = BTreeSet::from(["TuttiWebhookSignatures".to_owned()]);
            if found == expected { Ok(()) } else { Err(format!("{found:?}")) }
        })
        .await;
}
