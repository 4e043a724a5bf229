//! The environment of one test.

use std::fs;
use std::path::{Path, PathBuf};

use live::{GiteaServer, LiveCluster, LiveEnvironment};
use parking_lot::Mutex;
use serde_json::Value;
use tempfile::TempDir;

use super::tier::ClusterReservation;
use super::tutti::{self, BINARY, CommandResult, TuttiProcess};
use super::{Worktree, eventually, tier};

/// The secret of the webhook.
pub const HOOK_SECRET: &str = "known to both sides";

/// The token of a trigger, which pipelines send.
pub const RELEASE_TOKEN: &str = "a-token-of-one-trigger";

/// On any free ports.
const LISTEN_ARGUMENTS: [&str; 5] = ["--listen", "127.0.0.1:0", "--hooks-listen", "127.0.0.1:0", "-vv"];

/// Repository on the forge, instance and namespace have its name.
pub struct LiveFixture {
    name: &'static str,
    live: &'static LiveEnvironment,
    clusters: Vec<&'static LiveCluster>,
    pub worktree: Worktree,
    tutti: Mutex<Option<TuttiProcess>>,
    secrets: Mutex<Vec<(String, String)>>,
    folder: TempDir,
    /// Dropped last.
    _servers: Option<ClusterReservation>,
}

impl LiveFixture {
    /// A repository with `tutti.yaml` and Cluster files, not committed yet, and the namespace on each of
    /// the first `clusters`. Four clusters have two rings, `test` and `prod`; `None` without the tier.
    pub async fn new(name: &'static str, clusters: usize) -> Option<Self> {
        let live = tier().await?;
        let servers = if clusters > 2 { Some(ClusterReservation::shared().await) } else { None };
        Some(Self::with(live, name, live.clusters().iter().take(clusters).collect(), servers).await)
    }

    /// On the newest and the oldest Kubernetes, without rings.
    pub async fn with_newest_and_oldest(name: &'static str) -> Option<Self> {
        let live = tier().await?;
        let clusters = vec![live.cluster(0), live.cluster(3)];
        Some(Self::with(live, name, clusters, Some(ClusterReservation::shared().await)).await)
    }

    /// On the oldest Kubernetes alone.
    pub async fn with_oldest(name: &'static str) -> Option<Self> {
        let live = tier().await?;
        Some(Self::with(live, name, vec![live.cluster(3)], Some(ClusterReservation::shared().await)).await)
    }

    /// With all four clusters, of which the test may stop the last two: other tests do not use those meanwhile.
    pub async fn with_exclusive_clusters(name: &'static str) -> Option<Self> {
        let live = tier().await?;
        let clusters = live.clusters().iter().collect();
        Some(Self::with(live, name, clusters, Some(ClusterReservation::exclusive().await)).await)
    }

    /// On other servers than the shared ones.
    pub async fn on_environment(live: &'static LiveEnvironment, name: &'static str) -> Self {
        Self::with(live, name, live.clusters().iter().collect(), None).await
    }

    async fn with(
        live: &'static LiveEnvironment,
        name: &'static str,
        clusters: Vec<&'static LiveCluster>,
        servers: Option<ClusterReservation>,
    ) -> Self {
        let gitea = live.gitea().expect("the setup has one");
        gitea.create_repository(name).await.expect("a new repository");
        let folder = TempDir::new().expect("a temporary folder");
        fs::write(folder.path().join("token"), gitea.token()).expect("a file");
        let worktree = Worktree::create(folder.path().join("config"), gitea.remote(name));
        let (tutti, secrets) = (Mutex::new(None), Mutex::default());
        let scene = Self { name, live, clusters, worktree, tutti, secrets, folder, _servers: servers };
        scene.write_instance("poll: 1s");
        for (index, cluster) in scene.clusters.iter().enumerate() {
            let environment = if index < 2 { "test" } else { "prod" };
            let path = format!("{}/kubeconfig.yaml", cluster.name());
            scene.write_cluster(cluster.name(), environment, &path);
            // A failed test may have left it stopped.
            cluster.start_server().await.expect("a running server");
            cluster.create_namespace(name).await.expect("a new namespace");
        }
        if scene.clusters.len() == 4 {
            scene.worktree.write("rings.yaml", RINGS);
        }
        scene
    }

    /// Writes `tutti.yaml` with further lines in its spec. Rings become waves only if a test asks for it.
    pub fn write_instance(&self, spec: &str) {
        self.write_instance_with(spec, "together");
    }

    pub fn write_instance_with(&self, spec: &str, rollout: &str) {
        let (name, gitea) = (self.name, self.gitea());
        let (url, owner) = (gitea.url(), gitea.user());
        let text = format!(
            "apiVersion: tutti.dev/v1alpha1
kind: Instance
metadata: {{name: {name}}}
spec:
  forge: {{type: gitea, url: '{url}', repository: {owner}/{name}, credentials: {{token: {{env: TUTTI_SECRET_GITEA}}}}}}
  receivers: [{{name: gitea, type: gitea, secrets: [{{env: TUTTI_SECRET_HOOK}}]}}]
  defaults: {{rollout: {rollout}}}
  {spec}
"
        );
        self.worktree.write("tutti.yaml", &text);
    }

    /// `kubeconfig` is relative to the tier's folder, or an absolute path given by `--cluster`.
    pub fn write_cluster(&self, name: &str, environment: &str, kubeconfig: &str) {
        let text = format!(
            "apiVersion: tutti.dev/v1alpha1
kind: Cluster
metadata: {{name: {name}, labels: {{environment: {environment}}}}}
spec:
  connection: {{kubeconfig: {{path: {kubeconfig}, context: admin}}}}
"
        );
        self.worktree.write(&format!("clusters/{name}.yaml"), &text);
    }

    /// Writes an Objects app in the namespace of the scene.
    pub fn write_app(&self, app: &str, objects: &[Value]) {
        self.worktree.write(&format!("apps/{app}/app.yaml"), &super::objects_app(self.name, app));
        self.write_objects(app, objects);
    }

    /// Writes the manifest of such an app, with these lines in its spec.
    pub fn write_spec(&self, app: &str, lines: &[&str]) {
        let lines: String = lines.iter().map(|line| format!("  {line}\n")).collect();
        let text = super::objects_app(self.name, app) + &lines;
        self.worktree.write(&format!("apps/{app}/app.yaml"), &text);
    }

    pub fn write_objects(&self, app: &str, objects: &[Value]) {
        let text: Vec<String> = objects.iter().map(Value::to_string).collect();
        self.worktree.write(&format!("apps/{app}/objects/all.yaml"), &text.join("\n---\n"));
    }

    pub fn name(&self) -> &'static str {
        self.name
    }

    pub fn gitea(&self) -> &'static GiteaServer {
        self.live.gitea().expect("the setup has one")
    }

    pub fn clusters(&self) -> &[&'static LiveCluster] {
        &self.clusters
    }

    pub fn cluster(&self, index: usize) -> &'static LiveCluster {
        self.clusters[index]
    }

    pub fn folder(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    // ---- the binary ----

    /// The folder that kubeconfig paths of Cluster files are relative to.
    pub fn kubeconfigs(&self) -> String {
        self.live.folder().display().to_string()
    }

    /// `command`, then the options for repository and clusters, then `more`.
    pub fn arguments(&self, command: &[&str], more: &[&str]) -> Vec<String> {
        let token = self.folder.path().join("token").display().to_string();
        self.arguments_at(command, &self.gitea().clone_url(self.name), &["--token-file", &token], more)
    }

    /// The same with the working tree instead of the forge.
    pub fn local_arguments(&self, command: &[&str], more: &[&str]) -> Vec<String> {
        self.arguments_at(command, &self.worktree.folder().display().to_string(), &[], more)
    }

    fn arguments_at(&self, command: &[&str], repo: &str, with: &[&str], more: &[&str]) -> Vec<String> {
        let state = self.folder.path().join("state").display().to_string();
        let kubeconfigs = self.kubeconfigs();
        let places = ["--repo", repo, "--state", &state, "--kubeconfigs", &kubeconfigs];
        [command, &places, with, more].concat().into_iter().map(str::to_owned).collect()
    }

    /// Sets a variable for all processes that start from now on.
    pub fn add_variable(&self, name: &str, value: &str) {
        self.secrets.lock().push((name.to_owned(), value.to_owned()));
    }

    fn variables(&self) -> Vec<(String, String)> {
        let token = ("TUTTI_SECRET_GITEA".to_owned(), self.gitea().token().to_owned());
        let mut variables = vec![
            token,
            ("TUTTI_SECRET_HOOK".to_owned(), HOOK_SECRET.to_owned()),
            ("TUTTI_SECRET_RELEASE".to_owned(), RELEASE_TOKEN.to_owned()),
            ("TUTTI_SECRET_API".to_owned(), "a-token-of-the-whole-api".to_owned()),
        ];
        variables.extend(self.secrets.lock().iter().cloned());
        if let Ok(Ok(helm)) = live::HelmPrograms::from_env() {
            variables
                .push((::tutti::chart::RENDERER_VARIABLE.to_owned(), helm.helm_render.display().to_string()));
        }
        variables
    }

    /// Starts `tutti run` and waits until it listens.
    pub async fn start(&self, more: &[&str]) {
        self.start_with(self.arguments(&["run"], more)).await;
    }

    /// The same with only these arguments, and the listen addresses.
    pub async fn start_with(&self, mut arguments: Vec<String>) {
        arguments.extend(LISTEN_ARGUMENTS.map(str::to_owned));
        let log = self.folder.path().join("tutti.log");
        *self.tutti.lock() = Some(TuttiProcess::start(Path::new(BINARY), &arguments, &self.variables(), log));
        self.eventually("tutti listens", async || {
            self.running(|tutti| tutti.address("hooks")).ok_or("no line".to_owned())
        })
        .await;
    }

    /// Starts one more `tutti run` of this build and name, with its own state folder.
    pub fn start_beside(&self, build: &Path, name: &str, more: &[&str]) -> TuttiProcess {
        let state = self.folder.path().join(format!("state-{name}")).display().to_string();
        let mut arguments = self.arguments(&["run"], &[&LISTEN_ARGUMENTS, more].concat());
        if let Some(place) = arguments.iter().position(|it| it == "--state") {
            arguments[place + 1] = state;
        }
        TuttiProcess::start(
            build,
            &arguments,
            &self.variables(),
            self.folder.path().join(format!("{name}.log")),
        )
    }

    pub async fn run(&self, arguments: &[String]) -> CommandResult {
        tutti::run(arguments, &self.variables(), self.folder.path()).await
    }

    /// Runs a pipeline step with only its own variables.
    pub async fn run_step(&self, arguments: &[&str], variables: &[(String, String)]) -> CommandResult {
        let arguments: Vec<String> = arguments.iter().map(|it| (*it).to_owned()).collect();
        tutti::run(&arguments, variables, self.folder.path()).await
    }

    /// Uses the running process.
    pub fn running<Answer>(&self, ask: impl FnOnce(&mut TuttiProcess) -> Answer) -> Answer {
        ask(self.tutti.lock().as_mut().expect("tutti runs"))
    }

    pub fn kill(&self) {
        self.running(TuttiProcess::kill);
    }

    /// Deletes the process's state on disk.
    pub fn delete_state(&self) {
        fs::remove_dir_all(self.folder.path().join("state")).expect("a folder");
    }

    /// Where the forge posts its hooks to.
    pub fn hook_url(&self) -> String {
        self.hook_url_of("gitea")
    }

    pub fn hook_url_of(&self, receiver: &str) -> String {
        let address = self.running(|tutti| tutti.address("hooks")).expect("an address");
        format!("http://{address}/hooks/v1/{receiver}")
    }

    /// The address of the API.
    pub fn api_url(&self) -> String {
        format!("http://{}", self.running(|tutti| tutti.address("status")).expect("an address"))
    }

    // ---- looking ----

    /// Repeats `probe` until it succeeds; on a timeout all logs are shown.
    pub async fn eventually<Answer>(
        &self,
        what: &str,
        probe: impl AsyncFn() -> Result<Answer, String>,
    ) -> Answer {
        eventually(&format!("{}: {what}", self.name), || self.logs(), probe).await
    }

    fn logs(&self) -> String {
        let log = self.tutti.lock().as_ref().map(TuttiProcess::log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        let tail = lines[lines.len().saturating_sub(60)..].join("\n");
        format!("--- tutti of {}\n{tail}\n{}", self.name, self.live.log_tails(4))
    }

    /// Waits until the log has these words in one line for each cluster: a status names only the first one.
    pub async fn until_logged_for_each(&self, words: &[&str]) {
        self.until_logged_for(&self.clusters, words).await;
    }

    /// The same for some clusters.
    pub async fn until_logged_for(&self, clusters: &[&LiveCluster], words: &[&str]) {
        for cluster in clusters {
            let name = cluster.name();
            let is_it = |line: &str| line.contains(name) && words.iter().all(|word| line.contains(word));
            self.eventually(&format!("of {name} it says {words:?}"), async || {
                let log = self.running(|tutti| tutti.log());
                log.lines().any(is_it).then_some(()).ok_or("no such line".to_owned())
            })
            .await;
        }
    }

    /// State and description of the newest status in this context (`deploy`, `deploy/prod`).
    pub async fn status(&self, commit: &str, context: &str) -> Option<(String, String)> {
        let history = self.status_history(commit, context).await;
        history.last().cloned()
    }

    /// All statuses of a commit in a context, oldest first.
    pub async fn status_history(&self, commit: &str, context: &str) -> Vec<(String, String)> {
        let statuses = self.gitea().statuses(self.name, commit).await.unwrap_or_default();
        let text = |status: &Value, key: &str| status[key].as_str().unwrap_or_default().to_owned();
        let context = format!("tutti/{context}");
        let mut mine: Vec<&Value> = statuses.iter().filter(|status| status["context"] == context).collect();
        mine.sort_by_key(|status| status["id"].as_i64());
        mine.into_iter().map(|status| (text(status, "status"), text(status, "description"))).collect()
    }

    /// Waits until a status has this state and contains these words; returns its description.
    pub async fn until_status(&self, commit: &str, context: &str, state: &str, words: &[&str]) -> String {
        let what = format!("{context} of {} says {state} {words:?}", &commit[..8]);
        self.eventually(&what, async || match self.status(commit, context).await {
            Some((found, text)) if found == state && words.iter().all(|word| text.contains(word)) => Ok(text),
            found => Err(format!("it says {found:?}")),
        })
        .await
    }

    /// Waits until every context of the scene is success.
    pub async fn until_succeeded(&self, commit: &str) {
        for context in self.contexts() {
            self.until_status(commit, context, "success", &[]).await;
        }
    }

    pub fn contexts(&self) -> &'static [&'static str] {
        if self.clusters.len() == 4 { &["deploy/test", "deploy/prod"] } else { &["deploy"] }
    }

    /// An object of the scene's namespace: `kind` is the path's (`apis/apps/v1/…/deployments`), short.
    pub async fn object(&self, cluster: &LiveCluster, kind: &str, name: &str) -> Result<Value, String> {
        cluster.get(&self.path(kind, name)).await.map_err(|error| error.to_string())
    }

    /// Objects of the scene's namespace, with a query such as `?labelSelector=…`.
    pub async fn list(&self, cluster: &LiveCluster, kind: &str, query: &str) -> Vec<Value> {
        let answer = cluster.get(&self.path(kind, query)).await.expect("a list");
        answer["items"].as_array().cloned().unwrap_or_default()
    }

    fn path(&self, kind: &str, rest: &str) -> String {
        let in_apps = matches!(kind, "daemonsets" | "deployments" | "replicasets" | "statefulsets");
        let group = if in_apps { "apis/apps/v1" } else { "api/v1" };
        let rest =
            if rest.is_empty() || rest.starts_with('?') { rest.to_owned() } else { format!("/{rest}") };
        format!("/{group}/namespaces/{}/{kind}{rest}", self.name)
    }

    /// Our objects, by label.
    pub async fn managed_objects(&self, cluster: &LiveCluster, kind: &str) -> Vec<Value> {
        self.list(cluster, kind, &format!("?labelSelector=tutti.dev%2Fmanaged-by%3D{}", self.name)).await
    }

    /// Waits until all replicas of the Deployment are ready and run this image.
    pub async fn until_ready(&self, cluster: &LiveCluster, deployment: &str, image: &str, replicas: u32) {
        let wanted = format!("{image} {replicas}/{replicas}");
        self.eventually(&format!("{deployment} on {} is {wanted}", cluster.name()), async || {
            let found = self.object(cluster, "deployments", deployment).await?;
            let image =
                found["spec"]["template"]["spec"]["containers"][0]["image"].as_str().unwrap_or_default();
            let status = &found["status"];
            let seen = format!("{image} {}/{}", status["readyReplicas"], status["updatedReplicas"]);
            if seen == wanted { Ok(()) } else { Err(seen) }
        })
        .await;
    }
}

const RINGS: &str = "apiVersion: tutti.dev/v1alpha1
kind: Rings
metadata: {name: rings}
spec:
  rings:
    - {name: test, clusters: {matchLabels: {environment: test}}}
    - {name: prod, clusters: {matchLabels: {environment: prod}}}
";
