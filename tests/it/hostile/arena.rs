//! A running process, a healthy cluster and a repository, to which a test adds something hostile.

use std::fs::{self, File};
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use sandbox::{Sandbox, SandboxListener, SandboxOptions};
use tempfile::TempDir;

use super::api_server::kubeconfig;
use crate::support::live;
use crate::support::manifests::{INSTANCE, cluster, config_map, namespace, objects};
use crate::support::program;
use crate::support::repository::TestRepository;

/// The memory limit of the process, in KiB.
const MEMORY: u64 = 1024 * 1024;
/// How long a commit may take to reach a healthy cluster on an idle machine.
const PATIENCE: Duration = Duration::from_secs(10);
/// How many times longer a commit may take beside something hostile, on a busy machine.
const MOST_SLOWER: u32 = 10;

/// The healthy app is `shop/hello`, a ConfigMap on the cluster `good`.
pub struct Arena {
    good: Sandbox,
    _listener: SandboxListener,
    /// Kubeconfigs and the state of the process.
    pub folder: TempDir,
    pub repository: TestRepository,
    process: Option<Child>,
    log: PathBuf,
    commits: usize,
    /// How long the first commit took, without anything hostile.
    first: Duration,
}

impl Arena {
    /// With the healthy app applied and the process running.
    pub async fn start(arguments: &[&str]) -> Self {
        let mut arena = Self::new().await;
        arena.run(arguments, |_| {});
        arena.converges().await;
        arena
    }

    /// Without a process.
    pub async fn new() -> Self {
        let good = Sandbox::new(SandboxOptions::instant("good"));
        let listener = good.listen((Ipv4Addr::LOCALHOST, 0).into()).await.expect("a port");
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("good.kubeconfig"), listener.kubeconfig()).expect("a file");
        let repository = TestRepository::empty();
        repository.commit(
            "Begin",
            &[
                ("tutti.yaml", Some(INSTANCE)),
                ("clusters/good.yaml", Some(&cluster("good"))),
                ("apps/hello/app.yaml", Some(&objects("shop", "hello"))),
                ("apps/hello/objects/namespace.yaml", Some(&namespace("shop"))),
                ("apps/hello/objects/hello.yaml", Some(&config_map("shop", "hello", "0"))),
            ],
        );
        let log = folder.path().join("log");
        Self {
            good,
            _listener: listener,
            folder,
            repository,
            process: None,
            log,
            commits: 0,
            first: Duration::ZERO,
        }
    }

    /// Starts the process under the memory limit.
    pub fn run(&mut self, arguments: &[&str], change: impl FnOnce(&mut Command)) {
        let repository = self.repository.path().display().to_string();
        self.run_from(&repository, arguments, change);
    }

    /// The same with another repository.
    pub fn run_from(&mut self, repository: &str, arguments: &[&str], change: impl FnOnce(&mut Command)) {
        let tutti = program::tutti(self.folder.path());
        let mut command = Command::new("sh");
        // The kernel ends it with the test.
        command.args([
            "-c",
            r#"ulimit -d "$0" && exec setpriv --pdeathsig KILL -- "$@""#,
            &MEMORY.to_string(),
        ]);
        command.arg(tutti.get_program()).arg("run").args(arguments);
        command.args(["--repo", repository, "--kubeconfigs"]).arg(self.folder.path());
        command.args(["--listen", "127.0.0.1:0", "--hooks-listen", "127.0.0.1:0"]);
        command.current_dir(self.folder.path());
        for (name, value) in tutti.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        change(&mut command);
        let log = File::create(&self.log).expect("a log file");
        self.process = Some(command.stdout(Stdio::null()).stderr(log).spawn().expect("sh starts"));
    }

    /// Kills the process and starts it again.
    pub fn restart(&mut self, arguments: &[&str]) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
        self.run(arguments, |_| {});
    }

    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// A kubeconfig for a server without TLS, under the name of a cluster.
    pub fn kubeconfig(&self, name: &str, server: &str) {
        fs::write(self.folder.path().join(format!("{name}.kubeconfig")), kubeconfig(server)).expect("a file");
    }

    /// Pushes a change of the healthy app: its cluster gets it in time, and the process runs.
    pub async fn converges(&mut self) {
        self.commits += 1;
        let value = self.commits.to_string();
        let object = config_map("shop", "hello", &value);
        self.repository.commit("Change", &[("apps/hello/objects/hello.yaml", Some(&object))]);
        let (begun, patience) = (Instant::now(), self.patience());
        let maps = live::api(&self.good, "ConfigMap", Some("shop"));
        loop {
            let found = maps.get_opt("hello").await.expect("an answer");
            if found.is_some_and(|found| found.data["data"]["value"] == *value) {
                break;
            }
            self.lives();
            assert!(begun.elapsed() < patience, "the healthy cluster waits:\n{}", self.log());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        if self.commits == 1 {
            self.first = begun.elapsed();
        }
        self.lives();
    }

    /// Waits until the healthy cluster has a cluster-scoped object.
    pub async fn holds(&mut self, kind: &str, name: &str) {
        let begun = Instant::now();
        let objects = live::api(&self.good, kind, None);
        while objects.get_opt(name).await.expect("an answer").is_none() {
            self.lives();
            assert!(begun.elapsed() < self.patience(), "{kind} {name} is not there:\n{}", self.log());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    fn patience(&self) -> Duration {
        match self.commits {
            // The first commit shows how busy the machine is.
            0 | 1 => 3 * PATIENCE,
            _ => PATIENCE.max(MOST_SLOWER * self.first),
        }
    }

    /// Other processes use the machine, so time limits may be reached early.
    pub fn is_busy(&self) -> bool {
        MOST_SLOWER * self.first > PATIENCE
    }

    /// The process has not ended.
    pub fn lives(&mut self) {
        let process = self.process.as_mut().expect("a process that was started");
        if let Some(status) = process.try_wait().expect("a child") {
            let log = self.log();
            panic!("the process ended, {status}:\n{log}");
        }
    }

    /// Waits until the log contains a text.
    pub async fn says(&mut self, text: &str) {
        let begun = Instant::now();
        while !self.log().contains(text) {
            self.lives();
            assert!(begun.elapsed() < 3 * self.patience(), "nothing says {text:?}:\n{}", self.log());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}
