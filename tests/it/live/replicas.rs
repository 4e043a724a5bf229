//! Several processes on one repository: one leads, and the others take over where it ended. Who wrote when is read from the audit logs
//! of the API servers, by process.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::support::{Scene, Tutti, configmap};
use super::waves::runs;

/// Since the leader was killed.
const TAKE_OVER: Duration = Duration::from_secs(15);
const OBJECTS: usize = 300;

struct Replicas {
    scene: Scene,
    /// For each cluster, as audit logs call us there.
    users: Vec<String>,
    arguments: Vec<String>,
}

impl Replicas {
    /// On the newest and the oldest Kubernetes; the first is the home cluster, too.
    async fn new(name: &'static str) -> Option<Self> {
        let scene = Scene::pair(name).await?;
        let mut users = Vec::new();
        let mut arguments = vec!["--lease".to_owned(), format!("{name}/tutti")];
        for (index, cluster) in scene.clusters().iter().enumerate() {
            let path = scene.folder().join(format!("{index}.yaml"));
            users.push(cluster.account(name, "tutti", &path).await.expect("an account"));
            let path = path.display();
            arguments.extend(["--cluster".to_owned(), format!("{}={path}", cluster.name())]);
            if index == 0 {
                arguments.extend(["--home-kubeconfig".to_owned(), path.to_string()]);
            }
        }
        Some(Self { scene, users, arguments })
    }

    fn start(&self, name: &str) -> Tutti {
        let arguments: Vec<&str> = self.arguments.iter().map(String::as_str).collect();
        self.scene.start_beside(name, &arguments)
    }

    async fn says(&self, process: &Tutti, words: &str) {
        self.scene
            .eventually(&format!("{words:?} of a process"), async || {
                let log = process.log();
                if log.contains(words) { Ok(()) } else { Err(log) }
            })
            .await;
    }

    /// What each process wrote to a cluster, but for its lease: when, oldest first.
    fn writes(&self, cluster: usize, process: &Tutti) -> Vec<String> {
        let agent = format!(" {})", process.id());
        let asked = self.scene.cluster(cluster).asked_by(&self.users[cluster]).expect("an audit log");
        let is_write = |verb: &str| matches!(verb, "create" | "update" | "patch" | "delete");
        let is_ours = |uri: &str| !uri.contains("/leases") && !uri.contains("authorization.k8s.io");
        // The log is about in order.
        let times: BTreeSet<String> = asked
            .into_iter()
            .filter(|it| it.agent.ends_with(&agent) && is_write(&it.verb) && is_ours(&it.uri))
            .filter(|it| !it.uri.contains("dryRun"))
            .map(|it| it.at)
            .collect();
        times.into_iter().collect()
    }

    /// The second wrote only after the first had ended to.
    fn take_turns(&self, first: &Tutti, second: &Tutti) {
        for cluster in 0..2 {
            let (before, after) = (self.writes(cluster, first), self.writes(cluster, second));
            assert!(before.last() < after.first() || after.is_empty(), "{before:?}\n{after:?}");
        }
    }

    async fn lease(&self) -> Value {
        let path = format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases/tutti", self.scene.name());
        self.scene.cluster(0).get(&path).await.expect("a lease")
    }
}

fn objects(value: &str) -> Vec<Value> {
    (0..OBJECTS).map(|number| configmap(&format!("setting-{number}"), "a", value)).collect()
}

/// A canary waits for confirmation; its leader is killed, and then again while it applies.
#[tokio::test]
async fn whoever_stands_by_goes_on_with_the_same_step() {
    let Some(replicas) = Replicas::new("replicas").await else { return };
    let scene = &replicas.scene;
    let app = "apps/web/app.yaml";
    let set =
        |name: &str, version: &str| serde_json::json!({"name": name, "version": version, "replicas": 1});
    let app_set = |version: &str| {
        let sets = [set("web-canary", version), set("web-blue", version)];
        let clusters: Vec<Value> = scene
            .clusters()
            .iter()
            .map(|cluster| serde_json::json!({"name": cluster.name(), "podSets": sets}))
            .collect();
        serde_json::json!({
            "apiVersion": "tutti.dev/v1alpha1", "kind": "AppSet",
            "metadata": {"name": "web", "namespace": scene.name()},
            "spec": {
                "replicas": 4,
                "podSpec": {"template": {"spec": {"containers": [{"name": "web", "image": "shop/web:1"}]}}},
                "updateStrategy": {"upgradeType": "canary|blue", "canaryClusters": [scene.cluster(0).name()],
                    "needWaitingForConfirm": true},
                "clusterTopology": {"clusters": clusters},
            },
        })
        .to_string()
    };
    scene.worktree.write(app, &app_set("v1"));
    scene.write_app("settings", &objects("1"));
    let commit = scene.worktree.publish("first");
    let mut one = replicas.start("one");
    replicas.says(&one, "leads: holds the Lease replicas/tutti").await;
    let mut two = replicas.start("two");
    replicas.says(&two, "stands by: ").await;
    scene.succeeded(&commit).await;
    assert_eq!(runs(scene, 0, "web-canary").await, "v1 x1");

    scene.worktree.write(app, &app_set("v2"));
    scene.write_objects("settings", &objects("2"));
    let commit = scene.worktree.publish("second");
    scene
        .eventually("a first object of the second commit", async || {
            let found = scene.list(scene.cluster(0), "configmaps", "").await;
            if found.iter().any(|map| map["data"]["a"] == "2") { Ok(()) } else { Err(String::new()) }
        })
        .await;
    let killed = Instant::now();
    one.kill();
    replicas.says(&two, "leads: holds the Lease replicas/tutti").await;
    let took = killed.elapsed();
    assert!(took <= TAKE_OVER, "{took:?}");
    super::support::say(&format!("live tests: a standby led {:.1} s after kill -9", took.as_secs_f64()));
    scene.told(&commit, "deploy", "pending", &["confirm"]).await;
    assert_eq!(runs(scene, 0, "web-canary").await, "v2 x1");
    assert_eq!(runs(scene, 0, "web-blue").await, "v1 x1");
    assert_eq!(runs(scene, 1, "web-canary").await, "v1 x1");
    replicas.take_turns(&one, &two);

    // What waited goes on waiting with a third one, and goes on when it is confirmed.
    let mut three = replicas.start("three");
    replicas.says(&three, "stands by: ").await;
    assert_eq!(two.stop(), Some(0));
    replicas.says(&three, "leads: ").await;
    scene.told(&commit, "deploy", "pending", &["confirm"]).await;
    assert_eq!(runs(scene, 0, "web-blue").await, "v1 x1");
    let folder = scene.worktree.folder().display().to_string();
    let kubeconfigs = scene.kubeconfigs();
    let arguments = [
        "approve",
        "rollout",
        "web",
        "--through",
        "canary",
        "--repo",
        &folder,
        "--kubeconfigs",
        &kubeconfigs,
        "--commit",
    ];
    let approved = scene.run(&arguments.map(str::to_owned)).await;
    assert_eq!(approved.code, Some(0), "{}", approved.stderr);
    scene.worktree.push();
    scene
        .eventually("the next wave", async || match runs(scene, 1, "web-canary").await {
            found if found == "v2 x1" => Ok(()),
            found => Err(found),
        })
        .await;
    replicas.take_turns(&two, &three);
    assert!(replicas.writes(0, &two).len() > 1 && !replicas.writes(1, &three).is_empty());
    three.kill();
}

/// A leader that is stopped by its machine, and goes on when another one leads.
#[tokio::test]
async fn leader_that_stood_still_writes_nothing_more() {
    let Some(replicas) = Replicas::new("stood-still").await else { return };
    let scene = &replicas.scene;
    scene.write_app("settings", &objects("1"));
    let commit = scene.worktree.publish("first");
    let mut one = replicas.start("one");
    replicas.says(&one, "leads: ").await;
    let two = replicas.start("two");
    replicas.says(&two, "stands by: ").await;
    scene.succeeded(&commit).await;
    scene.write_objects("settings", &objects("2"));
    scene.worktree.publish("second");
    scene
        .eventually("a first object of the second commit", async || {
            let found = scene.list(scene.cluster(0), "configmaps", "").await;
            if found.iter().any(|map| map["data"]["a"] == "2") { Ok(()) } else { Err(String::new()) }
        })
        .await;
    one.signal("STOP");
    replicas.says(&two, "leads: ").await;
    scene.write_objects("settings", &objects("3"));
    let commit = scene.worktree.publish("third");
    scene.succeeded(&commit).await;
    one.signal("CONT");
    // It finds the lease in other hands, and ends.
    let code = one.end().await;
    assert!(one.log().contains("the lease of the leader was lost to "), "{}", one.log());
    assert_eq!(code, Some(5));
    replicas.take_turns(&one, &two);
    for cluster in scene.clusters() {
        let found = scene.list(cluster, "configmaps", "").await;
        let third = found.iter().filter(|map| map["data"]["a"] == "3").count();
        assert_eq!(third, OBJECTS);
    }
    let lease = replicas.lease().await;
    assert_eq!(lease["spec"]["leaseTransitions"], 2, "{lease}");
}
