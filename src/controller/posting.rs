//! Posts to the forge, and reads the forge's token.
//!
//! When the home cluster does not answer, the previous token is used, as for the secrets of webhooks. A token that was removed is
//! not used any more. In both cases only the token is read again; nothing is loaded or rendered for it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use secrecy::{ExposeSecret as _, SecretString};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::event::Event;
use super::forge_posting::{ForgeReader, StatusPosting};
use super::secrets::SecretError;
use super::state::{ControllerState, RELOAD_FIRST};
use crate::fleet::Target;
use crate::forge::{self, CommitStatus, CommitStatusState};
use crate::model::{ApprovalQueryError, Digest, Revision, SecretRef};
use crate::reconcile::RenderHistory;
use crate::report::outbox::{Outbox, OutboxCommand, StatusTransitionRule};
use crate::report::{Overview, statuses};

/// The longest delay before the posted statuses are read back again.
const MAX_RECALL_DELAY: Duration = Duration::from_secs(30);
/// Delay before a token that could not be read is read again.
const TOKEN_RETRY_DELAY: Duration = Duration::from_secs(30);

impl ControllerState {
    /// Uses the forge of the instance. Returns whether the forge or the token changed.
    pub(super) fn open_outbox(
        &mut self,
        recent: Vec<Revision>,
        token: Option<Result<SecretString, SecretError>>,
        is_usable: bool,
    ) -> bool {
        self.forge.recent_commits = recent;
        // An instance with errors keeps the previous forge and token, and the errors are posted there.
        is_usable && self.update_token(token)
    }

    fn update_token(&mut self, token: Option<Result<SecretString, SecretError>>) -> bool {
        self.forge.token_retry_at = None;
        self.update_reader(token.as_ref());
        let Some(wanted) = self.instance.forge.as_ref().filter(|_| self.posts_statuses()) else {
            self.forge.posting = None;
            return false;
        };
        let known = self.forge.posting.as_ref().filter(|posting| posting.forge == *wanted);
        let at = &wanted.written;
        let token = match token.transpose() {
            Ok(token) => token,
            Err(error) => {
                self.forge.token_retry_at = error.is_retryable().then(|| Instant::now() + TOKEN_RETRY_DELAY);
                if known.is_some() && error.is_unavailable() {
                    tracing::warn!(
                        %error,
                        "the token of the forge cannot be read again; the previous one is used"
                    );
                } else {
                    tracing::error!(%error, %at, "commit statuses are not written");
                    self.forge.posting = None;
                }
                return false;
            }
        };
        let mark = token.as_ref().map(|token| Digest::of(token.expose_secret().as_bytes()));
        if known.is_some_and(|posting| posting.token == mark) {
            return false;
        }
        self.forge.posting = match forge::ForgeClient::gitea(
            &wanted.url,
            &wanted.repository,
            token,
            &self.settings.grants.forge,
        ) {
            Ok(client) => {
                let client = client.observed_by(Arc::new(self.settings.metrics.clone()));
                let outbox = Outbox::start(
                    client.clone(),
                    self.settings.permit.clone(),
                    StatusTransitionRule::Deployment,
                );
                let prefix = format!("{}/deploy", self.instance.status_prefix);
                self.forge.posting_count += 1;
                let number = self.forge.posting_count;
                let recall = PostedStatusReader {
                    number,
                    forge: client,
                    outbox: outbox.clone(),
                    prefix,
                    recent: self.forge.recent_commits.clone(),
                    history: Arc::clone(&self.history),
                };
                tokio::spawn(recall.run(self.events.clone()));
                Some(StatusPosting { forge: wanted.clone(), token: mark, outbox, number, is_recalled: false })
            }
            Err(error) => {
                tracing::error!(%error, %at, "commit statuses are not written");
                None
            }
        };
        self.forge.posting.is_some()
    }

    /// If the home cluster does not answer, the token of the same forge stays. Another forge needs a new one.
    fn update_reader(&mut self, token: Option<&Result<SecretString, SecretError>>) {
        let Some(wanted) = self.instance.forge.as_ref() else {
            self.drop_reader();
            return;
        };
        let known = self.forge.reader.as_ref().filter(|reader| reader.forge == *wanted);
        let token = match token {
            Some(Ok(token)) => token.clone(),
            Some(Err(error)) if known.is_some() && error.is_unavailable() => return,
            Some(Err(_)) | None => {
                self.drop_reader();
                return;
            }
        };
        let mark = Digest::of(token.expose_secret().as_bytes());
        if known.is_some_and(|reader| reader.token == mark) {
            return;
        }
        let rules = &self.settings.grants.forge;
        let client = forge::ForgeClient::gitea(&wanted.url, &wanted.repository, Some(token), rules).ok();
        let client = client.map(|client| client.observed_by(Arc::new(self.settings.metrics.clone())));
        let forge = wanted.clone();
        self.forge.reader = client.map(|client| ForgeReader { forge, token: mark, client });
        self.schedule_token_retry();
    }

    /// A token that was removed is not used any more.
    fn drop_reader(&mut self) {
        if self.forge.reader.take().is_some() {
            self.schedule_token_retry();
        }
    }

    fn schedule_token_retry(&mut self) {
        for app in self.agreements.clear() {
            self.rollout_apps.decide_soon(&app);
        }
    }

    /// The client that reads from the forge, or the reason why there is none.
    pub(super) fn forge_reader(&self) -> Result<forge::ForgeClient, ApprovalQueryError> {
        let client = self.forge.reader.as_ref().map(|reader| reader.client.clone());
        client.ok_or_else(|| match &self.instance.forge {
            None => ApprovalQueryError::Permanent("tutti.yaml names no forge".into()),
            // The token may be on its way. When it arrives, everything is read again.
            Some(_) => ApprovalQueryError::Temporary("there is no token for the forge".into()),
        })
    }

    fn posts_statuses(&self) -> bool {
        self.settings.posts_statuses && !self.settings.is_standby
    }

    /// This process begins to post. The token may have changed since the repository was read.
    pub(super) fn begin_posting(&mut self) {
        if self.token_reference().is_some() {
            self.forge.token_retry_at = Some(Instant::now());
        } else if self.update_token(None) {
            self.post_pending();
        }
    }

    /// Reads the token again when that is due.
    pub(super) fn request_token(&mut self, now: Instant) {
        if self.forge.token_retry_at.is_none_or(|at| at > now) {
            return;
        }
        self.forge.token_retry_at = None;
        let Some(reference) = self.token_reference().cloned() else { return };
        let (home, events) = (self.settings.home.clone(), self.events.clone());
        let grants = Arc::clone(&self.settings.grants);
        tokio::spawn(async move {
            let token = grants.resolve(&reference, &home).await;
            // The send fails only when the controller has stopped.
            let _ = events.send(Event::ForgeTokenRead { reference, token }).await;
        });
    }

    /// Handles the token, unless the repository names another one by now.
    pub(super) fn handle_token(&mut self, reference: &SecretRef, token: Result<SecretString, SecretError>) {
        let is_wanted = self.token_reference() == Some(reference) && !self.is_stopping;
        if is_wanted && self.update_token(Some(token)) {
            self.post_pending();
        }
    }

    fn token_reference(&self) -> Option<&SecretRef> {
        self.instance.forge.as_ref()?.token.as_ref()
    }

    /// Every context of a new head is pending before the render.
    pub(super) fn post_pending(&self) {
        if let (Some(StatusPosting { outbox, .. }), Some(head)) = (&self.forge.posting, &self.head) {
            let overview = self.overview();
            outbox.send(OutboxCommand::Initial(statuses::initial_statuses(&overview, head)));
        }
    }

    /// A commit that an earlier process left unfinished gets its final status.
    pub(super) fn handle_unfinished_commit(&mut self, revision: &Revision, left: BTreeSet<Target>) {
        if !self.tracked_commits.contains(revision) {
            self.tracked_commits.push(revision.clone());
        }
        self.restore_pending_removals(left, revision);
    }

    /// Posts the current overview.
    pub(super) fn post_overview(&mut self, overview: &Overview) {
        if let (Some(StatusPosting { outbox, .. }), Some(head)) = (&self.forge.posting, &self.head)
            && self.rendered_head.as_ref() == Some(head)
        {
            outbox.send(OutboxCommand::Desired {
                head: head.clone(),
                told: self.tracked_commits.clone(),
                statuses: statuses::desired_statuses(overview),
            });
        }
        self.open_posting();
    }

    /// The posted statuses are known, so the next overview is posted. A commit in progress must not look like a commit that no
    /// process reports.
    pub(super) fn handle_posted_statuses(&mut self, number: u64) {
        if let Some(posting) = self.forge.posting.as_mut().filter(|posting| posting.number == number) {
            posting.is_recalled = true;
        }
    }

    fn open_posting(&mut self) {
        if let Some(posting) = self.forge.posting.as_mut().filter(|posting| posting.is_recalled) {
            posting.outbox.send(OutboxCommand::StartPosting);
            posting.is_recalled = false;
        }
    }

    /// Waits until everything is posted, at most for `patience`.
    pub async fn flush(&mut self, events: &mut mpsc::Receiver<Event>, patience: Duration) {
        let Some(StatusPosting { outbox, .. }) = &self.forge.posting else { return };
        let outbox = outbox.clone();
        let mut flushed = std::pin::pin!(outbox.flush(patience));
        loop {
            tokio::select! {
                result = &mut flushed => {
                    if let Err(error) = result {
                        tracing::warn!(error, "commit statuses were not posted; the next run posts them");
                    }
                    return;
                }
                // The posted statuses may not have been read back yet.
                Some(event) = events.recv() => {
                    let is_last = matches!(event, Event::PostedStatusesRead { .. });
                    if is_last || matches!(event, Event::UnfinishedCommit { .. }) {
                        self.handle(event);
                    }
                    if is_last {
                        self.clear_pending_removals();
                        let overview = self.overview();
                        self.post_overview(&overview);
                    }
                }
            }
        }
    }
}

/// Reads back the statuses of recent commits that earlier processes posted, then lets the outbox post. Statuses that the forge
/// already has are not posted again. For an unfinished commit it also finds the removed targets.
struct PostedStatusReader {
    number: u64,
    forge: forge::ForgeClient,
    outbox: Outbox,
    prefix: String,
    /// The head first.
    recent: Vec<Revision>,
    history: Arc<RenderHistory>,
}

impl PostedStatusReader {
    async fn run(self, events: mpsc::Sender<Event>) {
        let mut said = Vec::new();
        for revision in &self.recent {
            said.push(self.statuses_of(revision).await);
        }
        // A commit without statuses was pushed together with a newer one, whose status covers it.
        let is_told =
            |statuses: &Option<Vec<CommitStatus>>| statuses.as_ref().is_some_and(|it| !it.is_empty());
        let told: Vec<usize> = (0..said.len()).filter(|at| is_told(&said[*at])).collect();
        for (at, (revision, statuses)) in self.recent.iter().zip(said).enumerate() {
            let Some(statuses) = statuses else { continue };
            let is = |state| statuses.iter().any(|status| status.state == state);
            let is_new = at == 0 && statuses.is_empty();
            let is_open = is_new || is(CommitStatusState::Pending) || is(CommitStatusState::Failure);
            let before = told.iter().copied().find(|told| *told > at).unwrap_or(self.recent.len() - 1);
            let left = match self.recent.get(before) {
                Some(before) if is_open && before != revision => {
                    self.history.removed_targets(before, revision).await
                }
                _ => None,
            };
            self.outbox.send(OutboxCommand::Existing { revision: revision.clone(), statuses });
            let event =
                Event::UnfinishedCommit { revision: revision.clone(), left: left.unwrap_or_default() };
            if is_open && events.send(event).await.is_err() {
                return;
            }
        }
        // The send fails only when the controller has stopped.
        let _ = events.send(Event::PostedStatusesRead { number: self.number }).await;
    }

    /// Statuses of this instance; `None`: the forge does not let us read them.
    async fn statuses_of(&self, revision: &Revision) -> Option<Vec<CommitStatus>> {
        let mut pause = RELOAD_FIRST;
        let mut statuses = loop {
            match self.forge.statuses(revision).await {
                Ok(statuses) => break statuses,
                Err(error) if error.is_transient() => {
                    tracing::warn!(%error, "failed to read the commit statuses that were posted before; \
                                            retrying");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(MAX_RECALL_DELAY);
                }
                Err(error) => {
                    tracing::debug!(%error, revision = revision.short(), "nothing is known about this commit");
                    return None;
                }
            }
        };
        let inside = format!("{}/", self.prefix);
        statuses.retain(|it| it.context == self.prefix || it.context.starts_with(&inside));
        Some(statuses)
    }
}
