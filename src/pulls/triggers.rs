//! Queue of trigger changes: from calls of the API and from deliveries, to a pull request or commit. A newer change of the same
//! field supersedes older deliveries.

use std::collections::VecDeque;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::api::{Call, Delivery, NotWritten, Stored, Written};
use crate::controller::ConfigHead;
use crate::model::{Revision, TriggerWrite};
use crate::promotion::edit;
use crate::trigger::{self, Outcome};

use super::overtaken;
use super::publish::{Proposal, Publisher, Unpublished};

const MOST: usize = 1_000;
/// Older deliveries are dropped: their content is most likely outdated.
const TOO_OLD: SignedDuration = SignedDuration::from_hours(24);

#[derive(Debug)]
pub struct Task {
    outcome: Outcome,
    of: Of,
    accepted: Timestamp,
    /// Deliveries that it supersedes once written, oldest first.
    before: Vec<Task>,
    pub tries: u32,
    pub not_before: Option<Instant>,
}

#[derive(Debug)]
enum Of {
    /// An API call whose caller waits.
    Call(oneshot::Sender<Result<Written, NotWritten>>),
    /// A delivery; its last task removes the file.
    Delivery(Arc<Stored>),
}

impl Task {
    pub fn of_call(call: Call) -> Self {
        Self::new(call.outcome, Of::Call(call.reply), Timestamp::now())
    }

    fn new(outcome: Outcome, of: Of, accepted: Timestamp) -> Self {
        Self { outcome, of, accepted, before: Vec::new(), tries: 0, not_before: None }
    }

    /// The tasks that a receiver's triggers make of a delivery.
    pub fn of_delivery(delivery: &Delivery, stored: Stored, head: &ConfigHead) -> Vec<Self> {
        let Delivery { receiver, time, payload } = delivery;
        if is_too_old(*time) {
            tracing::warn!(receiver, accepted = %time, "a delivery is too old to be carried out (help: have it sent again)");
            stored.finish();
            return Vec::new();
        }
        let stored = Arc::new(stored);
        let task = |outcome: Result<Outcome, trigger::Error>| match outcome {
            Ok(outcome) => Some(Self::new(outcome, Of::Delivery(Arc::clone(&stored)), *time)),
            Err(error) => {
                tracing::warn!(receiver, %error, "a trigger changes nothing");
                None
            }
        };
        let outcomes = trigger::evaluate_delivery(receiver, payload, &head.fleet, &head.snapshot);
        let tasks = outcomes.into_iter().filter_map(task).collect();
        finish(stored);
        tasks
    }

    /// Deliveries are not sent again, so they wait until they are too old.
    pub fn may_wait(&self) -> bool {
        self.is_of_delivery() && !is_too_old(self.accepted)
    }

    fn is_of_delivery(&self) -> bool {
        matches!(self.of, Of::Delivery(_))
    }

    /// Whether this is a delivery, and `later` sets the same field of the same file, by whichever trigger.
    fn is_superseded_by(&self, later: &Self) -> bool {
        let (one, other) = (&self.outcome, &later.outcome);
        let is_same = (&one.file, &one.field) == (&other.file, &other.field);
        let is_later = self.accepted <= later.accepted;
        self.is_of_delivery() && is_same && is_later && other.write != TriggerWrite::None
    }

    fn take_place_of(&mut self, mut earlier: Self) {
        self.before.append(&mut earlier.before);
        self.before.push(earlier);
        self.before.sort_by_key(|before| before.accepted);
    }

    /// Fails when a newer value is in the file. Calls are not checked: their caller waits.
    async fn overtaken(&self, publisher: &Publisher<'_>, now: Option<&str>) -> Result<(), Unwritten> {
        if !self.is_of_delivery() {
            return Ok(());
        }
        if is_too_old(self.accepted) {
            let why = format!("the delivery of {} is too old (help: have it sent again)", self.accepted);
            return Err(Unwritten::Overtaken(why));
        }
        let Outcome { file, field, from, .. } = &self.outcome;
        let (tip, field) = (&publisher.head.snapshot.revision, field.clone());
        let since = self.accepted.as_second() - TOO_OLD.as_secs();
        let says = move |content: &[u8]| edit::scalar(std::str::from_utf8(content).ok()?, &field).ok();
        let last = publisher.repository.last_change(tip, file, since, says).await;
        let last = last.map_err(Unpublished::from)?;
        match overtaken::why(self.accepted, from.as_deref(), now, last.as_ref()) {
            Some(why) => {
                Err(Unwritten::Overtaken(format!("{why} (help: if it is still wanted, have it sent again)")))
            }
            None => Ok(()),
        }
    }

    /// Writes the change into the file as it is at the head.
    pub async fn write(&self, publisher: &Publisher<'_>) -> Result<Written, Unwritten> {
        let Outcome { file, field, write, .. } = &self.outcome;
        let text = publisher.head.snapshot.text(file);
        let edited = self.outcome.edited(text).map_err(|error| Unwritten::Edit(error.to_string()))?;
        let now = text.and_then(|text| edit::scalar(text, field).ok());
        // The title shows the current value.
        let outcome = Outcome { from: now.clone(), ..self.outcome.clone() };
        if *write == TriggerWrite::None || !outcome.is_change() || text == Some(edited.as_str()) {
            return Ok(Written::default());
        }
        self.overtaken(publisher, now.as_deref()).await?;
        let message = outcome.message() + &overtaken::line(self.accepted);
        let files = vec![(file.clone(), Some(edited))];
        match write {
            TriggerWrite::None => Ok(Written::default()),
            TriggerWrite::Commit => {
                let commit: Revision = publisher.commit(&files, &message).await?;
                Ok(Written { link: None, commit: Some(commit.to_string()) })
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
                Ok(Written { link: Some(pull.url), commit: None })
            }
        }
    }

    /// Answers the caller. Once the change is written, superseded tasks are finished too; after a failure the newest of them is
    /// returned.
    pub fn answer(self, result: Result<Written, NotWritten>) -> Option<Self> {
        let trigger = &self.outcome.trigger;
        match &result {
            Ok(Written { link, commit }) => {
                tracing::info!(trigger, link, commit, "a trigger was carried out")
            }
            Err(error) => tracing::warn!(trigger, %error, "a trigger was not carried out"),
        }
        let (is_written, mut before) = (result.is_ok(), self.before);
        match self.of {
            // The caller may be gone.
            Of::Call(reply) => drop(reply.send(result)),
            Of::Delivery(stored) => finish(stored),
        }
        if is_written {
            for task in before {
                let why = "a later delivery or call has set the same value".to_owned();
                task.answer(Err(NotWritten::Never(why)));
            }
            return None;
        }
        let last = before.pop()?;
        Some(Self { before, ..last })
    }
}

fn is_too_old(time: Timestamp) -> bool {
    Timestamp::now().duration_since(time) > TOO_OLD
}

/// The last task of a delivery removes its file.
fn finish(stored: Arc<Stored>) {
    if let Some(stored) = Arc::into_inner(stored) {
        stored.finish();
    }
}

#[derive(Debug, Default)]
pub struct Tasks {
    all: VecDeque<Task>,
}

impl Tasks {
    /// More stays with its source.
    pub fn has_room(&self) -> bool {
        self.all.len() < MOST
    }

    /// Also a task that is retried: a newer one may be in the queue.
    pub fn add(&mut self, mut task: Task) {
        let is_later = |later: &&mut Task| task.is_superseded_by(later) && task.accepted < later.accepted;
        if let Some(later) = self.all.iter_mut().find(is_later) {
            later.take_place_of(task);
            return;
        }
        let (superseded, others): (VecDeque<Task>, VecDeque<Task>) =
            self.all.drain(..).partition(|before| before.is_superseded_by(&task));
        self.all = others;
        superseded.into_iter().for_each(|before| task.take_place_of(before));
        self.all.push_back(task);
    }

    pub fn add_first(&mut self, task: Task) {
        self.all.push_front(task);
    }

    pub fn take_due(&mut self, now: Instant) -> Option<Task> {
        let due = self.all.iter().position(|task| task.not_before.is_none_or(|at| at <= now))?;
        self.all.remove(due)
    }

    pub fn next_at(&self) -> Option<Instant> {
        self.all.iter().filter_map(|task| task.not_before).min()
    }

    /// Fails calls; deliveries stay.
    pub fn refuse_calls(&mut self, why: &str) {
        for task in std::mem::take(&mut self.all) {
            let left = match task.is_of_delivery() {
                true => Some(task),
                false => task.answer(Err(NotWritten::Later(why.to_owned()))),
            };
            self.all.extend(left);
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum Unwritten {
    #[error("{0}")]
    Edit(String),
    /// A newer value is in the file.
    #[error("{0}")]
    Overtaken(String),
    #[error(transparent)]
    Publish(#[from] Unpublished),
}

impl From<Unwritten> for NotWritten {
    fn from(error: Unwritten) -> Self {
        match &error {
            Unwritten::Publish(cause) if cause.may_pass() || cause.is_of_access() => {
                Self::Later(error.to_string())
            }
            _ => Self::Never(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::DeliveryQueue;
    use crate::model::AppId;

    fn outcome(trigger: &str, to: &str, write: TriggerWrite) -> Outcome {
        Outcome {
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
            Task::new(outcome, Of::Delivery(Arc::new(stored)), delivery.time)
        };
        let first = next("a", TriggerWrite::Commit);
        let second = next("b", TriggerWrite::PullRequest);
        let third = next("a", TriggerWrite::Commit);
        let told = next("a", TriggerWrite::None);
        let left = || std::fs::read_dir(folder.path()).expect("a folder").count();
        let mut tasks = Tasks::default();
        // The second was added again after a failure.
        for task in [first, third, second, told] {
            tasks.add(task);
        }
        assert_eq!((tasks.all.len(), left()), (2, 4), "what is only told takes no place");
        let task = tasks.take_due(Instant::now()).expect("one");
        assert_eq!(task.outcome.to, "v3");
        let task = task.answer(Err(NotWritten::Never("no".to_owned()))).expect("the one before");
        assert_eq!((task.outcome.to.as_str(), left()), ("v2", 3));
        tasks.add(task);
        tasks.refuse_calls("no forge");
        assert_eq!((tasks.all.len(), left()), (2, 3), "deliveries stay");
        let task = tasks.all.pop_back().expect("it waits");
        assert!(task.answer(Ok(Written::default())).is_none());
        assert_eq!(left(), 1, "the first is done with the second");
    }
}
