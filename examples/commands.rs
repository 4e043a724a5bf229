//! What is written from the program: `commands markdown FOLDER` with the commands and the fields of manifests as pages, or
//! `commands release FOLDER` with completions and manual pages.
//!
//! `cargo xtask docs` and `cargo xtask dist` run it.
#![allow(clippy::print_stderr, reason = "a command for developers prints")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Command;
use clap_complete::{Shell, generate_to};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let path = |at: usize| arguments.get(at).map(PathBuf::from).unwrap_or_default();
    let done = match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["markdown", _] => markdown(&path(1)),
        ["release", _] => release(&path(1)),
        _ => {
            eprintln!("usage: commands markdown FOLDER | commands release FOLDER");
            return ExitCode::FAILURE;
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: failed to write {}: {error}", path(1).display());
            ExitCode::FAILURE
        }
    }
}

fn markdown(folder: &Path) -> std::io::Result<()> {
    fs::write(folder.join("cli.md"), tutti::cli::reference::markdown(tutti::cli::command()))?;
    fs::write(
        folder.join("fields.md"),
        tutti::cli::reference::fields::markdown().map_err(std::io::Error::other)?,
    )
}

fn release(folder: &Path) -> std::io::Result<()> {
    let (completions, manual) = (folder.join("completions"), folder.join("man/man1"));
    fs::create_dir_all(&completions)?;
    fs::create_dir_all(&manual)?;
    let mut command = shown();
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        generate_to(shell, &mut command, "tutti", &completions)?;
    }
    clap_mangen::generate_to(command, &manual)
}

/// Without hidden commands, which are not for users but would appear in completions.
fn shown() -> Command {
    let all = tutti::cli::command();
    let mut shown = Command::new("tutti")
        .version(env!("CARGO_PKG_VERSION"))
        .disable_help_subcommand(true)
        .args(all.get_arguments().cloned())
        .subcommands(all.get_subcommands().filter(|it| !it.is_hide_set()).cloned());
    if let Some(about) = all.get_about() {
        shown = shown.about(about.clone());
    }
    shown
}
