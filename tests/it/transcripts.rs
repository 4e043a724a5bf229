//! Output of commands: `tests/transcripts/*.txt`, each command with its output below.
//!
//! `$ tutti …` is a command, run in a folder with `repo` (the example repository, committed),
//! `mistakes`, `access` and `old` (fixtures), `values.yaml` and `dump.yaml`. Below are the lines of standard output, those
//! of standard error after `2> `, and `? CODE` if the exit code is not 0. `$! tutti …` leaves out standard error, whose
//! progress depends on time, except for the final reason. Commits are `COMMIT`, the folder is `FOLDER`.
//! `rollout*.txt`, `promotion.txt` and `why.txt` use the repository `tests/fixtures/waves`, `promotion` or `why`. Their
//! clusters live from one command to the next, and commands other than `tutti` run in the shell, in the repository;
//! commits are `COMMIT1`, `COMMIT2`, …, ages `AGE`. `TUTTI_TRANSCRIPTS=write cargo test --test it transcripts` writes all.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use crate::support::folders::{read, write};
use crate::support::persistent_fixture::PersistentCommandFixture;
use crate::support::program;
use crate::support::repository::TestRepository;

/// Values that YAML parsers read differently, and a document with a mistake.
const VALUES_FILE: &str =
    "country: no\nmode: 0644\nsize: 1_000\nversion: 1.10\nday: 2026-11-21\n---\nx: 1\nx: 2\n";

struct TranscriptFolder {
    folder: TempDir,
    commit: String,
}

impl TranscriptFolder {
    fn new() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let folder = tempfile::tempdir().expect("temporary folder");
        let example = read(&root.join("examples/repo"));
        write(&folder.path().join("repo"), &example);
        let changes: Vec<_> =
            example.iter().map(|(path, text)| (path.as_str(), Some(text.as_str()))).collect();
        let commit = TestRepository::at(&folder.path().join("repo")).commit("The example", &changes);
        write(&folder.path().join("mistakes"), &read(&root.join("tests/fixtures/mistakes-instance")));
        write(&folder.path().join("access"), &read(&root.join("tests/fixtures/access")));
        write(&folder.path().join("old"), &read(&root.join("tests/fixtures/migrate")));
        fs::copy(root.join("tests/fixtures/dump.yaml"), folder.path().join("dump.yaml")).expect("copy");
        fs::write(folder.path().join("values.yaml"), VALUES_FILE).expect("write");
        fs::create_dir(folder.path().join("empty")).expect("make a folder");
        Self { folder, commit: commit.to_string() }
    }

    /// Runs one line and returns its transcript.
    fn run_line(&self, line: &str) -> String {
        let (without_progress, command) = match line.strip_prefix("$! tutti ") {
            Some(command) => (true, command),
            None => (false, line.strip_prefix("$ tutti ").expect("a line `$ tutti …`")),
        };
        let arguments: Vec<&str> = command.split_whitespace().collect();
        let (output, errors, code) = program::run(self.folder.path(), &arguments);
        transcript_block(
            line,
            &self.mask_variable_parts(&output),
            &self.mask_variable_parts(&errors),
            code,
            without_progress,
        )
    }

    fn mask_variable_parts(&self, text: &str) -> String {
        text.replace(&self.commit, "COMMIT")
            .replace(&self.commit[..7], "COMMIT")
            .replace(&self.folder.path().display().to_string(), "FOLDER")
    }
}

fn transcript_block(line: &str, output: &str, errors: &str, code: i32, without_progress: bool) -> String {
    let mut text = format!("{line}\n{output}");
    for line in errors.lines().filter(|line| !without_progress || line.starts_with("ends with ")) {
        let _ = writeln!(text, "{}", format!("2> {line}").trim_end());
    }
    if code != 0 {
        let _ = writeln!(text, "? {code}");
    }
    text
}

fn check_transcript(name: &str) {
    let stage = TranscriptFolder::new();
    check_transcript_with(name, |line| stage.run_line(line));
}

fn transcript_path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/transcripts/{name}.txt"))
}

fn check_transcript_with(name: &str, play: impl Fn(&str) -> String) {
    let path = transcript_path(name);
    let expected = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let is_command = |line: &&str| line.starts_with("$ ") || line.starts_with("$! ");
    let played: Vec<String> = expected.lines().filter(is_command).map(play).collect();
    let found = played.join("\n");
    if std::env::var("TUTTI_TRANSCRIPTS").is_ok_and(|wish| wish == "write") {
        fs::write(&path, found).expect("write");
        return;
    }
    if found != expected {
        let differences = similar::TextDiff::from_lines(&expected, &found);
        panic!("{name}.txt:\n{}", differences.unified_diff().header("expected", "found"));
    }
}

async fn check_on_lasting_clusters(fixture: &str, name: &str) {
    let stage = PersistentCommandFixture::of_fixture(fixture).await;
    let expected = fs::read_to_string(transcript_path(name)).unwrap_or_default();
    let play_once = |line: &str| {
        let (mark, command) = line.split_once(' ').expect("a command");
        let (output, errors, code) = stage.run(command);
        transcript_block(line, &stage.masked(&output), &stage.masked(&errors), code, mark == "$!")
    };
    let play = |line: &str| {
        let mut block = play_once(line);
        // On a busy machine a failed pod has its cause some seconds later.
        let mut attempts = if line.starts_with("$ tutti why") { 10 } else { 0 };
        while attempts > 0 && !expected.contains(&block) {
            std::thread::sleep(Duration::from_secs(3));
            block = play_once(line);
            attempts -= 1;
        }
        block
    };
    tokio::task::block_in_place(|| check_transcript_with(name, play));
}

#[test]
fn version() {
    check_transcript("version");
}

#[test]
fn lint() {
    check_transcript("lint");
}

#[test]
fn explain() {
    check_transcript("explain");
}

#[test]
fn read_files() {
    check_transcript("read");
}

#[test]
fn render() {
    check_transcript("render");
}

#[test]
fn fields() {
    check_transcript("fields");
}

#[test]
fn get() {
    check_transcript("get");
}

#[test]
fn health() {
    check_transcript("health");
}

#[test]
fn notify() {
    let mut stage = TranscriptFolder::new();
    let path = stage.folder.path().join("repo");
    let changed = |file: &str, from: &str, to: &str| {
        let text = fs::read_to_string(path.join(file)).expect(file);
        assert!(text.contains(from), "{file}");
        (file.to_owned(), text.replace(from, to))
    };
    let files = [
        changed("apps/shop-web/app.yaml", "web:1.4.2", "web:1.5.0"),
        changed("apps/bbcc/app.yaml", "version: v4", "version: v5"),
    ];
    let changes: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), Some(text.as_str()))).collect();
    stage.commit = TestRepository::at(&path).commit("Release shop-web 1.5.0, bbcc v5", &changes).to_string();
    check_transcript_with("notify", |line| stage.run_line(line));
}

#[test]
fn plan() {
    check_transcript("plan");
}

#[test]
fn diff() {
    check_transcript("diff");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rollout() {
    check_on_lasting_clusters("waves", "rollout").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rollout_broken() {
    check_on_lasting_clusters("waves", "rollout-broken").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promotion() {
    check_on_lasting_clusters("promotion", "promotion").await;
}

/// Apps that are broken at each link, or held for each reason.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn why() {
    check_on_lasting_clusters("why", "why").await;
}

#[test]
fn run_once() {
    check_transcript("run-once");
}

#[test]
fn cluster_rbac() {
    check_transcript("cluster-rbac");
}

#[test]
fn doctor() {
    check_transcript("doctor");
}

#[test]
fn wrong_usage() {
    check_transcript("wrong-usage");
}

#[test]
fn migrate() {
    check_transcript("migrate");
}

#[test]
fn schema() {
    check_transcript("schema");
}

/// The example's files name the files that `tutti schema --out` writes.
#[test]
fn written_schemas_match_the_example_paths() {
    let stage = TranscriptFolder::new();
    let (_, errors, code) = program::run(stage.folder.path(), &["schema", "--out", "schemas"]);
    assert_eq!((errors.as_str(), code), ("", 0));
    let mut named = 0;
    for (file, text) in read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/repo")) {
        if let Some(address) = text.lines().next().and_then(|line| line.split_once("$schema=")) {
            let path = address.1.strip_prefix("https://tutti.dev/schemas/").expect(&file);
            let schema = fs::read_to_string(stage.folder.path().join("schemas").join(path)).expect(path);
            assert!(schema.contains(&format!("\"$id\": \"{}\"", address.1)), "{file}");
            named += 1;
        }
    }
    assert!(named >= 10, "{named}");
}
