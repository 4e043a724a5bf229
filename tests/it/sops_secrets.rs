//! Files encrypted with SOPS: clusters get them decrypted, and no output shows their content.

use std::path::Path;

use serde_json::json;
use tutti::controller::ControllerSettings;
use tutti::model::DecryptionKeys;
use tutti::sops::identities;

use crate::support::connections::ProcessConnections;
use crate::support::fleet::TestFleet;
use crate::support::forge::GiteaStatusServer;
use crate::support::live_objects;
use crate::support::manifests::{INSTANCE, cluster, objects_app};
use crate::support::program;
use crate::support::repository::TestRepository;

pub const IDENTITY: &str = include_str!("../fixtures/sops/one.key");
const OTHER_IDENTITY: &str = include_str!("../fixtures/sops/two.key");
pub const ENCRYPTED_SECRET: &str = include_str!("../fixtures/sops/secret.yaml");
/// A Service and a Secret whose values the cluster refuses.
pub const REFUSED_OBJECTS: &str = include_str!("../fixtures/sops/refused.yaml");
/// Objects with values of the wrong type.
const WRONG_TYPES: &str = include_str!("../fixtures/sops/wrong.yaml");
const APP: &str = "apps/shop/app.yaml";
const SECRET_FILE: &str = "apps/shop/objects/secret.yaml";
const NAMESPACE_FILE: (&str, &str) =
    ("apps/shop/objects/namespace.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n");

/// The encrypted value, as text and at each offset in base64.
const SECRET_FRAGMENTS: [&str; 4] =
    ["canary-4f1d-hunter2", "Y2FuYXJ5LTRmMWQtaHVudGVy", "NhbmFyeS00ZjFkLWh1bnRlc", "jYW5hcnktNGYxZC1odW50ZX"];

#[track_caller]
pub fn assert_shows_no_secret(what: &str, text: &str) {
    for canary in SECRET_FRAGMENTS {
        let found = text.lines().find(|line| line.contains(canary));
        assert_eq!(found, None, "{what} shows what is encrypted");
    }
    // The identity.
    let identity = IDENTITY.lines().find(|line| line.starts_with("AGE-")).expect("an identity");
    assert!(!text.contains(identity), "{what} shows the identity");
}

struct SecretsFolder {
    folder: tempfile::TempDir,
}

impl SecretsFolder {
    fn new(secret: &str) -> Self {
        let folder = tempfile::tempdir().expect("temporary folder");
        let (bj1, app) = (cluster("bj1"), objects_app("shop", "shop"));
        let files = [
            ("tutti.yaml", INSTANCE),
            ("clusters/bj1.yaml", bj1.as_str()),
            (APP, &app),
            (SECRET_FILE, secret),
            NAMESPACE_FILE,
        ];
        let repository = folder.path().join("repo");
        for (path, text) in files {
            let path = repository.join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("make a folder");
            std::fs::write(path, text).expect("write");
        }
        let changes: Vec<_> = files.iter().map(|(path, text)| (*path, Some(*text))).collect();
        TestRepository::at(&repository).commit("Begin", &changes);
        std::fs::write(folder.path().join("key"), IDENTITY).expect("write");
        std::fs::write(folder.path().join("other"), OTHER_IDENTITY).expect("write");
        Self { folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Runs with full logging; returns output and exit code.
    fn run(&self, key: Option<&str>, arguments: &[&str]) -> (String, i32) {
        let mut command = program::tutti(self.path());
        command.env("RUST_LOG", "trace").args(arguments);
        if let Some(key) = key {
            command.env("TUTTI_AGE_IDENTITY_FILE", key);
        }
        let (output, errors, code) = program::output_text(&command.output().expect("the binary runs"));
        assert_shows_no_secret(&arguments.join(" "), &format!("{output}\n{errors}"));
        (format!("{output}\n{errors}"), code)
    }

    fn run_all(&self, key: Option<&str>) -> Vec<(String, i32)> {
        let clusters = ["--repo", "repo", "--cluster", "*=sandbox"];
        let with = |first: &[&'static str]| [first, &clusters].concat();
        [
            vec!["lint", "-vv", "repo"],
            vec!["lint", "repo", "-o", "json"],
            vec!["render", "--repo", "repo"],
            vec!["render", "--repo", "repo", "-o", "json"],
            vec!["render", "--repo", "repo", "--explain", "."],
            vec!["trace", SECRET_FILE, "--repo", "repo"],
            vec!["read", "repo/apps/shop/objects/secret.yaml", "-o", "json"],
            with(&["plan", "-vv"]),
            with(&["plan", "-o", "json"]),
            with(&["get", "-o", "json"]),
            with(&["run", "--once", "--timeout", "20", "-vv"]),
            with(&["run", "--once", "--timeout", "20", "-o", "json"]),
        ]
        .iter()
        .map(|arguments| self.run(key, arguments))
        .collect()
    }
}

#[test]
fn commands_hide_encrypted_values() {
    let stage = SecretsFolder::new(ENCRYPTED_SECRET);
    let all = stage.run_all(Some("key"));
    let codes: Vec<i32> = all.iter().map(|(_, code)| *code).collect();
    assert_eq!(codes, vec![0; all.len()]);
    let rendered = &all[2].0;
    assert!(rendered.contains("password: '*** ") && rendered.contains("team: shop\n"), "{rendered}");
}

#[test]
fn invalid_encrypted_files_are_not_shown() {
    // A merge dropped the lines that `sops` wrote below its documents.
    let lost = ENCRYPTED_SECRET
        .split("\n---\n")
        .map(|document| document.split("\nsops:\n").next().unwrap_or_default());
    let lost = lost.collect::<Vec<_>>().join("\n---\n") + "\n";
    let (said, code) = SecretsFolder::new(&lost).run(Some("key"), &["render", "--repo", "repo"]);
    assert!(code != 0 && said.contains("error[E3305]: stringData.username of Secret db"), "{code} {said}");
    for secret in [REFUSED_OBJECTS, WRONG_TYPES, &ENCRYPTED_SECRET.replace("team: shop", "team: other")] {
        let stage = SecretsFolder::new(secret);
        let all = stage.run_all(Some("key"));
        assert!(all.iter().any(|(_, code)| *code != 0));
    }
    let stage = SecretsFolder::new(ENCRYPTED_SECRET);
    let (said, code) =
        stage.run(Some("other"), &["run", "--once", "--repo", "repo", "--cluster", "*=sandbox"]);
    assert!(code == 3 && said.contains("error[E3302]"), "{code} {said}");
    let (said, code) = stage.run(None, &["render", "--repo", "repo"]);
    assert!(code != 0 && said.contains("error[E3301]"), "{code} {said}");
    // Checking a change needs no decryption key.
    let (said, code) = stage.run(None, &["lint", "repo"]);
    assert!(code == 0 && said.contains("warning[E3301]"), "{code} {said}");
    std::fs::write(stage.path().join("key"), IDENTITY.replace("AGE-SECRET-KEY-1", "AGE-SECRET-KEY-1Q"))
        .expect("write");
    let (said, code) = stage.run(Some("key"), &["lint", "repo"]);
    assert!(code != 0 && said.contains("line 2 is not an age identity"), "{code} {said}");
}

#[test]
fn unreadable_sops_variables_are_no_identity() {
    let stage = SecretsFolder::new("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n");
    std::fs::write(stage.path().join("plugin"), "AGE-PLUGIN-YUBIKEY-1\n").expect("write");
    for (variable, value, problem) in [
        ("SOPS_AGE_KEY_FILE", "gone", "failed to read the secret in the file gone"),
        ("SOPS_AGE_KEY_FILE", "plugin", "line 1 is an identity of another kind"),
        ("SOPS_AGE_KEY", "x", "line 1 is not an age identity"),
    ] {
        let mut command = program::tutti(stage.path());
        command.env(variable, value).args(["render", "--repo", "repo"]);
        let (_, errors, code) = program::output_text(&command.output().expect("the binary runs"));
        assert_eq!(code, 0, "{errors}");
        assert!(errors.contains("WARN") && errors.contains(problem), "{errors}");
    }
    let (said, code) = stage.run(Some("gone"), &["render", "--repo", "repo"]);
    assert!(code != 0 && said.contains("failed to read the secret in the file gone"), "{code} {said}");
}

#[test]
fn decrypted_values_are_shown_on_request() {
    let stage = SecretsFolder::new(ENCRYPTED_SECRET);
    let (output, _, code) = program::output_text(
        &program::tutti(stage.path())
            .env("SOPS_AGE_KEY_FILE", "key")
            .args(["render", "--repo", "repo", "--show-secrets"])
            .output()
            .expect("the binary runs"),
    );
    assert_eq!(code, 0);
    let opened = "password: Y2FuYXJ5LTRmMWQtaHVudGVyMg==";
    assert!(output.contains(opened) && output.contains("url: https://canary-4f1d-hunter2@db"), "{output}");
    assert!(!output.contains("sops:"), "{output}");
}

/// The controller with the identity, and a forge for its statuses.
async fn start_with_identity(fleet: &TestFleet) -> crate::support::fleet::RunningController {
    let keys = DecryptionKeys::new(identities::read(IDENTITY).expect("an identity"));
    fleet
        .start_with(&ProcessConnections::unlimited(), |settings: &mut ControllerSettings| {
            settings.keys = keys
        })
        .await
}

fn fleet(gitea: &GiteaStatusServer, secret: &str) -> TestFleet {
    let (instance, app) = (gitea.instance_manifest(), objects_app("shop", "shop"));
    let files = [("tutti.yaml", instance.as_str()), (APP, &app), (SECRET_FILE, secret), NAMESPACE_FILE];
    TestFleet::new(&["bj1"], &files)
}

#[tokio::test(start_paused = true)]
async fn clusters_get_decrypted_values() {
    let gitea = GiteaStatusServer::start().await;
    let fleet = fleet(&gitea, ENCRYPTED_SECRET);
    let running = start_with_identity(&fleet).await;
    running.until_converged(&fleet.first_commit).await;
    gitea.until_status(&fleet.first_commit, "success").await;
    let secret = live_objects::get(fleet.cluster("bj1"), "Secret", "shop", "db").await.expect("the secret");
    assert_eq!(secret["data"]["password"], json!("Y2FuYXJ5LTRmMWQtaHVudGVyMg=="));
    let settings =
        live_objects::get(fleet.cluster("bj1"), "ConfigMap", "shop", "settings").await.expect("settings");
    assert_eq!(settings["data"]["url"], json!("https://canary-4f1d-hunter2@db"));
    assert_shows_no_secret("the overview", &format!("{:?}", running.overview.borrow()));
    assert_shows_no_secret("a status", &format!("{:?}", gitea.posts()));
}

#[tokio::test(start_paused = true)]
async fn statuses_do_not_quote_refused_secret_values() {
    let gitea = GiteaStatusServer::start().await;
    let fleet = fleet(&gitea, REFUSED_OBJECTS);
    let running = start_with_identity(&fleet).await;
    gitea.until_status(&fleet.first_commit, "failure").await;
    let shown = format!("{:?} {:?}", running.overview.borrow(), gitea.posts());
    assert_shows_no_secret("a refusal", &shown);
    assert!(shown.contains("may quote encrypted values"), "{shown}");
}

/// A container of another app in the namespace logs its Secret.
#[tokio::test(start_paused = true)]
async fn last_log_line_omits_encrypted_values() {
    let gitea = GiteaStatusServer::start().await;
    let (instance, shop, web) =
        (gitea.instance_manifest(), objects_app("shop", "shop"), objects_app("shop", "web"));
    let line = "url https://canary-4f1d-hunter2@db, in base64 Y2FuYXJ5LTRmMWQtaHVudGVyMg==: no such table";
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}, "annotations": {"sim.tutti.dev/fail": "crash-loop", "sim.tutti.dev/log": line}},
            "spec": {"containers": [{"name": "main", "image": "web:1"}]}}}})
    .to_string();
    let files = [
        ("tutti.yaml", instance.as_str()),
        (APP, &shop),
        (SECRET_FILE, ENCRYPTED_SECRET),
        NAMESPACE_FILE,
        ("apps/web/app.yaml", &web),
        ("apps/web/objects/all.yaml", &deployment),
    ];
    let fleet = TestFleet::new(&["bj1"], &files);
    let running = start_with_identity(&fleet).await;
    gitea.until_status(&fleet.first_commit, "failure").await;
    let failure = gitea.last_status(&fleet.first_commit);
    assert!(failure.contains(" (exit 1: \"url ***, in base64 ***: no such table\")"), "{failure}");
    assert_shows_no_secret("the overview", &format!("{:?}", running.overview.borrow()));
    assert_shows_no_secret("a status", &format!("{:?}", gitea.posts()));
}
