//! Run folders: data, certificates and logs of one fleet. Removed on success, kept when something failed.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::SystemTime;
use std::{panic, process, thread};

use parking_lot::Mutex;

use crate::tier::print_uncaptured;
use crate::{Error, cache};

/// A quarter of a gigabyte each: etcd reserves room for its log.
const MAX_KEPT_FOLDERS: usize = 3;

/// Those of this process, for the panic hook.
static RUNNING_FOLDERS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A folder of its own, locked while its process lives.
#[derive(Debug)]
pub(crate) struct RunFolder {
    path: PathBuf,
    _lock: File,
}

impl RunFolder {
    /// Makes a new folder and removes those that ended runs left behind. Statics are never dropped, so a test binary that
    /// shares one fleet leaves its folder to the next run.
    pub(crate) fn create(cache: &Path) -> Result<Self, Error> {
        let runs = cache.join("runs");
        fs::create_dir_all(&runs).map_err(Error::file("create", &runs))?;
        let _guard = cache::lock(&cache.join("runs.lock"))?;
        remove_ended_runs(&runs);
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let path = runs.join(format!("{}-{}", process::id(), since.as_nanos()));
        fs::create_dir(&path).map_err(Error::file("create", &path))?;
        let lock = cache::lock(&path.join("lock"))?;
        mark_on_panic();
        RUNNING_FOLDERS.lock().push(path.clone());
        Ok(Self { path, _lock: lock })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The folder stays, logs and all.
    pub(crate) fn keep(&self) {
        mark_kept(&self.path);
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        RUNNING_FOLDERS.lock().retain(|path| *path != self.path);
        if thread::panicking() {
            mark_kept(&self.path);
        }
        if !self.path.join("failed").exists() {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

fn mark_kept(folder: &Path) {
    if !folder.join("failed").exists() && fs::write(folder.join("failed"), "").is_ok() {
        print_uncaptured(&format!("logs are kept in {}", folder.display()));
    }
}

fn mark_on_panic() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            previous(info);
            // Not blocking: the panicking thread may hold the lock.
            for folder in RUNNING_FOLDERS.try_lock().iter().flat_map(|folders| folders.iter()) {
                mark_kept(folder);
            }
        }));
    });
}

/// A folder whose lock can be taken belongs to a process that is gone. Of those that failed, the newest stay.
fn remove_ended_runs(runs: &Path) {
    let mut failed = Vec::new();
    for entry in fs::read_dir(runs).into_iter().flatten().flatten() {
        let folder = entry.path();
        if !File::open(folder.join("lock")).is_ok_and(|file| file.try_lock().is_ok()) {
            continue;
        }
        match fs::metadata(folder.join("failed")).and_then(|metadata| metadata.modified()) {
            Ok(time) => failed.push((time, folder)),
            Err(_) => drop(fs::remove_dir_all(folder)),
        }
    }
    failed.sort();
    for (_, folder) in failed.iter().rev().skip(MAX_KEPT_FOLDERS) {
        let _ = fs::remove_dir_all(folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("tutti-live-test-{}-{name}", process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn success_removes_and_failure_keeps() {
        let cache = cache("drop");
        let (good, bad) = (RunFolder::create(&cache).unwrap(), RunFolder::create(&cache).unwrap());
        let (good_path, bad_path) = (good.path().to_owned(), bad.path().to_owned());
        bad.keep();
        drop((good, bad));
        assert!(!good_path.exists());
        assert!(bad_path.exists());
        fs::remove_dir_all(cache).unwrap();
    }

    #[test]
    fn next_run_removes_only_ended_folders() {
        let cache = cache("sweep");
        let running = RunFolder::create(&cache).unwrap();
        let left = cache.join("runs/1-1");
        fs::create_dir(&left).unwrap();
        fs::write(left.join("lock"), "").unwrap();
        let _next = RunFolder::create(&cache).unwrap();
        assert!(running.path().exists());
        assert!(!left.exists());
        drop((running, _next));
        for _ in 0..MAX_KEPT_FOLDERS + 2 {
            RunFolder::create(&cache).unwrap().keep();
        }
        let next = RunFolder::create(&cache).unwrap();
        assert_eq!(fs::read_dir(cache.join("runs")).unwrap().count(), MAX_KEPT_FOLDERS + 1);
        drop(next);
        fs::remove_dir_all(cache).unwrap();
    }
}
