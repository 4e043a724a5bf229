//! The pull request service beside a controller, on embedded clusters, with a simulated forge whose webhooks reach both.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use parking_lot::Mutex;
use secrecy::SecretString;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;
use tutti::api::{DeliveryQueue, HookReceiver, HooksState, TriggerCall, WrittenChange, hooks_router, serve};
use tutti::controller::{ManifestOrigin, RunUntil};
use tutti::forge::{NewHook, NewPull, WebhookHint, WebhookHintKind, own_labels};
use tutti::metrics::Metrics;
use tutti::model::{DecryptionKeys, InstanceMode, Revision, WebhookReceiverKind};
use tutti::pulls;
use tutti::report::Overview;
use tutti::source::{ConfigRepository, GitCredentials, SourceOptions};
use tutti::trigger;

use crate::support::ci::CiBuild;
use crate::support::connections::ProcessConnections;
use crate::support::fleet::{RunningController, TestFleet, describe_overview, local_grants};
use crate::support::forge::simulator::{BOT, ForgePermission, ForgeSimulator, PullRequestView, REPOSITORY};
use crate::support::repository::FileTextChange;
use crate::support::{live_objects, manifests};

pub const PAY: &str = "apps/pay/app.yaml";
pub const PIN: &str = "apps/pay/pins/prod.yaml";
pub const CONTEXTS: [&str; 3] = ["tutti/validate", "tutti/plan", "tutti/gate"];
const SECRET: &str = "GMEuUHQfmrMRsseWxi9YlIeBtn9lm6im";

pub fn pay(version: &str) -> String {
    manifests::component("pay", &format!("registry.example.com/pay:{version}"))
}

pub fn is_pending(text: &str) -> bool {
    text.is_empty() || text.starts_with("pending ")
}

type ControllerHintSender = Arc<Mutex<Option<mpsc::Sender<WebhookHint>>>>;

pub struct PullRequestFixture {
    pub simulator: ForgeSimulator,
    pub fleet: TestFleet,
    pub keys: DecryptionKeys,
    hint_sender: broadcast::Sender<WebhookHint>,
    to_controller: ControllerHintSender,
    process: Option<PullRequestProcess>,
    /// The folder of the manifests in the repository.
    path: String,
    folder: TempDir,
    tasks: [JoinHandle<()>; 2],
}

struct PullRequestProcess {
    running: RunningController,
    permit: tutti::cluster::WritePermit,
    wires: ProcessConnections,
    calls: mpsc::Sender<TriggerCall>,
    deliveries: DeliveryQueue,
    service: JoinHandle<()>,
}

impl Drop for PullRequestFixture {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
        // It must not run beside the next scene of a test.
        if let Some(process) = &self.process {
            process.running.stop.cancel();
            process.service.abort();
        }
    }
}

impl PullRequestFixture {
    /// Two clusters, and `pay` at v1 on both.
    pub async fn two_clusters() -> Self {
        Self::new_started(&["c1", "c2"], &[(PAY, &pay("v1"))]).await
    }

    pub async fn new_started(clusters: &[&str], files: &[(&str, &str)]) -> Self {
        let scene = Self::new_without_process(".", clusters, files).await;
        scene.start_process().await
    }

    /// Everything is ready, without a process.
    pub async fn new_without_process(path: &str, clusters: &[&str], files: &[(&str, &str)]) -> Self {
        let simulator = ForgeSimulator::start(&[]).await;
        for (login, right) in
            [("li", ForgePermission::Write), ("ci", ForgePermission::Write), ("root", ForgePermission::Admin)]
        {
            simulator.add_user(login, right);
        }
        let folder = tempfile::tempdir().expect("a folder");
        let token = folder.path().join("token");
        std::fs::write(&token, BOT).expect("written");
        let instance = format!(
            "apiVersion: tutti.dev/v1alpha1\nkind: Instance\nmetadata: {{name: main}}\nspec:\n  forge: {{type: gitea, url: \"{}\", \
             repository: {REPOSITORY}, credentials: {{token: {{file: {token:?}}}}}}}\n  \
             receivers: [{{name: drone, type: drone, secrets: [{{env: TUTTI_SECRET_DRONE}}]}}]\n",
            simulator.url(),
        );
        let mut all: BTreeMap<String, String> = clusters
            .iter()
            .map(|name| (format!("clusters/{name}.yaml"), manifests::cluster(name)))
            .chain([("tutti.yaml".to_owned(), instance)])
            .collect();
        all.extend(files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())));
        let below = |name: &str| if path == "." { name.to_owned() } else { format!("{path}/{name}") };
        let all: Vec<(String, String)> = all.into_iter().map(|(name, text)| (below(&name), text)).collect();
        let changes: Vec<FileTextChange<'_>> =
            all.iter().map(|(name, text)| (name.as_str(), Some(text.as_str()))).collect();
        simulator.push("li", "main", "Begin", &changes);

        let (offered, mut received) = mpsc::channel::<WebhookHint>(1000);
        let doors = HooksState::new(offered, Metrics::default());
        let secrets = vec![SecretString::from(SECRET)];
        doors.set_receivers([HookReceiver {
            name: "gitea".to_owned(),
            kind: WebhookReceiverKind::Gitea,
            secrets,
        }]);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/hooks/v1/gitea", listener.local_addr().expect("address"));
        let served = tokio::spawn(serve(listener, hooks_router(doors), std::future::pending()));
        let events = ["push", "create", "delete", "pull_request"].map(str::to_owned).to_vec();
        let hook = NewHook { url, secret: SecretString::from(SECRET), events };
        simulator.client("root").create_hook(&hook).await.expect("a hook");
        let (hints, _) = broadcast::channel(1000);
        let (to_controller, share) = (ControllerHintSender::default(), hints.clone());
        let controller = Arc::clone(&to_controller);
        let passed = tokio::spawn(async move {
            while let Some(hint) = received.recv().await {
                let of_main = hint.reference.as_deref() == Some("refs/heads/main");
                if let Some(sender) =
                    controller.lock().as_ref().filter(|_| hint.kind.is_of_branch() && of_main)
                {
                    // A poll finds it anyway.
                    let _ = sender.try_send(hint.clone());
                }
                let _ = share.send(hint);
            }
        });
        Self {
            simulator,
            fleet: TestFleet::new(clusters, &[]),
            keys: DecryptionKeys::default(),
            hint_sender: hints,
            to_controller,
            process: None,
            path: path.to_owned(),
            folder,
            tasks: [served, passed],
        }
    }

    pub async fn start_process(mut self) -> Self {
        self.start().await;
        let tip = self.simulator.tip("main").expect("a tip");
        self.running().until_converged(&tip).await;
        self
    }

    async fn repository(&self, state: &str) -> ConfigRepository {
        let options = SourceOptions {
            url: self.simulator.path().display().to_string(),
            branch: None,
            path: self.path.clone(),
            outside_file_lister: tutti::manifest::listed_beside,
            credentials: GitCredentials::None,
            state_folder: self.folder.path().join(state),
        };
        ConfigRepository::open(options).await.expect("open")
    }

    /// The overview of a read-only command.
    pub async fn read_only_overview(&self) -> Arc<Overview> {
        let origin = ManifestOrigin::Repository(self.repository("look").await);
        let running = self.fleet.start_from_origin(origin, &ProcessConnections::unlimited(), |settings| {
            settings.until = RunUntil::Explained { timeout: Duration::from_secs(60) };
            (settings.mode, settings.posts_statuses) = (Some(InstanceMode::Observe), false);
        });
        running.until_ended().await.1
    }

    /// A new process without state.
    pub async fn start(&mut self) {
        let repository = self.repository("state").await;
        let (wires, permit) = (ProcessConnections::unlimited(), tutti::cluster::WritePermit::default());
        let (of_controller, keys) = (permit.clone(), self.keys.clone());
        let origin = ManifestOrigin::Repository(repository.clone());
        let running = self.fleet.start_from_origin(origin, &wires, |settings| {
            (settings.permit, settings.keys) = (of_controller, keys);
        });
        *self.to_controller.lock() = Some(running.hint.clone());
        let (calls, received) = mpsc::channel(16);
        let deliveries = DeliveryQueue::open(self.deliveries());
        let elected = CancellationToken::new();
        elected.cancel();
        let settings = pulls::PullServiceSettings {
            repository,
            branch: None,
            charts: Arc::clone(&self.fleet.charts),
            home: tutti::cluster::HomeCluster::default(),
            grants: Arc::new(local_grants()),
            permit: permit.clone(),
            metrics: Metrics::default(),
            promotions: watch::channel(None).0,
        };
        let inputs = pulls::PullServiceInputs {
            instance: running.instance.clone(),
            head: running.head.clone(),
            overview: running.overview.clone(),
            hints: self.hint_sender.subscribe(),
            calls: received,
            deliveries: deliveries.clone(),
            elected,
            stop: running.stop.clone(),
        };
        let service = tokio::spawn(pulls::run(settings, inputs));
        self.process = Some(PullRequestProcess { running, permit, wires, calls, deliveries, service });
    }

    /// Ends the process like SIGKILL.
    pub async fn kill(&mut self) {
        let PullRequestProcess { running, permit, wires, service, .. } =
            self.process.take().expect("a process");
        permit.revoke();
        wires.die_after(0);
        *self.to_controller.lock() = None;
        service.abort();
        let ended = service.await;
        assert!(ended.is_err_and(|error| error.is_cancelled()), "the service ended by itself");
        running.kill().await;
    }

    pub async fn restart(&mut self) {
        self.kill().await;
        self.start().await;
    }

    pub fn running(&self) -> &RunningController {
        &self.process.as_ref().expect("a process").running
    }

    /// The webhook of a push to the deployed branch.
    pub fn tell_of_push(&self) {
        let (kind, reference) = (WebhookHintKind::Push, Some("refs/heads/main".to_owned()));
        let _ = self.hint_sender.send(WebhookHint { kind, reference, ..WebhookHint::default() });
    }

    /// A person pushes.
    pub fn push(&self, branch: &str, changes: &[FileTextChange<'_>]) -> Revision {
        self.simulator.push("li", branch, "Change", changes)
    }

    /// A person opens the pull request of a branch; its number.
    pub async fn open(&self, branch: &str) -> u64 {
        let new = NewPull {
            head: branch.to_owned(),
            base: "main".to_owned(),
            title: branch.to_owned(),
            body: String::new(),
            labels: Vec::new(),
        };
        self.simulator.client("li").create_pull(&new).await.expect("a pull request").number
    }

    /// The same while the forge answers nothing.
    pub fn open_without_wait(&self, branch: &str) -> u64 {
        self.simulator.open_pull("li", branch)
    }

    /// Somebody sets a label of tutti.
    pub async fn label(&self, number: u64, name: &str) {
        let client = self.simulator.client("li");
        client.ensure_labels(&own_labels("tutti")).await.expect("labels");
        client.add_labels(number, &[name.to_owned()]).await.expect("a label");
    }

    /// Waits until the forge meets a condition.
    pub async fn until(&self, what: &str, mut done: impl FnMut(&ForgeSimulator) -> bool) {
        for _ in 0..9_000 {
            if done(&self.simulator) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("it never came to {what}:\n{}", self.describe());
    }

    /// Waits until all contexts of a head have a final status.
    pub async fn until_settled(&self, head: &Revision) {
        let what = format!("an end of {}", head.short());
        self.until(&what, |now| CONTEXTS.iter().all(|context| !is_pending(&now.last_status(head, context))))
            .await;
    }

    /// No request is sent for this long.
    pub async fn assert_no_requests(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }

    /// Requests to the forge since `before` that write, as in [`ForgeSimulator::requests`].
    pub fn writes_since(&self, before: usize) -> Vec<String> {
        let requests = self.simulator.requests();
        requests[before..].iter().filter(|line| !line.starts_with("GET ")).cloned().collect()
    }

    /// The open pull request of a branch; never more than one.
    pub fn open_of(&self, branch: &str) -> Option<PullRequestView> {
        let mut open: Vec<PullRequestView> =
            self.simulator.pulls().into_iter().filter(|pull| pull.is_open && pull.branch == branch).collect();
        assert!(open.len() <= 1, "{open:#?}");
        open.pop()
    }

    pub async fn version(&self, cluster: &str) -> String {
        let found = live_objects::get(self.fleet.cluster(cluster), "Deployment", "default", "pay").await;
        let image = found
            .map(|it| live_objects::required_text(&it, "/spec/template/spec/containers/0/image"))
            .unwrap_or_default();
        image.rsplit(':').next().unwrap_or_default().to_owned()
    }

    /// Calls a trigger like the API.
    pub async fn call(&self, name: &str, payload: &serde_json::Value) -> Result<WrittenChange, String> {
        let head = self.running().head.borrow().clone().expect("a head");
        let trigger = &head.fleet.triggers[name];
        let outcome = trigger::evaluate(trigger, payload, &head.fleet, &head.snapshot);
        let outcome = outcome.expect("a value").expect("it is meant");
        let (reply, answer) = oneshot::channel();
        let calls = &self.process.as_ref().expect("a process").calls;
        calls.send(TriggerCall { outcome, reply }).await.expect("it listens");
        let answer = tokio::time::timeout(Duration::from_secs(600), answer).await.expect("in time");
        answer.expect("an answer").map_err(|error| error.to_string())
    }

    /// The folder of accepted deliveries.
    pub fn deliveries(&self) -> PathBuf {
        self.folder.path().join("state/deliveries")
    }

    /// Drone reports a successful build; the status of the answer.
    pub async fn deliver_drone_build(&self, build: &CiBuild) -> StatusCode {
        let PullRequestProcess { running, deliveries, .. } = self.process.as_ref().expect("a process");
        let doors = HooksState::new(mpsc::channel(1).0, Metrics::default())
            .triggers(running.head.clone(), deliveries.clone());
        let secrets = vec![SecretString::from(SECRET)];
        doors.set_receivers([HookReceiver {
            name: "drone".to_owned(),
            kind: WebhookReceiverKind::Drone,
            secrets,
        }]);
        let (headers, body) = build.drone("updated", SECRET);
        let mut request = Request::post("/hooks/v1/drone");
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let request = request.body(Body::from(body)).expect("a request");
        hooks_router(doors).oneshot(request).await.expect("infallible").status()
    }

    pub fn describe(&self) -> String {
        let words = self.simulator.status_writes();
        let words = words.iter().map(|it| format!("{} {} {}", it.commit.short(), it.context, it.text));
        let pulls = self.simulator.pulls().into_iter().map(|it| format!("{it:?}"));
        let overview = self.process.as_ref().map(|it| {
            let overview = it.running.overview.borrow();
            format!("{} {:?}", describe_overview(&overview), overview.rollouts)
        });
        let requests = self.simulator.requests();
        let last = requests[requests.len().saturating_sub(40)..].to_vec();
        words.chain(pulls).chain(overview).chain(last).collect::<Vec<_>>().join("\n")
    }
}
