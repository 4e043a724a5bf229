//! Writes files of a repository: each completely or not at all, with missing folders.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::{Context as _, bail};

/// Writes a file below a folder; an existing file is replaced and keeps its permissions.
pub fn write(root: &Path, path: &str, text: &str) -> anyhow::Result<()> {
    refuse_symlinks(root, Path::new(path))?;
    let path = root.join(path);
    write_whole(&path, text).with_context(|| format!("failed to write {}", path.display()))
}

/// Refuses a path with a symbolic link below `root`: a checkout's link may lead out of it.
pub fn refuse_symlinks(root: &Path, path: &Path) -> anyhow::Result<()> {
    let mut place = root.to_owned();
    for name in path {
        place.push(name);
        if let Ok(target) = place.read_link() {
            let (place, target) = (place.display(), target.display());
            bail!(
                "failed to write {}: {place} is a symbolic link to {target}, and nothing is written through one; put a file or folder in its \
                 place, or name {target} itself",
                root.join(path).display()
            );
        }
    }
    Ok(())
}

fn write_whole(path: &Path, text: &str) -> std::io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    // The umask applies as for any new file.
    let fresh = std::fs::Permissions::from_mode(0o666);
    let mut file = tempfile::Builder::new().permissions(fresh).tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    if let Ok(metadata) = std::fs::metadata(path) {
        file.as_file().set_permissions(metadata.permissions())?;
    }
    file.as_file().sync_all()?;
    file.persist(path).map(|_| ()).map_err(|error| error.error)
}

/// Writes new files; none if one exists.
pub fn write_new(root: &Path, files: &BTreeMap<String, String>) -> anyhow::Result<()> {
    refuse_existing(root, files)?;
    let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    write_all(root, &files)
}

/// Writes files; none if a path has a symbolic link.
pub fn write_all(root: &Path, files: &[(&str, &str)]) -> anyhow::Result<()> {
    files.iter().try_for_each(|(path, _)| refuse_symlinks(root, Path::new(path)))?;
    files.iter().try_for_each(|(path, text)| write(root, path, text))
}

/// Fails with the names of existing files.
pub fn refuse_existing(root: &Path, files: &BTreeMap<String, String>) -> anyhow::Result<()> {
    let there: Vec<&str> =
        files.keys().map(String::as_str).filter(|path| root.join(path).symlink_metadata().is_ok()).collect();
    if !there.is_empty() {
        bail!("these files exist already: {}; nothing was written", there.join(", "));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_new_or_none_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let files = |paths: &[&str]| -> BTreeMap<String, String> {
            paths.iter().map(|path| ((*path).to_owned(), "text".to_owned())).collect()
        };
        write_new(folder.path(), &files(&["a/b.yaml"])).unwrap();
        let error = write_new(folder.path(), &files(&["a/b.yaml", "a/c.yaml"])).unwrap_err();
        assert_eq!(error.to_string(), "these files exist already: a/b.yaml; nothing was written");
        assert!(!folder.path().join("a/c.yaml").exists());
        write(folder.path(), "a/b.yaml", "other").unwrap();
        assert_eq!(std::fs::read_to_string(folder.path().join("a/b.yaml")).unwrap(), "other");
    }

    #[test]
    fn nothing_is_written_through_a_link() {
        let outer = tempfile::tempdir().unwrap();
        let (root, out) = (outer.path().join("repo"), outer.path().join("out"));
        [&root, &out].into_iter().for_each(|folder| std::fs::create_dir(folder).unwrap());
        std::fs::write(out.join("there"), "before").unwrap();
        std::os::unix::fs::symlink("../out", root.join("linked")).unwrap();
        std::os::unix::fs::symlink("../out/there", root.join("file")).unwrap();
        std::os::unix::fs::symlink("../out/new", root.join("dangling")).unwrap();
        for path in ["linked/a", "linked/a/b", "file", "dangling"] {
            let error = write_all(&root, &[("a/first", "text"), (path, "text")]).unwrap_err().to_string();
            let link = root.join(path.split('/').next().unwrap());
            assert!(error.contains(&format!("{} is a symbolic link to ../out", link.display())), "{error}");
            assert!(write(&root, path, "text").is_err());
        }
        assert!(!root.join("a").exists(), "all are written or none");
        assert_eq!(std::fs::read_dir(&out).unwrap().count(), 1);
        assert_eq!(std::fs::read_to_string(out.join("there")).unwrap(), "before");
        // The user named the root.
        write(&root.join("linked"), "b", "text").unwrap();
        assert_eq!(std::fs::read_to_string(out.join("b")).unwrap(), "text");
    }
}
