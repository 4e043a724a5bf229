//! Reads and writes folders as texts by path.

use std::fs;
use std::path::{Path, PathBuf};

/// All files of a folder as text, by relative path.
pub fn read(root: &Path) -> Vec<(String, String)> {
    let mut files = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path: PathBuf = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(root).expect("inside").display().to_string();
                files.push((name, fs::read_to_string(&path).expect("text")));
            }
        }
    }
    files.sort();
    files
}

pub fn write(folder: &Path, files: &[(String, String)]) {
    for (name, text) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("make a folder");
        fs::write(path, text).expect("write");
    }
}
