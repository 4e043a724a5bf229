//! Pull requests, their comments and reviews.

use git2::Oid;
use serde_json::{Value, json};

use super::answers::{ForgeAnswer, ForgeRequest};
use super::git::{FileChange, MergeMethod};
use super::state::ForgeState;
use super::users::ForgePermission;

pub struct ForgePull {
    pub number: u64,
    pub title: String,
    pub body: String,
    pub is_open: bool,
    /// The commit on the base, and who merged.
    pub merged: Option<(Oid, String)>,
    pub author: String,
    pub head: String,
    pub head_id: Oid,
    /// From the author's fork.
    pub is_fork: bool,
    pub base: String,
    pub labels: Vec<i64>,
    /// How many more reads still report that it cannot be merged.
    pub unchecked_reads: usize,
    pub updated: i64,
}

pub struct ForgeComment {
    pub id: i64,
    pub number: u64,
    pub author: String,
    pub body: String,
    pub created: i64,
    pub reactions: Vec<(String, String)>,
}

pub struct ForgeReview {
    pub id: i64,
    pub number: u64,
    pub user: String,
    pub state: String,
    pub commit: Oid,
    pub is_official: bool,
    pub is_stale: bool,
    pub is_dismissed: bool,
    pub submitted: i64,
}

impl ForgeState {
    pub fn answer_pulls(&mut self, doer: &str, path: &[&str], request: &ForgeRequest) -> ForgeAnswer {
        let method = request.method.as_str();
        match (method, path) {
            ("GET", []) => return self.list_pulls(request),
            ("POST", []) => return self.create_pull(doer, request),
            _ => {}
        }
        let number = path[0].parse().unwrap_or_default();
        let Some(index) = self.pulls.iter().position(|pull| pull.number == number) else {
            return ForgeAnswer::error(404, "pull request does not exist");
        };
        match (method, &path[1..]) {
            ("GET", []) => {
                let value = self.pull_value(index);
                self.check_in_background(index);
                ForgeAnswer::of(200, value)
            }
            ("PATCH", []) => self.edit_pull(doer, index, request),
            ("POST", ["merge"]) => self.merge(doer, index, request),
            ("GET", ["commits"]) => {
                let pull = &self.pulls[index];
                let base = match &pull.merged {
                    Some((merge, _)) => {
                        let parents = self.git.parents(&merge.to_string());
                        parents.first().and_then(|id| Oid::from_str(id).ok())
                    }
                    None => self.git.tip(&pull.base),
                };
                let rows = self.git.commits_between(base, pull.head_id);
                let commits = rows.iter().map(|row| self.commit_value(row)).collect();
                self.page(commits, request)
            }
            ("GET", ["reviews"]) => {
                let reviews = self.reviews.iter().filter(|review| review.number == number);
                let reviews = reviews.map(|review| self.review_value(review)).collect();
                self.page(reviews, request)
            }
            ("POST", ["reviews"]) => {
                let verdict = match request.text("event") {
                    "APPROVE" => "APPROVED",
                    event => event,
                };
                match self.review(doer, number, verdict, Some(request.text("commit_id"))) {
                    Ok(id) => ForgeAnswer::of(200, json!({"id": id})),
                    Err(message) => ForgeAnswer::error(422, message),
                }
            }
            _ => ForgeAnswer::not_found(),
        }
    }

    /// The pull request that was merged as a commit.
    pub fn answer_merged_pull(&self, commit: &str) -> ForgeAnswer {
        let is_it = |pull: &ForgePull| pull.merged.as_ref().is_some_and(|(id, _)| id.to_string() == commit);
        match self.pulls.iter().position(is_it) {
            Some(index) => ForgeAnswer::of(200, self.pull_value(index)),
            None => ForgeAnswer::error(404, "pull request does not exist"),
        }
    }

    fn list_pulls(&self, request: &ForgeRequest) -> ForgeAnswer {
        let given = |name: &str| request.query.get(name).map(String::as_str);
        let mut found: Vec<usize> = (0..self.pulls.len())
            .filter(|index| {
                let pull = &self.pulls[*index];
                let state = given("state").unwrap_or("open");
                (state == "all" || pull.is_open == (state == "open"))
                    && given("poster").is_none_or(|poster| poster == pull.author)
                    && given("base_branch").is_none_or(|base| base == pull.base)
            })
            .collect();
        found.sort_by_key(|index| std::cmp::Reverse(self.pulls[*index].updated));
        let values = found.into_iter().map(|index| self.pull_value(index)).collect();
        self.page(values, request)
    }

    fn create_pull(&mut self, doer: &str, request: &ForgeRequest) -> ForgeAnswer {
        let (head, base) = (request.text("head"), request.text("base"));
        let (Some(head_id), Some(_)) = (self.git.tip(head), self.git.tip(base)) else {
            return ForgeAnswer::error(404, "branch does not exist");
        };
        let is_same =
            |pull: &ForgePull| pull.is_open && !pull.is_fork && pull.head == head && pull.base == base;
        if self.pulls.iter().any(is_same) {
            return ForgeAnswer::error(409, "pull request already exists for these targets");
        }
        let labels: Option<Vec<i64>> = match &request.body["labels"] {
            Value::Null => Some(Vec::new()),
            // Only numbers are accepted.
            labels => labels.as_array().and_then(|ids| ids.iter().map(Value::as_i64).collect()),
        };
        let Some(labels) = labels else { return ForgeAnswer::error(422, "labels are numbers") };
        let (title, body) = (request.text("title"), request.text("body"));
        let index = self.add_pull(doer, title, body, (head, head_id, false), base);
        self.pulls[index].labels = labels;
        ForgeAnswer::of(201, self.pull_value(index))
    }

    pub fn pull_from_fork(&mut self, login: &str, title: &str, changes: &[FileChange]) -> u64 {
        let (parent, when) = (self.git.tip("main"), self.now());
        let head = self.git.commit(parent, login, when, title, changes);
        let index = self.add_pull(login, title, "", ("patch", head, true), "main");
        self.pulls[index].number
    }

    pub fn add_pull(
        &mut self,
        author: &str,
        title: &str,
        body: &str,
        (head, head_id, is_fork): (&str, Oid, bool),
        base: &str,
    ) -> usize {
        let number = self.pulls.len() as u64 + 1;
        self.git.set_reference(&format!("refs/pull/{number}/head"), head_id);
        let pull = ForgePull {
            number,
            title: title.to_owned(),
            body: body.to_owned(),
            is_open: true,
            merged: None,
            author: author.to_owned(),
            head: head.to_owned(),
            head_id,
            is_fork,
            base: base.to_owned(),
            labels: Vec::new(),
            unchecked_reads: self.quirks.late_merge_checks,
            updated: self.now(),
        };
        self.pulls.push(pull);
        let index = self.pulls.len() - 1;
        self.queue_pull(author, index, "pull_request", "opened");
        index
    }

    fn edit_pull(&mut self, doer: &str, index: usize, request: &ForgeRequest) -> ForgeAnswer {
        let now = self.now();
        let pull = &mut self.pulls[index];
        for (field, text) in [("title", &mut pull.title), ("body", &mut pull.body)] {
            if let Some(new) = request.body[field].as_str() {
                new.clone_into(text);
            }
        }
        pull.updated = now;
        let action = match request.text("state") {
            "closed" if pull.is_open => "closed",
            "open" if !pull.is_open && pull.merged.is_none() => "reopened",
            _ => "edited",
        };
        pull.is_open = action != "closed" && (pull.is_open || action == "reopened");
        self.queue_pull(doer, index, "pull_request", action);
        ForgeAnswer::of(201, self.pull_value(index))
    }

    /// In Gitea's order: its own checks, the branch rules, then the head.
    fn merge(&mut self, doer: &str, index: usize, request: &ForgeRequest) -> ForgeAnswer {
        let pull = &self.pulls[index];
        let busy = || ForgeAnswer::error(405, "Please try again later");
        if pull.merged.is_some() {
            return ForgeAnswer::error(405, "The PR is already merged");
        }
        let Some(base) = self.git.tip(&pull.base).filter(|_| pull.is_open) else {
            return ForgeAnswer::not_found();
        };
        if pull.title.starts_with("WIP:") {
            return ForgeAnswer::error(405, "Work in progress PRs cannot be merged");
        }
        if pull.unchecked_reads > 0 {
            self.check_in_background(index);
            return busy();
        }
        if !self.git.can_merge(base, pull.head_id) {
            return busy();
        }
        if let Some(message) = self.unmet_rule(pull) {
            return ForgeAnswer::error(405, message);
        }
        if ![String::new(), pull.head_id.to_string()].contains(&request.text("head_commit_id").to_owned()) {
            return ForgeAnswer::error(409, "head out of date");
        }
        let how = match request.text("Do") {
            "merge" => MergeMethod::Merge,
            "squash" => MergeMethod::Squash,
            "fast-forward-only" => MergeMethod::FastForward,
            how => return ForgeAnswer::error(405, &format!("{how} is not allowed an allowed merge style")),
        };
        let message = format!("Merge pull request '{}' (#{})", pull.title, pull.number);
        let (branch, head) = (pull.base.clone(), pull.head_id);
        let when = self.now();
        let Some(merged) = self.git.merge_into_base(how, base, head, doer, when, &message) else {
            return ForgeAnswer::error(500, "diverging fast forward");
        };
        self.git.set_branch(&branch, merged);
        let pull = &mut self.pulls[index];
        (pull.is_open, pull.merged, pull.updated) = (false, Some((merged, doer.to_owned())), when);
        self.queue_pull(doer, index, "pull_request", "closed");
        self.branch_updated(doer, &branch, Some(base), Some(merged));
        ForgeAnswer::empty(200)
    }

    /// One more read of a pull request that is checked in the background.
    fn check_in_background(&mut self, index: usize) {
        let pull = &mut self.pulls[index];
        pull.unchecked_reads = pull.unchecked_reads.saturating_sub(1);
    }

    /// Updates the pull requests of a branch with a new tip.
    pub fn update_pull_heads(&mut self, login: &str, branch: &str, after: Oid) {
        let now = self.now();
        for index in 0..self.pulls.len() {
            let late = self.quirks.late_merge_checks;
            let pull = &mut self.pulls[index];
            if !pull.is_open || pull.is_fork || pull.head != branch || pull.head_id == after {
                continue;
            }
            (pull.head_id, pull.unchecked_reads, pull.updated) = (after, late, now);
            let number = pull.number;
            self.git.set_reference(&format!("refs/pull/{number}/head"), after);
            self.reviews.iter_mut().filter(|it| it.number == number).for_each(|it| it.is_stale = true);
            self.queue_pull(login, index, "pull_request_sync", "synchronized");
        }
    }

    /// Closes pull requests from and into a deleted branch.
    pub fn close_pulls_of_branch(&mut self, login: &str, branch: &str) {
        for index in 0..self.pulls.len() {
            let pull = &mut self.pulls[index];
            if pull.is_open && (!pull.is_fork && pull.head == branch || pull.base == branch) {
                pull.is_open = false;
                self.queue_pull(login, index, "pull_request", "closed");
            }
        }
    }

    pub fn review(
        &mut self,
        login: &str,
        number: u64,
        verdict: &str,
        commit: Option<&str>,
    ) -> Result<i64, &'static str> {
        let index = self.pulls.iter().position(|pull| pull.number == number).ok_or("no such pull request")?;
        let (author, head) = (self.pulls[index].author.clone(), self.pulls[index].head_id);
        if author == login && verdict != "COMMENT" {
            return Err("approve your own pull is not allowed");
        }
        let commit = commit.filter(|id| !id.is_empty()).map(Oid::from_str);
        let commit = commit.transpose().map_err(|_| "not a commit")?.unwrap_or(head);
        let is_verdict = verdict != "COMMENT";
        if is_verdict {
            // Branch rules count only the latest verdict of a user.
            let of_user = self.reviews.iter_mut().filter(|it| it.number == number && it.user == login);
            of_user.for_each(|it| it.is_official = false);
        }
        let (id, submitted) = (self.next_id(), self.now());
        self.reviews.push(ForgeReview {
            id,
            number,
            user: login.to_owned(),
            state: verdict.to_owned(),
            commit,
            is_official: is_verdict && self.permission_of(login) >= ForgePermission::Write,
            is_stale: commit != head,
            is_dismissed: false,
            submitted,
        });
        self.queue_review(login, index, verdict);
        Ok(id)
    }

    pub fn dismiss(&mut self, id: i64) {
        let review = self.reviews.iter_mut().find(|review| review.id == id).expect("a review");
        review.is_dismissed = true;
    }

    pub fn pull_value(&self, index: usize) -> Value {
        let pull = &self.pulls[index];
        let repository = self.repository_value(ForgePermission::Read);
        let head_repository = if pull.is_fork {
            json!({"id": 100 + pull.number, "full_name": format!("{}/config", pull.author)})
        } else {
            repository.clone()
        };
        let is_there = pull.is_fork || self.git.tip(&pull.head).is_some();
        let reference = if is_there { pull.head.clone() } else { format!("refs/pull/{}/head", pull.number) };
        // The branch of a closed one may be gone.
        let base = self.git.tip(&pull.base);
        let labels = self.labels.iter().filter(|label| pull.labels.contains(&label.id));
        json!({
            "id": pull.number, "number": pull.number, "title": pull.title, "body": pull.body,
            "state": if pull.is_open { "open" } else { "closed" }, "draft": pull.title.starts_with("WIP:"),
            "user": self.user_value(&pull.author), "merged": pull.merged.is_some(),
            "merged_by": pull.merged.as_ref().map(|(_, login)| self.user_value(login)),
            "merge_commit_sha": pull.merged.as_ref().map(|(id, _)| id.to_string()),
            "mergeable": pull.unchecked_reads == 0 && base.is_some_and(|base| self.git.can_merge(base, pull.head_id)),
            "labels": labels.map(super::settings::ForgeLabel::value).collect::<Vec<_>>(),
            "html_url": format!("{}/{}/pulls/{}", self.url, super::REPOSITORY, pull.number),
            "updated_at": Self::format_time(pull.updated),
            "head": {"label": pull.head, "ref": reference, "sha": pull.head_id.to_string(), "repo": head_repository},
            "base": {"label": pull.base, "ref": pull.base, "sha": base.map(|base| base.to_string()).unwrap_or_default(), "repo": repository},
        })
    }

    fn review_value(&self, review: &ForgeReview) -> Value {
        json!({
            "id": review.id, "user": self.user_value(&review.user), "team": null, "state": review.state, "body": "",
            "commit_id": review.commit.to_string(), "official": review.is_official, "stale": review.is_stale,
            "dismissed": review.is_dismissed, "submitted_at": Self::format_time(review.submitted),
        })
    }
}
