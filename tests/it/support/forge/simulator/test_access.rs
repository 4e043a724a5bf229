//! Shortcuts for tests, to read and change the state without the API.

use tokio::time::Instant;
use tutti::model::Revision;

use super::ForgeSimulator;

/// One write of a commit status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusWrite {
    pub at: Instant,
    pub commit: Revision,
    pub context: String,
    /// `success 1/1 healthy`.
    pub text: String,
}

impl StatusWrite {
    pub fn state(&self) -> &str {
        self.text.split(' ').next().unwrap_or_default()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullRequestView {
    pub number: u64,
    pub title: String,
    pub body: String,
    pub branch: String,
    pub head: Revision,
    pub is_open: bool,
    pub merged: Option<Revision>,
    pub labels: Vec<String>,
}

impl ForgeSimulator {
    /// All status writes so far.
    pub fn status_writes(&self) -> Vec<StatusWrite> {
        let state = self.state.lock();
        let word = |status: &super::statuses::ForgeStatus| StatusWrite {
            at: status.at,
            commit: Revision::from(status.commit.as_str()),
            context: status.context.clone(),
            text: format!("{} {}", status.state, status.description),
        };
        state.statuses.iter().map(word).collect()
    }

    /// The statuses of a commit in one context, in order.
    pub fn statuses_of(&self, commit: &Revision, context: &str) -> Vec<String> {
        let words =
            self.status_writes().into_iter().filter(|word| word.commit == *commit && word.context == context);
        words.map(|word| word.text).collect()
    }

    /// The last status; empty if there is none.
    pub fn last_status(&self, commit: &Revision, context: &str) -> String {
        self.statuses_of(commit, context).pop().unwrap_or_default()
    }

    /// Author and text, the oldest first.
    pub fn comments(&self, number: u64) -> Vec<(String, String)> {
        let state = self.state.lock();
        let of_pull = state.comments.iter().filter(|comment| comment.number == number);
        of_pull.map(|comment| (comment.author.clone(), comment.body.clone())).collect()
    }

    pub fn pulls(&self) -> Vec<PullRequestView> {
        let state = self.state.lock();
        let revision = |id: git2::Oid| Revision::from(id.to_string().as_str());
        let row = |pull: &super::pulls::ForgePull| PullRequestView {
            number: pull.number,
            title: pull.title.clone(),
            body: pull.body.clone(),
            branch: pull.head.clone(),
            head: revision(pull.head_id),
            is_open: pull.is_open,
            merged: pull.merged.as_ref().map(|(id, _)| revision(*id)),
            labels: state
                .labels
                .iter()
                .filter(|label| pull.labels.contains(&label.id))
                .map(|label| label.name.clone())
                .collect(),
        };
        state.pulls.iter().map(row).collect()
    }

    /// Somebody closes or reopens a pull request.
    pub fn set_open(&self, login: &str, number: u64, is_open: bool) {
        let mut state = self.state.lock();
        let index = state.pulls.iter().position(|pull| pull.number == number).expect("a pull request");
        state.pulls[index].is_open = is_open;
        state.queue_pull(login, index, "pull_request", if is_open { "reopened" } else { "closed" });
    }

    /// Opens the pull request of a branch into `main`, as on the web page.
    pub fn open_pull(&self, login: &str, branch: &str) -> u64 {
        let mut state = self.state.lock();
        let head = state.git.tip(branch).expect("a branch");
        let index = state.add_pull(login, branch, "", (branch, head, false), "main");
        state.pulls[index].number
    }

    /// Executes this many more writes. Afterwards nothing is answered: the result is the same wherever a process dies between
    /// two writes.
    pub fn stop_after_writes(&self, writes: usize) {
        self.state.lock().faults.stop_after_writes(writes);
    }

    /// A request waits for an answer that does not come.
    pub fn is_unresponsive(&self) -> bool {
        self.state.lock().faults.is_unresponsive
    }

    /// Removes all faults.
    pub fn clear_faults(&self) {
        self.state.lock().faults.clear();
    }
}
