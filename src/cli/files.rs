//! Files that commands write: each whole or not at all, its folders made on the way.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::{Context as _, bail};

/// Takes the place of a file that is there, with its permissions.
pub fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    write_whole(path, text).with_context(|| format!("failed to write {}", path.display()))
}

fn write_whole(path: &Path, text: &str) -> std::io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    // The mask of the process takes from this what it takes from every new file.
    let fresh = std::fs::Permissions::from_mode(0o666);
    let mut file = tempfile::Builder::new().permissions(fresh).tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    if let Ok(metadata) = std::fs::metadata(path) {
        file.as_file().set_permissions(metadata.permissions())?;
    }
    file.as_file().sync_all()?;
    file.persist(path).map(|_| ()).map_err(|error| error.error)
}

/// Files by their paths below a folder; none is written when one is there.
pub fn write_new(root: &Path, files: &BTreeMap<String, String>) -> anyhow::Result<()> {
    none_is_there(root, files)?;
    for (path, text) in files {
        write(&root.join(path), text)?;
    }
    Ok(())
}

/// Names those that are there already.
pub fn none_is_there(root: &Path, files: &BTreeMap<String, String>) -> anyhow::Result<()> {
    let there: Vec<&str> =
        files.keys().map(String::as_str).filter(|path| root.join(path).symlink_metadata().is_ok()).collect();
    if !there.is_empty() {
        bail!("there already: {}; nothing was written", there.join(", "));
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
        assert_eq!(error.to_string(), "there already: a/b.yaml; nothing was written");
        assert!(!folder.path().join("a/c.yaml").exists());
        write(&folder.path().join("a/b.yaml"), "other").unwrap();
        assert_eq!(std::fs::read_to_string(folder.path().join("a/b.yaml")).unwrap(), "other");
    }
}
