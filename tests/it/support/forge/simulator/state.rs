//! The data of the forge, and the routing of requests.

use std::time::Duration;

use git2::Oid;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedSender;

use super::answers::{ForgeAnswer, ForgeRequest};
use super::faults::ForgeFaults;
use super::git::{BareRepository, FileChange};
use super::hooks::{DeliveryRecord, ForgeHook, UnsentDelivery};
use super::pulls::{ForgeComment, ForgePull, ForgeReview};
use super::settings::{ForgeBranchRule, ForgeLabel};
use super::statuses::ForgeStatus;
use super::users::{ForgePermission, ForgeUser};

/// Defaults to Gitea 1.26; each field is one surprising behaviour.
#[derive(Clone, Debug)]
pub struct ForgeQuirks {
    /// Statuses are read back with `state` instead of `status`, as on other forges.
    pub answers_state: bool,
    /// A commit without statuses gets 200 with an empty body, as in older versions.
    pub empty_combined: bool,
    /// Statuses go to hooks subscribed to pushes, and their event has no name, as in 1.23.
    pub statuses_loop_back: bool,
    pub max_listed_commits: usize,
    pub max_page: usize,
    /// Lists lack `X-Total-Count`.
    pub hides_totals: bool,
    /// How often a pull request reports that it cannot be merged after its head or base changed: it is checked in the
    /// background.
    pub late_merge_checks: usize,
}

impl Default for ForgeQuirks {
    fn default() -> Self {
        Self {
            answers_state: false,
            empty_combined: false,
            statuses_loop_back: false,
            max_listed_commits: 5,
            max_page: 50,
            hides_totals: false,
            late_merge_checks: 0,
        }
    }
}

pub struct ForgeState {
    pub git: BareRepository,
    pub default_branch: String,
    /// The address of the forge, for links.
    pub url: String,
    pub quirks: ForgeQuirks,
    pub faults: ForgeFaults,
    pub users: Vec<ForgeUser>,
    pub pulls: Vec<ForgePull>,
    pub comments: Vec<ForgeComment>,
    pub reviews: Vec<ForgeReview>,
    pub statuses: Vec<ForgeStatus>,
    pub labels: Vec<ForgeLabel>,
    pub hooks: Vec<ForgeHook>,
    pub protections: Vec<ForgeBranchRule>,
    pub requests: Vec<String>,
    pub answer_time: Duration,
    pub deliveries: Vec<DeliveryRecord>,
    pub delivery_sender: UnboundedSender<UnsentDelivery>,
    /// The last id of any row: all kinds share one sequence.
    last_id: i64,
    /// Seconds: each write is later than the one before.
    pub clock: i64,
}

impl ForgeState {
    pub fn new(url: &str, sender: UnboundedSender<UnsentDelivery>) -> Self {
        Self {
            git: BareRepository::new(),
            default_branch: "main".to_owned(),
            url: url.to_owned(),
            quirks: ForgeQuirks::default(),
            faults: ForgeFaults::default(),
            users: Vec::new(),
            pulls: Vec::new(),
            comments: Vec::new(),
            reviews: Vec::new(),
            statuses: Vec::new(),
            labels: Vec::new(),
            hooks: Vec::new(),
            protections: Vec::new(),
            requests: Vec::new(),
            answer_time: Duration::ZERO,
            deliveries: Vec::new(),
            delivery_sender: sender,
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

    pub fn format_time(seconds: i64) -> String {
        Timestamp::from_second(seconds).expect("a time").to_string()
    }

    pub fn repository_value(&self, right: ForgePermission) -> Value {
        let rights = json!({
            "admin": right >= ForgePermission::Admin, "push": right >= ForgePermission::Write, "pull": right >= ForgePermission::Read,
        });
        json!({"id": 1, "full_name": super::REPOSITORY, "default_branch": self.default_branch, "permissions": rights})
    }

    pub fn page(&self, items: Vec<Value>, request: &ForgeRequest) -> ForgeAnswer {
        ForgeAnswer::page(items, request, self.quirks.max_page, !self.quirks.hides_totals)
    }

    /// A user commits on a branch; a new branch starts at `main`.
    pub fn push(&mut self, login: &str, branch: &str, subject: &str, changes: &[FileChange]) -> Oid {
        let before = self.git.tip(branch);
        let parent = before.or_else(|| self.git.tip("main"));
        let when = self.now();
        let commit = self.git.commit(parent, login, when, subject, changes);
        self.git.set_branch(branch, commit);
        self.branch_updated(login, branch, before, Some(commit));
        commit
    }

    /// Does all that follows from a new tip of a branch.
    pub fn branch_updated(&mut self, login: &str, branch: &str, before: Option<Oid>, after: Option<Oid>) {
        self.queue_push(login, branch, before, after);
        if let Some(after) = after {
            self.update_pull_heads(login, branch, after);
        }
        let late = self.quirks.late_merge_checks;
        for pull in self.pulls.iter_mut().filter(|pull| pull.is_open && pull.base == branch) {
            pull.unchecked_reads = late;
        }
    }

    /// The token of a user is the login.
    pub fn answer(&mut self, token: Option<&str>, request: &ForgeRequest) -> ForgeAnswer {
        self.requests.push(request.line.clone());
        let path: Vec<&str> = request.path.iter().map(String::as_str).collect();
        if path == ["version"] {
            return ForgeAnswer::of(200, json!({"version": "1.26.4"}));
        }
        let doer = match token {
            Some(token) if self.users.iter().any(|user| user.login == token) => token.to_owned(),
            _ => return ForgeAnswer::error(401, "invalid username, password or token"),
        };
        if path == ["user"] {
            return ForgeAnswer::of(200, self.user_value(&doer));
        }
        let (owner, name) = super::REPOSITORY.split_once('/').expect("a repository");
        let right = self.permission_of(&doer);
        let path = match path.as_slice() {
            ["repos", it_owner, it_name, path @ ..]
                if (*it_owner, *it_name) == (owner, name) && right > ForgePermission::None =>
            {
                path
            }
            _ => return ForgeAnswer::not_found(),
        };
        let needed = match (request.method.as_str(), path) {
            (_, ["hooks" | "branch_protections", ..]) => ForgePermission::Admin,
            // Users with read access may open, comment and review.
            ("GET", _) | (_, ["issues", ..]) | ("POST", ["pulls"] | ["pulls", _, "reviews"]) => {
                ForgePermission::Read
            }
            _ => ForgePermission::Write,
        };
        if right < needed {
            return ForgeAnswer::error(403, "user should have a permission to write to a repo");
        }
        self.answer_to(&doer, path, request)
    }

    fn answer_to(&mut self, doer: &str, path: &[&str], request: &ForgeRequest) -> ForgeAnswer {
        match (request.method.as_str(), path) {
            ("GET", []) => ForgeAnswer::of(200, self.repository_value(self.permission_of(doer))),
            ("GET", ["collaborators", login, "permission"]) => self.answer_permission(doer, login),
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
            ("GET", ["commits", commit, "pull"]) => self.answer_merged_pull(commit),
            ("GET", ["git", "commits", commit]) => self.answer_commit(commit),
            _ => ForgeAnswer::not_found(),
        }
    }
}
