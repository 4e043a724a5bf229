//! Several processes on one repository: one leads, and another takes over. The writes of each process are read from the audit logs
//! of the API servers.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use live::AuditedRequest;
use serde_json::{Value, json};

use super::hooks::http_client;
use super::support::{BINARY, LiveFixture, TuttiProcess, configmap, print_uncaptured};
use super::waves::{APP, version_and_replicas};

/// The longest time without a leader, after a kill or a release of the Lease.
const MAX_TAKEOVER: Duration = Duration::from_secs(15);
const OBJECTS: usize = 300;
/// The running versions while the first wave is done and the next one waits, as in [`ReplicasFixture::running_versions`].
const CANARY: [&str; 4] = ["v2 x1", "v1 x1", "v1 x1", "v1 x1"];
const BOTH_CANARIES: [&str; 4] = ["v2 x1", "v2 x1", "v1 x1", "v1 x1"];

struct ReplicasFixture {
    scene: LiveFixture,
    /// Our user names in the audit logs, by cluster.
    users: Vec<String>,
    arguments: Vec<String>,
}

impl ReplicasFixture {
    /// On the newest and the oldest Kubernetes; the first is also the home cluster.
    async fn new(name: &'static str) -> Option<Self> {
        let scene = LiveFixture::with_newest_and_oldest(name).await?;
        let mut users = Vec::new();
        let mut arguments = vec!["--lease".to_owned(), format!("{name}/tutti")];
        for (index, cluster) in scene.clusters().iter().enumerate() {
            let path = scene.folder().join(format!("{index}.yaml"));
            users.push(cluster.create_account(name, "tutti", &path).await.expect("an account"));
            let path = path.display();
            arguments.extend(["--cluster".to_owned(), format!("{}={path}", cluster.name())]);
            if index == 0 {
                arguments.extend(["--home-kubeconfig".to_owned(), path.to_string()]);
            }
        }
        Some(Self { scene, users, arguments })
    }

    fn start(&self, name: &str) -> TuttiProcess {
        self.start_build(Path::new(BINARY), name)
    }

    fn start_build(&self, build: &Path, name: &str) -> TuttiProcess {
        let arguments: Vec<&str> = self.arguments.iter().map(String::as_str).collect();
        self.scene.start_beside(build, name, &arguments)
    }

    /// A process that a Deployment counts as available.
    async fn start_ready(&self, build: &Path, name: &str) -> TuttiProcess {
        let process = self.start_build(build, name);
        let client = http_client();
        self.scene
            .eventually(&format!("{name} is ready"), async || {
                let address = process.address("status").ok_or_else(|| process.log())?;
                let answer = client.get(format!("http://{address}/ready")).send().await;
                let status = answer.map_err(|error| error.to_string())?.status();
                if status.is_success() { Ok(()) } else { Err(status.to_string()) }
            })
            .await;
        process
    }

    async fn until_logged(&self, process: &TuttiProcess, words: &str) {
        self.scene
            .eventually(&format!("{words:?} of a process"), async || {
                let log = process.log();
                if log.contains(words) { Ok(()) } else { Err(log) }
            })
            .await;
    }

    /// The write requests of a process to a cluster.
    fn write_requests(&self, cluster: usize, process: &TuttiProcess) -> Vec<AuditedRequest> {
        let agent = format!(" {})", process.id());
        let asked = self.scene.cluster(cluster).requests_of(&self.users[cluster]).expect("an audit log");
        let is_write = |verb: &str| matches!(verb, "create" | "update" | "patch" | "delete");
        let mut asked: Vec<AuditedRequest> = asked
            .into_iter()
            .filter(|it| it.user_agent.ends_with(&agent) && is_write(&it.verb))
            .filter(|it| !it.uri.contains("authorization.k8s.io") && !it.uri.contains("dryRun"))
            .collect();
        // The log is only roughly ordered.
        asked.sort_by(|a, b| a.time.cmp(&b.time));
        asked
    }

    /// Its writes except those of the Lease, oldest first.
    fn writes(&self, cluster: usize, process: &TuttiProcess) -> Vec<AuditedRequest> {
        let mut asked = self.write_requests(cluster, process);
        asked.retain(|it| !it.uri.contains("/leases"));
        asked
    }

    /// Each process wrote only after the writes of the earlier ones.
    fn assert_writes_do_not_overlap(&self, processes: &[&TuttiProcess]) {
        for cluster in 0..2 {
            let mut last = None;
            for process in processes {
                let writes = self.writes(cluster, process);
                let (first, end) =
                    (writes.first().map(|it| it.time.clone()), writes.last().map(|it| it.time.clone()));
                assert!(first.is_none() || last < first, "{last:?}\n{writes:?}");
                last = end.or(last);
            }
        }
    }

    /// The first and last write of the Lease by a process, if it led.
    fn leadership_term(&self, process: &TuttiProcess) -> Option<(Timestamp, Timestamp)> {
        let mut asked = self.write_requests(0, process);
        asked.retain(|it| it.uri.contains("/leases") && it.status < 300);
        let time = |it: &AuditedRequest| it.time.parse::<Timestamp>().expect("a time");
        Some((time(asked.first()?), time(asked.last()?)))
    }

    /// The processes that led, in order; the time between two was at most [`MAX_TAKEOVER`]. The others wrote nothing.
    fn leaders<'a>(&self, processes: &[&'a TuttiProcess]) -> Vec<&'a TuttiProcess> {
        let mut leaders = Vec::new();
        for process in processes {
            match self.leadership_term(process) {
                Some(term) => leaders.push((term, *process)),
                None => assert!((0..2).all(|cluster| self.writes(cluster, process).is_empty())),
            }
        }
        leaders.sort_by_key(|(term, _)| *term);
        let gaps: Vec<Duration> = leaders
            .windows(2)
            .map(|pair| {
                let gap = pair[1].0.0.duration_since(pair[0].0.1);
                gap.try_into().unwrap_or_else(|_| panic!("two led at once: {gap}"))
            })
            .collect();
        let seconds: Vec<String> = gaps.iter().map(|gap| format!("{:.1}", gap.as_secs_f64())).collect();
        print_uncaptured(&format!(
            "live tests: {} led, with {} s without a leader",
            leaders.len(),
            seconds.join(", ")
        ));
        assert!(gaps.iter().all(|gap| *gap <= MAX_TAKEOVER), "{gaps:?}");
        leaders.into_iter().map(|(_, process)| process).collect()
    }

    /// The number of writes of each object on a cluster, by its path in the namespace.
    fn write_counts(&self, cluster: usize, processes: &[&TuttiProcess]) -> BTreeMap<String, usize> {
        let namespace = format!("/namespaces/{}/", self.scene.name());
        let mut counts = BTreeMap::new();
        for write in processes.iter().flat_map(|process| self.writes(cluster, process)) {
            let path = write.uri.split('?').next().unwrap_or_default();
            let (_, path) = path.split_once(&namespace).expect("an object of the namespace");
            *counts.entry(path.to_owned()).or_default() += 1;
        }
        counts
    }

    async fn lease(&self) -> Value {
        let path = format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases/tutti", self.scene.name());
        self.scene.cluster(0).get(&path).await.expect("a lease")
    }

    /// On two clusters; a person confirms each wave. The canary of the first cluster comes first.
    fn write_app_set(&self, version: &str) {
        let scene = &self.scene;
        let set = |name: &str| json!({"name": name, "version": version, "replicas": 1});
        let sets = [set("web-canary"), set("web-blue")];
        let clusters: Vec<Value> =
            scene.clusters().iter().map(|cluster| json!({"name": cluster.name(), "podSets": sets})).collect();
        let app_set = json!({
            "apiVersion": "tutti.dev/v1alpha1", "kind": "AppSet",
            "metadata": {"name": "web", "namespace": scene.name()},
            "spec": {
                "replicas": 4,
                "podSpec": {"template": {"spec": {"containers": [{"name": "web", "image": "shop/web:1"}]}}},
                "updateStrategy": {"upgradeType": "canary|blue", "canaryClusters": [scene.cluster(0).name()],
                    "needWaitingForConfirm": true},
                "clusterTopology": {"clusters": clusters},
            },
        });
        scene.worktree.write(APP, &app_set.to_string());
    }

    /// Confirms the canary of the second cluster.
    async fn confirm(&self) {
        let scene = &self.scene;
        let (folder, kubeconfigs) = (scene.worktree.folder().display().to_string(), scene.kubeconfigs());
        let approve = ["approve", "rollout", "web", "--through", "canary", "--commit"];
        let places = ["--repo", &folder, "--kubeconfigs", &kubeconfigs];
        let approved = scene
            .run(&[&approve[..], &places].concat().iter().map(|&it| it.to_owned()).collect::<Vec<_>>())
            .await;
        assert_eq!(approved.code, Some(0), "{}", approved.stderr);
        scene.worktree.push();
    }

    async fn until_first_value(&self, value: &str) {
        self.scene
            .eventually("a first object of the commit", async || {
                let found = self.scene.list(self.scene.cluster(0), "configmaps", "").await;
                if found.iter().any(|map| map["data"]["a"] == value) { Ok(()) } else { Err(String::new()) }
            })
            .await;
    }

    /// The running versions of the canary and of the other group, by cluster.
    async fn running_versions(&self) -> [String; 4] {
        let scene = &self.scene;
        [
            version_and_replicas(scene, 0, "web-canary").await,
            version_and_replicas(scene, 1, "web-canary").await,
            version_and_replicas(scene, 0, "web-blue").await,
            version_and_replicas(scene, 1, "web-blue").await,
        ]
    }

    async fn until_running(&self, expected: [&str; 4]) {
        self.scene
            .eventually(&format!("{expected:?} run"), async || {
                let found = self.running_versions().await;
                if found == expected { Ok(()) } else { Err(format!("{found:?}")) }
            })
            .await;
    }
}

fn objects(value: &str) -> Vec<Value> {
    (0..OBJECTS).map(|number| configmap(&format!("setting-{number}"), "a", value)).collect()
}

/// A canary waits for confirmation; its leader is killed, and again while it applies.
#[tokio::test]
async fn the_standby_continues_with_the_same_step() {
    let Some(replicas) = ReplicasFixture::new("replicas").await else { return };
    let scene = &replicas.scene;
    replicas.write_app_set("v1");
    scene.write_app("settings", &objects("1"));
    let commit = scene.worktree.publish("first");
    let mut one = replicas.start("one");
    replicas.until_logged(&one, "leads: holds the Lease replicas/tutti").await;
    let mut two = replicas.start("two");
    replicas.until_logged(&two, "stands by: ").await;
    scene.until_succeeded(&commit).await;
    assert_eq!(replicas.running_versions().await, ["v1 x1"; 4]);

    replicas.write_app_set("v2");
    scene.write_objects("settings", &objects("2"));
    let commit = scene.worktree.publish("second");
    replicas.until_first_value("2").await;
    let killed = Instant::now();
    one.kill();
    replicas.until_logged(&two, "leads: holds the Lease replicas/tutti").await;
    let took = killed.elapsed();
    assert!(took <= MAX_TAKEOVER, "{took:?}");
    print_uncaptured(&format!("live tests: a standby led {:.1} s after kill -9", took.as_secs_f64()));
    scene.until_status(&commit, "deploy", "pending", &["confirm"]).await;
    assert_eq!(replicas.running_versions().await, CANARY);
    replicas.assert_writes_do_not_overlap(&[&one, &two]);

    // With a third process the rollout still waits, and continues once confirmed.
    let mut three = replicas.start("three");
    replicas.until_logged(&three, "stands by: ").await;
    assert_eq!(two.stop(), Some(0));
    replicas.until_logged(&three, "leads: ").await;
    scene.until_status(&commit, "deploy", "pending", &["confirm"]).await;
    assert_eq!(replicas.running_versions().await, CANARY);
    replicas.confirm().await;
    replicas.until_running(BOTH_CANARIES).await;
    replicas.assert_writes_do_not_overlap(&[&two, &three]);
    assert!(replicas.writes(0, &two).len() > 1 && !replicas.writes(1, &three).is_empty());
    three.kill();
}

/// A leader is suspended, and resumes while another one leads.
#[tokio::test]
async fn a_suspended_leader_writes_nothing_more() {
    let Some(replicas) = ReplicasFixture::new("stood-still").await else { return };
    let scene = &replicas.scene;
    scene.write_app("settings", &objects("1"));
    let commit = scene.worktree.publish("first");
    let mut one = replicas.start("one");
    replicas.until_logged(&one, "leads: ").await;
    let two = replicas.start("two");
    replicas.until_logged(&two, "stands by: ").await;
    scene.until_succeeded(&commit).await;
    scene.write_objects("settings", &objects("2"));
    scene.worktree.publish("second");
    replicas.until_first_value("2").await;
    one.signal("STOP");
    replicas.until_logged(&two, "leads: ").await;
    scene.write_objects("settings", &objects("3"));
    let commit = scene.worktree.publish("third");
    scene.until_succeeded(&commit).await;
    one.signal("CONT");
    // It finds that another process holds the Lease, and ends.
    let code = one.wait_for_exit().await;
    assert!(one.log().contains("the lease of the leader was lost to "), "{}", one.log());
    assert_eq!(code, Some(5));
    replicas.assert_writes_do_not_overlap(&[&one, &two]);
    for cluster in scene.clusters() {
        let found = scene.list(cluster, "configmaps", "").await;
        let third = found.iter().filter(|map| map["data"]["a"] == "3").count();
        assert_eq!(third, OBJECTS);
    }
    let lease = replicas.lease().await;
    assert_eq!(lease["spec"]["leaseTransitions"], 2, "{lease}");
}

/// The build of the upgrade's start, and that of this test.
fn old_and_new_build() -> (PathBuf, PathBuf) {
    let new = PathBuf::from(BINARY);
    let old = env::var_os("TUTTI_OLD_BUILD").map_or_else(|| new.clone(), PathBuf::from);
    assert!(old.is_file(), "TUTTI_OLD_BUILD: there is no file {}", old.display());
    let kind = if old == new { "the same build" } else { "another build" };
    print_uncaptured(&format!("live tests: upgrades from and to {kind}, {}", old.display()));
    (old, new)
}

/// Replaced one after the other as by their Deployment, and back. A commit and a confirmation arrive meanwhile.
#[tokio::test]
async fn both_replicas_are_replaced_amid_a_rollout() {
    let Some(replicas) = ReplicasFixture::new("rolling").await else { return };
    let (old, new) = old_and_new_build();
    let scene = &replicas.scene;
    replicas.write_app_set("v1");
    scene.write_app("settings", &objects("1"));
    let first = scene.worktree.publish("first");
    let mut one = replicas.start_build(&old, "one");
    replicas.until_logged(&one, "leads: ").await;
    let mut two = replicas.start_build(&old, "two");
    replicas.until_logged(&two, "stands by: ").await;
    scene.until_succeeded(&first).await;
    replicas.write_app_set("v2");
    let second = scene.worktree.publish("second");
    let waits = scene.until_status(&second, "deploy", "pending", &["confirm"]).await;
    replicas.until_running(CANARY).await;

    // The upgrade: the standby is replaced first, and a commit arrives. The leader is replaced during another one.
    let mut three = replicas.start_ready(&new, "three").await;
    two.signal("TERM");
    scene.write_objects("settings", &objects("2"));
    let pushed = scene.worktree.publish("while the standby ends");
    assert_eq!(two.wait_for_exit().await, Some(0), "{}", two.log());
    scene.until_succeeded(&pushed).await;
    let mut four = replicas.start_ready(&new, "four").await;
    scene.write_objects("settings", &objects("3"));
    let under_way = scene.worktree.publish("while the leader ends");
    replicas.until_first_value("3").await;
    one.signal("TERM");
    assert_eq!(one.wait_for_exit().await, Some(0), "{}", one.log());
    scene.until_succeeded(&under_way).await;
    assert_eq!(scene.until_status(&second, "deploy", "pending", &["confirm"]).await, waits);
    assert_eq!(replicas.running_versions().await, CANARY);

    // The way back: the leader is replaced first, and a person confirms.
    let five = replicas.start_ready(&old, "five").await;
    if four.log().contains("leads: ") {
        std::mem::swap(&mut three, &mut four);
    }
    three.signal("TERM");
    replicas.confirm().await;
    assert_eq!(three.wait_for_exit().await, Some(0), "{}", three.log());
    replicas.until_running(BOTH_CANARIES).await;
    let six = replicas.start_ready(&old, "six").await;
    four.signal("TERM");
    assert_eq!(four.wait_for_exit().await, Some(0), "{}", four.log());
    scene.until_status(&second, "deploy", "pending", &["confirm"]).await;
    // A commit for the last two: one of them leads.
    scene.write_objects("settings", &objects("4"));
    let last = scene.worktree.publish("after both");
    scene.until_succeeded(&last).await;
    assert_eq!(replicas.running_versions().await, BOTH_CANARIES);

    let all = [&one, &two, &three, &four, &five, &six];
    let leaders = replicas.leaders(&all);
    assert!(leaders.len() > 2, "{}", leaders.len());
    replicas.assert_writes_do_not_overlap(&leaders);
    // Four commits wrote each setting once. A canary had two versions, and the other group one.
    let settings = (0..OBJECTS).map(|number| (format!("configmaps/setting-{number}"), 4));
    let web = [("deployments/web-blue", 1), ("deployments/web-canary", 2)];
    let expected =
        web.map(|(object, count)| (object.to_owned(), count)).into_iter().chain(settings).collect();
    for cluster in 0..2 {
        assert_eq!(replicas.write_counts(cluster, &all), expected);
        let writes: Vec<usize> = leaders.iter().map(|it| replicas.writes(cluster, it).len()).collect();
        print_uncaptured(&format!("live tests: leader by leader they wrote {writes:?} times to a cluster"));
    }
}
