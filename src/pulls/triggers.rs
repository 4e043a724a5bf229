//! Queue of trigger changes: from calls of the API and from deliveries, to a pull request or commit. A newer change of the same
//! field supersedes older deliveries.

use std::collections::VecDeque;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::api::{DeliveryFile, QueuedDelivery, TriggerCall, TriggerWriteError, WrittenChange};
use crate::controller::ConfigHead;
use crate::model::{Revision, TriggerWrite};
use crate::promotion::edit;
use crate::trigger::{self, TriggerOutcome};

use super::publish::{Proposal, PublishError, Publisher};
use super::stale_delivery;

const MAX_TASKS: usize = 1_000;
/// Older deliveries are dropped: their content is most likely outdated.
const MAX_AGE: SignedDuration = SignedDuration::from_hours(24);

#[derive(Debug)]
pub struct TriggerTask {
    outcome: TriggerOutcome,
    origin: TaskOrigin,
    accepted: Timestamp,
    /// Deliveries that it supersedes once written, oldest first.
    superseded: Vec<TriggerTask>,
    pub attempts: u32,
    pub retry_at: Option<Instant>,
}

#[derive(Debug)]
enum TaskOrigin {
    /// An API call whose caller waits.
    Call(oneshot::Sender<Result<WrittenChange, TriggerWriteError>>),
    /// A delivery; its last task removes the file.
    Delivery(Arc<DeliveryFile>),
}

impl TriggerTask {
    pub fn of_call(call: TriggerCall) -> Self {
        Self::new(call.outcome, TaskOrigin::Call(call.reply), Timestamp::now())
    }

    fn new(outcome: TriggerOutcome, of: TaskOrigin, accepted: Timestamp) -> Self {
        Self { outcome, origin: of, accepted, superseded: Vec::new(), attempts: 0, retry_at: None }
    }

    /// The tasks that a receiver's triggers make of a delivery.
    pub fn of_delivery(delivery: &QueuedDelivery, stored: DeliveryFile, head: &ConfigHead) -> Vec<Self> {
        let QueuedDelivery { receiver, time, payload } = delivery;
        if is_too_old(*time) {
            tracing::warn!(receiver, accepted = %time, "a delivery is too old to be carried out (help: send \
                                                        it again)");
            stored.remove();
            return Vec::new();
        }
        let stored = Arc::new(stored);
        let task = |outcome: Result<TriggerOutcome, trigger::Error>| match outcome {
            Ok(outcome) => Some(Self::new(outcome, TaskOrigin::Delivery(Arc::clone(&stored)), *time)),
            Err(error) => {
                tracing::warn!(receiver, %error, "a trigger changes nothing");
                None
            }
        };
        let outcomes = trigger::evaluate_delivery(receiver, payload, &head.fleet, &head.snapshot);
        let tasks = outcomes.into_iter().filter_map(task).collect();
        release_delivery(stored);
        tasks
    }

    /// Deliveries are not sent again, so they wait until they are too old.
    pub fn may_wait(&self) -> bool {
        self.is_of_delivery() && !is_too_old(self.accepted)
    }

    fn is_of_delivery(&self) -> bool {
        matches!(self.origin, TaskOrigin::Delivery(_))
    }

    /// Whether this is a delivery, and `later` sets the same field of the same file, by whichever trigger.
    fn is_superseded_by(&self, later: &Self) -> bool {
        let (one, other) = (&self.outcome, &later.outcome);
        let is_same = (&one.file, &one.field) == (&other.file, &other.field);
        let is_later = self.accepted <= later.accepted;
        self.is_of_delivery() && is_same && is_later && other.write != TriggerWrite::None
    }

    fn supersede(&mut self, mut earlier: Self) {
        self.superseded.append(&mut earlier.superseded);
        self.superseded.push(earlier);
        self.superseded.sort_by_key(|before| before.accepted);
    }

    /// Fails when a newer value is in the file. Calls are not checked: their caller waits.
    async fn check_not_superseded(
        &self,
        publisher: &Publisher<'_>,
        now: Option<&str>,
    ) -> Result<(), TriggerTaskError> {
        if !self.is_of_delivery() {
            return Ok(());
        }
        if is_too_old(self.accepted) {
            let why = format!("the delivery of {} is too old (help: send it again)", self.accepted);
            return Err(TriggerTaskError::Superseded(why));
        }
        let TriggerOutcome { file, field, from, .. } = &self.outcome;
        let (tip, field) = (&publisher.head.snapshot.revision, field.clone());
        let since = self.accepted.as_second() - MAX_AGE.as_secs();
        let says = move |content: &[u8]| edit::scalar(std::str::from_utf8(content).ok()?, &field).ok();
        let last = publisher.repository.last_content_change(tip, file, since, says).await;
        let last = last.map_err(PublishError::from)?;
        match stale_delivery::superseded_reason(self.accepted, from.as_deref(), now, last.as_ref()) {
            Some(why) => Err(TriggerTaskError::Superseded(format!(
                "{why} (help: if it is still wanted, send it again)"
            ))),
            None => Ok(()),
        }
    }

    /// Writes the change into the file as it is at the head.
    pub async fn write(&self, publisher: &Publisher<'_>) -> Result<WrittenChange, TriggerTaskError> {
        let TriggerOutcome { file, field, write, .. } = &self.outcome;
        let text = publisher.head.snapshot.text(file);
        let edited =
            self.outcome.edited_file(text).map_err(|error| TriggerTaskError::Edit(error.to_string()))?;
        let now = text.and_then(|text| edit::scalar(text, field).ok());
        // The title shows the current value.
        let outcome = TriggerOutcome { from: now.clone(), ..self.outcome.clone() };
        if *write == TriggerWrite::None || !outcome.is_change() || text == Some(edited.as_str()) {
            return Ok(WrittenChange::default());
        }
        self.check_not_superseded(publisher, now.as_deref()).await?;
        let message = outcome.message() + &stale_delivery::accepted_line(self.accepted);
        let files = vec![(file.clone(), Some(edited))];
        match write {
            TriggerWrite::None => Ok(WrittenChange::default()),
            TriggerWrite::Commit => {
                let commit: Revision = publisher.commit(&files, &message).await?;
                Ok(WrittenChange { link: None, commit: Some(commit.to_string()) })
            }
            TriggerWrite::PullRequest => {
                let proposal = Proposal {
                    branch: outcome.branch(publisher.prefix),
                    title: outcome.title(),
                    body: outcome.body(),
                    message,
                    label: "promotion",
                    files,
                };
                let pull = publisher.propose(&proposal).await?;
                Ok(WrittenChange { link: Some(pull.url), commit: None })
            }
        }
    }

    /// Answers the caller. Once the change is written, superseded tasks are finished too; after a failure the newest of them is
    /// returned.
    pub fn complete(self, result: Result<WrittenChange, TriggerWriteError>) -> Option<Self> {
        let trigger = &self.outcome.trigger;
        match &result {
            Ok(WrittenChange { link, commit }) => {
                tracing::info!(trigger, link, commit, "a trigger was carried out")
            }
            Err(error) => tracing::warn!(trigger, %error, "a trigger was not carried out"),
        }
        let (is_written, mut before) = (result.is_ok(), self.superseded);
        match self.origin {
            // The caller may be gone.
            TaskOrigin::Call(reply) => drop(reply.send(result)),
            TaskOrigin::Delivery(stored) => release_delivery(stored),
        }
        if is_written {
            for task in before {
                let why = "a later delivery or call has set the same value".to_owned();
                task.complete(Err(TriggerWriteError::Permanent(why)));
            }
            return None;
        }
        let last = before.pop()?;
        Some(Self { superseded: before, ..last })
    }
}

fn is_too_old(time: Timestamp) -> bool {
    Timestamp::now().duration_since(time) > MAX_AGE
}

/// The last task of a delivery removes its file.
fn release_delivery(stored: Arc<DeliveryFile>) {
    if let Some(stored) = Arc::into_inner(stored) {
        stored.remove();
    }
}

#[derive(Debug, Default)]
pub struct TriggerTasks {
    queue: VecDeque<TriggerTask>,
}

impl TriggerTasks {
    /// More stays with its source.
    pub fn has_room(&self) -> bool {
        self.queue.len() < MAX_TASKS
    }

    /// Also a task that is retried: a newer one may be in the queue.
    pub fn add(&mut self, mut task: TriggerTask) {
        let is_later =
            |later: &&mut TriggerTask| task.is_superseded_by(later) && task.accepted < later.accepted;
        if let Some(later) = self.queue.iter_mut().find(is_later) {
            later.supersede(task);
            return;
        }
        let (superseded, others): (VecDeque<TriggerTask>, VecDeque<TriggerTask>) =
            self.queue.drain(..).partition(|before| before.is_superseded_by(&task));
        self.queue = others;
        superseded.into_iter().for_each(|before| task.supersede(before));
        self.queue.push_back(task);
    }

    pub fn add_first(&mut self, task: TriggerTask) {
        self.queue.push_front(task);
    }

    pub fn take_due(&mut self, now: Instant) -> Option<TriggerTask> {
        let due = self.queue.iter().position(|task| task.retry_at.is_none_or(|at| at <= now))?;
        self.queue.remove(due)
    }

    pub fn next_due_at(&self) -> Option<Instant> {
        self.queue.iter().filter_map(|task| task.retry_at).min()
    }

    /// Fails calls; deliveries stay.
    pub fn refuse_calls(&mut self, why: &str) {
        for task in std::mem::take(&mut self.queue) {
            let left = match task.is_of_delivery() {
                true => Some(task),
                false => task.complete(Err(TriggerWriteError::Transient(why.to_owned()))),
            };
            self.queue.extend(left);
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum TriggerTaskError {
    #[error("{0}")]
    Edit(String),
    /// A newer value is in the file.
    #[error("{0}")]
    Superseded(String),
    #[error(transparent)]
    Publish(#[from] PublishError),
}

impl From<TriggerTaskError> for TriggerWriteError {
    fn from(error: TriggerTaskError) -> Self {
        match &error {
            TriggerTaskError::Publish(cause) if cause.is_transient() || cause.is_access_error() => {
                Self::Transient(error.to_string())
            }
            _ => Self::Permanent(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::DeliveryQueue;
    use crate::model::AppId;

    fn outcome(trigger: &str, to: &str, write: TriggerWrite) -> TriggerOutcome {
        TriggerOutcome {
            trigger: trigger.to_owned(),
            app: AppId::new("shop", "pay"),
            ring: None,
            file: "apps/pay/pins/prod.yaml".to_owned(),
            field: "version".to_owned(),
            from: Some("v0".to_owned()),
            to: to.to_owned(),
            version: None,
            write,
            commit: None,
            reason: String::new(),
        }
    }

    #[test]
    fn later_write_finishes_earlier_deliveries() {
        let folder = tempfile::tempdir().expect("a folder");
        for second in 1..=4 {
            let text =
                format!("{{\"receiver\":\"ci\",\"time\":\"1970-01-01T00:00:0{second}Z\",\"payload\":{{}}}}");
            std::fs::write(folder.path().join(format!("{second}.json")), text).expect("written");
        }
        let queue = DeliveryQueue::open(folder.path().to_owned());
        let mut kept = Vec::new();
        let mut next = |trigger: &str, write| {
            let (delivery, stored) = queue.pop().expect("a delivery");
            kept.push(delivery.time);
            let outcome = outcome(trigger, &format!("v{}", kept.len()), write);
            TriggerTask::new(outcome, TaskOrigin::Delivery(Arc::new(stored)), delivery.time)
        };
        let first = next("a", TriggerWrite::Commit);
        let second = next("b", TriggerWrite::PullRequest);
        let third = next("a", TriggerWrite::Commit);
        let told = next("a", TriggerWrite::None);
        let left = || std::fs::read_dir(folder.path()).expect("a folder").count();
        let mut tasks = TriggerTasks::default();
        // The second was added again after a failure.
        for task in [first, third, second, told] {
            tasks.add(task);
        }
        assert_eq!((tasks.queue.len(), left()), (2, 4), "what is only told takes no place");
        let task = tasks.take_due(Instant::now()).expect("one");
        assert_eq!(task.outcome.to, "v3");
        let task = task.complete(Err(TriggerWriteError::Permanent("no".to_owned()))).expect("the one before");
        assert_eq!((task.outcome.to.as_str(), left()), ("v2", 3));
        tasks.add(task);
        tasks.refuse_calls("no forge");
        assert_eq!((tasks.queue.len(), left()), (2, 3), "deliveries stay");
        let task = tasks.queue.pop_back().expect("it waits");
        assert!(task.complete(Ok(WrittenChange::default())).is_none());
        assert_eq!(left(), 1, "the first is done with the second");
    }
}
