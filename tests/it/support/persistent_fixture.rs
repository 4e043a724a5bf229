//! Runs the real binary on a repository whose clusters persist between commands.

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;

use regex::Regex;
use sandbox::{Sandbox, SandboxListener, SandboxOptions};
use tempfile::TempDir;

use super::folders::{read, write};
use super::program;
use super::repository::TestRepository;

pub struct PersistentCommandFixture {
    folder: TempDir,
    first_commit: String,
    _clusters: Vec<(Sandbox, SandboxListener)>,
}

impl PersistentCommandFixture {
    pub async fn of_fixture(name: &str) -> Self {
        Self::new(&read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name))).await
    }

    /// With a cluster for each file below `clusters/`.
    pub async fn new(files: &[(String, String)]) -> Self {
        let folder = tempfile::tempdir().expect("temporary folder");
        write(&folder.path().join("repo"), files);
        let changes: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), Some(text.as_str()))).collect();
        let begin = TestRepository::at(&folder.path().join("repo")).commit("Begin", &changes).to_string();
        let mut clusters = Vec::new();
        for (path, _) in files.iter().filter(|(path, _)| path.starts_with("clusters/")) {
            let name = Path::new(path).file_stem().expect("a name").display().to_string();
            let sandbox = Sandbox::new(SandboxOptions::instant(&*name));
            let listener = sandbox.listen((Ipv4Addr::LOCALHOST, 0).into()).await.expect("a port");
            let kubeconfig = folder.path().join(format!("{name}.kubeconfig"));
            fs::write(kubeconfig, listener.kubeconfig()).expect("a file");
            clusters.push((sandbox, listener));
        }
        let stage = Self { folder, first_commit: begin, _clusters: clusters };
        // The working tree equals the commit.
        stage.run("git reset -q");
        stage
    }

    /// Runs `tutti …` or a shell command in the repository. Returns both streams and the exit code.
    pub fn run(&self, command: &str) -> (String, String, i32) {
        self.run_with(command, |_| {})
    }

    pub fn run_with(&self, command: &str, change: impl FnOnce(&mut Command)) -> (String, String, i32) {
        let mut program = self.command(command);
        change(&mut program);
        program::output_text(&program.output().expect("it runs"))
    }

    /// The same command, to be started by the test.
    pub fn command(&self, command: &str) -> Command {
        let mut program = if let Some(arguments) = command.strip_prefix("tutti ") {
            let mut tutti = program::tutti(self.folder.path());
            tutti.env("TUTTI_REPO", "repo").env("TUTTI_KUBECONFIGS", ".").args(arguments.split_whitespace());
            tutti
        } else {
            let mut shell = Command::new("sh");
            shell.args(["-c", command]).current_dir(self.folder.path().join("repo"));
            shell
        };
        // Git needs a committer.
        for who in ["AUTHOR", "COMMITTER"] {
            program
                .env(format!("GIT_{who}_NAME"), "Wang")
                .env(format!("GIT_{who}_EMAIL"), "wang@example.com");
        }
        program.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
        program
    }

    /// Masks what differs between runs.
    pub fn masked(&self, text: &str) -> String {
        let mut text = text.replace(&self.folder.path().display().to_string(), "FOLDER");
        let (commits, ..) = self.run("git log --reverse --format=%H");
        assert!(commits.starts_with(&self.first_commit));
        for (number, commit) in (1..).zip(commits.lines()) {
            let name = format!("COMMIT{number}");
            text = text.replace(commit, &name).replace(&commit[..7], &name);
        }
        let masks = [
            (r"\b\d+(?:s|m(?:\d+s)?|h(?:\d+m)?|d) ago", "AGE ago"),
            (r"\b\d+(?:s|m(?:\d+s)?|h(?:\d+m)?|d)( ) +", "AGE$1$1"),
            (r"\b\d+(?:s|m(?:\d+s)?|h(?:\d+m)?|d)$", "AGE"),
            (r"\d{4}-\d\d-\d\dT[0-9:.]+Z", "TIME"),
            (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", "TIME"),
            // The digest of deletes contains uids.
            (r"\b(approve|approval) [0-9a-f]{12}\b", "$1 DIGEST"),
            (r"\b[a-z]+-[a-z0-9]{8,10}-[a-z0-9]{5}\b", "POD"),
        ];
        let masks = masks.map(|(pattern, mask)| (Regex::new(pattern).expect("an expression"), mask));
        let line = |line: &str| {
            let masked = |text: String, (pattern, mask): &(Regex, &str)| {
                pattern.replace_all(&text, *mask).into_owned()
            };
            masks.iter().fold(line.to_owned(), masked) + "\n"
        };
        text.lines().map(line).collect()
    }
}
