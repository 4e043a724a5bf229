//! The data of the forge, and the routing of requests.

use std::time::Duration;

use git2::Oid;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedSender;

use super::answers::{Answer, Request};
use super::faults::Faults;
use super::git::{FileChange, Git};
use super::hooks::{Delivered, Hook, Parcel};
use super::people::{Right, User};
use super::pulls::{Comment, Pull, Review};
use super::settings::{Label, Protection};
use super::statuses::Status;

/// Defaults to Gitea 1.26; each field is one surprising behaviour.
#[derive(Clone, Debug)]
pub struct Quirks {
    /// Statuses are read back with `state` instead of `status`, as on other forges.
    pub answers_state: bool,
    /// A commit without statuses gets 200 with an empty body, as in older versions.
    pub empty_combined: bool,
    /// Statuses go to hooks subscribed to pushes, and their event has no name, as in 1.23.
    pub statuses_loop_back: bool,
    pub most_commits: usize,
    pub largest_page: usize,
    /// Lists lack `X-Total-Count`.
    pub hides_totals: bool,
    /// How often a pull request reports that it cannot be merged after its head or base changed: it is checked in the
    /// background.
    pub checks_late: usize,
}

impl Default for Quirks {
    fn default() -> Self {
        Self {
            answers_state: false,
            empty_combined: false,
            statuses_loop_back: false,
            most_commits: 5,
            largest_page: 50,
            hides_totals: false,
            checks_late: 0,
        }
    }
}

pub struct State {
    pub git: Git,
    pub default_branch: String,
    /// The address of the forge, for links.
    pub url: String,
    pub quirks: Quirks,
    pub faults: Faults,
    pub users: Vec<User>,
    pub pulls: Vec<Pull>,
    pub comments: Vec<Comment>,
    pub reviews: Vec<Review>,
    pub statuses: Vec<Status>,
    pub labels: Vec<Label>,
    pub hooks: Vec<Hook>,
    pub protections: Vec<Protection>,
    pub requests: Vec<String>,
    pub spent: Duration,
    pub deliveries: Vec<Delivered>,
    pub sender: UnboundedSender<Parcel>,
    /// The last id of any row: all kinds share one sequence.
    last_id: i64,
    /// Seconds: each write is later than the one before.
    pub clock: i64,
}

impl State {
    pub fn new(url: &str, sender: UnboundedSender<Parcel>) -> Self {
        Self {
            git: Git::new(),
            default_branch: "main".to_owned(),
            url: url.to_owned(),
            quirks: Quirks::default(),
            faults: Faults::default(),
            users: Vec::new(),
            pulls: Vec::new(),
            comments: Vec::new(),
            reviews: Vec::new(),
            statuses: Vec::new(),
            labels: Vec::new(),
            hooks: Vec::new(),
            protections: Vec::new(),
            requests: Vec::new(),
            spent: Duration::ZERO,
            deliveries: Vec::new(),
            sender,
            last_id: 0,
            // Earlier than everything that a test does.
            clock: 1_700_000_000,
        }
    }

    pub fn next_id(&mut self) -> i64 {
        self.last_id += 1;
        self.last_id
    }

    pub fn now(&mut self) -> i64 {
        self.clock += 1;
        self.clock
    }

    pub fn time(seconds: i64) -> String {
        Timestamp::from_second(seconds).expect("a time").to_string()
    }

    pub fn repository(&self, right: Right) -> Value {
        let rights = json!({
            "admin": right >= Right::Admin, "push": right >= Right::Write, "pull": right >= Right::Read,
        });
        json!({"id": 1, "full_name": super::REPOSITORY, "default_branch": self.default_branch, "permissions": rights})
    }

    pub fn page(&self, items: Vec<Value>, request: &Request) -> Answer {
        Answer::page(items, request, self.quirks.largest_page, !self.quirks.hides_totals)
    }

    /// A user commits on a branch; a new branch starts at `main`.
    pub fn push(&mut self, login: &str, branch: &str, subject: &str, changes: &[FileChange]) -> Oid {
        let before = self.git.tip(branch);
        let parent = before.or_else(|| self.git.tip("main"));
        let when = self.now();
        let commit = self.git.commit(parent, login, when, subject, changes);
        self.git.set_branch(branch, commit);
        self.branch_moved(login, branch, before, Some(commit));
        commit
    }

    /// Does all that follows from a new tip of a branch.
    pub fn branch_moved(&mut self, login: &str, branch: &str, before: Option<Oid>, after: Option<Oid>) {
        self.announce_push(login, branch, before, after);
        if let Some(after) = after {
            self.heads_moved(login, branch, after);
        }
        let late = self.quirks.checks_late;
        for pull in self.pulls.iter_mut().filter(|pull| pull.is_open && pull.base == branch) {
            pull.unchecked = late;
        }
    }

    /// The token of a user is the login.
    pub fn answer(&mut self, token: Option<&str>, request: &Request) -> Answer {
        self.requests.push(request.line.clone());
        let path: Vec<&str> = request.path.iter().map(String::as_str).collect();
        if path == ["version"] {
            return Answer::of(200, json!({"version": "1.26.4"}));
        }
        let doer = match token {
            Some(token) if self.users.iter().any(|user| user.login == token) => token.to_owned(),
            _ => return Answer::error(401, "invalid username, password or token"),
        };
        if path == ["user"] {
            return Answer::of(200, self.user(&doer));
        }
        let (owner, name) = super::REPOSITORY.split_once('/').expect("a repository");
        let right = self.right(&doer);
        let path = match path.as_slice() {
            ["repos", it_owner, it_name, path @ ..]
                if (*it_owner, *it_name) == (owner, name) && right > Right::None =>
            {
                path
            }
            _ => return Answer::not_found(),
        };
        let needed = match (request.method.as_str(), path) {
            (_, ["hooks" | "branch_protections", ..]) => Right::Admin,
            // Users with read access may open, comment and review.
            ("GET", _) | (_, ["issues", ..]) | ("POST", ["pulls"] | ["pulls", _, "reviews"]) => Right::Read,
            _ => Right::Write,
        };
        if right < needed {
            return Answer::error(403, "user should have a permission to write to a repo");
        }
        self.answer_to(&doer, path, request)
    }

    fn answer_to(&mut self, doer: &str, path: &[&str], request: &Request) -> Answer {
        match (request.method.as_str(), path) {
            ("GET", []) => Answer::of(200, self.repository(self.right(doer))),
            ("GET", ["collaborators", login, "permission"]) => self.permission(doer, login),
            (_, ["pulls", rest @ ..]) => self.answer_pulls(doer, rest, request),
            (_, ["issues", rest @ ..]) => self.answer_issues(doer, rest, request),
            (_, ["labels"]) => self.answer_labels(request),
            (_, ["branches", rest @ ..]) => self.answer_branch(doer, &rest.join("/"), request),
            ("GET", ["compare", rest @ ..]) => self.compare(&rest.join("/")),
            ("POST", ["contents"]) => self.write_files(doer, request),
            (_, ["hooks", rest @ ..]) => self.answer_hooks(rest, request),
            (_, ["branch_protections", rest @ ..]) => self.answer_protections(&rest.join("/"), request),
            ("POST", ["statuses", commit]) => self.write_status(doer, commit, request),
            ("GET", ["commits", commit, "status"]) => self.combined_status(commit, request),
            ("GET", ["raw", path @ ..]) => self.raw_file(&path.join("/"), request),
            ("GET", ["commits", commit, "pull"]) => self.merged_as(commit),
            ("GET", ["git", "commits", commit]) => self.one_commit(commit),
            _ => Answer::not_found(),
        }
    }
}
