//! `tutti migrate`: rewrites manifests to another version.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use serde::Serialize;

use super::exit::Exit;
use super::output::{self, OutputFormat, say};
use super::{diagnostics, files, repository};
use crate::manifest::hub::{Hub, migrate};
use crate::manifest::{IgnoredFiles, OWN_VERSION, schema};
use crate::model::{Diagnostic, Snapshot};
use crate::report::status_text::count_noun;

#[derive(Args, Debug)]
pub struct MigrateArgs {
    /// Folder of the config repository, or one file in it
    #[arg(default_value = ".", value_name = "PATH")]
    path: PathBuf,
    /// Version (apiVersion) to convert manifests to, if their kind has it; default: the native version of each kind
    #[arg(long, value_name = "VERSION")]
    to: Option<String>,
    /// Change nothing, and exit with code 1 if a file would change
    #[arg(long)]
    check: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
}

/// One changed file.
#[derive(Serialize)]
struct MigratedFile {
    file: String,
    documents: Vec<String>,
    #[serde(skip)]
    before: String,
    #[serde(skip)]
    after: String,
}

pub async fn run(args: MigrateArgs) -> anyhow::Result<Exit> {
    let (root, only) = locate_root(&args.path, !args.check)?;
    let snapshot = repository::snapshot(&root, None).await?;
    let (hub, mut mistakes) = Hub::of(&snapshot);
    if let Some(version) = &args.to {
        check_version(version, &hub)?;
    }
    let mut changes = Vec::new();
    let ignored = IgnoredFiles::of(&snapshot);
    let files = snapshot.files.keys().filter(|path| ignored.is_candidate(path));
    for file in files.filter(|path| only.as_ref().is_none_or(|only| only == *path)) {
        match migrate_file(&hub, &snapshot, file, args.to.as_deref()) {
            Ok(change) => changes.extend(change),
            Err(more) => mistakes.extend(more),
        }
    }
    if !args.check {
        let files: Vec<_> = changes.iter().map(|it| (it.file.as_str(), it.after.as_str())).collect();
        files::write_all(&root, &files)?;
    }
    print_changes(&args, &changes)?;
    diagnostics::print_from(&mistakes, &|file| snapshot.text(file).map(ToOwned::to_owned));
    Ok(if !mistakes.is_empty() {
        Exit::Configuration
    } else if args.check && !changes.is_empty() {
        Exit::Differences
    } else {
        Exit::Ok
    })
}

fn migrate_file(
    hub: &Hub,
    snapshot: &Snapshot,
    file: &str,
    version: Option<&str>,
) -> Result<Option<MigratedFile>, Vec<Diagnostic>> {
    // Not UTF-8: `lint` reports it.
    let Some(before) = snapshot.text(file) else { return Ok(None) };
    let migration = migrate::migrate(hub, file, before, version)?;
    if migration.documents.is_empty() {
        return Ok(None);
    }
    let documents = migration.documents.iter();
    let documents = documents.map(|it| format!("{} {}: {} to {}", it.kind.name(), it.name, it.from, it.to));
    Ok(Some(MigratedFile {
        file: file.to_owned(),
        documents: documents.collect(),
        before: before.to_owned(),
        after: migration.text,
    }))
}

fn print_changes(args: &MigrateArgs, changes: &[MigratedFile]) -> anyhow::Result<()> {
    if args.output != OutputFormat::Table {
        return output::write_value(args.output, &changes);
    }
    for change in changes {
        let difference = similar::TextDiff::from_lines(&change.before, &change.after);
        let (old, new) = (format!("a/{}", change.file), format!("b/{}", change.file));
        output::write_text(format_args!(
            "{}",
            difference.unified_diff().context_radius(1).header(&old, &new)
        ));
    }
    let verb = if args.check { "would be changed" } else { "changed" };
    match changes.len() {
        0 => say!("nothing to migrate"),
        some => say!("{} {verb}", count_noun(some, "file")),
    }
    Ok(())
}

/// The root of the repository that contains the path; and the file, if it is one.
fn locate_root(path: &Path, writes: bool) -> anyhow::Result<(PathBuf, Option<String>)> {
    let is_root = |folder: &&Path| ["tutti.yaml", ".git"].iter().any(|name| folder.join(name).exists());
    let failed = || format!("failed to read {}", path.display());
    let named = std::path::absolute(path).with_context(failed)?;
    let above = named.ancestors().find(is_root).or(named.parent()).unwrap_or(&named);
    if writes {
        files::refuse_symlinks(above, named.strip_prefix(above).unwrap_or(&named))?;
    }
    let path = path.canonicalize().with_context(failed)?;
    if path.is_dir() {
        return Ok((path, None));
    }
    let parent = path.parent().ok_or_else(|| anyhow!("{} is in no folder", path.display()))?;
    let root = path.ancestors().skip(1).find(is_root).unwrap_or(parent).to_owned();
    let file = path.strip_prefix(&root).unwrap_or(&path).to_string_lossy().replace('\\', "/");
    Ok((root, Some(file)))
}

fn check_version(version: &str, hub: &Hub) -> anyhow::Result<()> {
    let mut versions: Vec<String> = schema::kinds().flat_map(|kind| schema::versions(kind, hub)).collect();
    versions.sort_unstable();
    versions.dedup();
    if version == OWN_VERSION || versions.iter().any(|known| known == version) {
        return Ok(());
    }
    bail!("no kind has the version {version}; there are {}", versions.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_out_of_the_checkout_are_not_followed() {
        let outer = tempfile::tempdir().unwrap();
        let (root, out) = (outer.path().join("repo"), outer.path().join("out"));
        std::fs::create_dir_all(root.join("apps")).unwrap();
        std::fs::create_dir(&out).unwrap();
        for file in [root.join("tutti.yaml"), root.join("apps/a.yaml"), out.join("a.yaml")] {
            std::fs::write(file, "a: 1").unwrap();
        }
        std::os::unix::fs::symlink("../out", root.join("linked")).unwrap();
        std::os::unix::fs::symlink("../out/a.yaml", root.join("a.yaml")).unwrap();
        for path in ["linked", "linked/a.yaml", "a.yaml"] {
            let error = locate_root(&root.join(path), true).unwrap_err().to_string();
            assert!(error.contains("is a symbolic link to ../out"), "{error}");
        }
        let (found, file) = locate_root(&root.join("apps/a.yaml"), true).unwrap();
        assert_eq!((found, file.as_deref()), (root.canonicalize().unwrap(), Some("apps/a.yaml")));
        // The checkout's own path may have a link.
        std::os::unix::fs::symlink("repo", outer.path().join("mine")).unwrap();
        assert!(locate_root(&outer.path().join("mine"), true).is_ok());
        assert!(locate_root(&outer.path().join("mine/apps/a.yaml"), true).is_ok());
    }
}
