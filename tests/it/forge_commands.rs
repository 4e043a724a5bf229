//! `tutti plan --pr` and `tutti promote --open`, against the simulator.

use tempfile::TempDir;
use tutti::forge::{NewPull, PullState};
use tutti::promotion::parse_body;

use crate::support::forge::simulator::{BOT, ForgePermission, ForgeSimulator, REPOSITORY};
use crate::support::manifests::{INSTANCE, cluster, component, config_map, objects_app};
use crate::support::program;
use crate::support::repository::TestRepository;

const MANIFESTS: &str = "apps/web/objects/all.yaml";
const PIN_FILE: &str = "apps/pay/pins/prod.yaml";
const RINGS: &str = "\
apiVersion: tutti.dev/v1alpha1
kind: Rings
metadata: {name: rings}
spec:
  rings:
    - {name: test, clusters: {names: [bj1]}}
    - {name: prod, clusters: {names: [sh1]}}
";
const PROMOTION_BRANCH: &str = "tutti/promote/default.pay/prod";

struct ForgeCommandCase {
    simulator: ForgeSimulator,
    folder: TempDir,
}

impl ForgeCommandCase {
    async fn new() -> Self {
        let simulator = ForgeSimulator::start(&[("rings.yaml", Some(RINGS))]).await;
        simulator.add_user("li", ForgePermission::Write);
        let instance = format!(
            "\
apiVersion: tutti.dev/v1alpha1
kind: Instance
metadata: {{name: main}}
spec:
  forge: {{type: gitea, url: \"{}\", repository: {REPOSITORY}, credentials: {{token: {{env: TUTTI_SECRET_FORGE}}}}}}
",
            simulator.url()
        );
        let (web, one) = (objects_app("default", "web"), config_map("default", "web", "one"));
        let (pay, bj1, sh1) =
            (component("pay", "registry.example.com/pay:v1"), cluster("bj1"), cluster("sh1"));
        let files = [
            ("tutti.yaml", Some(instance.as_str())),
            ("clusters/bj1.yaml", Some(&bj1)),
            ("clusters/sh1.yaml", Some(&sh1)),
            ("apps/web/app.yaml", Some(&web)),
            (MANIFESTS, Some(&one)),
            ("apps/pay/app.yaml", Some(&pay)),
            (PIN_FILE, Some("# What customers see.\nversion: v1 # since spring\n")),
        ];
        simulator.push("li", "main", "Begin", &files);
        Self { simulator, folder: tempfile::tempdir().expect("a folder") }
    }

    async fn run(&self, arguments: &[&str]) -> (String, String, i32) {
        self.run_as(BOT, arguments).await
    }

    async fn run_as(&self, token: &str, arguments: &[&str]) -> (String, String, i32) {
        let mut command = program::tutti(self.folder.path());
        command.args(arguments).args(["--forge-host", "127.0.0.1"]);
        command.arg("--repo").arg(format!("file://{}", self.simulator.path().display()));
        command.env("TUTTI_SECRET_FORGE", token);
        let output = tokio::task::spawn_blocking(move || command.output()).await;
        program::output_text(&output.expect("no panic").expect("it runs"))
    }

    async fn open_pull(&self, branch: &str) -> u64 {
        let pull = NewPull {
            head: branch.to_owned(),
            base: "main".to_owned(),
            title: branch.to_owned(),
            body: String::new(),
            labels: Vec::new(),
        };
        self.simulator.client("li").create_pull(&pull).await.expect("a pull request").number
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plan_of_pull_request_equals_plan_of_commits() {
    let case = ForgeCommandCase::new().await;
    let two = config_map("default", "web", "two");
    case.simulator.push("li", "bump", "Change", &[(MANIFESTS, Some(&two))]);
    let number = case.open_pull("bump").await.to_string();
    // Commits that the base received since are not part of it.
    case.simulator.push("li", "main", "Other", &[("README.md", Some("words\n"))]);
    for form in ["table", "markdown", "json"] {
        let (said, told, code) = case.run(&["plan", "--pr", &number, "-o", form, "--exit-code"]).await;
        assert_eq!(code, 1, "{said}{told}");
        assert!(said.contains("two") && !said.contains("README"), "{said}");
        let (same, _, _) = case.run(&["plan", "--base", "main", "--head", "bump", "-o", form]).await;
        assert_eq!(said, same);
    }
    case.simulator.client("li").close_pull(1).await.expect("closed");
    let (said, told, code) = case.run(&["plan", "--pr", &number]).await;
    assert!(code == 0 && said.contains("one → two") && told.contains("note: #1 is closed"), "{said}{told}");

    let three = config_map("default", "web", "three");
    let fork = case.simulator.pull_from_fork("eve", "A fork", &[(MANIFESTS, Some(&three))]).to_string();
    let (said, told, code) = case.run(&["plan", "--pr", &fork]).await;
    assert!(code == 0 && said.contains("one → three"), "{said}{told}");
    assert!(told.contains("of a fork: encrypted files are not opened"), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plan_of_pull_request_explains_its_errors() {
    let case = ForgeCommandCase::new().await;
    for (token, arguments, words, expected) in [
        (BOT, &["plan", "--pr", "99"][..], "platform/config has no pull request #99", 2),
        ("nobody", &["plan", "--pr", "99"], "the token was refused", 5),
        (BOT, &["plan", "--pr", "99", "--all"], "cannot be used with", 2),
        (BOT, &["plan", "--pr", "99", "--head", "bump"], "cannot be used with", 2),
    ] {
        let (said, told, code) = case.run_as(token, arguments).await;
        assert_eq!(code, expected, "{arguments:?}: {said}{told}");
        assert!(told.contains(words), "{arguments:?}: {told}");
    }
    let repository = TestRepository::empty();
    repository.commit("Begin", &[("tutti.yaml", Some(INSTANCE))]);
    let mut command = program::tutti(case.folder.path());
    command.args(["plan", "--pr", "1", "--repo"]).arg(repository.path());
    let (_, told, code) = program::output_text(&command.output().expect("it runs"));
    assert!(code == 2 && told.contains("tutti.yaml names no forge: add spec.forge"), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requested_promotion_opens_one_pull_request() {
    let case = ForgeCommandCase::new().await;
    let promote = async |version: &str| {
        case.run(&["promote", "pay", "--to", "prod", "--open", "--version", version]).await
    };
    let (said, told, code) = promote("v1").await;
    assert_eq!(
        (said.as_str(), code),
        (&*format!("{PIN_FILE}: default/pay has v1 on prod already\n"), 0),
        "{told}"
    );
    let (said, told, code) = promote("v2").await;
    assert!(code == 0 && said.starts_with("#1: promote(pay): v1 → v2 on prod\nhttp://"), "{said}{told}");
    let bot = case.simulator.client(BOT);
    let pull = bot.pull(1).await.expect("an answer").expect("a pull request");
    assert_eq!(
        (pull.head.reference.as_str(), pull.labels.as_slice()),
        (PROMOTION_BRANCH, &["tutti/promotion".to_owned()][..])
    );
    let block = parse_body(&pull.body).expect("a block");
    assert!(block.is_requested && pull.author == BOT, "{pull:?}");
    let text = case.simulator.file_text(PROMOTION_BRANCH, PIN_FILE).expect("a file");
    assert_eq!(text, "# What customers see.\nversion: v2 # since spring\n");
    let before = case.simulator.tip("main");

    // A second request opens no other one. Nothing is pushed to a branch that others pushed to.
    let (said, told, code) = promote("v3").await;
    assert!(code == 0 && said.starts_with("#1: promote(pay): v1 → v3 on prod\n"), "{said}{told}");
    let text = case.simulator.file_text(PROMOTION_BRANCH, PIN_FILE).expect("a file");
    assert_eq!(text, "# What customers see.\nversion: v3 # since spring\n");
    case.simulator.push("li", PROMOTION_BRANCH, "By hand", &[("NOTES.txt", Some("words\n"))]);
    let (said, told, code) = promote("v4").await;
    assert_eq!(code, 2, "{said}{told}");
    assert!(
        told.contains(&format!("branch {PROMOTION_BRANCH} has a commit that tutti did not make")),
        "{told}"
    );
    let open = bot.pulls_open().await.expect("pull requests");
    assert!(open.len() == 1 && open[0].state == PullState::Open, "{open:?}");
    assert_eq!(case.simulator.tip("main"), before, "nothing is written to what is deployed");
}
