//! Every command of README, getting started and the how-to pages runs as written.
//!
//! A block ```` ```sh ```` is run: all blocks of a page in order, in one shell, in an empty folder. A block that
//! cannot run here has `<!-- not run: REASON -->` on the line before it. A block ```` ```console ```` shows
//! `$ COMMAND` and its output, and is not run, except on the live tier for the page of the first cluster. Subcommands and
//! flags of `tutti` are checked in both. A block ```` ```text ```` is the output of the page's commands.

mod blocks;
mod shell;

use std::fs;
use std::path::Path;

use blocks::BlockKind;
use live::LiveCluster;

/// One test for each page, so that pages run in parallel.
macro_rules! pages {
    ($($name:ident: $path:literal,)*) => {
        const PAGES: &[&str] = &[$($path),*];
        mod commands {
            $(#[test]
            fn $name() {
                super::check($path);
            })*
        }
    };
}

pages! {
    readme: "README.md",
    getting_started: "docs/getting-started.md",
    add_a_team: "docs/how-to/add-a-team.md",
    canary: "docs/how-to/canary.md",
    first_cluster: "docs/how-to/first-cluster.md",
    move_from_argo_cd: "docs/how-to/move-from-argo-cd.md",
    move_from_flux: "docs/how-to/move-from-flux.md",
    move_from_plain_manifests: "docs/how-to/move-from-plain-manifests.md",
    notify: "docs/how-to/notify.md",
    promote: "docs/how-to/promote.md",
    restore: "docs/how-to/restore.md",
    roll_back: "docs/how-to/roll-back.md",
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn check(path: &str) {
    let text = fs::read_to_string(root().join(path)).expect("a page");
    let blocks = blocks::blocks_of_page(&text);
    let faults = blocks::block_mistakes(&blocks);
    assert!(faults.is_empty(), "{path}:\n{}", faults.join("\n"));
    shell::run_blocks(path, &text, &blocks, None);
}

/// The same with the blocks `console`, on a real cluster.
pub fn check_on(path: &str, cluster: &LiveCluster) {
    let text = fs::read_to_string(root().join(path)).expect("a page");
    shell::run_blocks(path, &text, &blocks::blocks_of_page(&text), Some(cluster));
}

#[test]
fn every_page_has_a_test() {
    let how_to = fs::read_dir(root().join("docs/how-to")).expect("a folder");
    let mut found: Vec<String> = how_to
        .map(|entry| format!("docs/how-to/{}", entry.expect("an entry").file_name().display()))
        .chain(["README.md".to_owned(), "docs/getting-started.md".to_owned()])
        .collect();
    found.sort();
    let mut tested = PAGES.to_vec();
    tested.sort_unstable();
    assert_eq!(found, tested);
}

/// Prints the commands that no test runs.
#[test]
fn unrun_commands_exist() {
    let mut faults = Vec::new();
    for path in PAGES {
        let text = fs::read_to_string(root().join(path)).expect("a page");
        for block in blocks::blocks_of_page(&text) {
            let reason = match &block.kind {
                BlockKind::NotRun(reason) => reason,
                BlockKind::Transcript => "a transcript",
                _ => continue,
            };
            println!("{path}:{}: {reason}", block.line);
            for command in block.commands() {
                println!("    {command}");
                faults.extend(
                    shell::unknown_arguments(command)
                        .map(|why| format!("{path}:{}: {command}: {why}", block.line)),
                );
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn blocks_without_a_test_are_refused() {
    let check = |text: &str, expected: &[&str]| {
        assert_eq!(blocks::block_mistakes(&blocks::blocks_of_page(text)), expected, "{text}")
    };
    check("```sh\ntutti lint\n```\n```text\n1 app\n```\n```\n a ─▶ b\n```\n```yaml\na: b\n```\n", &[]);
    check("```\n# x\ntutti lint\n```\n", &["line 1: a block of commands without a language: tutti lint"]);
    check("```text\n$ ls\n```\n", &["line 1: a block of commands without a language: $ ls"]);
    check("```bash\nls\n```\n", &["line 1: write `sh` instead of `bash`"]);
    check("```console\nls\n```\n", &["line 1: no line begins with `$ `"]);
    check("<!-- not run: needs a cluster -->\n```sh\nkubectl get pods\n```\n", &[]);
    check("<!-- not run -->\n```sh\nls\n```\n", &["line 2: not run, without a reason"]);
    check("<!-- not run: -->\n```sh\nls\n```\n", &["line 2: not run, without a reason"]);
    check("<!-- not run: x -->\n\n```sh\nls\n```\n", &["line 1: no block `sh` follows"]);
    check("```sh\nls\n", &["line 1: the block has no end"]);
}

#[test]
fn unknown_commands_and_flags_are_found() {
    let check = |command: &str, expected: Option<&str>| {
        assert_eq!(shell::unknown_arguments(command).next().as_deref(), expected, "{command}");
    };
    check("tutti doctor prod-1 --kubeconfigs DIR", None);
    check("kubectl get pods --everything", None);
    check("tutti doctor --kubeconfig DIR | cat", Some("no flag --kubeconfig"));
    check("cd x && tutti docter", Some("no such command"));
}

/// Runs a page with this text.
fn run(text: &str) {
    shell::run_blocks("page.md", text, &blocks::blocks_of_page(text), None);
}

#[test]
#[should_panic(expected = "page.md:7: cat none\nexit code 1; all that the page printed:\none\n")]
fn failing_command_is_named_by_its_line() {
    run("# A page\n```sh\necho one\n```\n```sh\ntrue\ncat none\necho two\n```\n");
}

#[test]
#[should_panic(expected = "page.md: not printed:\nline 7: two\nbut:\none 1.5 s\n")]
fn missing_output_is_named() {
    run("# A page\n```sh\necho one 1.5 s\n```\n```text\none 2 s\ntwo\n…\n```\n");
}
