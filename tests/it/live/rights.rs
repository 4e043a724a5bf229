//! An account with exactly the rights that `tutti cluster rbac` prints: everything works. With one less, the error and
//! `tutti doctor` name what is missing.

use std::fs;
use std::path::Path;

use live::Cluster;
use serde::Deserialize;
use serde_json::{Value, json};

use super::credentials::with_user;
use super::support::{Scene, configmap, deployment, objects_app, service};
use crate::transcripts;

/// A scene with one cluster, and an account there that has no rights yet.
struct Account {
    scene: Scene,
    /// What the repository calls it.
    cluster: &'static str,
    /// Which of the scene's clusters that is.
    server: usize,
    way: String,
}

impl Account {
    async fn new(name: &'static str, cluster: &'static str) -> Option<Self> {
        Self::on(name, cluster, 0).await
    }

    async fn on(name: &'static str, cluster: &'static str, server: usize) -> Option<Self> {
        let scene = Scene::new(name, server + 1).await?;
        scene.write_instance("poll: 1s\n  caps: {deletes: 100, deletePercent: 100}");
        let way = scene.folder().join("account.yaml").display().to_string();
        Some(Self { scene, cluster, server, way: format!("{cluster}={way}#admin") })
    }

    /// What the command prints, document by document.
    async fn printed(&self) -> Vec<Value> {
        let repo = self.scene.worktree.folder().display().to_string();
        let account = format!("{}/tutti", self.scene.name());
        let arguments = ["cluster", "rbac", self.cluster, "--repo", &repo, "--service-account", &account]
            .map(str::to_owned);
        let ended = self.scene.run(&arguments).await;
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let documents = serde_yaml::Deserializer::from_str(&ended.stdout);
        documents
            .map(|document| Value::deserialize(document).expect("a document"))
            .filter(Value::is_object)
            .collect()
    }

    fn server(&self) -> &'static Cluster {
        self.scene.cluster(self.server)
    }

    async fn grant(&self, documents: &[Value]) {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": documents}).to_string();
        let arguments = ["apply", "-f", "-"];
        self.server().kubectl_with_input(&arguments, &list).await.expect("roles");
    }

    /// Logs in with a token of the account from now on.
    async fn log_in(&self) {
        let arguments = ["create", "token", "tutti", "-n", self.scene.name()];
        let token = self.server().kubectl(&arguments).await.expect("a token");
        let text = fs::read_to_string(self.server().kubeconfig()).expect("a kubeconfig");
        let text = with_user(&text, &format!("    token: {}\n", token.trim()));
        fs::write(self.scene.folder().join("account.yaml"), text).expect("a file");
    }

    /// Until there is nothing left to do or to wait for: the exit code, and all that it says.
    async fn once(&self, timeout: &str) -> (Option<i32>, String) {
        let more = ["--timeout", timeout, "--cluster", &self.way];
        let ended = self.scene.run(&self.scene.arguments(&["run", "--once"], &more)).await;
        // Logs may quote what a server says.
        (ended.code, format!("{}{}", ended.stdout, ended.stderr).replace("\\\"", "\""))
    }

    /// The exit code, and all that is missing.
    async fn doctor(&self) -> (Option<i32>, Vec<String>) {
        let more = ["--cluster", &self.way, "-o", "json"];
        let ended = self.scene.run(&self.scene.arguments(&["doctor"], &more)).await;
        let report: Value = serde_json::from_str(&ended.stdout).expect(&ended.stderr);
        let findings = report["clusters"][0]["findings"].as_array().expect("findings");
        let missing = findings.iter().filter_map(|finding| finding["missing"].as_array()).flatten();
        let rights = missing.filter_map(|missing| missing["rights"].as_array()).flatten();
        (ended.code, rights.filter_map(|right| right.as_str().map(ToOwned::to_owned)).collect())
    }

    /// With a certificate instead of a token, and all rights.
    async fn administrator_is_examined(&self) {
        let ended = self.scene.run(&self.scene.arguments(&["doctor"], &[])).await;
        assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
        for words in [
            "client certificate of user ",
            "it answers, Kubernetes v1.",
            "its clock and ours agree",
            "all that are rendered",
            &format!("{} at http", self.scene.name()),
        ] {
            assert!(ended.stdout.contains(words), "no {words:?} in {}", ended.stdout);
        }
    }

    /// The server takes a moment to know new roles.
    async fn misses(&self, expected: &[&str]) {
        let code = Some(if expected.is_empty() { 0 } else { 5 });
        self.scene
            .eventually(&format!("doctor says that {expected:?} is missing"), async || {
                let (found, missing) = self.doctor().await;
                if found == code && missing == expected {
                    Ok(())
                } else {
                    Err(format!("{found:?} {missing:?}"))
                }
            })
            .await;
    }
}

/// Everything of the roles but this verb on this resource.
fn without(documents: &[Value], verb: &str, resource: &str) -> Vec<Value> {
    let list = |rule: &Value, key: &str| rule[key].as_array().cloned().unwrap_or_default();
    let mut documents = documents.to_vec();
    let mut taken = 0;
    for document in &mut documents {
        let Some(rules) = document.get_mut("rules").and_then(Value::as_array_mut) else { continue };
        let mut split = Vec::new();
        for rule in std::mem::take(rules) {
            let (resources, verbs) = (list(&rule, "resources"), list(&rule, "verbs"));
            if !resources.contains(&json!(resource)) || !verbs.contains(&json!(verb)) {
                split.push(rule);
                continue;
            }
            taken += 1;
            let (mut others, mut less) = (rule.clone(), rule);
            others["resources"] = resources.into_iter().filter(|it| it != resource).collect();
            less["resources"] = json!([resource]);
            less["verbs"] = verbs.into_iter().filter(|it| it != verb).collect();
            split.extend([(others, "resources"), (less, "verbs")].into_iter().filter_map(|(rule, key)| {
                let is_empty = rule[key].as_array().is_some_and(Vec::is_empty);
                (!is_empty).then_some(rule)
            }));
        }
        *rules = split;
    }
    assert!(taken > 0, "{verb} {resource} is in no rule");
    documents
}

/// Objects whose names end in the round, so that each round looks up, creates, changes, and deletes.
fn objects(round: usize) -> Vec<Value> {
    let rules = json!([{"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["*"]}]);
    let group = "rbac.authorization.k8s.io";
    let name = |base: &str| format!("{base}-{round}");
    let subjects = json!([{"kind": "Group", "apiGroup": group, "name": "dev"}]);
    let binding = |name: String, kind: &str, role: &str| {
        json!({
            "apiVersion": format!("{group}/v1"), "kind": "RoleBinding", "metadata": {"name": name},
            "roleRef": {"apiGroup": group, "kind": kind, "name": role}, "subjects": subjects,
        })
    };
    vec![
        deployment("web", &format!("shop/web:1.{round}"), 1),
        service("web"),
        configmap(&name("settings"), "a", "1"),
        json!({"apiVersion": format!("{group}/v1"), "kind": "Role", "metadata": {"name": name("deployer")}, "rules": rules}),
        binding(name("deployers"), "Role", &name("deployer")),
        binding(name("viewers"), "ClusterRole", "view"),
    ]
}

#[tokio::test]
async fn with_the_printed_rights_everything_works() {
    let Some(account) = Account::new("rights-all", "cluster-1").await else { return };
    let scene = &account.scene;
    let space = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "rights-all-own"}});
    let limits = json!({
        "apiVersion": "v1", "kind": "LimitRange",
        "metadata": {"name": "limits", "namespace": "rights-all-own"},
        "spec": {"limits": [{"type": "Container", "default": {"cpu": "1"}}]},
    });
    scene.write_app("space", &[space, limits]);
    scene.write_app("web", &objects(0));
    // What kubectl made, with a field that goes when it is adopted.
    let make =
        ["create", "configmap", "legacy", "--from-literal=a=1", "--from-literal=b=2", "-n", scene.name()];
    scene.cluster(0).kubectl(&make).await.expect("made");
    scene.write_app("legacy", &[configmap("legacy", "a", "1")]);
    let adopting = objects_app(scene.name(), "legacy") + "  adopt: true\n";
    scene.worktree.write("apps/legacy/app.yaml", &adopting);
    scene.worktree.publish("first");
    account.grant(&account.printed().await).await;
    account.log_in().await;
    account.misses(&[]).await;
    account.administrator_is_examined().await;

    let (code, said) = account.once("60").await;
    assert_eq!(code, Some(0), "{said}");
    assert!(!said.contains("forbidden") && said.contains("we may not list some kinds"), "{said}");
    scene.ready(scene.cluster(0), "web", "shop/web:1.0", 1).await;
    let legacy = scene.object(scene.cluster(0), "configmaps", "legacy").await.expect("there");
    assert_eq!(legacy["data"], json!({"a": "1"}));

    scene.start(&["--cluster", &account.way]).await;
    let delete = ["delete", "configmap", "settings-0", "-n", scene.name()];
    scene.cluster(0).kubectl(&delete).await.expect("deleted");
    let again = "what was deleted by hand is back";
    scene.eventually(again, async || scene.object(scene.cluster(0), "configmaps", "settings-0").await).await;

    let edit = ["patch", "configmap", "legacy", "-n", scene.name(), "-p", r#"{"data": {"a": "2"}}"#];
    scene.cluster(0).kubectl(&edit).await.expect("edited");
    scene
        .eventually("what was edited by hand is as in Git", async || {
            let found = scene.object(scene.cluster(0), "configmaps", "legacy").await?;
            if found["data"]["a"] == "1" { Ok(()) } else { Err(found["data"].to_string()) }
        })
        .await;

    scene.write_objects("web", &objects(0)[..2]);
    let commit = scene.worktree.publish("less");
    scene.succeeded(&commit).await;
    scene
        .eventually("what Git wants no longer is gone", async || {
            match scene.ours(scene.cluster(0), "configmaps").await.len() {
                1 => Ok(()),
                left => Err(format!("{left} left")),
            }
        })
        .await;
}

#[tokio::test]
async fn the_example_rolls_out_with_the_printed_rights() {
    // The first two have the samples, whose apps are in the example too.
    let Some(account) = Account::on("rights-example", "bj-prod", 2).await else { return };
    let scene = &account.scene;
    for cluster in ["cluster-1", "cluster-2", "cluster-3"] {
        scene.worktree.remove(&format!("clusters/{cluster}.yaml"));
    }
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/repo");
    for (path, text) in transcripts::read(&example) {
        scene.worktree.write(&path, &text);
    }
    scene.worktree.publish("the example");
    account.grant(&account.printed().await).await;
    account.log_in().await;

    let ways = ["--cluster", "*=sandbox", "--cluster", &account.way];
    scene
        .eventually("all rights are there", async || {
            let ended = scene.run(&scene.local_arguments(&["doctor"], &ways)).await;
            if ended.code == Some(0) { Ok(()) } else { Err(ended.stdout) }
        })
        .await;
    let ended = scene.run(&scene.local_arguments(&["run", "--once", "--timeout", "90"], &ways)).await;
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    assert!(!ended.stderr.contains("forbidden"), "{}", ended.stderr);
    let deployment = account.server().get("/apis/apps/v1/namespaces/shop/deployments/shop-web").await;
    assert_eq!(deployment.expect("there")["metadata"]["labels"]["tutti.dev/managed-by"], "main");
}

#[tokio::test]
async fn with_one_right_less_the_error_and_doctor_name_it() {
    let Some(account) = Account::new("rights-less", "cluster-1").await else { return };
    let scene = &account.scene;
    scene.write_app("web", &objects(0));
    scene.worktree.publish("first");
    account.grant(&account.printed().await).await;
    account.log_in().await;
    account.misses(&[]).await;
    assert_eq!(account.once("60").await.0, Some(0));

    // What is taken, what doctor calls it, and the server's words for it.
    let place = "in namespace rights-less";
    let rbac = "rbac.authorization.k8s.io";
    let samples = [
        ("get", "configmaps", format!("get configmaps {place}"), "cannot get resource \"configmaps\""),
        (
            "create",
            "configmaps",
            format!("create configmaps {place}"),
            "cannot create resource \"configmaps\"",
        ),
        (
            "patch",
            "deployments",
            format!("patch deployments.apps {place}"),
            "cannot patch resource \"deployments\"",
        ),
        (
            "delete",
            "configmaps",
            format!("delete configmaps {place}"),
            "cannot delete resource \"configmaps\"",
        ),
        ("list", "configmaps", "list configmaps".to_owned(), "cannot list resource \"configmaps\""),
        ("watch", "services", "watch services".to_owned(), "cannot watch resource \"services\""),
        (
            "escalate",
            "roles",
            format!("escalate roles.{rbac} deployer-7 {place}"),
            "attempting to grant RBAC permissions not currently held",
        ),
        (
            "bind",
            "clusterroles",
            format!("bind clusterroles.{rbac} view {place}"),
            "attempting to grant RBAC permissions not currently held",
        ),
    ];
    for (index, (verb, resource, called, refused)) in samples.iter().enumerate() {
        let round = index + 1;
        scene.write_objects("web", &objects(round));
        scene.worktree.publish(&format!("round {round}"));
        let whole = account.printed().await;
        account.grant(&without(&whole, verb, resource)).await;
        account.misses(&[called]).await;
        let (code, said) = account.once("6").await;
        if *verb == "list" {
            // A server that streams its lists asks for the right to watch.
            assert_eq!(code, Some(0), "without {verb} {resource}: {said}");
        } else {
            // A list is enough for one look.
            let failed = code != Some(0) || *verb == "watch";
            assert!(failed && said.contains(refused), "without {verb} {resource}: {code:?} {said}");
        }
        account.grant(&whole).await;
        account.misses(&[]).await;
        let (code, said) = account.once("60").await;
        assert_eq!(code, Some(0), "with {verb} {resource} again: {said}");
    }
}
