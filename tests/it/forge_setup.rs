//! `tutti forge setup` and `check`, against the simulator.

use tempfile::TempDir;
use tutti::forge::Label;

use crate::support::forge::simulator::{BOT, ForgePermission, ForgeSimulator, REPOSITORY};
use crate::support::program;
use crate::support::repository::TestRepository;

struct ForgeSetupCase {
    simulator: ForgeSimulator,
    repository: TestRepository,
    folder: TempDir,
}

impl ForgeSetupCase {
    /// `root` is the administrator. tutti uses [`BOT`], whose token equals the login.
    async fn new(more: &str) -> Self {
        let simulator = ForgeSimulator::start(&[("a.yaml", Some("a: 1\n"))]).await;
        simulator.add_user("root", ForgePermission::Admin);
        let repository = TestRepository::empty();
        let instance = format!(
            "\
apiVersion: tutti.dev/v1alpha1
kind: Instance
metadata: {{name: main}}
spec:
  forge: {{type: gitea, url: \"{}\", repository: {REPOSITORY}, credentials: {{token: {{env: TUTTI_SECRET_FORGE}}}}}}
  receivers: [{{name: gitea, type: gitea, secrets: [{{env: TUTTI_SECRET_HOOK}}]}}]
{more}",
            simulator.url()
        );
        repository.commit("Begin", &[("tutti.yaml", Some(&instance))]);
        Self { simulator, repository, folder: tempfile::tempdir().expect("a folder") }
    }

    async fn run(&self, arguments: &[&str]) -> (String, String, i32) {
        self.run_as("root", arguments).await
    }

    async fn run_as(&self, admin: &str, arguments: &[&str]) -> (String, String, i32) {
        let mut command = program::tutti(self.folder.path());
        command.arg("forge").args(arguments).arg("--repo").arg(self.repository.path());
        command.args(["--forge-host", "127.0.0.1", "--admin-token-env", "ADMIN"]);
        command.env("ADMIN", admin).env("TUTTI_SECRET_FORGE", BOT).env("TUTTI_SECRET_HOOK", "s3cr3t");
        let output = tokio::task::spawn_blocking(move || command.output()).await;
        program::output_text(&output.expect("no panic").expect("it runs"))
    }

    fn write_count(&self) -> usize {
        self.simulator.requests().iter().filter(|line| !line.starts_with("GET ")).count()
    }
}

const SETUP_ARGUMENTS: [&str; 3] = ["setup", "--hooks-url", "https://tutti.example.com/"];

/// The first two columns, as `item state`.
fn item_states(output: &str) -> Vec<String> {
    let lines = output.lines().take_while(|line| !line.is_empty());
    lines
        .map(|line| line.get(..29).unwrap_or(line).split_whitespace().collect::<Vec<_>>().join(" "))
        .collect()
}

#[tokio::test]
async fn second_setup_changes_nothing() {
    let case = ForgeSetupCase::new("  statusPrefix: deployer\n").await;
    let (output, _, code) = case.run(&["check"]).await;
    assert_eq!(code, 1, "{output}");
    assert_eq!(
        item_states(&output),
        ["token ok", "webhook different", "protection missing", "labels missing"],
        "{output}"
    );
    let dry: Vec<&str> = SETUP_ARGUMENTS.into_iter().chain(["--dry-run"]).collect();
    let (output, _, code) = case.run(&dry).await;
    assert_eq!(code, 0, "{output}");
    let planned = ["webhook would be created", "protection would be created", "labels would be created"];
    assert_eq!(item_states(&output)[1..], planned, "{output}");
    assert_eq!(case.write_count(), 0);

    let (output, errors, code) = case.run(&SETUP_ARGUMENTS).await;
    assert_eq!(code, 0, "{output}{errors}");
    let created = ["token no change", "webhook created", "protection created", "labels created"];
    assert_eq!(item_states(&output), created, "{output}");
    assert!(output.contains("https://tutti.example.com/hooks/v1/gitea: push, create, delete"), "{output}");
    assert!(output.contains("clusters/.* @platform\n"), "{output}");
    assert!(errors.contains("write:repository, write:issue, read:user"), "{errors}");
    let root = case.simulator.client("root");
    let rule = root.protection("main").await.expect("an answer").expect("a rule");
    assert_eq!(rule.required_contexts, ["deployer/validate", "deployer/gate"]);
    let written = case.write_count();
    let (output, _, code) = case.run(&SETUP_ARGUMENTS).await;
    assert_eq!(code, 0, "{output}");
    let same = ["token no change", "webhook no change", "protection no change", "labels no change"];
    assert_eq!(item_states(&output), same, "{output}");
    assert_eq!(case.write_count(), written);
    let (output, _, code) = case.run(&["check", "-o", "json"]).await;
    assert_eq!(code, 0, "{output}");
    let report: serde_json::Value = serde_json::from_str(&output).expect("JSON");
    assert_eq!(report["items"][2]["state"], "ok", "{output}");
    assert!(!output.contains("s3cr3t"));

    // A new secret needs a new hook.
    let before = root.hooks().await.expect("hooks").remove(0).id;
    let anew: Vec<&str> = SETUP_ARGUMENTS.into_iter().chain(["--new-secret"]).collect();
    let (output, _, code) = case.run(&anew).await;
    assert_eq!((item_states(&output)[1].as_str(), code), ("webhook changed", 0), "{output}");
    let hooks = root.hooks().await.expect("hooks");
    assert!(hooks.len() == 1 && hooks[0].id != before, "{hooks:?}");
}

#[tokio::test]
async fn setup_keeps_settings_of_people() {
    let case = ForgeSetupCase::new("").await;
    let root = case.simulator.client("root");
    root.create_protection("main", &["ci".to_owned()]).await.expect("a rule");
    let label = Label {
        name: "tutti/promotion".to_owned(),
        color: "ff0000".to_owned(),
        description: "ours".to_owned(),
    };
    root.ensure_labels(std::slice::from_ref(&label)).await.expect("a label");
    let (output, errors, code) = case.run(&SETUP_ARGUMENTS).await;
    assert_eq!(code, 0, "{output}{errors}");
    assert!(output.contains("main requires ci, tutti/validate, tutti/gate"), "{output}");
    assert_eq!(item_states(&output)[2..], ["protection changed", "labels created"], "{output}");
    let labels = root.labels().await.expect("labels");
    assert!(labels.contains(&label) && labels.len() == 4, "{labels:?}");
}

#[tokio::test]
async fn forge_commands_report_why_they_fail() {
    let case = ForgeSetupCase::new("").await;
    let (_, errors, code) = case.run_as("nobody", &["check"]).await;
    assert_eq!(code, 5, "{errors}");
    assert!(
        errors.contains("the token was refused") && errors.contains("help: check the token's scopes"),
        "{errors}"
    );
    // Write permission is not enough to read webhooks.
    let (_, errors, code) = case.run_as(BOT, &["check"]).await;
    assert_eq!(code, 5, "{errors}");
    let (_, errors, code) = case.run(&["setup", "--hooks-url", "https://x/hooks/v1/gitea"]).await;
    assert_eq!(code, 2, "{errors}");
    let (_, errors, code) = case.run(&["check", "--receiver", "other"]).await;
    assert!(code == 2 && errors.contains("no receiver `other`"), "{errors}");
    case.simulator.add_user(BOT, ForgePermission::Read);
    let (output, _, code) = case.run(&SETUP_ARGUMENTS).await;
    assert_eq!((item_states(&output)[0].as_str(), code), ("token needs a person", 1), "{output}");
    let ForgeSetupCase { simulator, repository, folder } = case;
    drop(simulator);
    let gone = ForgeSetupCase { simulator: ForgeSimulator::start(&[]).await, repository, folder };
    let (_, errors, code) = gone.run(&["check"]).await;
    assert_eq!(code, 6, "{errors}");
}
