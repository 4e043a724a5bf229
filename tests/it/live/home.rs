//! A home cluster that stores kubeconfigs and tokens, and registers clusters; tutti has exactly the rights there that
//! `tutti cluster rbac --home` prints.

use std::fs;

use serde_json::{Value, json};

use super::credentials::with_user;
use super::support::{LiveFixture, configmap};

/// The first cluster of the scene is the home cluster.
struct HomeClusterFixture {
    scene: LiveFixture,
}

impl HomeClusterFixture {
    async fn new(name: &'static str) -> Option<Self> {
        Some(Self { scene: LiveFixture::new(name, 2).await? })
    }

    async fn apply(&self, object: &Value) {
        let arguments = ["apply", "-f", "-"];
        self.scene.cluster(0).kubectl_with_input(&arguments, &object.to_string()).await.expect("applied");
    }

    async fn create_secret(&self, name: &str, data: Value) {
        let metadata = json!({"name": name, "namespace": self.scene.name()});
        let object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": data});
        self.apply(&object).await;
    }

    async fn create_registration(&self, name: &str, data: Value) {
        let labels = json!({"ClusterOwner": "sym-admin", "zone": "bj"});
        let metadata = json!({"name": name, "namespace": self.scene.name(), "labels": labels});
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data});
        self.apply(&object).await;
    }

    /// The kubeconfig of the second cluster's administrator.
    fn member_kubeconfig(&self) -> String {
        fs::read_to_string(self.scene.cluster(1).kubeconfig()).expect("a kubeconfig")
    }

    /// An account with the printed rights; returns a kubeconfig for `--home-kubeconfig`.
    async fn account_kubeconfig(&self, account: &str) -> String {
        let (home, name) = (self.scene.cluster(0), self.scene.name());
        let repo = self.scene.worktree.folder().display().to_string();
        let full = format!("{name}/{account}");
        let arguments =
            ["cluster", "rbac", "--home", "--repo", &repo, "--service-account", &full].map(str::to_owned);
        let printed = self.scene.run(&arguments).await;
        assert_eq!(printed.code, Some(0), "{}", printed.stderr);
        home.kubectl_with_input(&["apply", "-f", "-"], &printed.stdout).await.expect("roles");
        let token = home.kubectl(&["create", "token", account, "-n", name]).await.expect("a token");
        let text = fs::read_to_string(home.kubeconfig()).expect("a kubeconfig");
        let path = self.scene.folder().join("home.yaml");
        fs::write(&path, with_user(&text, &format!("    token: {}\n", token.trim()))).expect("a file");
        path.display().to_string()
    }

    /// State and detail of the second cluster in a new process.
    async fn member_state(&self, account: &str) -> (String, String) {
        let more = ["--home-kubeconfig", account, "--secret-namespace", self.scene.name(), "-o", "json"];
        let ended = self.scene.run(&self.scene.arguments(&["get", "clusters"], &more)).await;
        let clusters: Vec<Value> = serde_json::from_str(&ended.stdout).expect(&ended.stderr);
        let name = self.scene.cluster(1).name();
        let found = clusters.iter().find(|it| it["name"] == name).unwrap_or_else(|| panic!("{clusters:?}"));
        let text = |key: &str| found[key].as_str().unwrap_or_default().to_owned();
        (text("state"), text("detail"))
    }

    async fn until_value(&self, index: usize, value: &str) {
        self.scene
            .eventually(&format!("cluster {index} has {value}"), async || {
                let found = self.scene.object(self.scene.cluster(index), "configmaps", "settings").await?;
                if found["data"]["a"] == value { Ok(()) } else { Err(found["data"].to_string()) }
            })
            .await;
    }
}

#[tokio::test]
async fn secrets_of_the_home_cluster_register_clusters() {
    let Some(home) = HomeClusterFixture::new("kept").await else { return };
    let scene = &home.scene;
    let member = scene.cluster(1).name();
    let kept = "{kubeconfigSecret: {namespace: kept, name: member, key: kubeconfig, context: admin}}";
    let text = format!(
        "apiVersion: tutti.dev/v1alpha1\nkind: Cluster\nmetadata: {{name: {member}, labels: {{environment: test}}}}\n\
         spec:\n  connection: {kept}\n"
    );
    scene.worktree.write(&format!("clusters/{member}.yaml"), &text);
    // The token of the forge is stored there too.
    let instance = fs::read_to_string(scene.worktree.folder().join("tutti.yaml")).expect("tutti.yaml");
    let reference = "{secret: {namespace: kept, name: forge, key: token}}";
    scene.worktree.write("tutti.yaml", &instance.replace("{env: TUTTI_SECRET_GITEA}", reference));
    scene.write_app("settings", &[configmap("settings", "a", "1")]);
    let commit = scene.worktree.publish("first");
    home.create_secret("forge", json!({"token": scene.gitea().token()})).await;
    let wrong = with_user(&home.member_kubeconfig(), "    token: hunter2-is-wrong\n");
    home.create_secret("member", json!({"kubeconfig": wrong})).await;
    let account = home.account_kubeconfig("tutti").await;
    scene
        .start(&["--home-kubeconfig", &account, "--secret-namespace", "kept", "--lease", "kept/tutti"])
        .await;
    home.until_value(0, "1").await;
    scene.until_status(&commit, "deploy", "pending", &["1/2 healthy", member]).await;
    let (state, detail) = home.member_state(&account).await;
    assert!(state == "Offline" && detail.contains("Unauthorized"), "{state} {detail}");

    // A plug-in in it would run on the machine of tutti.
    let plug_in = "    exec: {apiVersion: client.authentication.k8s.io/v1, command: hunter2}\n";
    home.create_secret("member", json!({"kubeconfig": with_user(&home.member_kubeconfig(), plug_in)})).await;
    let (state, detail) = home.member_state(&account).await;
    assert!(
        state == "Offline" && detail.contains("Secret kept/member, key kubeconfig: `exec` names"),
        "{detail}"
    );

    // The right one: no event reports it.
    home.create_secret("member", json!({"kubeconfig": home.member_kubeconfig()})).await;
    home.until_value(1, "1").await;
    scene.until_succeeded(&commit).await;
    let more = ["--home-kubeconfig", account.as_str(), "--secret-namespace", "kept"];
    let examined = scene.run(&scene.arguments(&["doctor"], &more)).await;
    assert_eq!(examined.code, Some(0), "{}{}", examined.stdout, examined.stderr);
    let told = "all 2 rights there that the repository needs";
    assert!(examined.stdout.contains(told), "{}", examined.stdout);
    scene.cluster(0).kubectl(&["delete", "role", "tutti-kept-home", "-n", "kept"]).await.expect("deleted");
    scene
        .eventually("doctor says what is missing", async || {
            let examined = scene.run(&scene.arguments(&["doctor"], &more)).await;
            let is_named = examined.stdout.contains("get secrets member in namespace kept");
            if is_named && examined.code == Some(6) { Ok(()) } else { Err(examined.stdout) }
        })
        .await;
    let examined = scene.run(&scene.arguments(&["doctor"], &[])).await;
    assert_eq!(examined.code, Some(2), "{}", examined.stdout);
    assert!(examined.stdout.contains("there is no home cluster"), "{}", examined.stdout);
    let log = scene.running(|tutti| tutti.log());
    assert!(!log.contains("hunter2") && !log.contains("client-key-data"), "{log}");
}

#[tokio::test]
async fn config_maps_of_the_home_cluster_register_clusters() {
    let Some(home) = HomeClusterFixture::new("registered").await else { return };
    let scene = &home.scene;
    let member = scene.cluster(1).name();
    scene.worktree.remove(&format!("clusters/{member}.yaml"));
    scene.write_instance("poll: 1s\n  clusterRegistry: {configMaps: {namespace: registered}}");
    scene.write_app("settings", &[configmap("settings", "a", "1")]);
    let commit = scene.worktree.publish("first");
    let account = home.account_kubeconfig("tutti").await;
    scene.start(&["--home-kubeconfig", &account, "--lease", "registered/tutti"]).await;
    home.until_value(0, "1").await;
    scene.until_succeeded(&commit).await;

    home.create_registration(member, json!({"kubeconfig.yaml": home.member_kubeconfig()})).await;
    home.until_value(1, "1").await;
    home.create_registration(
        member,
        json!({"kubeconfig.yaml": home.member_kubeconfig(), "status": "Maintaining"}),
    )
    .await;
    assert_eq!(home.member_state(&account).await.0, "Maintaining");
    scene.write_objects("settings", &[configmap("settings", "a", "2")]);
    scene.worktree.publish("second");
    home.until_value(0, "2").await;
    let found = scene.object(scene.cluster(1), "configmaps", "settings").await.expect("settings");
    assert_eq!(found["data"]["a"], "1");

    // Another account replaces the first one, without an event.
    scene
        .cluster(0)
        .kubectl(&["delete", "serviceaccount", "tutti", "-n", "registered"])
        .await
        .expect("deleted");
    assert_eq!(home.account_kubeconfig("next").await, account, "the same file");
    scene
        .eventually("the home cluster is connected anew", async || {
            let log = scene.running(|tutti| tutti.log());
            if log.contains("the kubeconfig of the home cluster has changed") { Ok(()) } else { Err(log) }
        })
        .await;
    home.create_registration(member, json!({"kubeconfig.yaml": home.member_kubeconfig()})).await;
    home.until_value(1, "2").await;

    // It is removed, and its objects stay.
    let arguments = ["delete", "configmap", member, "-n", "registered"];
    scene.cluster(0).kubectl(&arguments).await.expect("deleted");
    scene.write_objects("settings", &[configmap("settings", "a", "3")]);
    let third = scene.worktree.publish("third");
    home.until_value(0, "3").await;
    scene.until_succeeded(&third).await;
    let found = scene.object(scene.cluster(1), "configmaps", "settings").await.expect("settings");
    assert_eq!(found["data"]["a"], "2");
}
