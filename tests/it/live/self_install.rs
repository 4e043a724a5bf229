//! tutti as an app of its own repository, step by step as in `docs/install.md`, on the oldest Kubernetes: installed by kubectl,
//! adopted, upgraded by a commit, and orphaned. Its pods are simulated, so the process runs outside of the cluster with their account.

use std::fs;

use live::LiveCluster;
use serde_json::{Value, json};

use super::credentials::with_user;
use super::installation::{
    ACCOUNT, NAMESPACE, REPLICAS, assert_rolling_update, deployment, installed_objects, manifests,
    tutti_object, until_available,
};
use super::support::{HOOK_SECRET, LiveFixture, TuttiProcess};

const DEPLOYMENT: &str = "apps/tutti/objects/deployment.yaml";

struct SelfInstallation {
    scene: LiveFixture,
}

impl SelfInstallation {
    /// Step 1: `tutti init`, committed and pushed.
    async fn init_and_push(name: &'static str) -> Option<(Self, String)> {
        let scene = LiveFixture::with_oldest(name).await?;
        let installation = Self { scene };
        installation.uninstall().await;
        let (scene, gitea) = (&installation.scene, installation.scene.gitea());
        // The initial files of the scene are those of other tests.
        scene.worktree.remove("tutti.yaml");
        scene.worktree.remove(&format!("clusters/{}.yaml", scene.cluster(0).name()));
        let (url, repository) = (gitea.clone_url(name), format!("{}/{name}", gitea.user()));
        let init = ["init", "config", "--install", &url, "--name", name];
        let forge = ["--forge", gitea.url(), "--forge-repository", &repository];
        let said = installation.tutti(&[&init[..], &forge].concat()).await;
        assert!(said.contains("\n  kubectl apply -f config/apps/tutti/objects/\n"), "{said}");
        let text = installation.read("tutti.yaml");
        scene.worktree.write("tutti.yaml", &text.replace("\nspec:\n", "\nspec:\n  poll: 1s\n"));
        let commit = scene.worktree.publish("tutti itself");
        Some((installation, commit))
    }

    fn cluster(&self) -> &'static LiveCluster {
        self.scene.cluster(0)
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.scene.worktree.folder().join(path)).expect("a file")
    }

    async fn kubectl(&self, arguments: &[&str]) -> String {
        self.cluster().kubectl(arguments).await.expect("kubectl")
    }

    /// The repository is the folder `config`.
    async fn tutti(&self, arguments: &[&str]) -> String {
        let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        let ended = self.scene.run(&arguments).await;
        assert_eq!(ended.code, Some(0), "{arguments:?}: {}{}", ended.stdout, ended.stderr);
        ended.stdout
    }

    async fn rights(&self) -> String {
        self.tutti(&["cluster", "rbac", "home", "--repo", "config", "--service-account", ACCOUNT]).await
    }

    /// Step 2, with those of "Four commands": the objects, the Secret, the rights.
    async fn install(&self) {
        let objects = self.scene.worktree.folder().join("apps/tutti/objects").display().to_string();
        self.kubectl(&["apply", "-f", &objects]).await;
        let secrets = self.scene.folder().join("secrets");
        fs::create_dir(&secrets).expect("a folder");
        let file = |key: &str, text: &str| {
            fs::write(secrets.join(key), format!("{text}\n")).expect("a file");
            format!("--from-file={key}={}", secrets.join(key).display())
        };
        let (token, hook) = (file("token", self.scene.gitea().token()), file("hook", HOOK_SECRET));
        self.kubectl(&["-n", NAMESPACE, "create", "secret", "generic", "tutti", &token, &hook]).await;
        let roles = self.rights().await;
        self.cluster().kubectl_with_input(&["apply", "-f", "-"], &roles).await.expect("roles");
        until_available(self.cluster()).await;
    }

    /// The process with the settings of the ConfigMap. The Secret and account of its pod are passed by name.
    async fn run(&self) {
        let folder = self.scene.folder();
        let settings =
            ["-n", NAMESPACE, "get", "configmap", "tutti", "-o", r"jsonpath={.data.settings\.yaml}"];
        let settings = self.kubectl(&settings).await;
        let secrets = folder.join("secrets").display().to_string();
        let config = folder.join("settings.yaml");
        fs::write(&config, settings.replace("/etc/tutti/secrets", &secrets)).expect("a file");
        let token = self.kubectl(&["-n", NAMESPACE, "create", "token", "tutti"]).await;
        let text = fs::read_to_string(self.cluster().kubeconfig()).expect("a kubeconfig");
        let account = folder.join("account.yaml");
        fs::write(&account, with_user(&text, &format!("    token: {}\n", token.trim()))).expect("a file");

        let (config, account) = (config.display().to_string(), account.display().to_string());
        let (way, state) = (format!("home={account}"), folder.join("state").display().to_string());
        let settings =
            ["--config", &config, "--state", &state, "--cluster", &way, "--home-kubeconfig", &account];
        let doctor = [&["doctor", "home"], &settings[..]].concat();
        let doctor: Vec<String> = doctor.into_iter().map(str::to_owned).collect();
        self.scene
            .eventually("all rights are there", async || {
                let ended = self.scene.run(&doctor).await;
                if ended.code == Some(0) { Ok(()) } else { Err(ended.stdout + &ended.stderr) }
            })
            .await;
        let lease = format!("{NAMESPACE}/tutti");
        let run = [&["run"], &settings[..], &["--lease", &lease]].concat();
        self.scene.start_with(run.into_iter().map(str::to_owned).collect()).await;
    }

    /// Kinds, names and uids of the objects.
    async fn identities(&self) -> Vec<Value> {
        let objects = installed_objects(self.cluster()).await;
        objects.iter().map(|it| json!([it["kind"], it["metadata"]["name"], it["metadata"]["uid"]])).collect()
    }

    /// The names of pods that are not terminating.
    async fn pods(&self) -> Vec<String> {
        let list = self.cluster().get(&format!("/api/v1/namespaces/{NAMESPACE}/pods")).await.expect("pods");
        let pods = list["items"].as_array().into_iter().flatten();
        let pods = pods.filter(|pod| pod["metadata"]["deletionTimestamp"].is_null());
        let mut names: Vec<String> =
            pods.filter_map(|pod| pod["metadata"]["name"].as_str().map(str::to_owned)).collect();
        names.sort();
        names
    }

    /// As under "Uninstall".
    async fn uninstall(&self) {
        let manifests = manifests().display().to_string();
        self.kubectl(&["delete", "-f", &manifests, "--ignore-not-found"]).await;
    }
}

#[tokio::test]
async fn tutti_installs_upgrades_and_leaves_itself() {
    let Some((tutti, first)) = SelfInstallation::init_and_push("self-install").await else { return };
    let scene = &tutti.scene;
    tutti.install().await;
    let (identities, pods) = (tutti.identities().await, tutti.pods().await);
    assert_eq!(pods.len() as u64, REPLICAS, "{pods:?}");

    // It adopts itself without restarting a pod.
    tutti.run().await;
    scene.until_succeeded(&first).await;
    for object in installed_objects(tutti.cluster()).await {
        let metadata = &object["metadata"];
        assert_eq!(metadata["labels"]["tutti.dev/managed-by"], scene.name(), "{object}");
        assert_eq!(metadata["annotations"]["tutti.dev/prune"], "keep", "{object}");
    }
    assert_eq!((tutti.identities().await, tutti.pods().await), (identities.clone(), pods));
    let lease = tutti_object(tutti.cluster(), "coordination.k8s.io/v1", "leases").await;
    let is_held = lease["spec"]["holderIdentity"].as_str().is_some_and(|holder| !holder.is_empty());
    assert!(is_held && !lease["metadata"]["labels"].to_string().contains("tutti.dev"), "{lease}");

    // An upgrade is a commit.
    let before = deployment(tutti.cluster()).await;
    let manifest = tutti.read(DEPLOYMENT);
    let image = concat!("image: ghcr.io/tutti-dev/tutti:", env!("CARGO_PKG_VERSION"), "\n");
    assert!(manifest.contains(image), "{manifest}");
    scene.worktree.write(DEPLOYMENT, &manifest.replace(image, "image: ghcr.io/tutti-dev/tutti:next\n"));
    let upgrade = scene.worktree.publish("an upgrade");
    scene.until_succeeded(&upgrade).await;
    until_available(tutti.cluster()).await;
    assert_rolling_update(tutti.cluster(), &before).await;
    let image =
        deployment(tutti.cluster()).await["spec"]["template"]["spec"]["containers"][0]["image"].take();
    assert_eq!(image, "ghcr.io/tutti-dev/tutti:next");

    // Objects removed from the repository stay.
    let pods = tutti.pods().await;
    fs::remove_dir_all(scene.worktree.folder().join("apps/tutti")).expect("a folder to remove");
    let gone = scene.worktree.publish("without tutti");
    scene.until_status(&gone, "deploy", "success", &["no change"]).await;
    let log = scene.running(|tutti| tutti.log());
    assert!(!log.contains("forbidden"), "{log}");
    assert_eq!(scene.running(TuttiProcess::stop), Some(0));
    assert_eq!((tutti.identities().await, tutti.pods().await), (identities, pods));

    tutti.uninstall().await;
    let roles = tutti.rights().await;
    let delete = ["delete", "--ignore-not-found", "-f", "-"];
    tutti.cluster().kubectl_with_input(&delete, &roles).await.expect("deleted");
    let left = tutti.kubectl(&["get", "namespaces,clusterroles,clusterrolebindings", "-o", "name"]).await;
    let ours = [NAMESPACE.to_owned(), format!("tutti-{}", scene.name())];
    let left: Vec<&str> = left.lines().filter(|line| ours.iter().any(|it| line.ends_with(&**it))).collect();
    assert!(left.is_empty(), "{left:?}");
}
