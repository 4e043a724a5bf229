//! What triggers change: the pull request or the commit.

use tokio::sync::oneshot;

use crate::api::{Call, Written};
use crate::controller::ConfigHead;
use crate::forge::Hint;
use crate::model::{Revision, TriggerWrite};
use crate::trigger::{self, Outcome};

use super::publish::{Proposal, Publisher, Unpublished};

/// A change that is to be written, and who waits for it.
#[derive(Debug)]
pub struct Task {
    outcome: Outcome,
    reply: Option<oneshot::Sender<Result<Written, String>>>,
    /// How often it was tried.
    pub tries: u32,
}

impl Task {
    pub fn of_call(call: Call) -> Self {
        Self { outcome: call.outcome, reply: Some(call.reply), tries: 0 }
    }

    /// What the triggers of a receiver make of what it was sent.
    pub fn of_hint(hint: &Hint, head: &ConfigHead) -> Vec<Self> {
        let Some(payload) = &hint.payload else { return Vec::new() };
        let outcomes = trigger::evaluate_delivery(&hint.receiver, payload, &head.fleet, &head.snapshot);
        let task = |outcome: Result<Outcome, trigger::Error>| match outcome {
            Ok(outcome) => Some(Self { outcome, reply: None, tries: 0 }),
            Err(error) => {
                tracing::warn!(receiver = hint.receiver, %error, "a trigger changes nothing");
                None
            }
        };
        outcomes.into_iter().filter_map(task).collect()
    }

    /// Writes it, by the file as it is at the head.
    pub async fn write(&self, publisher: &Publisher<'_>) -> Result<Written, Unwritten> {
        let Outcome { file, write, .. } = &self.outcome;
        let text = publisher.head.snapshot.text(file);
        let edited = self.outcome.edited(text).map_err(|error| Unwritten::Edit(error.to_string()))?;
        if !self.outcome.is_change() || text == Some(edited.as_str()) {
            return Ok(Written::default());
        }
        let files = vec![(file.clone(), Some(edited))];
        match write {
            TriggerWrite::None => Ok(Written::default()),
            TriggerWrite::Commit => {
                let commit: Revision = publisher.commit(&files, &self.outcome.message()).await?;
                Ok(Written { link: None, commit: Some(commit.to_string()) })
            }
            TriggerWrite::PullRequest => {
                let proposal = Proposal {
                    branch: self.outcome.branch(),
                    title: self.outcome.title(),
                    body: self.outcome.body(),
                    message: self.outcome.message(),
                    label: "promotion",
                    files,
                };
                let pull = publisher.propose(&proposal).await?;
                Ok(Written { link: Some(pull.url), commit: None })
            }
        }
    }

    /// Tells whoever waits.
    pub fn answer(self, result: Result<Written, String>) {
        let trigger = &self.outcome.trigger;
        match &result {
            Ok(Written { link, commit }) => {
                tracing::info!(trigger, link, commit, "a trigger was carried out")
            }
            Err(error) => tracing::warn!(trigger, error, "a trigger was not carried out"),
        }
        if let Some(reply) = self.reply {
            // Nobody may wait any more.
            let _ = reply.send(result);
        }
    }
}

/// Why a change of a trigger was not written.
#[derive(Debug, thiserror::Error)]
pub enum Unwritten {
    #[error("{0}")]
    Edit(String),
    #[error(transparent)]
    Publish(#[from] Unpublished),
}
