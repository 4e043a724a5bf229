//! The folder of caches: one process runs on it at a time, and nobody else reads it.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::Path;

use anyhow::{Context as _, bail};
use jiff::Timestamp;

/// For its owner alone: clones of private repositories are in it.
const MODE: u32 = 0o700;
/// Of the words about who holds it, in bytes.
const LONGEST_NOTE: u64 = 4096;

/// Held for as long as it lives; the kernel lets go of it with the process.
#[derive(Debug)]
pub struct StateFolder {
    _lock: File,
}

impl StateFolder {
    /// Takes it for a process that runs on a repository, unless another one has it.
    pub fn take(folder: &Path, repository: &str) -> anyhow::Result<Self> {
        let failed = || format!("failed to use the state folder {}", folder.display());
        DirBuilder::new().recursive(true).mode(MODE).create(folder).with_context(failed)?;
        // It may be from an earlier version.
        fs::set_permissions(folder, Permissions::from_mode(MODE)).with_context(failed)?;
        let path = folder.join("lock");
        let mut lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(path)
            .with_context(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                let _ = (&lock).take(LONGEST_NOTE).read_to_string(&mut holder);
                bail!(
                    "the state folder {} is in use by {}; give this process another one with --state DIR",
                    folder.display(),
                    holder.trim()
                );
            }
            Err(TryLockError::Error(error)) => return Err(error).with_context(failed),
        }
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let note = format!(
            "process {} on {} since {}, which runs {repository}\n",
            std::process::id(),
            host.trim(),
            Timestamp::now().strftime("%F %H:%M:%S UTC")
        );
        lock.set_len(0)
            .and_then(|()| lock.rewind())
            .and_then(|()| lock.write_all(note.as_bytes()))
            .with_context(failed)?;
        Ok(Self { _lock: lock })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_process_is_told_who_holds_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let state = folder.path().join("a/state");
        let held = StateFolder::take(&state, "config.git").expect("nobody has it");
        assert_eq!(fs::metadata(&state).expect("a folder").permissions().mode() & 0o777, MODE);
        let refused = StateFolder::take(&state, "config.git").expect_err("it is held").to_string();
        let holder = format!("process {} on ", std::process::id());
        assert!(refused.contains(&holder) && refused.contains("config.git; give"), "{refused}");
        drop(held);
        fs::set_permissions(&state, Permissions::from_mode(0o755)).expect("permissions");
        StateFolder::take(&state, "other.git").expect("nobody has it");
        assert_eq!(fs::metadata(&state).expect("a folder").permissions().mode() & 0o777, MODE);
    }
}
