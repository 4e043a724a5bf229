//! A folder as it stands on disk, for looking at a change before it is committed.

use std::collections::BTreeMap;
use std::fs::DirEntry;
use std::path::Path;
use std::sync::Arc;

use git2::{ObjectType, Oid, Repository};

use super::area::{Area, Lists};
use super::{Error, Listed, is_hidden, largest, must_be_read};
use crate::model::{File, Keys, Revision, Snapshot};

/// Reads what a commit of this folder would hold: hidden names and what Git ignores are left out, symbolic links are left out or
/// stand as what cannot be read, and the blob ids are those Git would give. In a worktree also what is `listed` beside the folder.
pub fn read_folder(path: &Path, listed: Listed) -> Result<Snapshot, Error> {
    let path = path.canonicalize().map_err(|error| failure(path, &error))?;
    let ignoring = Repository::discover(&path).ok();
    let (mut files, mut lists) = (BTreeMap::new(), Lists::default());
    walk(
        &path,
        ignoring.as_ref(),
        |_| true,
        |relative, entry| {
            let kind = entry.file_type().map_err(|error| failure(&entry.path(), &error))?;
            if kind.is_file()
                && let Some(file) = read_file(&entry.path(), relative)?
            {
                lists.see(listed, relative, Some(&file));
                files.insert(relative.to_owned(), file);
            } else if kind.is_symlink() && (must_be_read(relative) || hides_files(&entry.path(), &path)) {
                files.insert(relative.to_owned(), link(&entry.path()));
            }
            Ok(())
        },
    )?;
    let root = ignoring.as_ref().and_then(Repository::workdir).and_then(|root| root.canonicalize().ok());
    let folder = root.as_deref().and_then(|root| path.strip_prefix(root).ok()?.to_str()).unwrap_or_default();
    let area = Area::of(folder, &lists);
    if let (Some(root), false) = (&root, area.is_folder()) {
        walk(
            root,
            ignoring.as_ref(),
            |folder| area.enters(folder),
            |from_root, entry| {
                let Some(relative) = area.path_of(from_root) else { return Ok(()) };
                let kind = entry.file_type().map_err(|error| failure(&entry.path(), &error))?;
                if kind.is_symlink() {
                    files.insert(relative, link(&entry.path()));
                } else if kind.is_file()
                    && let Some(file) = read_file(&entry.path(), &relative)?
                {
                    files.insert(relative, file);
                }
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

/// Shows what is in a folder and in those below it that `enters` says, each with its path from there; what is hidden or ignored is
/// left out.
fn walk(
    root: &Path,
    ignoring: Option<&Repository>,
    enters: impl Fn(&str) -> bool,
    mut see: impl FnMut(&str, &DirEntry) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut folders = vec![(String::new(), root.to_owned())];
    while let Some((prefix, folder)) = folders.pop() {
        if !enters(&prefix) {
            continue;
        }
        let entries = std::fs::read_dir(&folder).map_err(|error| failure(&folder, &error))?;
        for entry in entries {
            let entry = entry.map_err(|error| failure(&folder, &error))?;
            let Some(name) = entry.file_name().to_str().filter(|name| !is_hidden(name)).map(str::to_owned)
            else {
                continue;
            };
            let kind = entry.file_type().map_err(|error| failure(&entry.path(), &error))?;
            if is_ignored(ignoring, &entry.path(), kind.is_dir()) {
                continue;
            }
            let relative = format!("{prefix}{name}");
            if kind.is_dir() {
                folders.push((format!("{relative}/"), entry.path()));
            } else {
                see(&relative, &entry)?;
            }
        }
    }
    Ok(())
}

/// Whether a link leads to a folder below `root` with something that is read.
fn hides_files(link: &Path, root: &Path) -> bool {
    let target = link.canonicalize().ok().filter(|it| it.is_dir() && it.starts_with(root) && it != root);
    target.is_some_and(|target| holds_files(&target).unwrap_or(true))
}

/// Whether there is a file that is read. Links are not followed.
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

fn link(path: &Path) -> File {
    File::link(&std::fs::read_link(path).map_or(String::new(), |target| target.display().to_string()))
}

fn read_file(path: &Path, relative: &str) -> Result<Option<File>, Error> {
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
    Ok(Some(File { blob: blob.to_string().into(), content: content.into() }))
}

fn is_ignored(repository: Option<&Repository>, path: &Path, is_folder: bool) -> bool {
    let Some(repository) = repository else { return false };
    let Some(relative) = repository.workdir().and_then(|root| path.strip_prefix(root).ok()) else {
        return false;
    };
    // A pattern that ends in `/` only fits a path that does.
    let relative = if is_folder { relative.join("") } else { relative.to_owned() };
    repository.is_path_ignored(relative).unwrap_or(false)
}

fn failure(path: &Path, error: &std::io::Error) -> Error {
    Error::Folder { path: path.to_owned(), message: error.to_string() }
}
