//! Which clusters went from Git, and with which commit: read from its history, so that a process that has just started says the same
//! as one that saw it happen.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;

use super::history::History;
use crate::fleet::{LookBack, Vanished};
use crate::manifest::{Ignored, find};
use crate::model::{Changed, Revision};
use crate::source::{Reached, Walk};

/// How many commits a start looks back: about a second, for which the first look waits. A push costs its own commits.
const MOST: usize = 10_000;

/// What is known at a head.
#[derive(Debug, Default)]
pub struct Known {
    head: Option<Revision>,
    vanished: Arc<Vanished>,
}

impl History {
    /// The clusters that went before this head; those that it has are read from these files, and what it ignores never had any. What is not
    /// committed yet stands on the commit that is checked out. Where history cannot be read, what was known.
    pub async fn vanished(
        &self,
        head: &Revision,
        files: BTreeSet<String>,
        ignored: Ignored,
    ) -> Arc<Vanished> {
        let mut known = self.vanished.lock().await;
        let Some(repository) = &self.repository else { return Arc::default() };
        let head = &match head.is_worktree() {
            true => match repository.fetch().await {
                Ok(commit) => commit,
                // A folder need not be a repository, nor have a commit.
                Err(error) => {
                    tracing::debug!(%error, "which clusters went from Git is not known");
                    return Arc::default();
                }
            },
            false => head.clone(),
        };
        if known.head.as_ref() == Some(head) {
            return Arc::clone(&known.vanished);
        }
        let walk = Walk {
            tip: head.clone(),
            known: known.head.clone(),
            most: MOST,
            path: find::is_candidate,
            content: LookBack::concerns,
            folders: files.iter().filter_map(|file| Some(file[..=file.rfind('/')?].to_owned())).collect(),
        };
        let looking = Arc::new(Mutex::new(LookBack::default()));
        let shared = Arc::clone(&looking);
        let reached = repository.look_back(walk, move |revision, changed| {
            let changed: Vec<Changed> =
                changed.iter().filter(|it| !ignored.fits(&it.path)).cloned().collect();
            shared.lock().take(revision, &changed);
        });
        let reached = match reached.await {
            Ok(reached) => reached,
            Err(error) => {
                tracing::warn!(%error, "whether clusters went from Git is not known");
                return Arc::clone(&known.vanished);
            }
        };
        let before = match reached {
            Reached::Known | Reached::Limit => Vanished::clone(&known.vanished),
            // What was known lies on another line.
            Reached::Beginning => Vanished::new(),
        };
        let found = std::mem::take(&mut *looking.lock());
        *known = Known { head: Some(head.clone()), vanished: Arc::new(found.after(before)) };
        Arc::clone(&known.vanished)
    }
}
