//! `tutti templates`: lists shipped templates, and copies them into a repository.

use std::path::PathBuf;

use anyhow::bail;
use clap::{Args, Subcommand};

use super::exit::Exit;
use super::files;
use super::output::say;
use crate::fleet::layers::{TEMPLATES_FOLDER, shipped_files};

#[derive(Args, Debug)]
pub struct TemplatesArgs {
    #[command(subcommand)]
    command: TemplatesCommand,
}

#[derive(Subcommand, Debug)]
enum TemplatesCommand {
    /// Copy shipped files into the config repository, where the copies replace the shipped files
    Eject(EjectArgs),
    /// List the files that are shipped with tutti
    List,
}

#[derive(Args, Debug)]
struct EjectArgs {
    /// Layer (`base`, `workload/deployment`, `language/go`) or file to copy; without it, all files
    #[arg(value_name = "LAYER|FILE")]
    what: Option<String>,
    /// Folder of the config repository
    #[arg(long, default_value = ".", value_name = "PATH")]
    repo: PathBuf,
    /// Overwrite existing files
    #[arg(long)]
    force: bool,
}

pub fn run(args: TemplatesArgs) -> anyhow::Result<Exit> {
    match args.command {
        TemplatesCommand::List => {
            shipped_files(TEMPLATES_FOLDER).for_each(|(path, _)| say!("{path}"));
            Ok(Exit::Ok)
        }
        TemplatesCommand::Eject(args) => eject(&args),
    }
}

fn eject(args: &EjectArgs) -> anyhow::Result<Exit> {
    let what = args.what.as_deref().unwrap_or("");
    let what = what.strip_prefix("shipped/").unwrap_or(what).trim_end_matches('/');
    let what = what.strip_prefix(TEMPLATES_FOLDER).unwrap_or(what);
    let within = format!("{TEMPLATES_FOLDER}{what}/");
    let chosen: Vec<_> = shipped_files(TEMPLATES_FOLDER)
        .filter(|(path, _)| {
            what.is_empty() || path.starts_with(&within) || **path == *within.trim_end_matches('/')
        })
        .collect();
    if chosen.is_empty() {
        bail!("nothing of the name {what} is shipped; `tutti templates list` shows what is");
    }
    // All are written, or none.
    let there: Vec<&str> =
        chosen.iter().map(|(path, _)| *path).filter(|path| args.repo.join(path).exists()).collect();
    if !args.force && !there.is_empty() {
        bail!("these files exist already: {}; --force overwrites them", there.join(", "));
    }
    files::write_all(&args.repo, &chosen)?;
    chosen.iter().for_each(|(path, _)| say!("{path}"));
    Ok(Exit::Ok)
}
