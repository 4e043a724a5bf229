//! Agreements: the reviews of pull requests that brought Approvals, and the authors of changes. They are read from the forge and
//! from Git when a decision depends on them, and kept until the head changes.

mod lookup;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tokio::sync::{Semaphore, mpsc};
use tokio::task::AbortHandle;

pub use self::lookup::AgreementSources;
use super::event::Event;
use super::file_versions::FileVersions;
use crate::model::{AppId, ApprovalQuery, ApprovalQueryResult, Revision};

/// Questions in progress at the same time.
const MAX_CONCURRENT_QUESTIONS: usize = 2;

#[derive(Debug)]
pub struct Agreements {
    lookups: BTreeMap<ApprovalQuery, AgreementLookup>,
    permits: Arc<Semaphore>,
}

#[derive(Debug)]
struct AgreementLookup {
    answer: Option<ApprovalQueryResult>,
    /// The apps whose decisions depend on it.
    apps: BTreeSet<AppId>,
    task: AbortHandle,
}

impl Agreements {
    pub fn new() -> Self {
        Self { lookups: BTreeMap::new(), permits: Arc::new(Semaphore::new(MAX_CONCURRENT_QUESTIONS)) }
    }

    /// `None`: no answer yet.
    pub fn answer(&self, asked: &ApprovalQuery) -> Option<ApprovalQueryResult> {
        self.lookups.get(asked)?.answer.clone()
    }

    /// Starts a lookup, unless there is one; it retries until there is an answer. `folder`: of the app; `None` if the app is
    /// gone.
    pub fn ask(
        &mut self,
        asked: ApprovalQuery,
        (app, folder): (&AppId, Option<String>),
        sources: &AgreementSources,
        events: &mpsc::Sender<Event>,
    ) {
        if let Some(known) = self.lookups.get_mut(&asked) {
            known.apps.insert(app.clone());
            return;
        }
        let asking = lookup::look_up_answer(
            asked.clone(),
            folder,
            sources.clone(),
            Arc::clone(&self.permits),
            events.clone(),
        );
        let task = tokio::spawn(asking).abort_handle();
        self.lookups
            .insert(asked, AgreementLookup { answer: None, apps: BTreeSet::from([app.clone()]), task });
    }

    /// Records an answer. Returns the apps that need another decision.
    pub fn record_answer(&mut self, asked: &ApprovalQuery, answer: ApprovalQueryResult) -> Vec<AppId> {
        let Some(known) = self.lookups.get_mut(asked) else { return Vec::new() };
        if known.answer.as_ref() == Some(&answer) {
            return Vec::new();
        }
        known.answer = Some(answer);
        known.apps.iter().cloned().collect()
    }

    pub fn is_asked(&self, asked: &ApprovalQuery, app: &AppId) -> bool {
        self.lookups.get(asked).is_some_and(|known| known.apps.contains(app))
    }

    pub fn has_unanswered(&self) -> bool {
        self.lookups.values().any(|known| known.answer.is_none())
    }

    /// At a new head: approvals of files that are unchanged are kept. Everything else is read again when a decision depends on
    /// it, also missing approvals, because the forge may have known the merge too late.
    pub fn retain_for_head(&mut self, head: &Revision, files: &FileVersions<'_>) {
        self.lookups.retain(|asked, known| {
            let is_kept = match asked {
                ApprovalQuery::Reviews { file } => {
                    matches!(&known.answer, Some(Ok(people)) if !people.logins.is_empty())
                        && files.is_current(file)
                }
                ApprovalQuery::Authors { until, .. } => until == head,
            };
            if !is_kept {
                known.task.abort();
            }
            is_kept
        });
    }

    /// Another forge: everything is read again. Returns the apps whose decisions depended on it.
    pub fn clear(&mut self) -> BTreeSet<AppId> {
        let mut apps = BTreeSet::new();
        for (_, known) in std::mem::take(&mut self.lookups) {
            known.task.abort();
            apps.extend(known.apps);
        }
        apps
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ApprovalQueryError, Digest, FileVersion, ForgePeople};
    use crate::reconcile::RenderHistory;

    fn review(text: &str) -> ApprovalQuery {
        let (commit, path) = (Revision::from("head"), "approvals/a.yaml".to_owned());
        ApprovalQuery::Reviews {
            file: Arc::new(FileVersion { commit, path, content: Digest::of(text.as_bytes()) }),
        }
    }

    /// Another head of the config repository repeats only lookups without an answer.
    #[tokio::test]
    async fn answers_outlive_head() {
        use crate::model::{PathHistory as Commits, Snapshot};
        let (events, _queue) = mpsc::channel(8);
        let history =
            Arc::new(RenderHistory::new(None, Arc::default(), crate::model::DecryptionKeys::default()));
        let sources =
            AgreementSources { forge: Err(ApprovalQueryError::Temporary("no forge".into())), history };
        let app = AppId::new("shop", "pay");
        let snapshot = |text: &str| {
            let (commits, file) = (vec![Revision::from("head")], "approvals/a.yaml");
            let changed = BTreeMap::from([(file.to_owned(), 0)]);
            let history = Arc::new(Commits { commits, last_change_index: changed });
            Snapshot { history, ..Snapshot::of_texts([(file, text)]) }
        };
        let authors = |until: &str| ApprovalQuery::Authors {
            app: app.clone(),
            since: None,
            until: Revision::from(until),
            is_delete: false,
        };
        let mut agreements = Agreements::new();
        for asked in [review("a"), authors("one")] {
            agreements.ask(asked.clone(), (&app, None), &sources, &events);
            let people = ForgePeople { logins: BTreeSet::from(["ann".to_owned()]), unknown_author: None };
            assert_eq!(agreements.record_answer(&asked, Ok(Arc::new(people))), std::slice::from_ref(&app));
        }
        let keep = |agreements: &mut Agreements, head: &str, text: &str| {
            let snapshot = snapshot(text);
            agreements.retain_for_head(&Revision::from(head), &FileVersions::new(&snapshot));
            [agreements.answer(&review("a")).is_some(), agreements.answer(&authors("one")).is_some()]
        };
        assert_eq!(keep(&mut agreements, "one", "a"), [true, true]);
        assert_eq!(keep(&mut agreements, "two", "a"), [true, false]);
        assert!(!agreements.has_unanswered());
        // A missing approval is read again.
        agreements.record_answer(&review("a"), Ok(Arc::default()));
        assert_eq!(keep(&mut agreements, "three", "a"), [false, false]);
        // A lookup without an answer continues only while a decision depends on it.
        agreements.ask(review("b"), (&app, None), &sources, &events);
        assert!(agreements.has_unanswered());
        keep(&mut agreements, "two", "b");
        assert!(!agreements.is_asked(&review("b"), &app) && !agreements.has_unanswered());
        // The content of the file changed, so there is no answer.
        assert_eq!(keep(&mut agreements, "two", "b"), [false, false]);
    }
}
