//! SIGTERM: running work is finished, and the process exits with 0.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::manifests::{cluster, component};
use crate::support::program;
use crate::support::repository::TestRepository;

/// Starts the command, waits for a line on standard error, and sends SIGTERM. Returns exit code and duration.
fn run_and_terminate(mut command: Command, when: &str) -> (Option<i32>, Duration) {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the binary runs");
    let mut lines = BufReader::new(child.stderr.take().expect("standard error"));
    let mut line = String::new();
    while !line.contains(when) {
        line.clear();
        let read = lines.read_line(&mut line).expect("text");
        assert!(read > 0, "it ended before {when:?}: {:?}", child.wait());
    }
    // The pipe must not fill up.
    let rest = std::thread::spawn(move || lines.read_to_string(&mut String::new()));
    let asked = Instant::now();
    let sent = Command::new("kill").arg("-TERM").arg(child.id().to_string()).status().expect("kill");
    assert!(sent.success());
    let code = wait_for_exit(&mut child, Duration::from_secs(15));
    let took = asked.elapsed();
    rest.join().expect("the reader").expect("text");
    (code, took)
}

fn wait_for_exit(child: &mut Child, patience: Duration) -> Option<i32> {
    let give_up = Instant::now() + patience;
    while Instant::now() < give_up {
        if let Some(status) = child.try_wait().expect("wait") {
            return status.code();
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().expect("kill");
    panic!("it did not end within {patience:?}");
}

fn check_clean_exit(command: Command, when: &str) {
    let (code, took) = run_and_terminate(command, when);
    assert_eq!(code, Some(0));
    assert!(took < Duration::from_secs(10), "{took:?}");
}

fn run_command(folder: &Path, repository: &TestRepository) -> Command {
    let mut command = program::tutti(folder);
    command.args([
        "run",
        "--cluster",
        "*=sandbox",
        "--listen",
        "127.0.0.1:0",
        "--hooks-listen",
        "127.0.0.1:0",
    ]);
    command.arg("--repo").arg(repository.path());
    command
}

#[test]
fn sigterm_ends_busy_and_idle_runs() {
    let folder = tempfile::tempdir().expect("folder");
    let repository = TestRepository::empty();
    let (bj1, web) = (cluster("bj1"), component("web", "registry.example.com/web:1"));
    repository.commit("Begin", &[("clusters/bj1.yaml", Some(&bj1)), ("apps/web/app.yaml", Some(&web))]);
    check_clean_exit(run_command(folder.path(), &repository), "Progressing");
    check_clean_exit(run_command(folder.path(), &repository), "Running");
}

#[test]
fn demo_removes_its_folder() {
    let folder = tempfile::tempdir().expect("folder");
    let mut command = program::tutti(folder.path());
    command.arg("demo").env("TMPDIR", folder.path());
    check_clean_exit(command, "Progressing");
    let left: Vec<_> = std::fs::read_dir(folder.path())
        .expect("folder")
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.starts_with("tutti-demo-"))
        .collect();
    assert_eq!(left, Vec::<String>::new());
}
