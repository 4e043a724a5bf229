//! An account with only the rights that a test grants, on each cluster of a scene.

use std::fs;

use futures::future::join_all;
use live::LiveCluster;
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::credentials::with_user;
use super::super::support::LiveFixture;

/// The roles that allow every user discovery.
const DISCOVERY: [&str; 2] = ["system:discovery", "system:public-info-viewer"];

pub struct RestrictedAccount {
    pub scene: LiveFixture,
    members: Vec<AccountCluster>,
}

struct AccountCluster {
    /// The name in the repository.
    name: &'static str,
    server: &'static LiveCluster,
    cluster_option: String,
}

impl RestrictedAccount {
    /// On the newest and the oldest Kubernetes.
    pub async fn pair(name: &'static str) -> Option<Self> {
        let scene = LiveFixture::with_newest_and_oldest(name).await?;
        let members = scene.clusters().iter().map(|cluster| (cluster.name(), *cluster)).collect();
        Some(Self::for_clusters(scene, members).await)
    }

    pub async fn for_clusters(
        scene: LiveFixture,
        members: Vec<(&'static str, &'static LiveCluster)>,
    ) -> Self {
        scene.write_instance("poll: 1s\n  caps: {deletes: 100, deletePercent: 100}");
        let of_member = |(name, server): (&'static str, &'static LiveCluster)| {
            let path = scene.folder().join(format!("{name}.yaml"));
            AccountCluster { name, server, cluster_option: format!("{name}={}#admin", path.display()) }
        };
        let members: Vec<AccountCluster> = members.into_iter().map(of_member).collect();
        for member in &members {
            // All other users of these servers are administrators, or have the printed rights.
            let take = [&["delete", "clusterrolebinding", "--ignore-not-found"], &DISCOVERY[..]].concat();
            member.server.kubectl(&take).await.expect("taken");
        }
        Self { scene, members }
    }

    /// The values of `--cluster`.
    pub fn cluster_options(&self) -> Vec<&str> {
        self.members.iter().flat_map(|member| ["--cluster", member.cluster_option.as_str()]).collect()
    }

    /// The output of the command, document by document: equal for all clusters.
    pub async fn printed_roles(&self) -> Vec<Value> {
        let repo = self.scene.worktree.folder().display().to_string();
        let account = format!("{}/tutti", self.scene.name());
        let mut printed = Vec::new();
        for member in &self.members {
            let arguments = ["cluster", "rbac", member.name, "--repo", &repo, "--service-account", &account]
                .map(str::to_owned);
            let ended = self.scene.run(&arguments).await;
            assert_eq!(ended.code, Some(0), "{}", ended.stderr);
            let documents = serde_yaml::Deserializer::from_str(&ended.stdout)
                .map(|document| Value::deserialize(document).expect("a document"));
            printed.push(documents.filter(Value::is_object).collect::<Vec<_>>());
        }
        let first = printed.remove(0);
        assert!(printed.iter().all(|other| *other == first), "{first:?} {printed:?}");
        first
    }

    pub async fn grant(&self, documents: &[Value]) {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": documents}).to_string();
        let apply = |member: &AccountCluster| member.server.kubectl_with_input(&["apply", "-f", "-"], &list);
        for applied in join_all(self.members.iter().map(apply)).await {
            applied.expect("roles");
        }
    }

    /// Uses tokens of the account from now on.
    pub async fn log_in(&self) {
        for AccountCluster { name, server, .. } in &self.members {
            let arguments = ["create", "token", "tutti", "-n", self.scene.name()];
            let token = server.kubectl(&arguments).await.expect("a token");
            let text = fs::read_to_string(server.kubeconfig()).expect("a kubeconfig");
            let text = with_user(&text, &format!("    token: {}\n", token.trim()));
            fs::write(self.scene.folder().join(format!("{name}.yaml")), text).expect("a file");
        }
    }

    /// Runs until nothing is left to do: the exit code, and all output.
    pub async fn run_once(&self, timeout: &str) -> (Option<i32>, String) {
        let more = [&["--timeout", timeout], &self.cluster_options()[..]].concat();
        let ended = self.scene.run(&self.scene.arguments(&["run", "--once"], &more)).await;
        // Logs may quote messages of the server.
        (ended.code, format!("{}{}", ended.stdout, ended.stderr).replace("\\\"", "\""))
    }

    /// The exit code, and the findings for each cluster.
    pub async fn doctor(&self) -> (Option<i32>, Vec<Value>) {
        let more = [&self.cluster_options()[..], &["-o", "json"]].concat();
        let ended = self.scene.run(&self.scene.arguments(&["doctor"], &more)).await;
        let report: Value = serde_json::from_str(&ended.stdout).expect(&ended.stderr);
        let clusters = report["clusters"].as_array().expect("clusters").iter();
        let of_members = clusters.filter(|it| self.members.iter().any(|member| it["name"] == member.name));
        (ended.code, of_members.map(|cluster| cluster["findings"].clone()).collect())
    }

    /// Waits until doctor ends with `code` and reports exactly these missing rights on each cluster: new roles take a
    /// moment.
    pub async fn until_missing(&self, code: i32, expected: &[&str]) {
        self.scene
            .eventually(
                &format!("doctor ends with {code} and says that {expected:?} is missing"),
                async || {
                    let (found, clusters) = self.doctor().await;
                    let missing: Vec<_> = clusters.iter().map(missing).collect();
                    if found == Some(code) && missing.iter().all(|missing| missing == expected) {
                        Ok(())
                    } else {
                        Err(format!("{found:?} {missing:?}"))
                    }
                },
            )
            .await;
    }

    /// With certificates instead of tokens, and all rights.
    pub async fn check_administrator(&self) {
        let ended = self.scene.run(&self.scene.arguments(&["doctor"], &[])).await;
        assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
        for words in [
            "client certificate of user ",
            "it answers, Kubernetes v1.36.",
            "it answers, Kubernetes v1.30.",
            "its clock agrees with the clock of this machine",
            "all that are rendered",
            &format!("{} at http", self.scene.name()),
        ] {
            assert!(ended.stdout.contains(words), "no {words:?} in {}", ended.stdout);
        }
    }
}

fn missing(findings: &Value) -> Vec<String> {
    let findings = findings.as_array().into_iter().flatten();
    let missing = findings.filter_map(|finding| finding["missing"].as_array()).flatten();
    let rights = missing.filter_map(|missing| missing["rights"].as_array()).flatten();
    rights.filter_map(|right| right.as_str().map(str::to_owned)).collect()
}
