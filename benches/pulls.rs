//! Pull requests beside 10,000 apps: from the delivery of one to its comment, and what fifty open ones cost a push.
//!
//! The program runs as it is shipped. The forge is the simulator of the tests, and the cluster an embedded one: both are in this process,
//! on the same cores. A push comes while the comparisons with the branch before it are under way.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a benchmark fails by panicking")]
#![allow(clippy::print_stdout, reason = "figures go to standard output")]

#[path = "shared/goals.rs"]
mod goals;
#[path = "shared/program.rs"]
mod program;
#[allow(dead_code, unused_imports, reason = "the tests use more of it")]
#[path = "../tests/it/support/mod.rs"]
mod support;

use std::net::Ipv4Addr;
use std::process::Command;
use std::time::{Duration, Instant};

use goals::{at_most, figure};
use program::{TuttiProcess, all_run, free_port};
use sandbox::{PodMode, RequestMatch, Sandbox, SandboxListener, SandboxOptions};
use secrecy::SecretString;
use support::forge::simulator::{BOT, ForgePermission, ForgeSimulator, REPOSITORY};
use support::manifests::{cluster, component};
use support::repository::FileTextChange;
use tempfile::TempDir;
use tutti::forge::NewHook;

const APPS: usize = 10_000;
const PULLS: usize = 50;
/// The first app of a pull request: the ones before are for pushes.
const PROPOSED: usize = 5_000;
/// In one of four parts: without pull requests, twice with them, without. So other work on the machine counts on both sides.
const PUSHES: usize = 8;
/// A comparison with a branch that moved begins 10 s later.
const REST: Duration = Duration::from_secs(11);
/// So many are compared with it before the next push.
const COMPARED: usize = 3;
/// From the delivery to the comment, in milliseconds.
const MOST: f64 = 2000.0;
const MOST_RATIO: f64 = 1.2;
const STEP_TIMEOUT: Duration = Duration::from_secs(120);
const SECRET: &str = "GMEuUHQfmrMRsseWxi9YlIeBtn9lm6im";

struct PullScene {
    simulator: ForgeSimulator,
    cluster: Sandbox,
    pushed: usize,
    _program: TuttiProcess,
    _listener: SandboxListener,
    _folder: TempDir,
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(measure());
    goals::check();
}

async fn measure() {
    let mut scene = PullScene::new().await;
    let mut without = scene.push_some(PUSHES, false).await;
    scene.open_all().await;
    let mut with = scene.push_some(2 * PUSHES, true).await;
    scene.close_all().await;
    without.extend(scene.push_some(PUSHES, false).await);
    let [without, with] = [("none", &mut without), ("fifty", &mut with)].map(|(name, took)| {
        took.sort_by(f64::total_cmp);
        figure(&format!("push_to_patch_with_{name}_open_worst"), took[took.len() - 1], "ms");
        figure(&format!("push_to_patch_with_{name}_open"), took[took.len() / 2], "ms");
        took[took.len() / 2]
    });
    at_most("push_to_patch_with_fifty_to_none", with / without, "times", MOST_RATIO);
}

impl PullScene {
    async fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let cluster =
            Sandbox::new(SandboxOptions { pods: PodMode::Virtual, ..SandboxOptions::instant("one") });
        let listener = cluster.listen((Ipv4Addr::LOCALHOST, 0).into()).await.expect("a port");
        std::fs::write(folder.path().join("one.kubeconfig"), listener.kubeconfig()).expect("a file");
        let simulator = begin().await;
        let [status, hooks] = [free_port(), free_port()];
        let mut program = Command::new(env!("CARGO_BIN_EXE_tutti"));
        program.arg("run").arg("--repo").arg(simulator.path()).arg("--kubeconfigs").arg(folder.path());
        program.arg("--state").arg(folder.path().join("state")).args(["--forge-host", "127.0.0.1"]);
        program.args(["--listen", &status.to_string(), "--hooks-listen", &hooks.to_string()]);
        program.env("TUTTI_SECRET_HOOK", SECRET).env("TUTTI_SECRET_FORGE", BOT);
        let program = TuttiProcess::start(&mut program);
        all_run(status, APPS).await;
        let events = ["push", "create", "delete", "pull_request"].map(str::to_owned).to_vec();
        let url = format!("http://{hooks}/hooks/v1/gitea");
        let hook = NewHook { url, secret: SecretString::from(SECRET), events };
        simulator.client("root").create_hook(&hook).await.expect("a hook");
        tokio::time::sleep(REST).await;
        Self { simulator, cluster, pushed: 0, _program: program, _listener: listener, _folder: folder }
    }

    /// From each push, once the forge has it, to the PATCH, in milliseconds. The first one is not counted.
    async fn push_some(&mut self, pushes: usize, are_open: bool) -> Vec<f64> {
        let mut took = Vec::new();
        for number in 0..=pushes {
            let before = self.edits();
            let time = self.push().await;
            if number > 0 {
                took.push(time);
            }
            println!("push {} with pull requests open: {are_open}: {time:.0} ms", self.pushed);
            match are_open {
                true => until("comparisons", || self.edits() >= before + COMPARED).await,
                false => tokio::time::sleep(REST).await,
            }
        }
        took
    }

    async fn push(&mut self) -> f64 {
        let name = app(self.pushed);
        self.pushed += 1;
        self.cluster.reset_requests();
        self.simulator.push("li", "main", "Change", &[(&path(&name), Some(&manifest(&name, "2")))]);
        let start = Instant::now();
        let applied = RequestMatch::any().verb("apply").resource("deployments.apps").name(name);
        until("a PATCH", || self.cluster.count_requests(&applied) > 0).await;
        milliseconds(start.elapsed())
    }

    async fn open_all(&self) {
        let (mut took, mut of_forge) = (Vec::new(), Vec::new());
        for number in PROPOSED..PROPOSED + PULLS {
            let name = app(number);
            self.simulator.push("li", &name, "Change", &[(&path(&name), Some(&manifest(&name, "2")))]);
            tokio::time::sleep(Duration::from_millis(500)).await;
            let (spent, start) = (self.simulator.answer_time(), Instant::now());
            let pull = self.simulator.open_pull("li", &name);
            until("a comment", || !self.simulator.comments(pull).is_empty()).await;
            took.push(milliseconds(start.elapsed()));
            of_forge.push(milliseconds(self.simulator.answer_time() - spent));
            let (_, comment) = self.simulator.comments(pull).swap_remove(0);
            assert!(comment.contains("**1 app on 1 of 1 cluster: 1 to change**"), "{comment}");
        }
        took.sort_by(f64::total_cmp);
        of_forge.sort_by(f64::total_cmp);
        figure("pull_comment_forge", of_forge[PULLS / 2], "ms");
        figure("pull_comment_median", took[PULLS / 2], "ms");
        at_most("pull_comment_worst", took[PULLS - 1], "ms", MOST);
    }

    async fn close_all(&self) {
        for pull in self.simulator.pulls() {
            self.simulator.set_open("li", pull.number, false);
        }
        tokio::time::sleep(REST).await;
    }

    /// Comments that were edited so far.
    fn edits(&self) -> usize {
        let requests = self.simulator.requests();
        requests.iter().filter(|line| line.starts_with("PATCH /issues/comments/")).count()
    }
}

/// A forge with everything on `main`, stored as forges do.
async fn begin() -> ForgeSimulator {
    let simulator = ForgeSimulator::start(&[]).await;
    simulator.add_user("li", ForgePermission::Write);
    simulator.add_user("root", ForgePermission::Admin);
    let instance = format!(
        "apiVersion: tutti.dev/v1alpha1\nkind: Instance\nmetadata: {{name: main}}\nspec:\n  forge: {{type: gitea, url: \"{}\", \
         repository: {REPOSITORY}, credentials: {{token: {{env: TUTTI_SECRET_FORGE}}}}}}\n  receivers:\n  \
         - {{name: gitea, type: gitea, secrets: [{{env: TUTTI_SECRET_HOOK}}]}}\n",
        simulator.url()
    );
    let mut files =
        vec![("tutti.yaml".to_owned(), instance), ("clusters/one.yaml".to_owned(), cluster("one"))];
    files.extend((0..APPS).map(app).map(|name| (path(&name), manifest(&name, "1"))));
    let changes: Vec<FileTextChange<'_>> =
        files.iter().map(|(path, text)| (path.as_str(), Some(text.as_str()))).collect();
    simulator.push("li", "main", "Begin", &changes);
    let packed = Command::new("git").arg("-C").arg(simulator.path()).args(["repack", "-adq"]).status();
    assert!(packed.expect("git").success());
    simulator
}

async fn until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < STEP_TIMEOUT, "it never came to {what}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

fn app(number: usize) -> String {
    format!("app-{number:05}")
}

fn path(name: &str) -> String {
    format!("apps/{name}/app.yaml")
}

fn manifest(name: &str, version: &str) -> String {
    component(name, &format!("registry.example.com/{name}:{version}"))
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
