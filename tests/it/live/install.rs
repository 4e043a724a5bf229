//! tutti installed as README says: the manifests of `deploy/` on a real server, and the binary of the image with the token of its
//! account, with only the rights of `deploy/` and `tutti cluster rbac`.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use live::LiveCluster;
use serde_json::{Value, json};

use super::installation::{
    ACCOUNT, NAMESPACE, USER, deploy_documents, documents, manifests, repository, until_available,
};
use super::support::{
    HOOK_SECRET, LiveFixture, TuttiProcess, configmap, deployment, print_uncaptured, service,
};
use crate::support::image_root::RUN;

/// The path below its root where a kubelet mounts the token.
const TOKEN_PATH: &str = "var/run/secrets/kubernetes.io/serviceaccount";

fn run_program(program: &str, arguments: &[&str]) {
    let ended = Command::new(program).args(arguments).current_dir(repository()).output().expect(program);
    assert!(ended.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&ended.stderr));
}

/// The image of this binary, unpacked by another program than the one that packed it.
struct UnpackedImage {
    root: PathBuf,
    /// The environment of the image, as `NAME=VALUE`.
    environment: Vec<String>,
}

impl UnpackedImage {
    fn unpack(folder: &Path) -> Self {
        let (image, bundle) = (folder.join("image"), folder.join("bundle"));
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
        let out = image.display().to_string();
        let make = [
            "run",
            "-q",
            "-p",
            "xtask",
            "--",
            "image",
            "--any-size",
            "--binary",
            env!("CARGO_BIN_EXE_tutti"),
            "--out",
            &out,
        ];
        run_program(&cargo, &make);
        let tag = format!("{out}/oci:{}", env!("CARGO_PKG_VERSION"));
        run_program("umoci", &["unpack", "--image", &tag, &bundle.display().to_string()]);
        let config: Value =
            serde_json::from_slice(&fs::read(bundle.join("config.json")).expect("a file")).expect("JSON");
        let environment = config["process"]["env"].as_array().into_iter().flatten();
        let environment = environment.map(|it| it.as_str().expect("a text").to_owned()).collect();
        Self { root: bundle.join("rootfs"), environment }
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(&path, text).expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("permissions");
    }

    /// With variables and arguments of the Deployment, but with loopback addresses.
    fn start(&self, server: &str, log: PathBuf) -> TuttiProcess {
        let (host, port) = server.trim_start_matches("https://").rsplit_once(':').expect("an address");
        let container =
            &deploy_documents("deployment.yaml")[0]["spec"]["template"]["spec"]["containers"][0].clone();
        let variables = container["env"].as_array().expect("variables").iter();
        let variables = variables.map(|it| {
            let text = |key: &str| it[key].as_str().expect("a text");
            let value = if text("name").ends_with("LISTEN") { "127.0.0.1:0" } else { text("value") };
            format!("{}={value}", text("name"))
        });
        let arguments = container["args"].as_array().expect("arguments").iter();
        let arguments = arguments.map(|it| it.as_str().expect("a text").to_owned());
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--", "unshare", "--mount", "sh", "-c", RUN, "sh"]);
        command.arg(&self.root).args(&self.environment).args(variables);
        command.args([format!("KUBERNETES_SERVICE_HOST={host}"), format!("KUBERNETES_SERVICE_PORT={port}")]);
        command.args(["/usr/sbin/chroot", "--userspec=65532:65532"]).arg(&self.root).arg("/usr/bin/tutti");
        command.args(arguments).stdin(Stdio::null());
        TuttiProcess::spawn(command, log)
    }
}

/// `get configmaps`, `patch deployments.apps`: each verb on each resource of these roles.
fn granted_rights(documents: &[Value]) -> BTreeSet<String> {
    let mut rights = BTreeSet::new();
    let texts = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().map(|it| it.as_str().expect("a text").to_owned()).collect()
    };
    let roles = documents.iter().filter(|it| matches!(it["kind"].as_str(), Some("Role" | "ClusterRole")));
    for rule in roles.flat_map(|role| role["rules"].as_array().into_iter().flatten()) {
        for verb in texts(&rule["verbs"]) {
            for resource in texts(&rule["resources"]) {
                for group in texts(&rule["apiGroups"]) {
                    let (resource, sub) = resource.split_once('/').unwrap_or((&resource, ""));
                    let group = if group.is_empty() { group } else { format!(".{group}") };
                    let sub = if sub.is_empty() { String::new() } else { format!("/{sub}") };
                    rights.insert(format!("{verb} {resource}{group}{sub}"));
                }
            }
        }
    }
    rights
}

async fn apply(cluster: &LiveCluster, documents: &[Value]) {
    let list = json!({"apiVersion": "v1", "kind": "List", "items": documents}).to_string();
    cluster.kubectl_with_input(&["apply", "-f", "-"], &list).await.expect("applied");
}

#[tokio::test]
async fn the_image_needs_only_the_printed_rights() {
    let Some(scene) = LiveFixture::new("install", 1).await else { return };
    let cluster = scene.cluster(0);
    // The repository: this cluster is the one that tutti runs in, and names are those of the mounted Secret.
    scene.worktree.remove(&format!("clusters/{}.yaml", cluster.name()));
    let home = "apiVersion: tutti.dev/v1alpha1\nkind: Cluster\nmetadata: {name: home, labels: {environment: test}}\n\
                spec: {connection: {inCluster: {}}}\n";
    scene.worktree.write("clusters/home.yaml", home);
    scene.write_instance("poll: 1s\n  caps: {deletes: 100, deletePercent: 100}");
    let instance = fs::read_to_string(scene.worktree.folder().join("tutti.yaml")).expect("a file");
    let instance = instance
        .replace("{env: TUTTI_SECRET_GITEA}", "{file: token}")
        .replace("{env: TUTTI_SECRET_HOOK}", "{file: hook}");
    scene.worktree.write("tutti.yaml", &instance);
    let objects = |image: &str, value: &str| {
        vec![deployment("web", image, 1), service("web"), configmap("settings", "a", value)]
    };
    scene.write_app("web", &objects("shop/web:1", "1"));
    let commit = scene.worktree.publish("first");

    // The steps of README, except for the image, which cannot be pulled here.
    let folder = manifests().display().to_string();
    cluster.kubectl(&["apply", "-f", &folder]).await.expect("applied");
    cluster.kubectl(&["apply", "-f", &folder]).await.expect("applied again");
    let repo = scene.worktree.folder().display().to_string();
    let arguments = ["cluster", "rbac", "home", "--repo", &repo, "--service-account", ACCOUNT];
    let printed = scene.run(&arguments.map(str::to_owned)).await;
    assert_eq!(printed.code, Some(0), "{}", printed.stderr);
    let printed = documents(&printed.stdout);
    apply(cluster, &printed).await;
    until_available(cluster).await;

    let image = UnpackedImage::unpack(&scene.folder());
    let token = cluster.kubectl(&["create", "token", "tutti", "-n", NAMESPACE]).await.expect("a token");
    let config = fs::read_to_string(cluster.kubeconfig()).expect("a kubeconfig");
    let config: Value = serde_yaml::from_str(&config).expect("YAML");
    let authority = config["clusters"][0]["cluster"]["certificate-authority-data"].as_str().expect("a text");
    let authority = base64_text(authority);
    image.write(&format!("{TOKEN_PATH}/token"), token.trim());
    image.write(&format!("{TOKEN_PATH}/ca.crt"), &authority);
    image.write(&format!("{TOKEN_PATH}/namespace"), NAMESPACE);
    image.write("etc/tutti/secrets/token", scene.gitea().token());
    image.write("etc/tutti/secrets/hook", HOOK_SECRET);
    let settings =
        deploy_documents("configmap.yaml")[0]["data"]["settings.yaml"].as_str().expect("a text").to_owned();
    let url = scene.gitea().clone_url(scene.name());
    image.write(
        "etc/tutti/settings/settings.yaml",
        &settings.replace("https://git.example.com/platform/config.git", &url),
    );
    let process = image.start(cluster.server(), scene.folder().join("tutti.log"));
    scene
        .eventually("it leads", async || {
            let log = process.log();
            if log.contains("leads: holds the Lease tutti") { Ok(()) } else { Err(log) }
        })
        .await;
    scene.until_succeeded(&commit).await;
    scene.until_ready(cluster, "web", "shop/web:1", 1).await;

    // Everything else that it has rights for: drift, a missing image, a crash, a delete.
    let edit = ["patch", "configmap", "settings", "-n", scene.name(), "-p", r#"{"data": {"a": "2"}}"#];
    cluster.kubectl(&edit).await.expect("edited");
    scene
        .eventually("what was edited by hand is as in Git", async || {
            let found = scene.object(cluster, "configmaps", "settings").await?;
            if found["data"]["a"] == "1" { Ok(()) } else { Err(found["data"].to_string()) }
        })
        .await;
    let mut crashing = objects("shop/web:2", "1");
    let fails = json!({"sim.tutti.dev/fail": "crash-loop"});
    crashing[0]["spec"]["template"]["metadata"]["annotations"] = fails;
    scene.write_objects("web", &crashing);
    let crash = scene.worktree.publish("a container that crashes");
    scene.until_status(&crash, "deploy", "failure", &["CrashLoopBackOff"]).await;
    scene.write_objects("web", &objects("shop/web:3", "2"));
    let mended = scene.worktree.publish("mended");
    scene.until_succeeded(&mended).await;
    scene.worktree.remove("apps/web/app.yaml");
    scene.worktree.remove("apps/web/objects/all.yaml");
    scene.worktree.publish("no app any more");
    scene
        .eventually("what Git wants no longer is gone", async || {
            let mut left = Vec::new();
            for kind in ["configmaps", "deployments", "services"] {
                left.extend(scene.managed_objects(cluster, kind).await);
            }
            if left.is_empty() { Ok(()) } else { Err(format!("{} are left: {}", left.len(), process.log())) }
        })
        .await;
    let log = process.log();
    assert!(!log.contains("forbidden"), "{log}");
    // Watches are in the audit log when they end.
    drop(process);

    let roles: Vec<Value> = printed.into_iter().chain(deploy_documents("role.yaml")).collect();
    let granted = granted_rights(&roles);
    let used = |asked: &[live::AuditedRequest]| -> BTreeSet<String> {
        // Simulated nodes have no logs: the request itself is allowed.
        let allowed = asked.iter().filter(|it| !matches!(it.status, 401 | 403));
        // For an apply that creates, the server also checks the right to create.
        let creates = |it: &live::AuditedRequest| it.verb == "patch" && it.status == 201;
        let verbs =
            allowed.flat_map(|it| [Some(&*it.verb), creates(it).then_some("create")].map(|verb| (verb, it)));
        verbs.filter_map(|(verb, it)| Some(format!("{} {}", verb?, it.resource))).collect()
    };
    let asked = scene
        .eventually("all rights were used", async || {
            let asked = cluster.requests_of(USER).expect("an audit log");
            let unused: Vec<String> = granted.difference(&used(&asked)).cloned().collect();
            if unused.is_empty() { Ok(asked) } else { Err(format!("{unused:?} of {granted:?}")) }
        })
        .await;
    // Our objects are looked up among all kinds, also those without a granted right.
    let refused: BTreeSet<String> = asked
        .iter()
        .filter(|it| it.status == 403 && !(it.verb == "list" && it.uri.contains("labelSelector=")))
        .map(|it| format!("{} {}", it.verb, it.uri))
        .collect();
    print_uncaptured(&format!(
        "live tests: {} rights granted, all used by {} requests",
        granted.len(),
        asked.len()
    ));
    assert!(refused.is_empty(), "{refused:?}");
    cluster.kubectl(&["delete", "namespace", NAMESPACE, "--wait=false"]).await.expect("deleted");
}

fn base64_text(text: &str) -> String {
    use base64::Engine as _;
    let bytes = base64::engine::general_purpose::STANDARD.decode(text).expect("base64");
    String::from_utf8(bytes).expect("a text")
}
