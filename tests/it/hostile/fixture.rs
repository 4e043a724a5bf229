//! A running process, a healthy cluster and a repository, to which a test adds something hostile.

use std::fs::{self, File};
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use sandbox::{Sandbox, SandboxListener, SandboxOptions};
use tempfile::TempDir;

use super::api_server::kubeconfig;
use crate::support::live_objects;
use crate::support::manifests::{INSTANCE, cluster, config_map, namespace, objects_app};
use crate::support::program;
use crate::support::repository::TestRepository;

/// The memory limit of the process, in KiB.
const MEMORY_LIMIT: u64 = 1024 * 1024;
/// How long a commit may take to reach a healthy cluster on an idle machine.
const COMMIT_TIMEOUT: Duration = Duration::from_secs(10);
/// How many times longer a commit may take beside something hostile, on a busy machine.
const MAX_SLOWDOWN: u32 = 10;
/// How long it may take until the log names what is hostile: some limits are so wide that it needs a while to exceed them.
const LOG_TIMEOUT: Duration = Duration::from_secs(180);

/// The healthy app is `shop/hello`, a ConfigMap on the cluster `good`.
pub struct HostileFixture {
    healthy_cluster: Sandbox,
    _listener: SandboxListener,
    /// Kubeconfigs and the state of the process.
    pub folder: TempDir,
    pub repository: TestRepository,
    process: Option<Child>,
    log: PathBuf,
    commits: usize,
    /// How long the first commit took, without anything hostile.
    first_commit_time: Duration,
}

impl HostileFixture {
    /// With the healthy app applied and the process running.
    pub async fn start(arguments: &[&str]) -> Self {
        let mut arena = Self::new().await;
        arena.start_process(arguments, |_| {});
        arena.check_healthy_app().await;
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
                ("apps/hello/app.yaml", Some(&objects_app("shop", "hello"))),
                ("apps/hello/objects/namespace.yaml", Some(&namespace("shop"))),
                ("apps/hello/objects/hello.yaml", Some(&config_map("shop", "hello", "0"))),
            ],
        );
        let log = folder.path().join("log");
        Self {
            healthy_cluster: good,
            _listener: listener,
            folder,
            repository,
            process: None,
            log,
            commits: 0,
            first_commit_time: Duration::ZERO,
        }
    }

    /// Starts the process under the memory limit.
    pub fn start_process(&mut self, arguments: &[&str], change: impl FnOnce(&mut Command)) {
        let repository = self.repository.path().display().to_string();
        self.start_process_with_repository(&repository, arguments, change);
    }

    /// The same with another repository.
    pub fn start_process_with_repository(
        &mut self,
        repository: &str,
        arguments: &[&str],
        change: impl FnOnce(&mut Command),
    ) {
        let tutti = program::tutti(self.folder.path());
        let mut command = Command::new("sh");
        // The kernel ends it with the test.
        command.args([
            "-c",
            r#"ulimit -d "$0" && exec setpriv --pdeathsig KILL -- "$@""#,
            &MEMORY_LIMIT.to_string(),
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
        self.start_process(arguments, |_| {});
    }

    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// A kubeconfig for a server without TLS, under the name of a cluster.
    pub fn kubeconfig(&self, name: &str, server: &str) {
        fs::write(self.folder.path().join(format!("{name}.kubeconfig")), kubeconfig(server)).expect("a file");
    }

    /// Pushes a change of the healthy app: its cluster gets it in time, and the process runs.
    pub async fn check_healthy_app(&mut self) {
        self.commits += 1;
        let value = self.commits.to_string();
        let object = config_map("shop", "hello", &value);
        self.repository.commit("Change", &[("apps/hello/objects/hello.yaml", Some(&object))]);
        let (begun, patience) = (Instant::now(), self.commit_timeout());
        let maps = live_objects::api(&self.healthy_cluster, "ConfigMap", Some("shop"));
        loop {
            let found = maps.get_opt("hello").await.expect("an answer");
            if found.is_some_and(|found| found.data["data"]["value"] == *value) {
                break;
            }
            self.assert_running();
            assert!(begun.elapsed() < patience, "the healthy cluster waits:\n{}", self.log());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        if self.commits == 1 {
            self.first_commit_time = begun.elapsed();
        }
        self.assert_running();
    }

    /// Waits until the healthy cluster has a cluster-scoped object.
    pub async fn until_object_exists(&mut self, kind: &str, name: &str) {
        let begun = Instant::now();
        let objects = live_objects::api(&self.healthy_cluster, kind, None);
        while objects.get_opt(name).await.expect("an answer").is_none() {
            self.assert_running();
            assert!(begun.elapsed() < self.commit_timeout(), "{kind} {name} is not there:\n{}", self.log());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    fn commit_timeout(&self) -> Duration {
        match self.commits {
            // The first commit shows how busy the machine is.
            0 | 1 => 6 * COMMIT_TIMEOUT,
            // Other tests, and what is hostile here, may have begun since.
            _ => (4 * COMMIT_TIMEOUT).max(MAX_SLOWDOWN * self.first_commit_time),
        }
    }

    /// Other processes use the machine, so time limits may be reached early.
    pub fn is_busy(&self) -> bool {
        MAX_SLOWDOWN * self.first_commit_time > COMMIT_TIMEOUT
    }

    /// The process has not ended.
    pub fn assert_running(&mut self) {
        let process = self.process.as_mut().expect("a process that was started");
        if let Some(status) = process.try_wait().expect("a child") {
            let log = self.log();
            panic!("the process ended, {status}:\n{log}");
        }
    }

    /// Waits until the log contains a text.
    pub async fn until_logged(&mut self, text: &str) {
        let (begun, patience) = (Instant::now(), LOG_TIMEOUT.max(2 * self.commit_timeout()));
        while !self.log().contains(text) {
            self.assert_running();
            assert!(begun.elapsed() < patience, "nothing says {text:?}:\n{}", self.log());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

impl Drop for HostileFixture {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}
