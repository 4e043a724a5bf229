//! Fleets in waves, with an oracle on their connections.
//!
//! `R`: a Component over the rings test (c1) and prod (c2, c3), confirmed after test. `S`: an AppSet with the podSets canary, blue and
//! green on c1 and c2, `canary|blue|green`, canary first on c1, confirmed after each wave.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use sandbox::{Sandbox, SandboxOptions, Scenario};
use serde_json::Value;
use tutti::controller::ControllerSettings;
use tutti::model::{Revision, Snapshot};
use tutti::report::{Overview, RolloutReport, TargetReport, UnitReport};

use crate::support::connections::ProcessConnections;
use crate::support::fleet::{RunningController, TestFleet};
use crate::support::oracle::{ExpectedGate, ExpectedWaves, Oracle, OracleEvent, OracleUnit};
use crate::support::repository::FileTextChange;
use crate::support::{live_objects, manifests};

pub const PAY: &str = "apps/pay/app.yaml";
pub const APPROVAL: &str = "approvals/pay.yaml";
pub const RINGS: &str = "rings.yaml";

/// Test, then prod.
pub const TEST_PROD: &str = "\
apiVersion: tutti.dev/v1alpha1
kind: Rings
metadata: {name: rings}
spec:
  rings:
    - {name: test, clusters: {names: [c1]}, confirm: true}
    - {name: prod, clusters: {names: [c2, c3]}}
";

pub struct RolloutFixture {
    pub fleet: TestFleet,
    pub oracle: Arc<Oracle>,
    pub waves: Vec<ExpectedWaves>,
    wires: ProcessConnections,
    running: Option<RunningController>,
}

pub fn component(version: &str) -> String {
    manifests::component("pay", &format!("registry.example.com/pay:{version}"))
}

/// With further lines in its `spec`.
pub fn component_with(version: &str, more: &str) -> String {
    format!("{}  {more}\n", component(version))
}

/// The waves of R.
pub fn ring_waves(app: &str) -> ExpectedWaves {
    ExpectedWaves {
        app: app.to_owned(),
        gates: vec![
            ExpectedGate::with_confirmation("test"),
            ExpectedGate::new("prod"),
            ExpectedGate::new("rest"),
        ],
        wave_of: |unit| usize::from(unit.cluster != "c1"),
        reverts: false,
        gates_first: false,
    }
}

/// The waves of S.
pub fn group_waves(app: &str) -> ExpectedWaves {
    let wave_of = |unit: &OracleUnit| match unit.pod_set.rsplit('-').next() {
        Some("canary") if unit.cluster == "c1" => 0,
        Some("canary") => 1,
        Some("blue") => 2,
        Some("green") => 3,
        _ => 4,
    };
    let gates = ["first", "canary", "blue", "green"].map(ExpectedGate::with_confirmation).into_iter();
    ExpectedWaves {
        app: app.to_owned(),
        gates: gates.chain([ExpectedGate::new("rest")]).collect(),
        wave_of,
        reverts: false,
        gates_first: false,
    }
}

/// The AppSet of S.
#[derive(Clone)]
pub struct PodSetsManifest {
    /// By podSet: its version and replicas.
    pub sets: BTreeMap<(String, String), (String, u32)>,
    /// The lines of the strategy.
    pub strategy: String,
}

impl PodSetsManifest {
    /// All six podSets at one version.
    pub fn all_at(version: &str) -> Self {
        let clusters = ["c1", "c2"];
        let groups = ["canary", "blue", "green"];
        let all = clusters.iter().flat_map(|cluster| groups.iter().map(move |group| (cluster, group)));
        let sets = all.map(|(cluster, group)| {
            let replicas = if *group == "canary" { 1 } else { 4 };
            let place = ((*cluster).to_owned(), (*group).to_owned());
            (place, (version.to_owned(), replicas))
        });
        Self {
            sets: sets.collect(),
            strategy: "upgradeType: canary|blue|green, canaryClusters: [c1], needWaitingForConfirm: true"
                .to_owned(),
        }
    }

    pub fn with(mut self, cluster: &str, group: &str, version: &str, replicas: u32) -> Self {
        self.sets.insert((cluster.to_owned(), group.to_owned()), (version.to_owned(), replicas));
        self
    }

    pub fn without(mut self, cluster: &str, group: &str) -> Self {
        self.sets.remove(&(cluster.to_owned(), group.to_owned()));
        self
    }

    pub fn manifest(&self) -> String {
        let mut text = format!(
            "\
apiVersion: workload.dmall.com/v1beta1
kind: AppSet
metadata: {{name: pay, namespace: default}}
spec:
  replicas: {}
  updateStrategy: {{{}}}
  podSpec:
    deployType: deployment
    template:
      spec: {{containers: [{{name: pay, image: registry.example.com/pay, ports: [{{containerPort: 8080}}]}}]}}
  clusterTopology:
    clusters:
",
            self.sets.values().map(|(_, replicas)| replicas).sum::<u32>(),
            self.strategy
        );
        let mut last = "";
        for ((cluster, group), (version, replicas)) in &self.sets {
            if cluster != last {
                text += &format!("      - name: {cluster}\n        podSets:\n");
                last = cluster;
            }
            text += &format!(
                "          - {{name: {}, replicas: {replicas}, image: 'registry.example.com/pay:{version}'}}\n",
                pod_set(cluster, group)
            );
        }
        text
    }
}

pub fn pod_set(cluster: &str, group: &str) -> String {
    format!("pay-{cluster}-{group}")
}

/// Fleet R at v1.
pub async fn ring_fixture() -> RolloutFixture {
    RolloutFixture::new_started(
        &["c1", "c2", "c3"],
        &[(RINGS, TEST_PROD), (PAY, &component("v1"))],
        ring_waves("default/pay"),
    )
    .await
}

/// Fleet S, all podSets at v3.
pub async fn pod_set_fixture() -> RolloutFixture {
    let manifest = PodSetsManifest::all_at("v3").manifest();
    RolloutFixture::new_started(&["c1", "c2"], &[(PAY, &manifest)], group_waves("default/pay")).await
}

impl RolloutFixture {
    /// Starts, and waits until everything runs.
    pub async fn new_started(clusters: &[&str], files: &[(&str, &str)], waves: ExpectedWaves) -> Self {
        let mut scene = Self::not_started(clusters, files, waves);
        scene.start().await;
        scene.running().until_converged(&scene.fleet.first_commit).await;
        scene
    }

    pub fn not_started(clusters: &[&str], files: &[(&str, &str)], waves: ExpectedWaves) -> Self {
        Self::of_fleet(TestFleet::new(clusters, files), waves)
    }

    fn of_fleet(fleet: TestFleet, waves: ExpectedWaves) -> Self {
        let oracle = Arc::new(Oracle::new(fleet.clusters.clone()));
        let scene =
            Self { fleet, oracle, waves: vec![waves], wires: ProcessConnections::unlimited(), running: None };
        scene.record_commit(&scene.fleet.first_commit);
        scene
    }

    pub async fn start(&mut self) {
        self.start_with(|_| {}).await;
    }

    pub async fn start_with(&mut self, change: impl FnOnce(&mut ControllerSettings)) {
        self.wires = ProcessConnections::observed_by(self.oracle.clone());
        self.running = Some(self.fleet.start_with(&self.wires, change).await);
    }

    /// Ends the process like SIGKILL.
    pub async fn kill(&mut self) {
        self.wires.die_after(0);
        if let Some(running) = self.running.take() {
            running.kill().await;
        }
    }

    /// Kills the process, wipes its disk, and starts another one.
    pub async fn restart(&mut self) {
        self.kill().await;
        let _ = std::fs::remove_dir_all(self.fleet.repository.path().join(".git/tutti"));
        self.start().await;
    }

    /// Kills the process, rebuilds clusters empty under their names, and starts again.
    pub async fn rebuild(&mut self, clusters: &[&str]) {
        self.kill().await;
        for name in clusters {
            let seed = self.fleet.clusters.len() as u64 + 100;
            let sandbox = Sandbox::new(SandboxOptions { seed, ..SandboxOptions::instant(*name) });
            self.fleet.clusters.insert((*name).to_owned(), sandbox.clone());
            self.oracle.record_rebuilt(name, sandbox);
        }
        self.restart().await;
    }

    /// Rewrites `main` to one commit without parents, with these files replaced.
    pub fn rewrite_history(&self, files: &[(&str, &str)]) {
        let revision = self.fleet.repository.rewrite("Begin anew", files);
        self.record_commit(&revision);
    }

    pub fn running(&self) -> &RunningController {
        self.running.as_ref().expect("it runs")
    }

    fn record_commit(&self, revision: &Revision) {
        let texts = self.fleet.repository.texts(revision);
        let snapshot = Snapshot::of_texts(texts.iter().map(|(path, text)| (path.as_str(), text.as_str())));
        self.oracle.record_commit(revision, &snapshot);
    }

    /// From now on the oracle uses another text for a file of the head, which renders as on the clusters.
    pub fn record_render(&self, path: &str, text: &str) {
        let revision = self.head();
        let mut texts = self.fleet.repository.texts(&revision);
        let digest_of = Snapshot::of_texts(texts.iter().map(|(path, text)| (path.as_str(), text.as_str())));
        texts.insert(path.to_owned(), text.to_owned());
        let snapshot = Snapshot::of_texts(texts.iter().map(|(path, text)| (path.as_str(), text.as_str())));
        self.oracle.record_rendered(&revision, &digest_of, &snapshot);
    }

    /// Commits, without waking the controller.
    pub fn commit(&self, subject: &str, changes: &[FileTextChange<'_>]) -> Revision {
        let revision = self.fleet.repository.commit(subject, changes);
        self.record_commit(&revision);
        revision
    }

    pub async fn push(&self, subject: &str, changes: &[FileTextChange<'_>]) -> Revision {
        let revision = self.commit(subject, changes);
        if let Some(running) = &self.running {
            running.wake.send(()).await.expect("it runs");
        }
        revision
    }

    /// The app at another version.
    pub async fn push_pay(&self, subject: &str, manifest: &str) -> Revision {
        self.push(subject, &[(PAY, Some(manifest))]).await
    }

    pub fn cluster(&self, name: &str) -> &Sandbox {
        self.fleet.cluster(name)
    }

    pub fn set_down(&self, cluster: &str, is_down: bool) {
        self.cluster(cluster).set_down(is_down);
        let name = cluster.to_owned();
        self.oracle.record_event(if is_down { OracleEvent::Down(name) } else { OracleEvent::Up(name) });
    }

    /// Pods of this image fail on a cluster from now on; an empty image ends that.
    pub fn break_image(&self, cluster: &str, image: &str) {
        let text = match image {
            "" => String::new(),
            image => format!("rules: [{{image: '{image}', fail: crash-loop}}]"),
        };
        self.cluster(cluster).set_scenario(Scenario::parse(&text).expect("a scenario"));
        self.oracle.record_event(OracleEvent::Disturbed);
    }

    pub async fn until(&self, what: &str, done: impl FnMut(&Overview) -> bool) -> Arc<Overview> {
        self.running().until(what, done).await
    }

    pub async fn until_converged(&self, revision: &Revision) -> Arc<Overview> {
        self.running().until_converged(revision).await
    }

    pub fn overview(&self) -> Arc<Overview> {
        self.running().overview.borrow().clone()
    }

    /// Waits until a person is asked to confirm this wave.
    pub async fn until_confirmation_requested(&self, through: &str) {
        let is_asked = |now: &Overview| {
            rollout_report(now)
                .and_then(|it| it.confirmation.as_ref())
                .is_some_and(|it| it.through == through)
        };
        self.until(&format!("confirmation of {through}"), is_asked).await;
    }

    /// Waits until a person is asked, and confirms.
    pub async fn confirm(&self, through: &str) -> Revision {
        self.until_confirmation_requested(through).await;
        let now = self.overview();
        let asked = rollout_report(&now).and_then(|it| it.confirmation.as_ref()).expect("a person is asked");
        let digest = asked.digest.to_string();
        self.approve(&digest, through).await
    }

    /// The digest of the version at the head.
    pub fn digest(&self) -> String {
        rollout_report(&self.overview()).expect("a rollout").digest.to_string()
    }

    pub async fn approve(&self, digest: &str, through: &str) -> Revision {
        self.push("Confirm", &[(APPROVAL, Some(&approval("pay", digest, through)))]).await
    }

    /// Waits until the rollout is over at the head.
    pub async fn until_over(&self) {
        let head = self.head();
        let is_over = |now: &Overview| {
            now.revision.as_ref() == Some(&head)
                && rollout_report(now)
                    .is_none_or(|it| !it.is_open && it.units.iter().all(|unit| unit.is_done))
        };
        self.until("the end of the rollout", is_over).await;
    }

    pub fn head(&self) -> Revision {
        self.fleet.repository.tip()
    }

    /// The versions of R, on c1, c2 and c3.
    pub async fn versions(&self) -> Vec<String> {
        let mut versions = Vec::new();
        for name in self.fleet.clusters.keys() {
            versions.push(self.version(name, "pay").await);
        }
        versions
    }

    pub async fn versions_of(&self, clusters: &[&str]) -> Vec<String> {
        let mut versions = Vec::new();
        for name in clusters {
            versions.push(self.version(name, "pay").await);
        }
        versions
    }

    /// The version of a Deployment; `-` if it does not exist.
    pub async fn version(&self, cluster: &str, name: &str) -> String {
        let Some(object) = live_objects::get(self.cluster(cluster), "Deployment", "default", name).await
        else {
            return "-".to_owned();
        };
        let image = live_objects::required_text(&object, "/spec/template/spec/containers/0/image");
        image.rsplit(':').next().unwrap_or_default().to_owned()
    }

    /// The versions of S: canary, blue and green on c1, then on c2.
    pub async fn group_versions(&self) -> String {
        let mut versions = Vec::new();
        for cluster in ["c1", "c2"] {
            for group in ["canary", "blue", "green"] {
                versions.push(self.version(cluster, &pod_set(cluster, group)).await);
            }
        }
        versions.join(" ")
    }

    pub async fn deployment(&self, cluster: &str, name: &str) -> Value {
        live_objects::get(self.cluster(cluster), "Deployment", "default", name).await.expect("it is there")
    }

    pub async fn replicas(&self, cluster: &str, name: &str) -> i64 {
        self.deployment(cluster, name).await["spec"]["replicas"].as_i64().expect("a number")
    }

    /// The oracle found no violation.
    pub fn assert_no_violation(&self) {
        let violations = self.oracle.violations(&self.waves);
        assert!(violations.is_empty(), "{}", violations.join("\n"));
    }

    /// Also, every unit has the content of the head, complete and healthy.
    pub fn assert_ends_at_head(&self) {
        self.assert_no_violation();
        let rest = self.oracle.units_behind(&self.waves);
        assert!(rest.is_empty(), "{}", rest.join("\n"));
    }
}

pub fn approval(app: &str, digest: &str, through: &str) -> String {
    format!(
        "\
apiVersion: tutti.dev/v1alpha1
kind: Approval
metadata: {{name: {app}}}
spec: {{app: default/{app}, action: rollout, digest: {digest}, through: {through}}}
"
    )
}

pub fn retry(digest: &str) -> String {
    format!(
        "\
apiVersion: tutti.dev/v1alpha1
kind: Approval
metadata: {{name: again}}
spec: {{app: default/pay, action: retry, digest: {digest}}}
"
    )
}

pub fn rollout_report(now: &Overview) -> Option<&RolloutReport> {
    now.rollouts.iter().find(|it| it.app.to_string() == "default/pay")
}

/// The reason why a unit is held; empty if it is not.
pub fn hold_reason(now: &Overview, cluster: &str, pod_set: &str) -> String {
    let unit = unit_report(now, cluster, pod_set);
    unit.and_then(|unit| unit.hold.as_ref()).map(ToString::to_string).unwrap_or_default()
}

pub fn unit_report<'a>(now: &'a Overview, cluster: &str, pod_set: &str) -> Option<&'a UnitReport> {
    let units = rollout_report(now).into_iter().flat_map(|rollout| &rollout.units);
    units.into_iter().find(|it| it.unit.cluster.as_str() == cluster && &*it.unit.pod_set == pod_set)
}

pub fn pay_target<'a>(now: &'a Overview, cluster: &str) -> &'a TargetReport {
    crate::support::fleet::target(now, cluster, "default/pay")
}

/// Long enough for everything that happens soon without a person.
pub async fn sleep_a_while() {
    tokio::time::sleep(Duration::from_secs(120)).await;
}
