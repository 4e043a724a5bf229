//! Reads a snapshot from a folder on disk, so that commands can check a change before it is committed.

use std::collections::BTreeMap;
use std::fs::DirEntry;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use git2::{ObjectType, Oid, Repository};

use super::bounds::{LoadedFiles, ReadLimitExceeded, too_deep};
use super::gitignore::GitIgnore;
use super::readable_files::{is_hidden, largest, must_be_read};
use super::repository_scope::{OutsidePatterns, RepositoryScope};
use super::{Error, OutsideFileLister, git_errors};
use crate::model::{DecryptionKeys, Revision, Snapshot, SnapshotFile};

/// Reads the files that a commit of this folder would contain, with the blob ids of Git. Hidden and ignored names are left out (tracked
/// or not); symbolic links are left out or become unreadable placeholders. In a worktree it also reads the outside files that are
/// `listed`.
pub fn read_folder(path: &Path, listed: OutsideFileLister) -> Result<Snapshot, Error> {
    let path = path.canonicalize().map_err(|error| io_error(path, &error))?;
    let checkout = Checkout::of(&path)?;
    let (mut files, mut lists, mut kept) =
        (BTreeMap::new(), OutsidePatterns::default(), LoadedFiles::default());
    walk(
        &path,
        checkout.as_ref(),
        |_| true,
        |relative, entry| {
            let shows_link = || must_be_read(relative) || leads_to_files(&entry.path(), &path);
            let Some(file) = read_entry(entry, relative, shows_link, &kept)? else { return Ok(()) };
            if !file.is_link() {
                lists.update(listed, relative, Some(&file));
            }
            kept.add(relative, &file).map_err(|over| limit_error(&path, over))?;
            files.insert(relative.to_owned(), file);
            Ok(())
        },
    )?;
    let folder = checkout.as_ref().map_or("", |checkout| checkout.folder.trim_end_matches('/'));
    let area = RepositoryScope::of(folder, &lists);
    if let (Some(checkout), false) = (&checkout, area.is_folder_only()) {
        walk(
            &checkout.root,
            Some(checkout),
            |folder| area.may_contain(folder),
            |from_root, entry| {
                let Some(relative) = area.outside_path(from_root) else { return Ok(()) };
                let Some(file) = read_entry(entry, &relative, || true, &kept)? else { return Ok(()) };
                kept.add(&relative, &file).map_err(|over| limit_error(&path, over))?;
                files.insert(relative, file);
                Ok(())
            },
        )?;
    }
    Ok(Snapshot {
        revision: Revision::from(Revision::WORKTREE),
        folder: folder.into(),
        files: files.into(),
        history: Arc::default(),
        keys: DecryptionKeys::default(),
        registry: None,
    })
}

/// The Git work tree that contains a folder.
struct Checkout {
    root: PathBuf,
    /// The path of the folder from there, with its final `/`; empty for the root.
    folder: String,
    ignored: GitIgnore,
}

impl Checkout {
    fn of(path: &Path) -> Result<Option<Self>, Error> {
        let repository = Repository::discover(path).ok();
        let root =
            repository.as_ref().and_then(Repository::workdir).and_then(|root| root.canonicalize().ok());
        let (Some(repository), Some(root)) = (repository, root) else { return Ok(None) };
        let Ok(folder) = path.strip_prefix(&root) else { return Ok(None) };
        let names = folder.components().map(|name| format!("{}/", name.as_os_str().display()));
        let folder = names.collect();
        let ignored = GitIgnore::of(&repository)?;
        Ok(Some(Self { root, folder, ignored }))
    }

    /// The ignore patterns that apply in a folder; `None` when the folder itself is ignored.
    fn ignored_in(&self, folder: &str) -> Result<Option<GitIgnore>, Error> {
        let mut ignored = self.ignored.clone();
        for (slash, _) in folder.match_indices('/') {
            let above = folder[..slash].rfind('/').map_or("", |slash| &folder[..=slash]);
            ignored = ignored.in_subfolder(above, &self.root.join(above))?;
            if ignored.is_ignored(&folder[..slash], true) {
                return Ok(None);
            }
        }
        Ok(Some(ignored))
    }
}

/// Calls `see` for each entry of a folder and of the subfolders that `enters` accepts. Hidden and ignored entries are left out.
fn walk(
    root: &Path,
    checkout: Option<&Checkout>,
    enters: impl Fn(&str) -> bool,
    mut see: impl FnMut(&str, &DirEntry) -> Result<(), Error>,
) -> Result<(), Error> {
    let start = checkout.filter(|checkout| checkout.root != root).map_or("", |checkout| &checkout.folder);
    let ignored = match checkout.map(|checkout| checkout.ignored_in(start)).transpose()? {
        Some(None) => return Ok(()),
        ignored => ignored.flatten(),
    };
    let mut folders = vec![(String::new(), root.to_owned(), ignored)];
    while let Some((prefix, folder, ignored)) = folders.pop() {
        if !enters(&prefix) {
            continue;
        }
        if let Some(what) = too_deep(&prefix) {
            return Err(limit_error(root, ReadLimitExceeded { folder: prefix, limit: what }));
        }
        let from_root = format!("{start}{prefix}");
        let ignored = ignored.map(|ignored| ignored.in_subfolder(&from_root, &folder)).transpose()?;
        let entries = std::fs::read_dir(&folder).map_err(|error| io_error(&folder, &error))?;
        for entry in entries {
            let entry = entry.map_err(|error| io_error(&folder, &error))?;
            let Some(name) = entry.file_name().to_str().filter(|name| !is_hidden(name)).map(str::to_owned)
            else {
                continue;
            };
            let kind = entry.file_type().map_err(|error| io_error(&entry.path(), &error))?;
            if ignored.as_ref().is_some_and(|it| it.is_ignored(&format!("{from_root}{name}"), kind.is_dir()))
            {
                continue;
            }
            let relative = format!("{prefix}{name}");
            if kind.is_dir() {
                folders.push((format!("{relative}/"), entry.path(), ignored.clone()));
            } else {
                see(&relative, &entry)?;
            }
        }
    }
    Ok(())
}

/// Whether a link leads to a folder below `root` that contains readable files.
fn leads_to_files(link: &Path, root: &Path) -> bool {
    let target = link.canonicalize().ok().filter(|it| it.is_dir() && it.starts_with(root) && it != root);
    target.is_some_and(|target| contains_files(&target).unwrap_or(true))
}

/// Whether a folder contains a readable file. Links are not followed.
fn contains_files(folder: &Path) -> std::io::Result<bool> {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let (name, kind) = (entry.file_name(), entry.file_type()?);
            match name.to_str().filter(|name| !is_hidden(name)) {
                Some(_) if kind.is_dir() => folders.push(entry.path()),
                Some(name) if kind.is_file() && must_be_read(name) => return Ok(true),
                _ => {}
            }
        }
    }
    Ok(false)
}

/// The file, or a placeholder, for an entry that is no folder; `None` when it is left out.
fn read_entry(
    entry: &DirEntry,
    relative: &str,
    shows_link: impl FnOnce() -> bool,
    kept: &LoadedFiles,
) -> Result<Option<SnapshotFile>, Error> {
    let kind = entry.file_type().map_err(|error| io_error(&entry.path(), &error))?;
    if kind.is_file() {
        return read_file(&entry.path(), relative, kept);
    }
    Ok((kind.is_symlink() && shows_link()).then(|| link_placeholder(&entry.path())))
}

fn link_placeholder(path: &Path) -> SnapshotFile {
    SnapshotFile::link(&std::fs::read_link(path).map_or(String::new(), |target| target.display().to_string()))
}

/// Reads a file, and shares the content of files with the same blob.
fn read_file(path: &Path, relative: &str, kept: &LoadedFiles) -> Result<Option<SnapshotFile>, Error> {
    let size = std::fs::metadata(path).map_err(|error| io_error(path, &error))?.len();
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    let limit = largest(relative);
    if size > limit {
        return match must_be_read(relative) {
            true => Ok(Some(SnapshotFile::too_large(&format!("{size} bytes"), size, limit))),
            false => Ok(None),
        };
    }
    let content = std::fs::read(path).map_err(|error| io_error(path, &error))?;
    let blob = Oid::hash_object(ObjectType::Blob, &content)
        .map_err(|error| Error::Folder { path: path.to_owned(), message: error.message().to_owned() })?;
    let blob = blob.to_string();
    let known = kept.known(&blob).cloned();
    Ok(Some(known.unwrap_or_else(|| SnapshotFile { blob: blob.into(), content: content.into() })))
}

fn limit_error(path: &Path, ReadLimitExceeded { folder, limit: what }: ReadLimitExceeded) -> Error {
    let url = path.display().to_string();
    let folder = if folder.is_empty() { "./".to_owned() } else { git_errors::clean_line(&folder) };
    Error::LimitExceeded { url, revision: Revision::from(Revision::WORKTREE), folder, what }
}

fn io_error(path: &Path, error: &std::io::Error) -> Error {
    Error::Folder { path: path.to_owned(), message: error.to_string() }
}
