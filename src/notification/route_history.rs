//! The history of one route on disk: one file, written only by that route's worker.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::model::{AppId, ClusterName, NotificationPhase};
use crate::report::notices::{NoticeFacts, ThreadHistory};

/// Of threads that no longer exist.
const MAX_PAST_THREADS: usize = 1000;
/// The leader touches the file at least every ten minutes. While it is this fresh, no other process has led since.
const FRESH_FILE_AGE: Duration = Duration::from_secs(1200);
/// In bytes.
const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;

#[derive(Clone, Debug)]
pub struct RouteHistory {
    /// `None`: the history is lost with the process.
    path: Option<PathBuf>,
    /// A digest of the route, to detect a changed route.
    route: String,
    threads: BTreeMap<String, ThreadRecord>,
    /// Set until the first evaluation of all threads.
    pub start: Option<RouteStart>,
}

/// How a route treats what is already done at its first evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteStart {
    /// The process starts without a fresh history. What was done long ago was sent by another process; what was done just now
    /// may not have been.
    ProcessStart,
    /// The route is new or selects something else: it starts with the next events.
    NewRoute,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ThreadRecord {
    #[serde(flatten)]
    pub told: ThreadHistory,
    /// The history after a message that was sent or about to be: whether it arrived is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<ThreadHistory>,
    /// When the thread began for this route. Another history gives other message ids.
    #[serde(default)]
    pub began: Timestamp,
    pub at: Timestamp,
    /// The id of the message at the service, if it can be changed there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The names of the thread, for the text of its end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub apps: Vec<String>,
    #[serde(default)]
    pub app_count: usize,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clusters: Vec<String>,
    #[serde(default)]
    pub cluster_count: usize,
    /// Later commits changed everything of it before its end was sent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_over: bool,
}

#[derive(Default, Deserialize)]
struct RouteHistoryFile {
    /// The digest of the route's selection and destination.
    #[serde(default)]
    route: String,
    threads: BTreeMap<String, ThreadRecord>,
}

#[derive(Serialize)]
struct RouteHistoryFileRef<'a> {
    route: &'a str,
    threads: &'a BTreeMap<String, ThreadRecord>,
}

impl RouteHistory {
    /// An unreadable file is set aside, and a new one started.
    pub fn open(folder: Option<&Path>, route: &str, first_look: RouteStart) -> Self {
        let path = folder.map(|folder| folder.join(format!("{route}.json")));
        let content = path.as_ref().map_or(Ok(None), |path| read(path)).unwrap_or_else(|error| {
            tracing::warn!(route, %error, "failed to read the history of a notification route: the route \
                                           starts with an empty one");
            if let Some(path) = &path {
                let _ = fs::rename(path, path.with_extension("json.unreadable"));
            }
            None
        });
        let (content, is_fresh) = content.unwrap_or_default();
        let is_known = is_fresh && first_look == RouteStart::ProcessStart;
        let RouteHistoryFile { route, threads } = content;
        Self { path, route, threads, start: (!is_known).then_some(first_look) }
    }

    /// A route with another selection or destination starts anew.
    pub fn reset_if_changed(&mut self, route: &str) {
        if self.route == route {
            return;
        }
        if !self.route.is_empty() {
            self.start = Some(RouteStart::NewRoute);
            self.threads.clear();
        }
        self.route = route.to_owned();
    }

    pub fn record(&self, thread: &str) -> Option<&ThreadRecord> {
        self.threads.get(thread)
    }

    pub fn threads(&self) -> impl Iterator<Item = (&String, &ThreadRecord)> {
        self.threads.iter()
    }

    pub fn set(&mut self, thread: String, entry: ThreadRecord) {
        self.threads.insert(thread, entry);
    }

    /// Drops the oldest threads that no longer exist, beyond a bound.
    pub fn drop_oldest(&mut self, is_seen: impl Fn(&str) -> bool) {
        let mut past: Vec<(Timestamp, String)> = self
            .threads
            .iter()
            .filter(|(key, _)| !is_seen(key))
            .map(|(key, it)| (it.at, key.clone()))
            .collect();
        let Some(more) = past.len().checked_sub(MAX_PAST_THREADS).filter(|more| *more > 0) else { return };
        past.sort();
        past.into_iter().take(more).for_each(|(_, key)| drop(self.threads.remove(&key)));
    }

    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The path and the bytes to write.
    pub fn file_content(&self) -> io::Result<Option<(PathBuf, Vec<u8>)>> {
        let Some(path) = &self.path else { return Ok(None) };
        let bytes = serde_json::to_vec(&RouteHistoryFileRef { route: &self.route, threads: &self.threads })?;
        Ok(Some((path.clone(), bytes)))
    }
}

impl ThreadRecord {
    /// The last message of the thread was about a problem, as far as known.
    pub fn is_bad(&self) -> bool {
        self.last_events()
            .any(|last| matches!(last, NotificationPhase::Degraded | NotificationPhase::Offline))
    }

    /// A commit whose end was not sent.
    pub fn is_open(&self) -> bool {
        use NotificationPhase::{Degraded, Failed, Started, Waiting};
        !self.is_over && self.last_events().any(|last| matches!(last, Started | Waiting | Failed | Degraded))
    }

    /// Keeps the names in the facts, if there are any.
    pub fn note_names(&mut self, facts: &NoticeFacts) {
        if facts.app_count > 0 {
            self.apps = facts.apps.iter().map(ToString::to_string).collect();
            self.app_count = facts.app_count;
        }
        if facts.cluster_count > 0 {
            self.clusters = facts.clusters.iter().map(ToString::to_string).collect();
            self.cluster_count = facts.cluster_count;
        }
    }

    pub fn apps(&self) -> impl Iterator<Item = AppId> {
        let names = self.apps.iter().filter_map(|app| app.split_once('/'));
        names.map(|(namespace, name)| AppId::new(namespace, name))
    }

    /// These facts, with the kept names if they have none.
    pub fn with_names(&self, facts: &NoticeFacts) -> NoticeFacts {
        let mut facts = facts.clone();
        if facts.app_count == 0 && facts.objects == 0 {
            (facts.apps, facts.app_count) = (self.apps().collect(), self.app_count);
        }
        if facts.cluster_count == 0 {
            facts.clusters = self.clusters.iter().map(|name| ClusterName::from(name.as_str())).collect();
            facts.cluster_count = self.cluster_count;
        }
        facts
    }

    fn last_events(&self) -> impl Iterator<Item = NotificationPhase> {
        [self.told.last, self.sent.as_ref().and_then(|sent| sent.last)].into_iter().flatten()
    }
}

/// The data is on disk when this returns.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_data()?;
    file.persist(path).map_err(|error| error.error)?;
    // The file name is stored in the folder.
    File::open(folder)?.sync_all()
}

/// Marks that this process still leads.
pub fn touch(path: &Path) -> io::Result<()> {
    File::options().write(true).open(path)?.set_modified(SystemTime::now())
}

/// The content, and whether no other process has led since.
fn read(path: &Path) -> io::Result<Option<(RouteHistoryFile, bool)>> {
    let meta = match fs::metadata(path) {
        Ok(meta) if meta.len() > MAX_FILE_BYTES => return Err(io::Error::other("it is too large")),
        Ok(meta) => meta,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let age = SystemTime::now().duration_since(meta.modified()?).unwrap_or_default();
    Ok(Some((serde_json::from_slice(&fs::read(path)?)?, age < FRESH_FILE_AGE)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(seconds: i64) -> ThreadRecord {
        let told = ThreadHistory { last: Some(NotificationPhase::Done), ..ThreadHistory::default() };
        let at = Timestamp::from_second(seconds).unwrap();
        ThreadRecord {
            told,
            sent: Some(ThreadHistory::default()),
            at,
            name: Some("1.2".to_owned()),
            ..ThreadRecord::default()
        }
    }

    fn open(folder: Option<&Path>, route: &str) -> RouteHistory {
        RouteHistory::open(folder, route, RouteStart::ProcessStart)
    }

    #[test]
    fn history_survives_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let mut memory = open(Some(folder.path()), "shop");
        memory.reset_if_changed("one");
        memory.set("a".to_owned(), entry(7));
        let (path, bytes) = memory.file_content().unwrap().unwrap();
        write(&path, &bytes).unwrap();
        let mut memory = open(Some(folder.path()), "shop");
        memory.reset_if_changed("one");
        assert_eq!((memory.record("a"), memory.start), (Some(&entry(7)), None));
        File::open(&path).unwrap().set_modified(SystemTime::now() - 2 * FRESH_FILE_AGE).unwrap();
        assert_eq!(open(Some(folder.path()), "shop").start, Some(RouteStart::ProcessStart));
        touch(&path).unwrap();
        assert_eq!(open(Some(folder.path()), "shop").start, None);
        assert!(open(Some(folder.path()), "other").record("a").is_none());
        memory.reset_if_changed("another");
        assert_eq!((memory.record("a"), memory.start), (None, Some(RouteStart::NewRoute)));
    }

    #[test]
    fn unreadable_file_is_set_aside() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("shop.json"), "{").unwrap();
        assert_eq!(open(Some(folder.path()), "shop").threads().count(), 0);
        assert!(folder.path().join("shop.json.unreadable").exists());
    }

    #[test]
    fn oldest_past_threads_are_dropped() {
        let mut memory = open(None, "shop");
        for number in 0..MAX_PAST_THREADS + 10 {
            memory.set(format!("{number:05}"), entry(i64::try_from(number).unwrap()));
        }
        memory.drop_oldest(|key| key == "00000");
        assert_eq!(memory.threads().count(), MAX_PAST_THREADS + 1);
        assert!(
            memory.record("00000").is_some()
                && memory.record("00009").is_none()
                && memory.record("00010").is_some()
        );
    }
}
