//! The state folder: locked by one process at a time, private to its user.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io;
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::Path;

use anyhow::{Context as _, bail};
use jiff::Timestamp;

use crate::cluster::host_name;

/// Private: it holds clones of private repositories.
const FOLDER_MODE: u32 = 0o700;
/// In bytes, of the note about its holder.
const MAX_NOTE_BYTES: u64 = 4096;

/// Holds the lock; the kernel releases it with the process.
#[derive(Debug)]
pub struct StateFolder {
    _lock: File,
}

impl StateFolder {
    /// Locks the folder, unless another process holds it.
    pub fn acquire(folder: &Path, repository: &str) -> anyhow::Result<Self> {
        let failed = || format!("failed to use the state folder {}", folder.display());
        DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(folder).with_context(failed)?;
        let mode = fs::metadata(folder).with_context(failed)?.permissions().mode();
        let set = || fs::set_permissions(folder, Permissions::from_mode(FOLDER_MODE));
        if !is_private(mode, set).with_context(failed)? {
            tracing::warn!(
                "the state folder {} belongs to another user and has mode {:o}: others on this machine may read the clone of the \
                 config repository; give the folder to the user of this process, or name another one with --state DIR",
                folder.display(),
                mode & 0o7777
            );
        }
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
                let _ = (&lock).take(MAX_NOTE_BYTES).read_to_string(&mut holder);
                bail!(
                    "the state folder {} is in use by {}; give this process another one with --state DIR",
                    folder.display(),
                    holder.trim()
                );
            }
            Err(TryLockError::Error(error)) => return Err(error).with_context(failed),
        }
        let note = format!(
            "process {} on {} since {}, which runs {repository}\n",
            std::process::id(),
            host_name(),
            Timestamp::now().strftime("%F %H:%M:%S UTC")
        );
        lock.set_len(0)
            .and_then(|()| lock.rewind())
            .and_then(|()| lock.write_all(note.as_bytes()))
            .with_context(failed)?;
        Ok(Self { _lock: lock })
    }
}

/// Whether it is private, or `set` made it so: an earlier version may have created it. A pod's volume belongs to root, so its
/// mode cannot be set.
fn is_private(mode: u32, set: impl FnOnce() -> io::Result<()>) -> io::Result<bool> {
    if mode & !FOLDER_MODE & 0o777 == 0 {
        return Ok(true);
    }
    match set() {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_of_another_user_is_used_unchanged() {
        let check = |mode: u32, set: io::Result<()>| is_private(mode, || set).map_err(|error| error.kind());
        let error = |code: i32| Err(io::Error::from_raw_os_error(code));
        // EPERM, as of a volume with `fsGroup`.
        assert_eq!(check(0o42775, error(1)), Ok(false));
        assert_eq!(check(0o40755, Ok(())), Ok(true));
        // EROFS.
        assert_eq!(check(0o40755, error(30)), Err(io::ErrorKind::ReadOnlyFilesystem));
        for mode in [0o40700, 0o42700, 0o40500] {
            assert_eq!(check(mode, error(1)), Ok(true), "{mode:o}");
        }
    }

    #[test]
    fn error_names_the_holder() {
        let folder = tempfile::tempdir().expect("a folder");
        let state = folder.path().join("a/state");
        let held = StateFolder::acquire(&state, "config.git").expect("nobody has it");
        assert_eq!(fs::metadata(&state).expect("a folder").permissions().mode() & 0o777, FOLDER_MODE);
        let refused = StateFolder::acquire(&state, "config.git").expect_err("it is held").to_string();
        let holder = format!("process {} on ", std::process::id());
        assert!(refused.contains(&holder) && refused.contains("config.git; give"), "{refused}");
        drop(held);
        fs::set_permissions(&state, Permissions::from_mode(0o755)).expect("permissions");
        StateFolder::acquire(&state, "other.git").expect("nobody has it");
        assert_eq!(fs::metadata(&state).expect("a folder").permissions().mode() & 0o777, FOLDER_MODE);
    }
}
