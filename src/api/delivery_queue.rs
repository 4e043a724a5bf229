//! Queue on disk of accepted deliveries for triggers, until their changes are written to Git.
//!
//! Senders of builds and tags send once. Such a delivery is therefore a file, synced before the sender gets a
//! success. `pulls` removes it when all its changes are written or refused for good. After a crash the next process
//! finds the file.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::Notify;

use crate::forge::receive::LARGEST_PAYLOAD;

const MOST: usize = 1000;
/// Of a file, in bytes. Numbers in a payload may be longer when written than when received.
const MAX_FILE_BYTES: usize = 8 * LARGEST_PAYLOAD;
/// Extensions of a complete file, of a partial one, and of one that cannot be parsed.
const COMPLETE_EXTENSION: &str = "json";
const PARTIAL_EXTENSION: &str = "part";
const UNREADABLE_EXTENSION: &str = "unreadable";

/// Clones share it.
#[derive(Clone, Debug)]
pub struct DeliveryQueue {
    inner: Arc<QueueInner>,
}

#[derive(Debug)]
struct QueueInner {
    folder: PathBuf,
    state: Mutex<QueueState>,
    arrived: Notify,
}

#[derive(Debug, Default)]
struct QueueState {
    last_number: u64,
    /// Files that are not popped yet.
    waiting: VecDeque<u64>,
    /// All files, also popped ones that are not finished.
    file_count: usize,
}

/// Content of a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueuedDelivery {
    pub receiver: String,
    pub time: Timestamp,
    pub payload: Value,
}

/// A popped delivery's file. Without [`DeliveryFile::remove`] it stays for the next process.
#[derive(Debug)]
pub struct DeliveryFile {
    queue: DeliveryQueue,
    number: u64,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum QueueError {
    #[error("{MOST} deliveries for triggers already wait")]
    Full,
    #[error(
        "the delivery cannot be kept in {0}: {1} (help: the state folder must be writable and have room)"
    )]
    Io(PathBuf, io::Error),
}

impl DeliveryQueue {
    /// Opens the folder with what an earlier process left in it. The first delivery creates a missing folder.
    pub fn open(folder: PathBuf) -> Self {
        let mut numbers = match queued_numbers(&folder) {
            Ok(numbers) => numbers,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => {
                let folder = folder.display();
                tracing::error!(%folder, %error, "failed to list the deliveries that an earlier process \
                                                  accepted: they are not carried out");
                Vec::new()
            }
        };
        numbers.sort_unstable();
        if !numbers.is_empty() {
            tracing::info!(
                count = numbers.len(),
                "deliveries that an earlier process accepted are carried out"
            );
        }
        let last = numbers.last().copied().unwrap_or_default();
        let state =
            Mutex::new(QueueState { last_number: last, file_count: numbers.len(), waiting: numbers.into() });
        Self { inner: Arc::new(QueueInner { folder, state, arrived: Notify::new() }) }
    }

    /// The file is synced when this returns.
    pub(super) async fn push(&self, delivery: QueuedDelivery) -> Result<(), QueueError> {
        let number = {
            let mut state = self.inner.state.lock();
            if state.file_count >= MOST {
                return Err(QueueError::Full);
            }
            (state.file_count, state.last_number) = (state.file_count + 1, state.last_number + 1);
            state.last_number
        };
        // A task of its own: when the sender disconnects, count and file still stay consistent.
        let queue = self.clone();
        let written = tokio::task::spawn_blocking(move || queue.write(number, &delivery)).await;
        written
            .unwrap_or_else(|error| Err(QueueError::Io(self.inner.folder.clone(), io::Error::other(error))))
    }

    fn write(&self, number: u64, delivery: &QueuedDelivery) -> Result<(), QueueError> {
        let folder = &self.inner.folder;
        let write = || {
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            let begun = self.path(number, PARTIAL_EXTENSION);
            let mut file =
                OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&begun)?;
            file.write_all(serde_json::to_string(delivery)?.as_bytes())?;
            file.sync_all()?;
            fs::rename(&begun, self.path(number, COMPLETE_EXTENSION))?;
            // Syncs the directory entry too.
            File::open(folder)?.sync_all()
        };
        let written = write();
        let mut state = self.inner.state.lock();
        match written {
            Ok(()) => {
                state.waiting.push_back(number);
                self.inner.arrived.notify_one();
                Ok(())
            }
            Err(error) => {
                state.file_count -= 1;
                let _ = fs::remove_file(self.path(number, PARTIAL_EXTENSION));
                let _ = fs::remove_file(self.path(number, COMPLETE_EXTENSION));
                Err(QueueError::Io(folder.clone(), error))
            }
        }
    }

    /// The next delivery. Files that cannot be parsed are renamed and skipped.
    pub fn pop(&self) -> Option<(QueuedDelivery, DeliveryFile)> {
        loop {
            let number = self.inner.state.lock().waiting.pop_front()?;
            let path = self.path(number, COMPLETE_EXTENSION);
            let error = match read_delivery(&path) {
                Ok(delivery) => return Some((delivery, DeliveryFile { queue: self.clone(), number })),
                Err(error) => error,
            };
            let aside = self.path(number, UNREADABLE_EXTENSION);
            let moved = fs::rename(&path, &aside);
            let (file, aside) = (path.display(), aside.display());
            match moved {
                Ok(()) => {
                    tracing::error!(%error, %aside, "an accepted delivery cannot be read and is not carried \
                                                     out (help: check the file, and send the delivery again)")
                }
                Err(moved) => {
                    tracing::error!(%error, %file, %moved, "an accepted delivery cannot be read and is not carried out")
                }
            }
            self.inner.state.lock().file_count -= 1;
        }
    }

    pub async fn wait_for_delivery(&self) {
        while self.inner.state.lock().waiting.is_empty() {
            self.inner.arrived.notified().await;
        }
    }

    fn path(&self, number: u64, extension: &str) -> PathBuf {
        self.inner.folder.join(format!("{number}.{extension}"))
    }
}

impl DeliveryFile {
    pub fn remove(self) {
        let path = self.queue.path(self.number, COMPLETE_EXTENSION);
        if let Err(error) = fs::remove_file(&path) {
            let file = path.display();
            tracing::error!(%file, %error, "failed to remove the file of a finished delivery: the delivery \
                                            runs again at the next start");
        }
        self.queue.inner.state.lock().file_count -= 1;
    }
}

/// Numbers of complete files. Partial ones were never answered: they are removed.
fn queued_numbers(folder: &Path) -> io::Result<Vec<u64>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let extension = path.extension().and_then(OsStr::to_str);
        let number = path.file_stem().and_then(OsStr::to_str).and_then(|stem| stem.parse().ok());
        match (number, extension) {
            (Some(number), Some(COMPLETE_EXTENSION)) => numbers.push(number),
            (Some(_), Some(PARTIAL_EXTENSION)) => fs::remove_file(&path)?,
            _ => {}
        }
    }
    Ok(numbers)
}

fn read_delivery(path: &Path) -> io::Result<QueuedDelivery> {
    let mut text = String::new();
    File::open(path)?.take(MAX_FILE_BYTES as u64).read_to_string(&mut text)?;
    Ok(serde_json::from_str(&text)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivery(version: usize) -> QueuedDelivery {
        let payload = serde_json::json!({"version": version});
        QueuedDelivery { receiver: "drone".to_owned(), time: Timestamp::UNIX_EPOCH, payload }
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .expect("a folder")
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"))
            .collect();
        names.sort_unstable();
        names
    }

    #[tokio::test]
    async fn unfinished_deliveries_survive_a_restart() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path().join("deliveries");
        let queue = DeliveryQueue::open(folder.clone());
        assert!(queue.pop().is_none());
        for version in 1..=12 {
            queue.push(delivery(version)).await.expect("kept");
        }
        let (first, stored) = queue.pop().expect("the first");
        assert_eq!(first, delivery(1));
        stored.remove();
        let (second, _dropped) = queue.pop().expect("the second");
        assert_eq!(second, delivery(2));
        // A partial file was not answered.
        fs::write(folder.join("13.part"), "{").expect("written");
        let queue = DeliveryQueue::open(folder.clone());
        let left: Vec<QueuedDelivery> = std::iter::from_fn(|| {
            let (delivery, stored) = queue.pop()?;
            stored.remove();
            Some(delivery)
        })
        .collect();
        assert_eq!(left, (2..=12).map(delivery).collect::<Vec<_>>(), "in their order");
        assert_eq!(names(&folder), Vec::<String>::new());
    }

    #[tokio::test]
    async fn unreadable_file_is_set_aside() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path().to_owned();
        let long = format!("{{\"receiver\": \"{}\"}}", "x".repeat(MAX_FILE_BYTES));
        let bad: [&[u8]; 5] = [b"", b"{", b"\xff\xfe", b"{\"receiver\": 1}", long.as_bytes()];
        for (number, bytes) in bad.iter().enumerate() {
            fs::write(folder.join(format!("{number}.json")), bytes).expect("written");
        }
        fs::create_dir(folder.join("7.json")).expect("a folder");
        fs::write(folder.join("notes.json"), "").expect("written");
        let queue = DeliveryQueue::open(folder.clone());
        queue.push(delivery(8)).await.expect("kept");
        let (found, stored) = queue.pop().expect("the one that can be read");
        assert_eq!(found, delivery(8));
        stored.remove();
        assert!(queue.pop().is_none());
        assert_eq!(queue.inner.state.lock().file_count, 0);
        let aside = ["0", "1", "2", "3", "4", "7"].map(|number| format!("{number}.unreadable"));
        assert_eq!(names(&folder), [&aside[..], &["notes.json".to_owned()]].concat());
    }

    #[tokio::test]
    async fn queue_is_bounded_and_says_why() {
        let place = tempfile::tempdir().expect("a folder");
        let queue = DeliveryQueue::open(place.path().join("deliveries"));
        queue.inner.state.lock().file_count = MOST - 1;
        queue.push(delivery(1)).await.expect("the last");
        let refused = queue.push(delivery(2)).await.expect_err("full").to_string();
        assert_eq!(refused, "1000 deliveries for triggers already wait");
        queue.pop().expect("one").1.remove();
        queue.push(delivery(3)).await.expect("room again");
        let file = place.path().join("file");
        fs::write(&file, "").expect("written");
        let queue = DeliveryQueue::open(file.join("deliveries"));
        let refused = queue.push(delivery(1)).await.expect_err("no folder").to_string();
        assert!(refused.contains("cannot be kept in") && refused.contains("help: "), "{refused}");
        assert_eq!(queue.inner.state.lock().file_count, 0);
    }
}
