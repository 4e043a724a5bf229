//! Pull requests, their labels, users and permissions.

use std::collections::BTreeMap;

use jiff::Timestamp;
use reqwest::{Method, StatusCode, Url};
use serde::Deserialize;
use serde_json::json;

use super::GiteaClient;
use super::http::{GiteaCall, MOST_ITEMS, error_message};
use crate::forge::{
    Error, ForgeOperation, Label, MergeMethod, NewPull, Permission, Pull, PullEdit, PullFilter, PullSide,
    PullState, User, is_commit,
};
use crate::model::Revision;

const READ_USER: GiteaCall = GiteaCall(ForgeOperation::ReadUser, "read the token's user");
const READ_PERMISSION: GiteaCall = GiteaCall(ForgeOperation::ReadUser, "read a user's permission");
const READ_PULLS: GiteaCall = GiteaCall(ForgeOperation::ReadPulls, "read pull requests");
const CREATE_PULL: GiteaCall = GiteaCall(ForgeOperation::WritePull, "create a pull request");
const EDIT_PULL: GiteaCall = GiteaCall(ForgeOperation::WritePull, "edit a pull request");
const CLOSE_PULL: GiteaCall = GiteaCall(ForgeOperation::WritePull, "close a pull request");
const MERGE_PULL: GiteaCall = GiteaCall(ForgeOperation::MergePull, "merge a pull request");
const READ_LABELS: GiteaCall = GiteaCall(ForgeOperation::ReadSettings, "read labels");
const CREATE_LABEL: GiteaCall = GiteaCall(ForgeOperation::WriteSettings, "create a label");
const ADD_LABELS: GiteaCall = GiteaCall(ForgeOperation::WritePull, "label a pull request");
/// Searched for those of a branch, the most recently updated first.
const MOST_SEARCHED: usize = 1_000;

impl GiteaClient {
    pub(in crate::forge) async fn who_am_i(&self) -> Result<User, Error> {
        let user: UserResponse = self.get(READ_USER, self.url(&["user"])).await?;
        Ok(User { login: user.login, id: user.id })
    }

    pub(in crate::forge) async fn permission(&self, login: &str) -> Result<Permission, Error> {
        #[derive(Deserialize)]
        struct Answered {
            permission: String,
        }
        let url = self.repository_url(&["collaborators", login, "permission"]);
        // A deleted user has no permission.
        let answered: Option<Answered> = self.find(READ_PERMISSION, url).await?;
        let Some(answered) = answered else { return Ok(Permission::None) };
        match answered.permission.as_str() {
            "none" => Ok(Permission::None),
            "read" => Ok(Permission::Read),
            "write" => Ok(Permission::Write),
            "admin" | "owner" => Ok(Permission::Admin),
            _ => Err(self.unexpected_answer(READ_PERMISSION, "the permission is an unknown word".to_owned())),
        }
    }

    pub(in crate::forge) async fn pulls(&self, filter: &PullFilter) -> Result<Vec<Pull>, Error> {
        let mut url = self.repository_url(&["pulls"]);
        let state = if filter.with_closed { "all" } else { "open" };
        let fixed = [("state", Some(state)), ("sort", Some("recentupdate"))];
        let named = [("poster", filter.author.as_deref()), ("base_branch", filter.base.as_deref())];
        for (name, value) in fixed.into_iter().chain(named) {
            if let Some(value) = value {
                url.query_pairs_mut().append_pair(name, value);
            }
        }
        let is_all = filter.most == 0;
        let most = if is_all { MOST_ITEMS + 1 } else { filter.most.min(MOST_ITEMS) };
        // Anybody may open a pull request with a text of any length.
        let mut answered: Vec<PullResponse> = self.list_first(READ_PULLS, url, most, true).await?;
        if is_all && answered.len() > MOST_ITEMS {
            return Err(self.unexpected_answer(READ_PULLS, format!("it has more than {MOST_ITEMS} items")));
        }
        answered.truncate(most);
        // Older versions ignore both filters.
        let is_wanted = |pull: &Pull| {
            let is_by = |author: &String| pull.author.eq_ignore_ascii_case(author);
            filter.author.as_ref().is_none_or(is_by)
                && filter.base.as_ref().is_none_or(|base| *base == pull.base.reference)
        };
        Ok(answered.into_iter().filter_map(PullResponse::into_pull).filter(is_wanted).collect())
    }

    pub(in crate::forge) async fn pulls_of_branch(&self, branch: &str) -> Result<Vec<Pull>, Error> {
        let filter = PullFilter { with_closed: true, most: MOST_SEARCHED, ..PullFilter::default() };
        let mut pulls = self.pulls(&filter).await?;
        pulls.retain(|pull| !pull.head.is_fork && pull.head.reference == branch);
        Ok(pulls)
    }

    pub(in crate::forge) async fn pull(&self, number: u64) -> Result<Option<Pull>, Error> {
        let answered: Option<PullResponse> = self.find(READ_PULLS, self.pull_url(number, &[])).await?;
        Ok(answered.and_then(PullResponse::into_pull))
    }

    pub(in crate::forge) async fn merged_pull(&self, revision: &Revision) -> Result<Option<Pull>, Error> {
        let url = self.repository_url(&["commits", revision.as_str(), "pull"]);
        let answered: Option<PullResponse> = self.find(READ_PULLS, url).await?;
        Ok(answered.and_then(PullResponse::into_pull).filter(|pull| pull.state == PullState::Merged))
    }

    pub(in crate::forge) async fn create_pull(&self, pull: &NewPull) -> Result<Pull, Error> {
        let labels = self.label_ids(&pull.labels).await?;
        let body = json!({
            "head": pull.head, "base": pull.base, "title": pull.title, "body": pull.body, "labels": labels,
        });
        let answer =
            self.write(CREATE_PULL, Method::POST, self.repository_url(&["pulls"]), Some(&body)).await?;
        let answered: PullResponse = self.parse(CREATE_PULL, &answer)?;
        let pull = answered.into_pull();
        pull.ok_or_else(|| self.unexpected_answer(CREATE_PULL, "its head is not a commit".to_owned()))
    }

    pub(in crate::forge) async fn edit_pull(&self, number: u64, edit: &PullEdit) -> Result<(), Error> {
        let mut body = json!({});
        for (name, text) in [("title", &edit.title), ("body", &edit.body)] {
            if let Some(text) = text {
                body[name] = text.as_str().into();
            }
        }
        self.write(EDIT_PULL, Method::PATCH, self.pull_url(number, &[]), Some(&body)).await.map(drop)
    }

    pub(in crate::forge) async fn close_pull(&self, number: u64) -> Result<(), Error> {
        let body = json!({"state": "closed"});
        self.write(CLOSE_PULL, Method::PATCH, self.pull_url(number, &[]), Some(&body)).await.map(drop)
    }

    pub(in crate::forge) async fn merge_pull(
        &self,
        number: u64,
        how: MergeMethod,
        head: &Revision,
    ) -> Result<(), Error> {
        let how = match how {
            MergeMethod::Merge => "merge",
            MergeMethod::Squash => "squash",
            MergeMethod::Rebase => "rebase",
            MergeMethod::FastForward => "fast-forward-only",
        };
        let body = json!({"Do": how, "head_commit_id": head.as_str()});
        let request = self.request(Method::POST, self.pull_url(number, &["merge"])).json(&body);
        let answer = self.send(MERGE_PULL, request).await?;
        let (url, step) = (self.address(), MERGE_PULL.1);
        let message = error_message(&answer.body);
        match answer.status {
            StatusCode::METHOD_NOT_ALLOWED => Err(Error::NotMergeable { url, step, message }),
            // The base moved during the merge. The same request may succeed.
            StatusCode::CONFLICT if message.contains("push out of date") => {
                Err(Error::NotMergeable { url, step, message })
            }
            StatusCode::CONFLICT if message.contains("head out of date") => {
                Err(Error::HeadMoved { url, step, head: head.to_string(), message })
            }
            _ => self.expect_success(MERGE_PULL, answer).await.map(drop),
        }
    }

    pub(in crate::forge) async fn labels(&self) -> Result<Vec<Label>, Error> {
        let labels: Vec<LabelResponse> = self.list(READ_LABELS, self.repository_url(&["labels"])).await?;
        let label = |it: LabelResponse| Label { name: it.name, color: it.color, description: it.description };
        Ok(labels.into_iter().map(label).collect())
    }

    pub(in crate::forge) async fn ensure_labels(&self, labels: &[Label]) -> Result<Vec<String>, Error> {
        let known = self.labels().await?;
        let mut created = Vec::new();
        for label in labels.iter().filter(|label| !known.iter().any(|it| it.name == label.name)) {
            let body = json!({
                "name": label.name, "color": format!("#{}", label.color), "description": label.description,
            });
            self.write(CREATE_LABEL, Method::POST, self.repository_url(&["labels"]), Some(&body)).await?;
            created.push(label.name.clone());
        }
        Ok(created)
    }

    pub(in crate::forge) async fn add_labels(&self, number: u64, names: &[String]) -> Result<(), Error> {
        let ids = self.label_ids(names).await?;
        let url = self.issue_url(number, "labels");
        self.write(ADD_LABELS, Method::POST, url, Some(&json!({"labels": ids}))).await.map(drop)
    }

    /// Older versions accept only the numbers of labels.
    async fn label_ids(&self, names: &[String]) -> Result<Vec<i64>, Error> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let labels: Vec<LabelResponse> = self.list(READ_LABELS, self.repository_url(&["labels"])).await?;
        let ids: BTreeMap<&str, i64> = labels.iter().map(|label| (label.name.as_str(), label.id)).collect();
        let id = |name: &String| {
            let id = ids.get(name.as_str()).copied();
            id.ok_or_else(|| self.unexpected_answer(READ_LABELS, format!("there is no label `{name}`")))
        };
        names.iter().map(id).collect()
    }

    pub(super) fn pull_url(&self, number: u64, rest: &[&str]) -> Url {
        self.repository_url(&[&["pulls", &number.to_string()], rest].concat())
    }

    /// Comments and labels of a pull request belong to the issue with its number.
    pub(super) fn issue_url(&self, number: u64, rest: &str) -> Url {
        self.repository_url(&["issues", &number.to_string(), rest])
    }
}

/// A time of Gitea, which an answer may lack.
pub(super) fn parse_time(text: Option<&str>) -> Timestamp {
    text.and_then(|text| text.parse().ok()).unwrap_or(Timestamp::UNIX_EPOCH)
}

#[derive(Deserialize)]
pub(super) struct UserResponse {
    pub login: String,
    #[serde(default)]
    pub id: i64,
}

#[derive(Deserialize)]
struct LabelResponse {
    #[serde(default)]
    id: i64,
    name: String,
    #[serde(default)]
    color: String,
    #[serde(default)]
    description: String,
}

#[derive(Deserialize)]
struct PullResponse {
    number: u64,
    title: Option<String>,
    body: Option<String>,
    state: Option<String>,
    #[serde(default)]
    merged: bool,
    #[serde(default)]
    draft: bool,
    user: Option<UserResponse>,
    head: PullSideResponse,
    base: PullSideResponse,
    labels: Option<Vec<LabelResponse>>,
    html_url: Option<String>,
    merged_by: Option<UserResponse>,
    merge_commit_sha: Option<String>,
    updated_at: Option<String>,
}

#[derive(Deserialize)]
struct PullSideResponse {
    label: Option<String>,
    #[serde(rename = "ref")]
    reference: Option<String>,
    sha: Option<String>,
    repo: Option<PullRepositoryResponse>,
}

#[derive(Deserialize)]
struct PullRepositoryResponse {
    id: i64,
    full_name: String,
}

impl PullResponse {
    /// `None` if a side has no commit: one broken pull request must not hide the others.
    fn into_pull(self) -> Option<Pull> {
        let home = self.base.repo.as_ref().map(|repository| repository.id);
        // Without a label it was a push to `refs/for/…`, which every reader may do.
        let is_fork = home.is_none()
            || self.head.repo.as_ref().map(|repository| repository.id) != home
            || self.head.label.as_ref().is_none_or(String::is_empty);
        let state = match (self.merged, self.state.as_deref()) {
            (true, _) => PullState::Merged,
            (false, Some("open")) => PullState::Open,
            _ => PullState::Closed,
        };
        Some(Pull {
            number: self.number,
            title: self.title.unwrap_or_default(),
            body: self.body.unwrap_or_default(),
            state,
            is_draft: self.draft,
            author: self.user.map(|user| user.login).unwrap_or_default(),
            head: self.head.into_branch(is_fork)?,
            base: self.base.into_branch(false)?,
            labels: self.labels.unwrap_or_default().into_iter().map(|label| label.name).collect(),
            url: self.html_url.unwrap_or_default(),
            merged_by: self.merged_by.map(|user| user.login),
            merge_commit: self.merge_commit_sha.and_then(|id| parse_revision(&id)),
            updated_at: parse_time(self.updated_at.as_deref()),
        })
    }
}

impl PullSideResponse {
    fn into_branch(self, is_fork: bool) -> Option<PullSide> {
        // The label keeps the name of a deleted branch.
        let label = self.label.filter(|label| !label.is_empty());
        Some(PullSide {
            reference: label.or(self.reference).unwrap_or_default(),
            revision: parse_revision(&self.sha?)?,
            repository: self.repo.map(|repository| repository.full_name),
            is_fork,
        })
    }
}

pub(super) fn parse_revision(id: &str) -> Option<Revision> {
    is_commit(id).then(|| Revision::from(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "3f9c2d1a0000000000000000000000000000beef";

    fn answered(head: &serde_json::Value, others: &serde_json::Value) -> Option<Pull> {
        let mut value = json!({"number": 7, "state": "open", "html_url": "https://gitea/7",
            "user": {"id": 3, "login": "li"}, "updated_at": "2026-11-27T14:10:04+08:00",
            "base": {"label": "main", "ref": "main", "sha": HEAD, "repo": {"id": 1, "full_name": "a/b"}}});
        value["head"] = head.clone();
        for (name, field) in others.as_object().expect("fields") {
            value[name] = field.clone();
        }
        serde_json::from_value::<PullResponse>(value).expect("a pull request").into_pull()
    }

    #[test]
    fn head_is_ours_only_on_our_branch() {
        let check = |label: &str, reference: &str, repo: serde_json::Value, expected: (&str, bool)| {
            let head = json!({"label": label, "ref": reference, "sha": HEAD, "repo": repo});
            let head = answered(&head, &json!({})).expect("a pull request").head;
            assert_eq!((head.reference.as_str(), head.is_fork), expected, "{label} {reference} {repo}");
        };
        let ours = json!({"id": 1, "full_name": "a/b"});
        check("bump", "bump", ours.clone(), ("bump", false));
        check("bump", "bump", json!({"id": 2, "full_name": "li/b"}), ("bump", true));
        check("bump", "bump", json!(null), ("bump", true));
        // The branch was deleted.
        check("bump", "refs/pull/7/head", ours.clone(), ("bump", false));
        // Pushed to `refs/for/main`: in our repository, and open to every reader.
        check("", "refs/pull/7/head", ours, ("refs/pull/7/head", true));
    }

    #[test]
    fn states_and_people_are_read() {
        let head =
            json!({"label": "bump", "ref": "bump", "sha": HEAD, "repo": {"id": 1, "full_name": "a/b"}});
        let check = |others: serde_json::Value, expected: PullState, merged_by: Option<&str>| {
            let pull = answered(&head, &others).expect("a pull request");
            assert_eq!((pull.state, pull.merged_by.as_deref()), (expected, merged_by), "{others}");
        };
        check(json!({}), PullState::Open, None);
        check(json!({"state": "closed"}), PullState::Closed, None);
        let merged = json!({"state": "closed", "merged": true, "merged_by": {"login": "wu"}, "labels": null});
        check(merged, PullState::Merged, Some("wu"));
        let pull =
            answered(&head, &json!({"user": null, "labels": [{"name": "tutti"}]})).expect("a pull request");
        assert_eq!((pull.author.as_str(), pull.labels), ("", vec!["tutti".to_owned()]));
        assert_eq!(pull.updated_at.to_string(), "2026-11-27T06:10:04Z");
        // A pull request without a head is skipped.
        let headless = json!({"label": "bump", "ref": "bump", "sha": "", "repo": null});
        assert_eq!(answered(&headless, &json!({})), None);
    }
}
