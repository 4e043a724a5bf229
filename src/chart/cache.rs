//! Keeps fetched charts on disk by digest. The folder may be deleted at any time: a missing or damaged chart is fetched
//! again.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::model::{ChartSource, Digest};

#[derive(Clone, Debug)]
pub struct Cache {
    /// `None`: the cache is off.
    folder: Option<PathBuf>,
}

impl Cache {
    pub fn new(folder: Option<PathBuf>) -> Self {
        Self { folder }
    }

    /// The archive of a source, if it is cached and undamaged.
    pub fn get(&self, source: &ChartSource) -> Option<Vec<u8>> {
        let folder = self.folder.as_deref()?;
        let digest = fs::read_to_string(digest_path(folder, source)).ok()?;
        let digest = Digest::parse(digest.trim())?;
        let bytes = fs::read(archive_path(folder, &digest)).ok()?;
        (Digest::of(&bytes) == digest).then_some(bytes)
    }

    /// A failed write costs only another fetch, so it is only logged.
    pub fn put(&self, source: &ChartSource, bytes: &[u8]) {
        let Some(folder) = self.folder.as_deref() else { return };
        let digest = Digest::of(bytes);
        let kept = write(&archive_path(folder, &digest), bytes)
            .and_then(|()| write(&digest_path(folder, source), digest.to_string().as_bytes()));
        if let Err(error) = kept {
            tracing::debug!(%error, folder = %folder.display(), "failed to store a fetched chart");
        }
    }
}

fn archive_path(folder: &Path, digest: &Digest) -> PathBuf {
    folder.join("sha256").join(digest.to_string())
}

/// The file with the digest of a source: a version of a chart repository does not change.
fn digest_path(folder: &Path, source: &ChartSource) -> PathBuf {
    folder.join("names").join(Digest::of(format!("{source:?}").as_bytes()).to_string())
}

/// Writes atomically.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().ok_or_else(|| io::Error::other("no folder"))?;
    fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    io::Write::write_all(&mut file, bytes)?;
    file.persist(path).map(drop).map_err(|error| error.error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_cache_entry_is_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(Some(folder.path().to_owned()));
        let source = |version: &str| ChartSource::Registry {
            url: "oci://x/y".to_owned(),
            version: version.to_owned(),
        };
        assert_eq!(cache.get(&source("1")), None);
        cache.put(&source("1"), b"one");
        assert_eq!(cache.get(&source("1")), Some(b"one".to_vec()));
        assert_eq!(cache.get(&source("2")), None);
        fs::write(archive_path(folder.path(), &Digest::of(b"one")), "other").unwrap();
        assert_eq!(cache.get(&source("1")), None);
        cache.put(&source("1"), b"one");
        assert_eq!(cache.get(&source("1")), Some(b"one".to_vec()));
        assert_eq!(Cache::new(None).get(&source("1")), None);
    }
}
