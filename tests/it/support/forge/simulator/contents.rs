//! Branches, comparisons, and commits through the API.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use git2::Oid;
use serde_json::{Value, json};

use super::answers::{ForgeAnswer, ForgeRequest};
use super::git::{FileChange, ForgeCommitRow};
use super::state::ForgeState;
use super::users::ForgePermission;

impl ForgeState {
    pub fn answer_branch(&mut self, doer: &str, name: &str, request: &ForgeRequest) -> ForgeAnswer {
        let Some(tip) = self.git.tip(name) else {
            return ForgeAnswer::error(404, "branch does not exist");
        };
        match request.method.as_str() {
            "GET" => {
                let rule = self.protection_of(name);
                // Only administrators see the name of the rule.
                let shown = rule
                    .filter(|_| self.permission_of(doer) >= ForgePermission::Admin)
                    .map_or("", |rule| &rule.rule);
                ForgeAnswer::of(
                    200,
                    json!({
                        "name": name, "commit": {"id": tip.to_string()}, "protected": rule.is_some(),
                        "effective_branch_protection_name": shown,
                    }),
                )
            }
            "DELETE" if name == "main" => ForgeAnswer::error(403, "can not delete default branch"),
            "DELETE" => {
                self.git.delete_branch(name);
                self.close_pulls_of_branch(doer, name);
                self.branch_updated(doer, name, Some(tip), None);
                ForgeAnswer::empty(204)
            }
            _ => ForgeAnswer::not_found(),
        }
    }

    pub fn compare(&self, pair: &str) -> ForgeAnswer {
        let id = |name: &str| self.git.tip(name).or_else(|| Oid::from_str(name).ok());
        let ids = pair.split_once("...").map(|(base, head)| (id(base), id(head)));
        let Some((Some(base), Some(head))) = ids else { return ForgeAnswer::not_found() };
        if !self.git.has_commit(&base.to_string()) || !self.git.has_commit(&head.to_string()) {
            return ForgeAnswer::not_found();
        }
        let rows = self.git.commits_between(Some(base), head);
        let commits: Vec<Value> = rows.iter().map(|row| self.commit_value(row)).collect();
        ForgeAnswer::of(200, json!({"total_commits": commits.len(), "commits": commits}))
    }

    pub fn answer_commit(&self, commit: &str) -> ForgeAnswer {
        match Oid::from_str(commit).ok().filter(|_| self.git.has_commit(commit)) {
            Some(id) => ForgeAnswer::of(200, self.commit_value(&self.git.commit_row(id))),
            None => ForgeAnswer::error(404, "object does not exist"),
        }
    }

    pub fn raw_file(&self, path: &str, request: &ForgeRequest) -> ForgeAnswer {
        let commit = request.query.get("ref").and_then(|id| Oid::from_str(id).ok());
        match commit.and_then(|commit| self.git.file(commit, path)) {
            Some((_, content)) => ForgeAnswer::raw(content),
            None => ForgeAnswer::not_found(),
        }
    }

    pub fn commit_value(&self, row: &ForgeCommitRow) -> Value {
        json!({
            "sha": row.id.to_string(), "author": self.user_value_of_email(&row.author),
            "committer": self.user_value_of_email(&row.committer),
            "commit": {"message": row.message, "author": {"email": row.author},
                "committer": {"email": row.committer}},
        })
    }

    pub fn write_files(&mut self, doer: &str, request: &ForgeRequest) -> ForgeAnswer {
        let (base, new) = (request.text("branch"), request.text("new_branch"));
        let Some(tip) = self.git.tip(base) else {
            return ForgeAnswer::error(404, "branch does not exist");
        };
        if !new.is_empty() && self.git.tip(new).is_some() {
            return ForgeAnswer::error(422, "branch already exists");
        }
        let files = request.body["files"].as_array().into_iter().flatten();
        let changes: Result<Vec<FileChange>, ForgeAnswer> =
            files.map(|file| self.change(tip, file)).collect();
        let changes = match changes {
            Ok(changes) => changes,
            Err(answer) => return answer,
        };
        let when = self.now();
        let commit = self.git.commit(Some(tip), doer, when, request.text("message"), &changes);
        let branch = if new.is_empty() { base } else { new };
        let before = new.is_empty().then_some(tip);
        self.git.set_branch(branch, commit);
        self.branch_updated(doer, branch, before, Some(commit));
        ForgeAnswer::of(201, json!({"commit": {"sha": commit.to_string()}}))
    }

    fn change(&self, tip: Oid, file: &Value) -> Result<FileChange, ForgeAnswer> {
        let path = file["path"].as_str().unwrap_or_default().to_owned();
        let there = self.git.file(tip, &path).map(|(id, _)| id.to_string());
        let content = || {
            let decoded = STANDARD.decode(file["content"].as_str().unwrap_or_default());
            decoded.map_err(|_| ForgeAnswer::error(422, "content is not base64"))
        };
        let operation = file["operation"].as_str().unwrap_or_default();
        match (operation, there) {
            ("create", Some(_)) => Err(ForgeAnswer::error(422, "repository file already exists")),
            ("create", None) => Ok((path, Some(content()?))),
            ("update" | "delete", None) => Err(ForgeAnswer::error(404, "object does not exist")),
            ("update" | "delete", Some(id)) if file["sha"] != id.as_str() => {
                Err(ForgeAnswer::error(422, "sha does not match"))
            }
            ("update", Some(_)) => Ok((path, Some(content()?))),
            ("delete", Some(_)) => Ok((path, None)),
            _ => Err(ForgeAnswer::error(422, "an unknown operation")),
        }
    }
}
