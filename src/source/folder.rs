//! A folder as it stands on disk, for looking at a change before it is committed.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use git2::{ObjectType, Oid, Repository};

use super::{Error, is_hidden, largest, must_be_read};
use crate::model::{File, Keys, Revision, Snapshot};

/// Reads what a commit of this folder would hold: hidden names and what Git ignores are left out, symbolic links are left out or
/// refused, and the blob ids are those Git would give.
pub fn read_folder(path: &Path) -> Result<Snapshot, Error> {
    let path = path.canonicalize().map_err(|error| failure(path, &error))?;
    let ignoring = Repository::discover(&path).ok();
    let mut files = BTreeMap::new();
    let mut folders = vec![(String::new(), path.clone())];
    while let Some((prefix, folder)) = folders.pop() {
        let entries = std::fs::read_dir(&folder).map_err(|error| failure(&folder, &error))?;
        for entry in entries {
            let entry = entry.map_err(|error| failure(&folder, &error))?;
            let Some(name) = entry.file_name().to_str().filter(|name| !is_hidden(name)).map(str::to_owned)
            else {
                continue;
            };
            let kind = entry.file_type().map_err(|error| failure(&entry.path(), &error))?;
            if is_ignored(ignoring.as_ref(), &entry.path(), kind.is_dir()) {
                continue;
            }
            let relative = format!("{prefix}{name}");
            if kind.is_dir() {
                folders.push((format!("{relative}/"), entry.path()));
            } else if kind.is_file()
                && let Some(file) = read_file(&entry.path(), &relative)?
            {
                files.insert(relative, file);
            } else if kind.is_symlink() && (must_be_read(&relative) || hides_files(&entry.path(), &path)) {
                return Err(Error::Link { path: relative });
            }
        }
    }
    Ok(Snapshot {
        revision: Revision::from(Revision::WORKTREE),
        files: files.into(),
        history: Arc::default(),
        keys: Keys::default(),
        registered: None,
    })
}

/// Whether a link leads to a folder below `root` with something that is read.
fn hides_files(link: &Path, root: &Path) -> bool {
    let target = link.canonicalize().ok().filter(|it| it.is_dir() && it.starts_with(root) && it != root);
    target
        .is_some_and(|target| read_folder(&target).is_ok_and(|it| it.files.keys().any(|it| must_be_read(it))))
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
