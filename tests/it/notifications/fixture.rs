//! The notification service beside a controller, with a chat.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use sandbox::{SandboxOptions, Scenario};
use secrecy::ExposeSecret as _;
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tutti::cluster::{HomeCluster, WritePermit};
use tutti::controller::ManifestOrigin;
use tutti::metrics::Metrics;
use tutti::model::{DecryptionKeys, Revision};
use tutti::notification::service::ResolvedService;
use tutti::notification::{NotificationInputs, NotificationSettings, PromotionPull, RequestRewriter, run};
use tutti::report::Overview;
use tutti::source::ConfigRepository;

use crate::support::chat::{ChatServer, ReceivedMessage, SECRET, SIGNING_KEY, TOKEN};
use crate::support::connections::ProcessConnections;
use crate::support::fleet::{RunningController, TestFleet, describe_overview, local_grants};
use crate::support::forge::slow_down_paused_clock;
use crate::support::manifests::{self, INSTANCE};
use crate::support::repository::FileTextChange;

pub const WEB: &str = "apps/web/app.yaml";
/// The `select` of a route that sends everything, also starts.
pub const ALL_PHASES: &str = ", select: {phases: [started, waiting, done, failed, degraded, recovered, reverted, opened, held, merged]}";
const RINGS: &str = "apiVersion: tutti.dev/v1alpha1
kind: Rings
metadata: {name: rings}
spec:
  rings:
    - {name: test, clusters: {matchLabels: {environment: test}}}
    - {name: prod, clusters: {matchLabels: {environment: prod}}}
";

/// Slow enough that a rollout in progress is seen.
const POD_START: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(5));

pub fn web(version: &str) -> String {
    manifests::component("web", &format!("registry.example.com/web:{version}"))
}

pub struct NotificationFixture {
    pub chat: ChatServer,
    pub fleet: TestFleet,
    pub promotions: watch::Sender<Option<Arc<Vec<PromotionPull>>>>,
    running: Option<RunningController>,
    repository: ConfigRepository,
    notifier: Option<JoinHandle<()>>,
    folder: TempDir,
    keys: DecryptionKeys,
    paused_clock: JoinHandle<()>,
}

impl Drop for NotificationFixture {
    fn drop(&mut self) {
        self.paused_clock.abort();
    }
}

impl NotificationFixture {
    /// Two rings of one cluster each, `web` at v1 on both, and one route `all` to a program.
    pub async fn two_rings() -> Self {
        Self::with_routes(&["t1", "p1"], &[("all", "generic", ALL_PHASES)], &[(WEB, &web("v1"))]).await
    }

    /// Clusters whose names begin with `t` are in the ring `test`, the others in `prod`. Routes by name, service and further fields.
    pub async fn with_routes(
        clusters: &[&str],
        routes: &[(&str, &str, &str)],
        files: &[(&str, &str)],
    ) -> Self {
        Self::with_keys(clusters, routes, files, DecryptionKeys::default()).await
    }

    /// With keys that decrypt files of Git.
    pub async fn with_keys(
        clusters: &[&str],
        routes: &[(&str, &str, &str)],
        files: &[(&str, &str)],
        keys: DecryptionKeys,
    ) -> Self {
        let scene = Self::new_during_rollout(clusters, routes, files, keys).await;
        scene.until_converged(&scene.fleet.first_commit).await;
        scene
    }

    /// The same, but the first rollout is still in progress.
    async fn new_during_rollout(
        clusters: &[&str],
        routes: &[(&str, &str, &str)],
        files: &[(&str, &str)],
        keys: DecryptionKeys,
    ) -> Self {
        let chat = ChatServer::start().await;
        let folder = tempfile::tempdir().expect("a folder");
        let mut all: BTreeMap<String, String> = BTreeMap::from([
            ("rings.yaml".to_owned(), RINGS.to_owned()),
            ("tutti.yaml".to_owned(), INSTANCE.replace("spec: {}", "spec: {defaults: {rollout: rings}}")),
        ]);
        for name in clusters.iter().filter(|name| name.starts_with('t')) {
            let text = manifests::cluster(name).replace("environment: prod", "environment: test");
            all.insert(format!("clusters/{name}.yaml"), text);
        }
        for (name, service, more) in routes {
            all.insert(route_path(name), route(&chat, &folder, name, service, more));
        }
        all.extend(files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())));
        let all: Vec<(&str, &str)> = all.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        let fleet = TestFleet::with_options(clusters, &all, |name| SandboxOptions {
            pod_start: POD_START,
            ..SandboxOptions::instant(name)
        });
        let repository = fleet.repository.open().await;
        let (promotions, _) = watch::channel(Some(Arc::default()));
        let pace = tokio::spawn(slow_down_paused_clock());
        let mut scene = Self {
            chat,
            fleet,
            promotions,
            running: None,
            repository,
            notifier: None,
            folder,
            keys,
            paused_clock: pace,
        };
        scene.start();
        scene
    }

    fn start(&mut self) {
        let (origin, keys) = (ManifestOrigin::Repository(self.repository.clone()), self.keys.clone());
        self.running =
            Some(self.fleet.start_from_origin(origin, &ProcessConnections::unlimited(), |it| it.keys = keys));
        self.start_notifier();
    }

    /// Ends the whole process, and starts another one.
    pub async fn restart(&mut self) {
        self.kill().await;
        self.running.take().expect("it runs").stop().await;
        self.start();
    }

    fn running(&self) -> &RunningController {
        self.running.as_ref().expect("it runs")
    }

    /// Starts a process of the notification service.
    pub fn start_notifier(&mut self) {
        self.start_notifier_with(self.running().overview.clone());
    }

    /// The same with this overview only.
    pub fn start_notifier_with(&mut self, overview: watch::Receiver<Arc<Overview>>) {
        let elected = CancellationToken::new();
        elected.cancel();
        let settings = NotificationSettings {
            repository: Some(self.repository.clone()),
            home: HomeCluster::default(),
            grants: Arc::new(local_grants()),
            permit: WritePermit::default(),
            metrics: Metrics::default(),
            folder: Some(self.state_file()),
            request_rewriter: RequestRewriter(Arc::new(self.chat.redirect_slack())),
        };
        let inputs = NotificationInputs {
            head: self.running().head.clone(),
            overview,
            promotions: self.promotions.subscribe(),
            elected,
            stop: CancellationToken::new(),
        };
        self.notifier = Some(tokio::spawn(run(settings, inputs)));
    }

    /// Ends it like SIGKILL.
    pub async fn kill(&mut self) {
        let telling = self.notifier.take().expect("it runs");
        telling.abort();
        assert!(telling.await.is_err_and(|error| error.is_cancelled()), "it ended by itself");
    }

    pub fn overview(&self) -> Arc<Overview> {
        Arc::clone(&self.running().overview.borrow())
    }

    /// The file of sent messages.
    pub fn state_file(&self) -> PathBuf {
        self.folder.path().join("notifications")
    }

    pub fn route_state(&self, route: &str) -> Value {
        let text = std::fs::read(self.state_file().join(format!("{route}.json"))).expect("a file");
        serde_json::from_slice(&text).expect("JSON")
    }

    /// The number of threads that a route stores.
    pub fn thread_count(&self, route: &str) -> usize {
        self.route_state(route)["threads"].as_object().expect("threads").len()
    }

    /// The manifest of a route.
    pub fn route(&self, name: &str, service: &str, more: &str) -> (String, String) {
        (route_path(name), route(&self.chat, &self.folder, name, service, more))
    }

    pub async fn push(&self, subject: &str, changes: &[FileTextChange<'_>]) -> Revision {
        self.fleet.push(self.running(), subject, changes).await
    }

    /// Commits another version of `web`, and waits until it runs on all clusters.
    pub async fn release(&self, version: &str) -> Revision {
        let revision = self.push(version, &[(WEB, Some(&web(version)))]).await;
        self.running().until_converged(&revision).await;
        revision
    }

    /// Commits like `git revert`.
    pub async fn revert(&self, commit: &Revision, changes: &[FileTextChange<'_>]) -> Revision {
        self.push(&format!("Back\n\nThis reverts commit {commit}.\n"), changes).await
    }

    pub async fn until_converged(&self, revision: &Revision) {
        self.running().until_converged(revision).await;
    }

    /// Sets the pod scenario from now on.
    pub fn set_pod_scenario(&self, cluster: &str, rules: &str) {
        self.fleet.cluster(cluster).set_scenario(Scenario::parse(rules).expect("a scenario"));
    }

    pub async fn sleep_seconds(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }

    /// All messages in order: to programs `phase thread`, to people the title; with subjects instead of commits.
    pub fn received_events(&self) -> Vec<String> {
        let titles: Vec<String> = self.chat.received().iter().map(message_title).collect();
        titles.iter().map(|title| self.fleet.repository.with_subjects(title)).collect()
    }

    /// The phases of each thread, in order.
    pub fn phases_by_thread(&self) -> BTreeMap<String, Vec<String>> {
        let mut threads: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for told in self.received_events() {
            let (phase, thread) = told.split_once(' ').expect("an event");
            threads.entry(thread.to_owned()).or_default().push(phase.to_owned());
        }
        threads
    }

    /// `thread: phases`, without those of the first commit.
    pub fn thread_summaries(&self) -> Vec<String> {
        let threads = self.phases_by_thread().into_iter().filter(|(thread, _)| !thread.contains("/Begin/"));
        threads.map(|(thread, phases)| format!("{thread}: {}", phases.join(" "))).collect()
    }

    /// Waits until the messages meet a condition.
    pub async fn until(&self, what: &str, mut done: impl FnMut(&[String]) -> bool) {
        for _ in 0..9_000 {
            if done(&self.received_events()) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let overview = describe_overview(&self.running().overview.borrow());
        let codes = self.chat.codes();
        panic!("it never came to {what}: {:#?}\n{codes:?}\n{overview}", self.received_events());
    }

    /// Waits for this message.
    pub async fn until_received(&self, text: &str) {
        self.until(text, |told| told.iter().any(|it| it == text)).await;
    }
}

fn route_path(route: &str) -> String {
    format!("notifications/{route}.yaml")
}

/// Credentials are files of the folder.
fn route(chat: &ChatServer, folder: &TempDir, name: &str, service: &str, more: &str) -> String {
    let file = |field: &str, text: &str| {
        let path = folder.path().join(format!("{service}.{field}"));
        std::fs::write(&path, text).expect("written");
        format!(", {field}: {{file: {path:?}}}")
    };
    let credentials = match service {
        "slack" => file("token", TOKEN) + ", channel: '#releases'",
        _ => {
            let (ResolvedService::Feishu { url, secret }
            | ResolvedService::DingTalk { url, secret }
            | ResolvedService::Generic { url, secret }) = (match service {
                "feishu" => chat.feishu(Some(SECRET)),
                "dingtalk" => chat.dingtalk(Some(SECRET)),
                _ => chat.generic(Some(SIGNING_KEY)),
            })
            else {
                unreachable!("no other is asked for")
            };
            let secret = secret.expect("a secret");
            file("url", url.expose_secret()) + &file("secret", secret.expose_secret())
        }
    };
    format!(
        "apiVersion: tutti.dev/v1alpha1\nkind: Notification\nmetadata: {{name: {name}}}\n\
         spec: {{service: {service}{credentials}{more}}}\n"
    )
}

pub fn message_title(received: &ReceivedMessage) -> String {
    let text = |pointer: &str| received.body.pointer(pointer).and_then(Value::as_str).unwrap_or("-");
    match received.service {
        "generic" => format!("{} {}", text("/data/phase"), text("/data/thread")),
        "feishu" => text("/card/header/title/content").to_owned(),
        "dingtalk" => text("/markdown/title").to_owned(),
        _ => text("/text").to_owned(),
    }
}
