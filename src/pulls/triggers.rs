//! What triggers change: the pull request or the commit.

use std::collections::VecDeque;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::api::{Call, Delivery, Stored, Written};
use crate::controller::ConfigHead;
use crate::model::{Revision, TriggerWrite};
use crate::trigger::{self, Outcome};

use super::publish::{Proposal, Publisher, Unpublished};

/// Changes that wait here.
const MOST: usize = 1_000;
/// A delivery of longer ago is not carried out any more: what it says may have been overtaken.
const TOO_OLD: SignedDuration = SignedDuration::from_hours(24);

/// A change that is to be written.
#[derive(Debug)]
pub struct Task {
    outcome: Outcome,
    of: Of,
    /// How often it was tried.
    pub tries: u32,
    /// It failed: not again before.
    pub not_before: Option<Instant>,
}

/// Who wants the change.
#[derive(Debug)]
enum Of {
    /// A caller, who waits.
    Call(oneshot::Sender<Result<Written, String>>),
    /// A delivery that was accepted at a time. Its file goes with the last of its changes.
    Delivery(Timestamp, Arc<Stored>),
}

impl Task {
    pub fn of_call(call: Call) -> Self {
        Self { outcome: call.outcome, of: Of::Call(call.reply), tries: 0, not_before: None }
    }

    /// What the triggers of a receiver make of what it was sent.
    pub fn of_delivery(delivery: &Delivery, stored: Stored, head: &ConfigHead) -> Vec<Self> {
        let Delivery { receiver, time, payload } = delivery;
        let stored = Arc::new(stored);
        let outcomes = match is_too_old(*time) {
            true => Vec::new(),
            false => trigger::evaluate_delivery(receiver, payload, &head.fleet, &head.snapshot),
        };
        if is_too_old(*time) {
            tracing::warn!(receiver, accepted = %time, "a delivery is too old to be carried out (help: have it sent again)");
        }
        let task = |outcome: Result<Outcome, trigger::Error>| match outcome {
            Ok(outcome) => {
                let of = Of::Delivery(*time, Arc::clone(&stored));
                Some(Self { outcome, of, tries: 0, not_before: None })
            }
            Err(error) => {
                tracing::warn!(receiver, %error, "a trigger changes nothing");
                None
            }
        };
        let tasks = outcomes.into_iter().filter_map(task).collect();
        finish(stored);
        tasks
    }

    /// Nobody sends it again, and it may still be carried out.
    pub fn may_wait(&self) -> bool {
        matches!(self.of, Of::Delivery(time, _) if !is_too_old(time))
    }

    /// A delivery that changes what a later task changes again.
    fn is_superseded_by(&self, later: &Self) -> bool {
        let place = |task: &Self| {
            let Outcome { trigger, file, field, .. } = &task.outcome;
            (trigger.clone(), file.clone(), field.clone())
        };
        matches!(self.of, Of::Delivery(..)) && place(self) == place(later)
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
                    branch: self.outcome.branch(publisher.prefix),
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
        match self.of {
            // Nobody may wait any more.
            Of::Call(reply) => drop(reply.send(result)),
            Of::Delivery(_, stored) => finish(stored),
        }
    }
}

fn is_too_old(time: Timestamp) -> bool {
    Timestamp::now().duration_since(time) > TOO_OLD
}

/// The last one to do something for a delivery removes its file.
fn finish(stored: Arc<Stored>) {
    if let Some(stored) = Arc::into_inner(stored) {
        stored.finish();
    }
}

/// What triggers change, in its order.
#[derive(Debug, Default)]
pub struct Tasks {
    all: VecDeque<Task>,
}

impl Tasks {
    /// What is more waits where it comes from.
    pub fn has_room(&self) -> bool {
        self.all.len() < MOST
    }

    pub fn add(&mut self, task: Task) {
        let (superseded, others): (VecDeque<Task>, VecDeque<Task>) =
            self.all.drain(..).partition(|before| before.is_superseded_by(&task));
        self.all = others;
        for before in superseded {
            before.answer(Err("a later delivery or call sets the same value".to_owned()));
        }
        self.all.push_back(task);
    }

    /// It is the next one again.
    pub fn add_first(&mut self, task: Task) {
        self.all.push_front(task);
    }

    pub fn take_due(&mut self, now: Instant) -> Option<Task> {
        let due = self.all.iter().position(|task| task.not_before.is_none_or(|at| at <= now))?;
        self.all.remove(due)
    }

    /// When one that failed is due again.
    pub fn next_at(&self) -> Option<Instant> {
        self.all.iter().filter_map(|task| task.not_before).min()
    }

    pub fn refuse_all(&mut self, why: &str) {
        self.all.drain(..).for_each(|task| task.answer(Err(why.to_owned())));
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
