//! Reads a snapshot from a folder on disk, so that commands can check a change before it is committed.

use std::collections::BTreeMap;
use std::fs::DirEntry;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use git2::{ObjectType, Oid, Repository};

use super::area::{Area, Lists};
use super::bounds::{Kept, Over, too_deep};
use super::ignored::Ignored;
use super::{Error, Listed, is_hidden, largest, must_be_read, translate};
use crate::model::{File, Keys, Revision, Snapshot};

/// Reads the files that a commit of this folder would contain, with the blob ids of Git. Hidden and ignored names are left out (tracked
/// or not); symbolic links are left out or become unreadable placeholders. In a worktree it also reads the outside files that are
/// `listed`.
pub fn read_folder(path: &Path, listed: Listed) -> Result<Snapshot, Error> {
    let path = path.canonicalize().map_err(|error| failure(path, &error))?;
    let checkout = Checkout::of(&path)?;
    let (mut files, mut lists, mut kept) = (BTreeMap::new(), Lists::default(), Kept::default());
    walk(
        &path,
        checkout.as_ref(),
        |_| true,
        |relative, entry| {
            let shows_link = || must_be_read(relative) || hides_files(&entry.path(), &path);
            let Some(file) = file_of(entry, relative, shows_link, &kept)? else { return Ok(()) };
            if !file.is_link() {
                lists.see(listed, relative, Some(&file));
            }
            kept.take(relative, &file).map_err(|over| too_much(&path, over))?;
            files.insert(relative.to_owned(), file);
            Ok(())
        },
    )?;
    let folder = checkout.as_ref().map_or("", |checkout| checkout.folder.trim_end_matches('/'));
    let area = Area::of(folder, &lists);
    if let (Some(checkout), false) = (&checkout, area.is_folder()) {
        walk(
            &checkout.root,
            Some(checkout),
            |folder| area.enters(folder),
            |from_root, entry| {
                let Some(relative) = area.path_of(from_root) else { return Ok(()) };
                let Some(file) = file_of(entry, &relative, || true, &kept)? else { return Ok(()) };
                kept.take(&relative, &file).map_err(|over| too_much(&path, over))?;
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
        keys: Keys::default(),
        registered: None,
    })
}

/// The Git work tree that contains a folder.
struct Checkout {
    root: PathBuf,
    /// The path of the folder from there, with its final `/`; empty for the root.
    folder: String,
    ignored: Ignored,
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
        let ignored = Ignored::of(&repository)?;
        Ok(Some(Self { root, folder, ignored }))
    }

    /// The ignore patterns that apply in a folder; `None` when the folder itself is ignored.
    fn ignored_in(&self, folder: &str) -> Result<Option<Ignored>, Error> {
        let mut ignored = self.ignored.clone();
        for (slash, _) in folder.match_indices('/') {
            let above = folder[..slash].rfind('/').map_or("", |slash| &folder[..=slash]);
            ignored = ignored.below(above, &self.root.join(above))?;
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
            return Err(too_much(root, Over { folder: prefix, what }));
        }
        let from_root = format!("{start}{prefix}");
        let ignored = ignored.map(|ignored| ignored.below(&from_root, &folder)).transpose()?;
        let entries = std::fs::read_dir(&folder).map_err(|error| failure(&folder, &error))?;
        for entry in entries {
            let entry = entry.map_err(|error| failure(&folder, &error))?;
            let Some(name) = entry.file_name().to_str().filter(|name| !is_hidden(name)).map(str::to_owned)
            else {
                continue;
            };
            let kind = entry.file_type().map_err(|error| failure(&entry.path(), &error))?;
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
fn hides_files(link: &Path, root: &Path) -> bool {
    let target = link.canonicalize().ok().filter(|it| it.is_dir() && it.starts_with(root) && it != root);
    target.is_some_and(|target| holds_files(&target).unwrap_or(true))
}

/// Whether a folder contains a readable file. Links are not followed.
fn holds_files(folder: &Path) -> std::io::Result<bool> {
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
fn file_of(
    entry: &DirEntry,
    relative: &str,
    shows_link: impl FnOnce() -> bool,
    kept: &Kept,
) -> Result<Option<File>, Error> {
    let kind = entry.file_type().map_err(|error| failure(&entry.path(), &error))?;
    if kind.is_file() {
        return read_file(&entry.path(), relative, kept);
    }
    Ok((kind.is_symlink() && shows_link()).then(|| link(&entry.path())))
}

fn link(path: &Path) -> File {
    File::link(&std::fs::read_link(path).map_or(String::new(), |target| target.display().to_string()))
}

/// Reads a file, and shares the content of files with the same blob.
fn read_file(path: &Path, relative: &str, kept: &Kept) -> Result<Option<File>, Error> {
    let size = std::fs::metadata(path).map_err(|error| failure(path, &error))?.len();
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    let limit = largest(relative);
    if size > limit {
        return match must_be_read(relative) {
            true => Ok(Some(File::too_large(&format!("{size} bytes"), size, limit))),
            false => Ok(None),
        };
    }
    let content = std::fs::read(path).map_err(|error| failure(path, &error))?;
    let blob = Oid::hash_object(ObjectType::Blob, &content)
        .map_err(|error| Error::Folder { path: path.to_owned(), message: error.message().to_owned() })?;
    let blob = blob.to_string();
    let known = kept.known(&blob).cloned();
    Ok(Some(known.unwrap_or_else(|| File { blob: blob.into(), content: content.into() })))
}

fn too_much(path: &Path, Over { folder, what }: Over) -> Error {
    let url = path.display().to_string();
    let folder = if folder.is_empty() { "./".to_owned() } else { translate::clean(&folder) };
    Error::TooMuch { url, revision: Revision::from(Revision::WORKTREE), folder, what }
}

fn failure(path: &Path, error: &std::io::Error) -> Error {
    Error::Folder { path: path.to_owned(), message: error.to_string() }
}
