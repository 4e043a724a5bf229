//! Runs the commands of a page in a shell.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use live::LiveCluster;
use regex::Regex;

use super::blocks::{BlockKind, PageBlock};
use crate::support::program;

/// The longest page waits for rollouts for half a minute on an idle machine.
const PAGE_TIMEOUT: Duration = Duration::from_secs(240);

/// Replaces the heading: each command writes its line and start time to the file `trace`.
const PRELUDE: &str = r#"exec 9>"$TRACE"; BASH_XTRACEFD=9; PS4=$'\1$LINENO $EPOCHREALTIME '; set -x"#;

/// Replaces cargo, whose build would need the lock of the test. `cargo run -- ARGUMENTS` is the program; other commands are steps of CI.
/// The demo is stopped once it says how. With `--once` it is a step of CI too.
const CARGO: &str = r#"#!/bin/sh
fail() { echo "$*" >&2; exit 1; }
case "$*" in
  "run -- demo --once") exec grep -E '^cargo run (--quiet )?-- demo --once$' "$CI" ;;
  "run -- demo")
    tutti demo >"$HOME/demo.log" 2>&1 &
    until grep -q '^Ctrl-C ends it' "$HOME/demo.log"; do
      kill -0 $! || fail "$(cat "$HOME/demo.log")"
      sleep 1
    done
    kill $!
    wait $! || fail "the demo ends with $?"
    exit 0 ;;
  "run -- "*) shift 2; exec tutti "$@" ;;
esac
grep -E "(^| )cargo $*( |\$)" "$CI" || fail "cargo $* is no step of .ci/run"
"#;

const GIT_CONFIG: &str = "[user]\n\tname = Ann\n\temail = ann@example.com\n";

/// With a cluster: also the commands of blocks `console`, for which it is the context `prod-1` of kubectl.
pub fn run_blocks(path: &str, text: &str, blocks: &[PageBlock], cluster: Option<&LiveCluster>) {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    for name in ["bin", "home", "tmp", "page"] {
        fs::create_dir(at(name)).expect("make a folder");
    }
    symlink(env!("CARGO_BIN_EXE_tutti"), at("bin/tutti")).expect("a link");
    fs::write(at("bin/cargo"), CARGO).expect("write");
    fs::set_permissions(at("bin/cargo"), fs::Permissions::from_mode(0o755)).expect("a program");
    fs::write(at("home/.gitconfig"), GIT_CONFIG).expect("write");
    if let Some(cluster) = cluster {
        let kubeconfig = fs::read_to_string(cluster.kubeconfig()).expect("a kubeconfig");
        assert!(kubeconfig.contains("name: admin\n"), "its context is no longer called admin");
        fs::create_dir(at("home/.kube")).expect("make a folder");
        fs::write(at("home/.kube/config"), kubeconfig).expect("write");
        symlink(cluster.kubectl_program(), at("bin/kubectl")).expect("a link");
        let rename = ["config", "rename-context", "admin", "prod-1"];
        let renamed = Command::new(at("bin/kubectl")).args(rename).env("HOME", at("home")).output();
        assert!(renamed.expect("kubectl runs").status.success());
    }
    fs::write(at("script"), script_of_blocks(text, blocks, cluster.is_some())).expect("write");

    let output = File::create(at("output")).expect("a file");
    let outer_path = std::env::var("PATH").expect("PATH");
    let mut shell = Command::new("bash");
    shell.args(["-e", "-o", "pipefail"]).arg(at("script")).current_dir(at("page")).process_group(0);
    shell.env_clear().env("PATH", format!("{}:{outer_path}", at("bin").display()));
    shell.env("HOME", at("home")).env("TMPDIR", at("tmp")).env("TRACE", at("trace")).env("LANG", "C.UTF-8");
    shell.env("CI", Path::new(env!("CARGO_MANIFEST_DIR")).join(".ci/run"));
    shell.stdin(Stdio::null()).stdout(output.try_clone().expect("a file")).stderr(output);
    let started = Instant::now();
    let mut child = shell.spawn().expect("bash runs");
    let code = wait_for_end(&mut child);
    println!("{path}: {:.1} s", started.elapsed().as_secs_f64());

    let trace = fs::read_to_string(at("trace")).expect("the trace");
    let steps = command_starts(&trace);
    for (line, took) in steps.windows(2).map(|pair| (pair[0].0, pair[1].1 - pair[0].1)) {
        if took >= 1.0 {
            println!("{path}:{line}: {took:.1} s");
        }
    }
    let output = String::from_utf8_lossy(&fs::read(at("output")).expect("the output")).into_owned();
    if code != Some(0) {
        let line = steps.last().map_or(0, |(line, _)| *line);
        let command = text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
        let why = code
            .map_or_else(|| format!("no end within {PAGE_TIMEOUT:?}"), |code| format!("exit code {code}"));
        panic!("{path}:{line}: {command}\n{why}; all that the page printed:\n{output}");
    }
    let missing = missing_lines(blocks, &output);
    assert!(missing.is_empty(), "{path}: not printed:\n{}\nbut:\n{output}", missing.join("\n"));
}

/// Lines of `text` blocks that the commands did not print, in any order. A line with a progress mark depends on time.
fn missing_lines(blocks: &[PageBlock], output: &str) -> Vec<String> {
    let printed: BTreeSet<String> = output.lines().map(masked_line).collect();
    let texts = blocks.iter().filter(|block| block.kind == BlockKind::Other("text".to_owned()));
    let lines = texts.flat_map(|block| block.lines.iter().zip(block.line + 1..));
    let expected =
        lines.filter(|(line, _)| !line.is_empty() && !line.starts_with(['…', '↻', '✓', '✗', '·', '»']));
    let missing = expected.filter(|(line, _)| !printed.contains(&masked_line(line)));
    missing.map(|(line, number)| format!("line {number}: {line}")).collect()
}

/// Masks what differs between runs: times, commits, names of pods, and which of two equal clusters was first.
fn masked_line(line: &str) -> String {
    static MASKS: LazyLock<[(Regex, &str); 6]> = LazyLock::new(|| {
        let masks = [
            (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", "TIME"),
            (r"-[a-z0-9]{10}-[a-z0-9]{5}\b", "-POD"),
            (r"\b[0-9a-f]{7,12}\b", "COMMIT"),
            (r"\b(\d+(\.\d+)?\s?(ms|s|m|h))+\b", "AGE"),
            (r"\b(bj|gz)-", "ZONE-"),
            (r"\s+", " "),
        ];
        masks.map(|(pattern, mask)| (Regex::new(pattern).expect("a pattern"), mask))
    });
    let masked =
        MASKS.iter().fold(line.to_owned(), |line, (mask, with)| mask.replace_all(&line, *with).into_owned());
    masked.trim().to_owned()
}

/// Each command keeps its line of the page.
fn script_of_blocks(text: &str, blocks: &[PageBlock], with_transcripts: bool) -> String {
    let mut lines = vec![""; text.lines().count() + 1];
    lines[0] = PRELUDE;
    for block in blocks {
        for (index, line) in block.lines.iter().enumerate() {
            lines[block.line + index] = match block.kind {
                BlockKind::Run => line,
                BlockKind::Transcript if with_transcripts => line.strip_prefix("$ ").unwrap_or_default(),
                _ => continue,
            };
        }
    }
    lines.iter().fold(String::new(), |mut script, line| {
        let _ = writeln!(script, "{line}");
        script
    })
}

/// The exit code; `None` on a timeout. Background processes of the page are ended too.
fn wait_for_end(child: &mut Child) -> Option<i32> {
    let give_up = Instant::now() + PAGE_TIMEOUT;
    let mut code = None;
    while code.is_none() && Instant::now() < give_up {
        std::thread::sleep(Duration::from_millis(20));
        code = child.try_wait().expect("wait").map(|status| status.code().unwrap_or(-1));
    }
    let group = format!("-{}", child.id());
    let _ = Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status();
    let _ = child.wait();
    code
}

/// Lines and start times of the executed commands, in seconds.
fn command_starts(trace: &str) -> Vec<(usize, f64)> {
    let step = |line: &str| {
        let mut words = line.trim_start_matches('\u{1}').split(' ');
        Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
    };
    trace.lines().filter(|line| line.starts_with('\u{1}')).filter_map(step).collect()
}

/// Subcommands and flags of `tutti` in a line that its help does not contain.
pub fn unknown_arguments(line: &str) -> impl Iterator<Item = String> {
    let parts: Vec<&str> = line.split(['|', '&', ';']).map(str::trim).collect();
    let commands = parts.into_iter().filter_map(|part| part.strip_prefix("tutti "));
    commands.flat_map(unknown_arguments_of).collect::<Vec<_>>().into_iter()
}

fn unknown_arguments_of(arguments: &str) -> Vec<String> {
    let words: Vec<&str> = arguments.split_whitespace().collect();
    let names = words.iter().take_while(|word| !word.starts_with('-')).copied();
    let asked: Vec<&str> = names.chain(["--help"]).collect();
    let (help, _, code) = program::run(Path::new("."), &asked);
    if code != 0 {
        return vec!["no such command".to_owned()];
    }
    let known: Vec<&str> = help.split(|it: char| !(it.is_alphanumeric() || it == '-')).collect();
    let flags =
        words.iter().filter(|word| word.starts_with('-')).map(|word| word.split('=').next().unwrap_or(word));
    flags.filter(|flag| !known.contains(flag)).map(|flag| format!("no flag {flag}")).collect()
}
