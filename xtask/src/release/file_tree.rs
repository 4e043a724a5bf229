//! The files of an image or archive. The tar output is reproducible: sorted, one timestamp, fixed owners.

use std::collections::BTreeMap;
use std::io::{self, Write};

use anyhow::Context;
use flate2::{Compression, GzBuilder};
use tar::{Builder, EntryType, Header};

/// The user and group that tutti runs as in an image.
pub const NONROOT: u64 = 65_532;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileContent {
    Folder,
    File(Vec<u8>),
    Link(String),
}

#[derive(Debug)]
struct FileTreeEntry {
    mode: u32,
    owner: u64,
    content: FileContent,
}

/// By path from the root, without a `/` in front.
#[derive(Debug, Default)]
pub struct FileTree(BTreeMap<String, FileTreeEntry>);

impl FileTree {
    pub fn file(&mut self, path: &str, mode: u32, bytes: impl Into<Vec<u8>>) {
        self.add(path, FileTreeEntry { mode, owner: 0, content: FileContent::File(bytes.into()) });
    }

    pub fn folder(&mut self, path: &str, mode: u32, owner: u64) {
        self.add(path, FileTreeEntry { mode, owner, content: FileContent::Folder });
    }

    pub fn link(&mut self, path: &str, target: &str) {
        self.add(
            path,
            FileTreeEntry { mode: 0o777, owner: 0, content: FileContent::Link(target.to_owned()) },
        );
    }

    fn add(&mut self, path: &str, entry: FileTreeEntry) {
        let parents = path.match_indices('/').map(|(at, _)| &path[..at]);
        for parent in parents {
            let folder = || FileTreeEntry { mode: 0o755, owner: 0, content: FileContent::Folder };
            self.0.entry(parent.to_owned()).or_insert_with(folder);
        }
        self.0.insert(path.to_owned(), entry);
    }

    pub fn get(&self, path: &str) -> Option<&FileContent> {
        self.0.get(path).map(|entry| &entry.content)
    }

    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Bytes of the files.
    pub fn size(&self) -> u64 {
        let size = |entry: &FileTreeEntry| match &entry.content {
            FileContent::File(bytes) => bytes.len() as u64,
            FileContent::Folder | FileContent::Link(_) => 0,
        };
        self.0.values().map(size).sum()
    }

    pub fn tar(&self, time: u64) -> anyhow::Result<Vec<u8>> {
        let mut tar = Builder::new(Vec::new());
        for (path, entry) in &self.0 {
            append(&mut tar, path, entry, time).with_context(|| format!("failed to pack {path}"))?;
        }
        tar.into_inner().context("failed to pack")
    }
}

fn append(tar: &mut Builder<Vec<u8>>, path: &str, entry: &FileTreeEntry, time: u64) -> io::Result<()> {
    let mut header = Header::new_gnu();
    header.set_mode(entry.mode);
    header.set_uid(entry.owner);
    header.set_gid(entry.owner);
    header.set_mtime(time);
    match &entry.content {
        FileContent::Folder => {
            header.set_entry_type(EntryType::Directory);
            header.set_size(0);
            tar.append_data(&mut header, format!("{path}/"), io::empty())
        }
        FileContent::File(bytes) => {
            header.set_entry_type(EntryType::Regular);
            header.set_size(bytes.len() as u64);
            tar.append_data(&mut header, path, bytes.as_slice())
        }
        FileContent::Link(target) => {
            header.set_entry_type(EntryType::Symlink);
            header.set_size(0);
            tar.append_link(&mut header, path, target)
        }
    }
}

/// Compressed, without time or name of a file or system in the header.
pub fn gzip(bytes: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut gzip = GzBuilder::new().mtime(0).operating_system(255).write(Vec::new(), Compression::new(6));
    gzip.write_all(bytes).and_then(|()| gzip.finish()).context("failed to compress")
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;

    use super::*;

    fn example(order: [usize; 3]) -> FileTree {
        let add: [fn(&mut FileTree); 3] = [
            |tree| tree.file("usr/bin/tutti", 0o755, "program"),
            |tree| tree.folder("state", 0o700, NONROOT),
            |tree| tree.link("usr/lib/x", &"y".repeat(150)),
        ];
        let mut tree = FileTree::default();
        for at in order {
            add[at](&mut tree);
        }
        tree
    }

    #[test]
    fn order_in_which_files_come_changes_nothing() {
        let one = gzip(&example([0, 1, 2]).tar(7).unwrap()).unwrap();
        assert_eq!(one, gzip(&example([2, 1, 0]).tar(7).unwrap()).unwrap());
        assert_eq!(one[3..10], [0, 0, 0, 0, 0, 0, 255], "flags, time, how hard it was compressed, system");

        let mut bytes = Vec::new();
        GzDecoder::new(one.as_slice()).read_to_end(&mut bytes).unwrap();
        let mut tar = tar::Archive::new(bytes.as_slice());
        let found: Vec<String> = tar
            .entries()
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let (header, path) = (entry.header(), entry.path().unwrap());
                let (mode, owner) = (header.mode().unwrap(), header.uid().unwrap());
                assert_eq!(header.mtime().unwrap(), 7);
                format!("{} {mode:o} {owner}", path.display())
            })
            .collect();
        let expected = [
            "state/ 700 65532",
            "usr/ 755 0",
            "usr/bin/ 755 0",
            "usr/bin/tutti 755 0",
            "usr/lib/ 755 0",
            "usr/lib/x 777 0",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn another_time_is_another_archive() {
        assert_ne!(example([0, 1, 2]).tar(7).unwrap(), example([0, 1, 2]).tar(8).unwrap());
    }
}
