//! Branches, their commits, and commits made by the API.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::{Method, StatusCode, Url};
use serde::Deserialize;
use serde_json::{Value, json};

use super::GiteaClient;
use super::http::{GiteaCall, error_message};
use super::pulls::{UserResponse, parse_revision};
use crate::forge::{BranchCommit, Error, FileChange, FileCommit, ForgeOperation, Person};
use crate::model::Revision;

pub(super) const READ_BRANCH: GiteaCall = GiteaCall(ForgeOperation::ReadBranch, "read a branch");
const READ_COMMITS: GiteaCall = GiteaCall(ForgeOperation::ReadBranch, "compare branches");
const READ_FILE: GiteaCall = GiteaCall(ForgeOperation::ReadBranch, "read a file");
const WRITE_FILES: GiteaCall = GiteaCall(ForgeOperation::WriteBranch, "commit files");
const DELETE_BRANCH: GiteaCall = GiteaCall(ForgeOperation::WriteBranch, "delete a branch");

impl GiteaClient {
    pub(in crate::forge) async fn branch(&self, name: &str) -> Result<Option<Revision>, Error> {
        let branch: Option<BranchResponse> = self.find(READ_BRANCH, self.branch_url(name)).await?;
        let commit = branch.and_then(|branch| branch.commit);
        Ok(commit.and_then(|commit| parse_revision(&commit.id)))
    }

    pub(in crate::forge) async fn commit(&self, revision: &Revision) -> Result<Option<BranchCommit>, Error> {
        let mut url = self.repository_url(&["git", "commits", revision.as_str()]);
        for name in ["stat", "files", "verification"] {
            url.query_pairs_mut().append_pair(name, "false");
        }
        let found: Option<CommitResponse> = self.find(READ_COMMITS, url).await?;
        Ok(found.and_then(CommitResponse::into_commit))
    }

    pub(in crate::forge) async fn file(
        &self,
        revision: &Revision,
        path: &str,
    ) -> Result<Option<Vec<u8>>, Error> {
        let parts: Vec<&str> = ["raw"].into_iter().chain(path.split('/')).collect();
        let mut url = self.repository_url(&parts);
        url.query_pairs_mut().append_pair("ref", revision.as_str());
        let answer = self.send(READ_FILE, self.request(Method::GET, url)).await?;
        let is_missing = answer.status == StatusCode::NOT_FOUND;
        match self.expect_success(READ_FILE, answer).await {
            Err(Error::Refused { .. }) if is_missing => Ok(None),
            result => result.map(Some),
        }
    }

    pub(in crate::forge) async fn pull_commits(&self, number: u64) -> Result<Vec<BranchCommit>, Error> {
        let mut url = self.pull_url(number, &["commits"]);
        url.query_pairs_mut().append_pair("files", "false").append_pair("verification", "false");
        let answered: Vec<CommitResponse> = self.list(READ_COMMITS, url).await?;
        let commits: Option<Vec<BranchCommit>> =
            answered.into_iter().map(CommitResponse::into_commit).collect();
        commits.ok_or_else(|| self.unexpected_answer(READ_COMMITS, "an id is not a commit".to_owned()))
    }

    pub(in crate::forge) async fn branch_commits(
        &self,
        base: &str,
        head: &str,
    ) -> Result<Vec<BranchCommit>, Error> {
        let pair = format!("{base}...{head}");
        let mut url = self.repository_url(&["compare"]);
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.extend(pair.split('/'));
        }
        url.query_pairs_mut().append_pair("files", "false").append_pair("verification", "false");
        let compared: CompareResponse = self.get(READ_COMMITS, url).await?;
        let commits = compared.commits.unwrap_or_default().into_iter().map(|commit| commit.into_commit());
        let commits: Option<Vec<BranchCommit>> = commits.collect();
        commits.ok_or_else(|| self.unexpected_answer(READ_COMMITS, "an id is not a commit".to_owned()))
    }

    pub(in crate::forge) async fn commit_files(&self, commit: &FileCommit) -> Result<Revision, Error> {
        let mut body = json!({
            "branch": commit.branch, "message": commit.message,
            "files": commit.files.iter().map(file_operation).collect::<Vec<_>>(),
        });
        if let Some(base) = &commit.new_branch_from {
            body["branch"] = base.as_str().into();
            body["new_branch"] = commit.branch.as_str().into();
        }
        let request = self.request(Method::POST, self.repository_url(&["contents"])).json(&body);
        let answer = self.send(WRITE_FILES, request).await?;
        let (url, step, message) = (self.address(), WRITE_FILES.1, error_message(&answer.body));
        let is_conflict = matches!(answer.status, StatusCode::UNPROCESSABLE_ENTITY | StatusCode::NOT_FOUND);
        let body = match self.expect_success(WRITE_FILES, answer).await {
            // A file or branch changed, was removed, or exists although it should be new.
            Err(Error::Refused { .. }) if is_conflict => return Err(Error::Conflict { url, step, message }),
            result => result?,
        };
        let written: FileCommitResponse = self.parse(WRITE_FILES, &body)?;
        let id = parse_revision(&written.commit.sha);
        id.ok_or_else(|| self.unexpected_answer(WRITE_FILES, "its id is not a commit".to_owned()))
    }

    pub(in crate::forge) async fn delete_branch(&self, name: &str) -> Result<(), Error> {
        let request = self.request(Method::DELETE, self.branch_url(name));
        let answer = self.send(DELETE_BRANCH, request).await?;
        let is_gone = answer.status == StatusCode::NOT_FOUND;
        match self.expect_success(DELETE_BRANCH, answer).await {
            Err(Error::Refused { .. }) if is_gone => Ok(()),
            result => result.map(drop),
        }
    }

    pub(super) fn branch_url(&self, name: &str) -> Url {
        let parts: Vec<&str> = ["branches"].into_iter().chain(name.split('/')).collect();
        self.repository_url(&parts)
    }
}

fn file_operation(file: &FileChange) -> Value {
    let operation = match (&file.content, &file.replaces) {
        (None, _) => "delete",
        (Some(_), Some(_)) => "update",
        (Some(_), None) => "create",
    };
    let mut value = json!({"operation": operation, "path": file.path});
    if let Some(content) = &file.content {
        value["content"] = STANDARD.encode(content).into();
    }
    if let Some(id) = &file.replaces {
        value["sha"] = id.as_str().into();
    }
    value
}

#[derive(Deserialize)]
pub(super) struct BranchResponse {
    commit: Option<BranchTip>,
    #[serde(default)]
    pub protected: bool,
    /// Only visible to users who may change it.
    pub effective_branch_protection_name: Option<String>,
}

#[derive(Deserialize)]
struct BranchTip {
    id: String,
}

#[derive(Deserialize)]
struct CompareResponse {
    commits: Option<Vec<CommitResponse>>,
}

#[derive(Deserialize)]
struct CommitResponse {
    sha: String,
    author: Option<UserResponse>,
    committer: Option<UserResponse>,
    commit: CommitSignatures,
}

#[derive(Deserialize)]
struct CommitSignatures {
    author: Option<CommitSignature>,
    committer: Option<CommitSignature>,
}

#[derive(Deserialize)]
struct CommitSignature {
    email: Option<String>,
}

#[derive(Deserialize)]
struct FileCommitResponse {
    commit: WrittenCommit,
}

#[derive(Deserialize)]
struct WrittenCommit {
    sha: String,
}

impl CommitResponse {
    fn into_commit(self) -> Option<BranchCommit> {
        let person = |signature: Option<CommitSignature>, user: Option<UserResponse>| Person {
            email: signature.and_then(|signature| signature.email).unwrap_or_default(),
            login: user.map(|user| user.login),
        };
        Some(BranchCommit {
            revision: parse_revision(&self.sha)?,
            author: person(self.commit.author, self.author),
            committer: person(self.commit.committer, self.committer),
        })
    }
}
